#!/usr/bin/env python3
"""Calibration of the verdicts of `cloze study report` by runs that do not differ (A/A).

Trains many real runs of a toy network that differ in their seed alone, deals them out at random into studies of two
arms, and asks `cloze report` for the difference of the arms. The truth is 0: p values have to be uniform
(Kolmogorov-Smirnov), and 95 % intervals have to hold 0 in 95 % of the studies.

    python3 tests/bench/calibration.py TOKENS --out /tmp/calibration --studies 200 --seeds 5

TOKENS is a folder of `cloze prepare`. Runs that exist in --out are used again. Needs SciPy.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys

CONFIG = """
model: {{kind: bert, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64, max_position_embeddings: 32}}
objectives: [{{kind: mlm}}]
data: {{tokens: {tokens}, max_seq_length: 32}}
optimizer: {{learning_rate: 3e-3}}
train: {{batch_size: 16, threads: 1, seed: {seed}, budget: {{steps: {steps}}}}}
evaluation: {{every: 0, sequences: 128, seed: 1}}
checkpoint: {{every: 0, keep: 1, log_every: 1000}}
"""


def train(arguments, seed):
    run = f"{arguments.out}/runs/{seed}"
    if os.path.exists(f"{run}/held_out.json"):
        return
    shutil.rmtree(run, ignore_errors=True)
    config = f"{run}.yaml"
    with open(config, "w") as file:
        file.write(CONFIG.format(tokens=os.path.abspath(arguments.tokens), seed=seed, steps=arguments.steps))
    done = subprocess.run([arguments.cloze, "--quiet", "pretrain", config, "--run", run], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"run {seed}: {done.stderr}")
    for step in (name for name in os.listdir(run) if name.startswith("step-")):
        shutil.rmtree(f"{run}/{step}")


def as_arm(arguments, folder, seed, arm, index):
    """A copy of a run under another seed, with a key that changes nothing but tells the arms apart."""
    source, copy = f"{arguments.out}/runs/{seed}", f"{folder}/{arm}-{index}"
    os.makedirs(copy)
    for name in ("held_out.json", "metrics.jsonl", "summary.json", "provenance.json"):
        shutil.copy(f"{source}/{name}", copy)
    lines, section = [], ""
    for line in open(f"{source}/run.yaml").read().splitlines():
        if line and not line.startswith(" "):
            section = line.split(":")[0]
        if section == "train" and line.startswith("  seed: "):
            line = f"  seed: {index}"
        if section == "checkpoint" and line.startswith("  log_every: "):
            line = f"  log_every: {1000 + arm}"
        lines.append(line)
    with open(f"{copy}/run.yaml", "w") as file:
        file.write("\n".join(lines) + "\n")
    return copy


def difference(arguments, number, seeds):
    folder = f"{arguments.out}/study-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    half = len(seeds) // 2
    runs = [as_arm(arguments, folder, seed, i // half, i % half + 1) for i, seed in enumerate(seeds)]
    done = subprocess.run([arguments.cloze, "report", *runs, "--json"], capture_output=True, text=True)
    shutil.rmtree(folder)
    if done.returncode != 0:
        sys.exit(done.stderr)
    arms = json.loads(done.stdout.strip().splitlines()[-1])["arms"]
    return next(arm["difference"] for arm in arms if "difference" in arm)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens")
    parser.add_argument("--cloze", default="build/cloze")
    parser.add_argument("--out", default="calibration")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--deals", type=int, default=5, help="how often the runs are dealt out anew")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    from scipy import stats
    count = 2 * arguments.seeds * arguments.studies
    os.makedirs(f"{arguments.out}/runs", exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda seed: train(arguments, seed), range(1, count + 1)))
        for deals in (1, arguments.deals):
            found = []
            for deal in range(deals):
                seeds = list(range(1, count + 1))
                random.Random(deal).shuffle(seeds)
                groups = [seeds[i:i + 2 * arguments.seeds] for i in range(0, count, 2 * arguments.seeds)]
                found += pool.map(lambda job: difference(arguments, *job), enumerate(groups))
            holds = {name: sum(d[name][0] <= 0 <= d[name][1] for d in found) / len(found)
                     for name in ("t_interval", "bootstrap_interval")}
            test = stats.kstest([d["p"] for d in found], "uniform")
            print(f"{len(found)} studies of {arguments.seeds} + {arguments.seeds} runs: KS {test.statistic:.4f} "
                  f"p {test.pvalue:.3f}; intervals that hold 0: t {holds['t_interval']:.3f}, "
                  f"bootstrap {holds['bootstrap_interval']:.3f}")


if __name__ == "__main__":
    main()
