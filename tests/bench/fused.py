#!/usr/bin/env python3
"""Steps of training with fused and with plain operators, in turns, on each instruction set of this processor: nothing fused may be slower.

usage: fused.py [CLOZE] [--isa avx2,avx512] [--cases bert-mini,t5-mini] [--rounds 3] [--steps 6]      CLOZE: build/cloze
With less than the processor has, MKL, oneDNN and ATen are held to the same instruction set. The last line says which cases break the rule.
"""
import argparse, os, subprocess, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from paired import paired
from shapes import cases, root

limits = {  # what libraries call the instruction sets
    "portable": {}, "avx2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "avx512": {"MKL_ENABLE_INSTRUCTIONS": "AVX512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}, "avx512_bf16": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, "amx": {},
}

args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("cloze", nargs="?", default=str(root / "build/cloze")); args.add_argument("--isa"); args.add_argument("--cases")
args.add_argument("--rounds", type=int, default=3); args.add_argument("--steps", type=int, default=6)
args = args.parse_args()


def has(isa):
    """Whether this processor has an instruction set, which the program refuses otherwise."""
    probe = subprocess.run([args.cloze, "describe", f"{root}/configs/bert/tiny.yaml"], env={**os.environ, "CLOZE_ISA": isa}, capture_output=True, text=True)
    return "no instruction set" not in probe.stderr


isas = args.isa.split(",") if args.isa else [isa for isa in limits if isa != "portable" and has(isa)]
chosen = args.cases.split(",") if args.cases else list(cases)
print(f"{'case':24} {'isa':12} {'fused':>8} {'plain':>8}  plain / fused: median, pairs", flush=True)
slower = []
for name in chosen:
    for isa in isas:
        env = " ".join(f"{key}={value}" for key, value in {"CLOZE_ISA": isa, **(limits[isa] if isa != isas[-1] or args.isa else {})}.items())
        command = f"env {env} {args.cloze} benchmark {root}/configs/{cases[name]} --steps {args.steps} --steps-only --json"
        r = paired(command, command + " --plain", args.rounds)
        middle = lambda times: sorted(times)[len(times) // 2]
        print(f"{name:24} {isa:12} {middle(r['ours_ms']):8} {middle(r['theirs_ms']):8}  {r['ratio']:5.2f}  {r['pairs']}", flush=True)
        if r["ratio"] < 0.98: slower.append(f"{name} on {isa}")
print("slower than plain by more than 2 %: " + (", ".join(slower) or "nothing"))
