#!/usr/bin/env python3
"""Steps of training on two cores, in turns alone and beside a process that uses one of them all the time.

usage: busy.py [CLOZE] [--cases bert-mini,t5-mini] [--cores 0,1] [--rounds 3] [--steps 6]      CLOZE: build/cloze
Half a core is lost then, so that three quarters of the rate alone are fair; of these 70 % are wanted. The cases are those of fused.py.
"""
import argparse, os, statistics, subprocess, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from paired import run
from shapes import cases, root

args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("cloze", nargs="?", default=str(root / "build/cloze")); args.add_argument("--cases", default="bert-mini"); args.add_argument("--cores", default="0,1")
args.add_argument("--rounds", type=int, default=3); args.add_argument("--steps", type=int, default=6)
args = args.parse_args()
first, second = args.cores.split(",")
fair = 0.75


def beside_another(command):
    """Milliseconds a step of a command while another process spins on the second core."""
    other = subprocess.Popen(["taskset", "-c", second, sys.executable, "-c", "while True: pass"])
    try: return run(command)[0]
    finally: other.kill(); other.wait()


print(f"{'case':24} {'alone':>8} {'beside':>8}  share of the fair rate: median, pairs", flush=True)
low = []
for name in args.cases.split(","):
    command = f"taskset -c {first},{second} {args.cloze} benchmark {root}/configs/{cases[name]} --set train.threads=2 --steps {args.steps} --steps-only --json"
    pairs = [(run(command)[0], beside_another(command)) for _ in range(args.rounds)]
    shares = [alone / beside / fair for alone, beside in pairs]
    alone, beside = (statistics.median(times) for times in zip(*pairs))
    print(f"{name:24} {alone:8.0f} {beside:8.0f}  {alone / beside / fair:5.2f}  {[round(share, 2) for share in shares]}", flush=True)
    if alone / beside / fair < 0.7: low.append(name)
print("less than 70 % of the fair rate: " + (", ".join(low) or "nothing"))
