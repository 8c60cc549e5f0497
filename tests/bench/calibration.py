#!/usr/bin/env python3
"""Calibration of the verdicts of studies on real runs of a toy network, whose true differences are known.

    cloze prepare text.txt --vocab-size 500 --out tokens
    python3 tests/bench/calibration.py build/cloze build/bench_verdicts tokens --out calibration

Trains a pool: ten configs (a baseline and nine arms), each with the same --seeds seeds, one thread a run, --jobs at
once. Their single held-out losses go to OUT/pool.txt, of which bench_verdicts draws --studies studies of each kind:
seeds of the pool without repetition, held-out examples with repetition. It moves the losses of an arm so that the true
difference is 0, the margin or twice it, and counts wrong verdicts by the program's own rule (study/statistics/statistics.h).

Runs that exist in OUT are used again, so that a killed calibration goes on. Fails where bench_verdicts does: where
false verdicts, intervals or powers are not what docs/calibration.md promises.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time

CONFIG = """
model: {{kind: gpt2, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64,
  max_position_embeddings: 32, tie_word_embeddings: false, initializer_range: 0.1, hidden_dropout_prob: 0,
  attention_probs_dropout_prob: 0}}
objectives: [{{kind: clm}}]
data: {{tokens: {tokens}, max_seq_length: 32}}
optimizer: {{learning_rate: 3e-2}}
train: {{batch_size: 16, threads: 1, precision: fp32, seed: {seed}, budget: {{steps: 150}}}}
evaluation: {{every: 0, sequences: 200, seed: 1}}
checkpoint: {{every: 0, keep: 1, log_every: 1000}}
"""
ARMS = [None, "optimizer.learning_rate=2e-2", "model.intermediate_size=128", "model.num_attention_heads=4",
        "model.hidden_act=relu", "model.norm_kind=rms", "model.norm_place=post", "model.position_embeddings=rotary",
        "model.hidden_dropout_prob=0.1", "model.initializer_range=0.07"]


def run_of(arguments, arm, seed):
    return f"{arguments.out}/runs/{arm}-{seed}"


def train(arguments, arm, seed):
    run = run_of(arguments, arm, seed)
    if os.path.exists(f"{run}/held_out.json"):
        return
    shutil.rmtree(run, ignore_errors=True)
    with open(f"{run}.yaml", "w") as file:
        file.write(CONFIG.format(tokens=json.dumps(os.path.abspath(arguments.tokens)), seed=seed))
    change = ["--set", ARMS[arm]] if ARMS[arm] else []
    done = subprocess.run([arguments.cloze, "--quiet", "pretrain", f"{run}.yaml", "--run", run, *change],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"run {run}: {done.stderr}")
    for step in [name for name in os.listdir(run) if name.startswith("step-")]:
        shutil.rmtree(f"{run}/{step}")


def write_pool(arguments):
    """The losses of all runs: `arms seeds examples`, then a line of sums and one of counts for each run."""
    lines = []
    for arm in range(len(ARMS)):
        for seed in range(1, arguments.seeds + 1):
            with open(f"{run_of(arguments, arm, seed)}/held_out.json") as file:
                losses = json.load(file)["losses"]["clm"]
            lines += [" ".join(map(repr, losses[key])) for key in ("sum", "count")]
    with open(f"{arguments.out}/pool.txt", "w") as file:
        file.write(f"{len(ARMS)} {arguments.seeds} {len(losses['sum'])}\n" + "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", help="the program, which trains")
    parser.add_argument("verdicts", help="bench_verdicts, which judges")
    parser.add_argument("tokens", help="folder of `cloze prepare` with 7,000 held-out tokens or more")
    parser.add_argument("--out", default="calibration")
    parser.add_argument("--seeds", type=int, default=30, help="of the pool")
    parser.add_argument("--studies", type=int, default=2000, help="of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if arguments.seeds < 20:
        sys.exit("--seeds is at least 20, twice those of the largest study")
    os.makedirs(f"{arguments.out}/runs", exist_ok=True)
    start = time.time()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = [(arm, seed) for seed in range(1, arguments.seeds + 1) for arm in range(len(ARMS))]
        list(pool.map(lambda job: train(arguments, *job), jobs))
    print(f"{len(jobs)} runs in {time.time() - start:.0f} s", flush=True)
    write_pool(arguments)
    sys.exit(subprocess.run([arguments.verdicts, str(arguments.studies), f"{arguments.out}/pool.txt"]).returncode)


if __name__ == "__main__":
    main()
