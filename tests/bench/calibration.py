#!/usr/bin/env python3
"""Calibration of the verdicts of `cloze report` and `cloze study report` by runs that do not differ (A/A).

    cloze prepare text.txt --vocab-size 1000 --out tokens
    python3 tests/bench/calibration.py tokens --out /tmp/calibration

Design. A pair is two real runs of a toy network on the same rows (train.seed is the number of the pair), which differ
in the seeds of weights and dropout alone: what two equal arms of a study are, but for the weights, which a study with
equal arms would share. Pairs are independent of each other. They are dealt at random into studies of --seeds pairs, in
each pair it is drawn which run is arm A, and `cloze report` compares the arms. The true difference is 0: p has to be
uniform, and a 95 % interval has to hold 0 in 95 % of the studies.

One deal of 1,000 pairs gives 200 studies without a common pair, whose p are independent: the test of Kolmogorov and
Smirnov is made on these. The standard error of a coverage of 200 studies is 1.5 %, so that coverage is also counted
over --deals deals of the same pairs; their studies share pairs, never more than a few of them.

The 2,000 runs are the cost: a process each, one thread, --jobs at once, without plots and checkpoints. Runs that exist
in --out are used again, so that a killed calibration goes on. Needs SciPy. Fails where KS p is not above 0.05, or a
coverage over all deals is not within 93 to 97 %.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import time

CONFIG = """
model: {{kind: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
  max_position_embeddings: 32}}
objectives: [{{kind: mlm}}]
data: {{tokens: {tokens}, max_seq_length: 32}}
optimizer: {{learning_rate: 1e-2}}
train: {{batch_size: 16, threads: 1, precision: fp32, seed: {seed}, seeds: {{init: {own}, dropout: {own}}},
  budget: {{steps: {steps}}}}}
evaluation: {{every: 0, sequences: 64, seed: 1, patience: {arm}}}
checkpoint: {{every: 0, keep: 1, log_every: 1000}}
"""


def config_of(arguments, **values):
    return CONFIG.format(tokens=json.dumps(os.path.abspath(arguments.tokens)), steps=arguments.steps, **values)


def folder_of(arguments, pair, side):
    return os.path.abspath(f"{arguments.out}/runs/{pair}-{side}")


def train(arguments, pair, side):
    run = folder_of(arguments, pair, side)
    if os.path.exists(f"{run}/summary.json"):
        return
    shutil.rmtree(run, ignore_errors=True)
    with open(f"{run}.yaml", "w") as file:
        file.write(config_of(arguments, seed=pair, own=2 * pair + side, arm=0))
    done = subprocess.run([arguments.cloze, "--quiet", "pretrain", f"{run}.yaml", "--run", run],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"run {run}: {done.stderr}")
    for step in [name for name in os.listdir(run) if name.startswith("step-")]:
        shutil.rmtree(f"{run}/{step}")


def as_arm(arguments, study, pair, side, arm, seed):
    """A run under the seed of its pair in a study. The arms differ in evaluation.patience, which changed nothing."""
    source, copy = folder_of(arguments, pair, side), f"{study}/{'AB'[arm]}-{seed}"
    os.makedirs(copy)
    for name in ("held_out.json", "metrics.jsonl", "summary.json", "provenance.json"):
        os.symlink(f"{source}/{name}", f"{copy}/{name}")
    with open(f"{copy}/run.yaml", "w") as file:
        file.write(config_of(arguments, seed=seed, own=-1, arm=arm))
    return copy


def difference(arguments, number, pairs):
    """What `cloze report` says of a study of these pairs, each with the side that is arm A."""
    study = f"{arguments.out}/studies/{number}"
    shutil.rmtree(study, ignore_errors=True)
    runs = [as_arm(arguments, study, pair, side ^ arm, arm, seed)
            for seed, (pair, side) in enumerate(pairs, start=1) for arm in (0, 1)]
    done = subprocess.run([arguments.cloze, "report", *runs, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    shutil.rmtree(study)
    arms = json.loads(done.stdout.strip().splitlines()[-1])["arms"]
    return next(arm["difference"] for arm in arms if "difference" in arm)


def dealt(arguments, deal):
    """Studies of a deal: lists of pairs with the side that is arm A."""
    draw = random.Random(deal)
    pairs = list(range(1, arguments.pairs + 1))
    draw.shuffle(pairs)
    sided = [(pair, draw.randrange(2)) for pair in pairs]
    return [sided[i:i + arguments.seeds] for i in range(0, len(sided) - arguments.seeds + 1, arguments.seeds)]


def summary(name, found):
    from scipy import stats
    test = stats.kstest([one["p"] for one in found], "uniform")
    coverage = {kind: sum(one[kind][0] <= 0 <= one[kind][1] for one in found) / len(found)
                for kind in ("t_interval", "interval")}
    print(f"{name}, {len(found)} studies: KS {test.statistic:.4f}, p {test.pvalue:.3f}; intervals that hold 0: "
          f"t {coverage['t_interval']:.3f}, that which decides {coverage['interval']:.3f}", flush=True)
    return test.pvalue, coverage


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", help="folder of `cloze prepare`")
    parser.add_argument("--cloze", default="build/cloze")
    parser.add_argument("--out", default="calibration")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5, help="pairs of a study")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--deals", type=int, default=5, help="how often the pairs are dealt out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not 2 <= arguments.seeds <= arguments.pairs:
        sys.exit("--seeds is at least 2, and at most --pairs")
    arguments.cloze, arguments.out = os.path.abspath(arguments.cloze), os.path.abspath(arguments.out)
    os.makedirs(f"{arguments.out}/runs", exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        start = time.time()
        jobs = [(pair, side) for pair in range(1, arguments.pairs + 1) for side in (0, 1)]
        list(pool.map(lambda job: train(arguments, *job), jobs))
        print(f"{len(jobs)} runs in {time.time() - start:.0f} s", flush=True)
        studies = [pairs for deal in range(arguments.deals) for pairs in dealt(arguments, deal)]
        found = list(pool.map(lambda job: difference(arguments, *job), enumerate(studies)))
    ks_p, _ = summary("first deal", found[:len(found) // arguments.deals])
    _, coverage = summary("all deals", found)
    if ks_p <= 0.05 or any(not 0.93 <= share <= 0.97 for share in coverage.values()):
        sys.exit("the report is not calibrated on these runs")


if __name__ == "__main__":
    main()
