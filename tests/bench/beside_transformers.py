#!/usr/bin/env python3
"""Steps of training beside transformers, in turns: what Trainer gives, the best that its user can have, and Cloze.

usage: beside_transformers.py PEERS [CLOZE] [--cases bert-mini,t5-mini] [--isa avx2] [--rounds 2] [--steps 3] [--python python3]
PEERS: a folder with a peer_train.py that knows the cases; --python has torch and transformers; CLOZE: build/cloze. The best is tcmalloc, fused AdamW and, where the
model's code allows it, predicted positions alone; in bf16 where there are units for it, else all are in fp32. The last line says which targets are missed.
"""
import argparse, statistics, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from paired import run
from shapes import cases, held_to, root

same_words = "--set model.vocab_size=30522"
rows = {  # options beside those of shapes.py, whether predicted positions alone can be had, targets: times faster than default and best, share of the best one's memory
    "bert-mini": ("", True, 4, 1.4, 0.4), "bert-base": ("", True, 1.6, 1.15, 0.85), "albert-base": (f"{same_words} --set optimizer.kind=adamw", True, None, 1.15, 0.4),
    "t5-mini": (same_words, False, None, 1.15, 0.4), "bart-mini": (same_words, False, None, 1.15, 0.4), "longformer-4096": ("", True, None, 1.8, 0.4), "xlnet-mini": ("", False, None, 1.8, 0.4),
}
args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("peers"); args.add_argument("cloze", nargs="?", default=str(root / "build/cloze")); args.add_argument("--cases"); args.add_argument("--isa"); args.add_argument("--python", default="python3")
args.add_argument("--rounds", type=int, default=2); args.add_argument("--steps", type=int, default=3)
args = args.parse_args()
env = held_to(args.isa) if args.isa else "env"
flags = Path("/proc/cpuinfo").read_text()
bf16 = ("avx512_bf16" in flags or "amx_bf16" in flags) and args.isa in (None, "avx512_bf16", "amx")
tcmalloc = "LD_PRELOAD=libtcmalloc_minimal.so.4"
print(f"{'bf16' if bf16 else 'fp32'}, ms a step and peak MB, medians; times as fast: median, single rounds")
print(f"| {'shape':16} | default | best | Cloze | default over Cloze | best over Cloze | MB: default, best, Cloze | of the best one's |\n|---|---|---|---|---|---|---|---|")
missed = []
for name in args.cases.split(",") if args.cases else rows:
    options, maskable, wanted_default, wanted_best, wanted_memory = rows[name]
    peer = f"{args.python} {args.peers}/peer_train.py {name} --steps {args.steps}" + " --mode "
    masked = " --masked" if maskable else ""
    commands = [f"{env} {peer}default", f"{env} {tcmalloc} {peer}{'tuned' if bf16 else 'default'}{masked}",
                f"{env} {args.cloze} benchmark {root}/configs/{cases[name]} {options} --set train.precision={'bf16' if bf16 else 'fp32'} --steps {2 * args.steps} --steps-only --json"]
    rounds = [[run(command) for command in commands] for _ in range(args.rounds)]
    default, best, ours = ([r[k][0] for r in rounds] for k in range(3))
    megabytes = [max(r[k][1] for r in rounds) for k in range(3)]
    times = lambda theirs: (statistics.median(theirs) / statistics.median(ours), " ".join(f"{b / a:.2f}" for a, b in zip(ours, theirs)))
    (over_default, single_default), (over_best, single_best), share = times(default), times(best), megabytes[2] / megabytes[1]
    print(f"| {name:16} | {statistics.median(default):,.0f} | {statistics.median(best):,.0f} | {statistics.median(ours):,.0f} | {over_default:.2f} ({single_default}) | "
          f"{over_best:.2f} ({single_best}) | {', '.join(f'{m:,.0f}' for m in megabytes)} | {share:.2f} |", flush=True)
    if wanted_default and over_default < wanted_default: missed.append(f"{name}: {over_default:.2f} of default, wanted {wanted_default}")
    if over_best < wanted_best: missed.append(f"{name}: {over_best:.2f} of best, wanted {wanted_best}")
    if share > wanted_memory: missed.append(f"{name}: {share:.2f} of the best one's memory, wanted {wanted_memory}")
print("missed: " + ("; ".join(missed) or "nothing"))
