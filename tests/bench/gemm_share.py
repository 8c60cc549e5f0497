#!/usr/bin/env python3
"""The rates of LibTorch's products at our shapes, and of whole steps, in fp32, as shares of the machine's GEMM rate.

usage: gemm_share.py [CLOZE] [--isa avx2] [--cases bert-mini,t5-mini] [--rounds 9] [--steps bert-base,bert-mini]      CLOZE: build/cloze; --steps none: products alone
Run it with a Python that has the torch of the build and its dependencies. The rate is that of 2,048 x 2,304 by 768, as `cloze benchmark` has it, in turns with
each product: forward, gradient of the input, gradient of the weight. The last line names what is below 85 %; `build/bench_matmul ROWS OUTPUTS INPUTS` has our own beside it.
"""
import argparse, json, os, statistics, subprocess, sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from shapes import cases, limits, root

layer = lambda width, inner: [(3 * width, width), (width, width), (inner, width), (width, inner)]
products = {  # rows, and outputs by inputs of the matrices that they are multiplied by; logits are computed 2,048 at a time, of predicted tokens alone
    "bert-mini": {4096: layer(256, 1024), 614: [(256, 256), (2048, 256)]}, "bert-base": {1024: layer(768, 3072), 154: [(768, 768), (2048, 768)]},
    "albert-base": {1024: [(768, 128)], 154: [(128, 768), (2048, 128)]}, "electra-small": {4096: [(192, 64), (256, 64), (64, 256), (256, 128)]},
    "xlnet-mini": {2048: [(256, 256), (512, 256), (1024, 256), (256, 1024)], 336: [(256, 256), (1024, 256), (256, 1024), (2048, 256)]},
    "t5-mini": {1024: layer(256, 1024) + [(2048, 256)], 4096: [(512, 256)]}, "bart-mini": {4096: [(512, 256), (2048, 256)]},
    "modernbert-quickstart": {1024: [(384, 128), (128, 128), (640, 128), (128, 320)]}, "gpt2-small": {1024: [(2048, 768)]},
}
args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("cloze", nargs="?", default=str(root / "build/cloze")); args.add_argument("--isa"); args.add_argument("--cases"); args.add_argument("--rounds", type=int, default=9)
args.add_argument("--steps", default="bert-base,bert-mini")
args = args.parse_args()
env = {"CLOZE_ISA": args.isa, **limits[args.isa]} if args.isa else {}
os.environ.update(env)   # before torch reads it

import torch


def gflops(f, work):
    """The rate of a product of so many multiply-adds, over some milliseconds."""
    times, start = max(1, 2**29 // work), time.perf_counter()
    for _ in range(times): f()
    return 2e-9 * times * work / (time.perf_counter() - start)


large = torch.ones(2048, 768), torch.ones(2304, 768)
rate = lambda: gflops(lambda: torch.mm(large[0], large[1].t()), 2048 * 2304 * 768)
low, seen = [], set()
print(f"{'case':22} {'rows':>5} {'outputs':>7} {'inputs':>6}   rate [GFLOP/s]   share of it: forward, input, weight")
for name in args.cases.split(",") if args.cases else products:
    for rows, outputs, inputs in [(rows, *sizes) for rows, matrices in products[name].items() for sizes in matrices]:
        if (rows, outputs, inputs) in seen: continue
        seen.add((rows, outputs, inputs))
        x, w, dy = torch.ones(rows, inputs), torch.ones(outputs, inputs), torch.ones(rows, outputs)
        gradient = torch.zeros(outputs, inputs)
        forms = [lambda: torch.mm(x, w.t()), lambda: torch.mm(dy, w), lambda: torch.addmm(gradient, dy.t(), x, out=gradient)]
        for form in forms: form()
        found = [(rate(), *(gflops(form, rows * outputs * inputs) for form in forms)) for _ in range(args.rounds)]
        whole, *each = (statistics.median(values) for values in zip(*found))
        shares = [one / whole for one in each]
        print(f"{name:22} {rows:5} {outputs:7} {inputs:6}   {whole:14.0f}   {'  '.join(f'{share:.2f}' for share in shares)}", flush=True)
        if min(shares) < 0.85: low.append(f"{rows} x {outputs} by {inputs} ({min(shares):.2f})")
for name in args.steps.split(",") if args.steps != "none" else []:
    done = subprocess.run(f"{args.cloze} benchmark {root}/configs/{cases[name]} --set train.precision=fp32 --steps 6 --json", shell=True, capture_output=True, text=True)
    if done.returncode: sys.exit(done.stderr[-1000:])
    step = json.loads(done.stdout.splitlines()[-1])
    print(f"step of {name}: {step['ms_per_step']:.0f} ms, {step['gflop_per_step']:.0f} GFLOP, rate {step['gemm_fp32_gflops']:.0f} GFLOP/s, "
          f"share {step['gflop_per_step'] / step['ms_per_step'] * 1000 / step['gemm_fp32_gflops']:.2f}", flush=True)
print("products below 85 %: " + (", ".join(low) or "none"))
