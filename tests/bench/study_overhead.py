#!/usr/bin/env python3
"""What `cloze study run` costs over bare runs, and what concurrent runs gain.

    cloze prepare text.txt --vocab-size 1000 --out tokens
    tests/bench/study_overhead.py tokens --out /tmp/study-overhead

A round trains the runs of one study three times: by `cloze study run --jobs 1`; by `cloze pretrain`, one after another,
from the configs that this study wrote; by `cloze study run --jobs CORES`. A run has all cores to itself in the first two
and one core in the third. Prints the overhead of the first over the second, all of it and without the probes that
precede the first run, and the factor by which the third is faster than the second. Fails where the median overhead is
above --overhead or the median factor below --factor, and where a run has other held-out losses alone than beside
another.
"""
import argparse
import filecmp
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

BASE = """
model: {{kind: bert, hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 256,
  max_position_embeddings: 64, hidden_dropout_prob: 0, attention_probs_dropout_prob: 0}}
objectives: [{{kind: mlm}}]
data: {{tokens: {tokens}, max_seq_length: 64, packing: full, short_seq_prob: 0}}
optimizer: {{learning_rate: 2e-3}}
train: {{batch_size: {batch}, budget: {{steps: {steps}}}}}
"""
STUDY = """
study: overhead
base: base.yaml
arms: {{a: {{optimizer.weight_decay: 0}}, b: {{optimizer.weight_decay: 0.1}}}}
seeds: {seeds}
metric: {{objective: mlm, better_by: 0.01, sequences: 512}}
points: 4
"""


def timed(arguments, *words):
    start = time.perf_counter()
    done = subprocess.run([arguments.cloze, "--quiet", *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cloze {' '.join(words)}: {done.stderr}")
    return time.perf_counter() - start


def write_study(arguments):
    os.makedirs(arguments.out, exist_ok=True)
    with open(f"{arguments.out}/base.yaml", "w") as file:
        file.write(BASE.format(tokens=json.dumps(os.path.abspath(arguments.tokens)), steps=arguments.steps,
                               batch=arguments.batch))
    path = f"{arguments.out}/study.yaml"
    with open(path, "w") as file:
        file.write(STUDY.format(seeds=arguments.seeds))
    return path


def study_run(arguments, study, folder, jobs):
    """Seconds of `study run`, and those before its first run."""
    shutil.rmtree(folder, ignore_errors=True)
    begin = time.time()
    seconds = timed(arguments, "study", "run", study, "--out", folder, "--jobs", str(jobs))
    return seconds, min(os.path.getmtime(path) for path in configs_of(folder)) - begin


def configs_of(folder):
    runs = f"{folder}/runs"
    return sorted(f"{runs}/{arm}/{name}" for arm in os.listdir(runs) for name in os.listdir(f"{runs}/{arm}")
                  if name.endswith(".yaml"))


def bare_runs(arguments, configs):
    folder = f"{arguments.out}/bare"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return sum(timed(arguments, "pretrain", config, "--run", f"{folder}/{number}")
               for number, config in enumerate(configs))


def check_same(one_by_one, at_once):
    for config in configs_of(one_by_one):
        name = f"{os.path.relpath(config, one_by_one)[:-len('.yaml')]}/held_out.json"
        if not filecmp.cmp(f"{one_by_one}/{name}", f"{at_once}/{name}", shallow=False):
            sys.exit(f"{name} is not the same where runs are concurrent")


def median_of(rounds, key):
    values = [one[key] for one in rounds]
    return statistics.median(values), f"({min(values):.3f} to {max(values):.3f})"


def one_round(arguments, study):
    alone, beside = f"{arguments.out}/one-by-one", f"{arguments.out}/at-once"
    whole, before = study_run(arguments, study, alone, 1)
    bare = bare_runs(arguments, configs_of(alone))
    both, _ = study_run(arguments, study, beside, os.cpu_count())
    check_same(alone, beside)
    print(f"study {whole:.1f} s, {before:.1f} s of it before the first run; bare runs {bare:.1f} s; "
          f"{os.cpu_count()} runs at once {both:.1f} s", flush=True)
    return {"overhead": whole / bare - 1, "without probes": (whole - before) / bare - 1, "factor": bare / both}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", help="folder of `cloze prepare`")
    parser.add_argument("--cloze", default="build/cloze")
    parser.add_argument("--out", default="study-overhead")
    parser.add_argument("--seeds", type=int, default=4, help="of each of the two arms")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=4, help="rows of 64 tokens")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--overhead", type=float, default=0.02)
    parser.add_argument("--factor", type=float, default=1.6)
    arguments = parser.parse_args()
    arguments.cloze, arguments.out = os.path.abspath(arguments.cloze), os.path.abspath(arguments.out)
    study = write_study(arguments)
    rounds = [one_round(arguments, study) for _ in range(arguments.rounds)]
    for key in rounds[0]:
        print(f"{key}: {median_of(rounds, key)[0]:.3f} {median_of(rounds, key)[1]}")
    if median_of(rounds, "overhead")[0] > arguments.overhead or median_of(rounds, "factor")[0] < arguments.factor:
        sys.exit("the overhead is larger, or the gain smaller, than it may be")


if __name__ == "__main__":
    main()
