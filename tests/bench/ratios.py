#!/usr/bin/env python3
"""The target ratios of Cloze to its Python peers, each measured by alternating the two on this machine.

usage: ratios.py PEERS [CASE ...] [--rounds 3] [--python python3]     PEERS: a folder with peer_train.py and peer_attention.py; no CASE: all of them
Performer cases need performer-pytorch at the path in PEER_EXTRA. `cloze` and `bench_attention` are those of build/.
"""
import argparse, os, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from paired import paired

root = Path(__file__).resolve().parents[2]
short = "--set train.batch_size=8 --set train.accumulation=1 --set data.max_seq_length=128"
cases = {  # name: target ratio, target share of the peer's memory, config of Cloze, command of the peer
    "bert-mini default": (8, None, "bert/mini.yaml", "peer_train.py bert-mini --mode default --steps 5"),
    "bert-mini tuned": (3, None, "bert/mini.yaml", "peer_train.py bert-mini --mode tuned --steps 8"),
    "bert-mini masked": (1.5, None, "bert/mini.yaml", "peer_train.py bert-mini --mode tuned --masked --steps 8"),
    "bert-base tuned": (1.5, None, f"bert/base.yaml {short}", "peer_train.py bert-base --mode tuned --steps 5"),
    "bert-base default": (4, None, f"bert/base.yaml {short}", "peer_train.py bert-base --mode default --steps 4"),
    "electra-small tuned": (3, None, "electra/small.yaml --set train.batch_size=32 --set data.max_seq_length=128", "peer_train.py electra-small --mode tuned --steps 4"),
    "albert-base tuned": (1.7, None, f"albert/base.yaml --set model.vocab_size=30522 --set optimizer.kind=adamw {short}", "peer_train.py albert-base --mode tuned --steps 5"),
    "longformer masked": (2.5, 0.5, "longformer/long.yaml --set train.accumulation=1", "peer_train.py longformer-4096 --mode tuned --masked --steps 5"),
    "performer tuned": (None, None, "performer/long.yaml --set train.accumulation=1", "peer_train.py performer-4096 --mode tuned --steps 4"),
    "xlnet-mini tuned": (3, None, "xlnet/mini.yaml", "peer_train.py xlnet-mini --mode tuned --steps 8"),
    "t5-mini tuned": (2.5, None, "t5/mini.yaml --set model.vocab_size=30522", "peer_train.py t5-mini --mode tuned --steps 5"),
    "bart-mini tuned": (2.5, None, "bart/mini.yaml --set model.vocab_size=30522", "peer_train.py bart-mini --mode tuned --steps 5"),
    "performer causal, attention alone": (8, None, None, "peer_attention.py 2048 --seconds 1"),
}

args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("peers"); args.add_argument("cases", nargs="*"); args.add_argument("--rounds", type=int, default=3); args.add_argument("--python", default="python3")
args = args.parse_args()
print(f"{'case':36} {'ratio':>6} {'target':>7}   pairs                 cloze, peer [ms]       [MB]")
for name, (wanted, memory, config, peer) in cases.items():
    if args.cases and not any(name.startswith(case) for case in args.cases): continue
    command = f"{root}/build/cloze benchmark {root}/configs/{config} --steps 8 --json" if config else f"{root}/build/bench_attention 2048"
    pick = (lambda row: True) if config else (lambda row: row["case"] == "favor causal" and row["dtype"] == "fp32")
    r = paired(command, f"{args.python} {args.peers}/{peer}", args.rounds, pick)
    share = f"{r['ours_mb']:.0f}, {r['theirs_mb']:.0f}" + (f" = {r['ours_mb'] / r['theirs_mb']:.2f}, target {memory}" if memory else "") if r["ours_mb"] and r["theirs_mb"] else ""
    print(f"{name:36} {r['ratio']:6.2f} {wanted if wanted else '':>7}   {str(r['pairs']):21} {sorted(r['ours_ms'])[len(r['ours_ms']) // 2]:>6}, {sorted(r['theirs_ms'])[len(r['theirs_ms']) // 2]:<12} {share}", flush=True)
