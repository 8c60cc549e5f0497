#!/usr/bin/env python3
"""Time and size of `cloze study report` over many runs, in each of its formats.

    cloze prepare text.txt --vocab-size 1000 --out tokens
    tests/bench/report_of_runs.py tokens --out /tmp/report-of-runs

Trains one run of a toy network in a study of --arms arms and --seeds seeds, which also answers --suites suites of
minimal pairs, a column each beside the loss. All others are copies of its folder (without checkpoints and pictures)
whose held-out losses, those along the run and those of single examples, and whose figures of suites are moved at
random. `cloze study run --keep` gives the copies the fingerprints of their configs. Fails where the median of --rounds
reports takes more than --seconds, or the page has more than --megabytes.
"""
import argparse
import ctypes
import ctypes.util
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

BASE = """
model: {{kind: bert, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
  max_position_embeddings: 32}}
objectives: [{{kind: mlm}}]
data: {{tokens: {tokens}, max_seq_length: 32}}
optimizer: {{learning_rate: 1e-2}}
train: {{batch_size: 16, threads: 1, precision: fp32, budget: {{steps: {steps}}}}}
evaluation: {{suites: {suites}}}
"""
FORMATS = ("text", "markdown", "csv", "latex", "html", "json")
NOT_COPIED = shutil.ignore_patterns("step-*", "latest", "best", "*.png", "*.svg")


def xxh3(text):
    """XXH3 of 64 bits as 16 digits, by the library that Cloze is linked to."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    library.XXH3_64bits.argtypes, library.XXH3_64bits.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64
    data = text.encode()
    return f"{library.XXH3_64bits(data, len(data)):016x}"


def cloze(arguments, *words):
    done = subprocess.run([arguments.cloze, "--quiet", *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cloze {' '.join(words)}: {done.stderr}")


def arms_of(arguments):
    return [f"arm-{number:02}" for number in range(1, arguments.arms + 1)]


def write_suites(arguments):
    paths = [f"{arguments.out}/pairs-{number}.jsonl" for number in range(1, arguments.suites + 1)]
    for path in paths:
        with open(path, "w") as file:
            for item, (good, bad) in enumerate((("a dog barks", "a dog bark"), ("two dogs bark", "two dogs barks"))):
                file.write(json.dumps({"UID": "agreement", "pairID": str(item), "linguistics_term": "number",
                                       "sentence_good": good, "sentence_bad": bad}) + "\n")
    return paths


def write_study(arguments):
    os.makedirs(arguments.out, exist_ok=True)
    with open(f"{arguments.out}/base.yaml", "w") as file:
        file.write(BASE.format(tokens=json.dumps(os.path.abspath(arguments.tokens)), steps=arguments.steps,
                               suites=json.dumps(write_suites(arguments))))
    arms = [f"  {arm}: {{optimizer.weight_decay: {number / 1000}}}" for number, arm in enumerate(arms_of(arguments))]
    study = ["study: report-of-runs", "base: base.yaml", "arms:", *arms, f"seeds: {arguments.seeds}",
             f"metric: {{objective: mlm, better_by: 0.01, sequences: {arguments.sequences}}}",
             f"points: {arguments.points}", ""]
    path = f"{arguments.out}/study.yaml"
    with open(path, "w") as file:
        file.write("\n".join(study))
    return path


def move_curve(folder, by):
    """Moves the held-out losses along a run, more at its beginning."""
    with open(f"{folder}/metrics.jsonl") as file:
        rows = [json.loads(line) for line in file]
    last = rows[-1]["step"]
    for row in rows:
        if "held_out_loss" not in row:
            continue
        moved = by * (2 - row["step"] / last)
        row["held_out_loss"] += moved
        for key in row.get("held_out", {}):
            if key.endswith("_loss"):
                row["held_out"][key] += moved
    with open(f"{folder}/metrics.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def move_examples(folder, by, draw):
    """Moves the sum of every example by `by` for each prediction, and by noise. Few digits: the hash is of the text."""
    with open(f"{folder}/held_out.json") as file:
        held_out = json.load(file)
    for part in held_out["losses"].values():
        part["sum"] = [round(s + n * by + draw.gauss(0, 0.1), 3) for s, n in zip(part["sum"], part["count"])]
        part["count"] = [float(n) for n in part["count"]]
    held_out["xxh3"] = xxh3(json.dumps(held_out["losses"], sort_keys=True, separators=(",", ":")))
    held_out["seal"] = xxh3(f"{held_out['step']} {held_out['xxh3']} {held_out['measured']}")
    with open(f"{folder}/held_out.json", "w") as file:
        json.dump(held_out, file)
    with open(f"{folder}/summary.json") as file:
        summary = json.load(file)
    for name, part in held_out["losses"].items():
        summary["held_out"][name]["loss"] = sum(part["sum"]) / sum(part["count"])
    with open(f"{folder}/summary.json", "w") as file:
        json.dump(summary, file)


def move_suites(folder, draw):
    """Draws the figures of the suites anew."""
    with open(f"{folder}/summary.json") as file:
        summary = json.load(file)
    for figures in summary["suites"].values():
        for figure in figures.values():
            figure["value"] = draw.uniform(0.5, 0.6)
    with open(f"{folder}/summary.json", "w") as file:
        json.dump(summary, file)


def copy_runs(arguments, runs):
    """Makes every run of the study but the first from that one."""
    real = f"{runs}/arm-01/seed-1"
    with open(f"{real}.json") as file:
        record = json.load(file)
    for number, arm in enumerate(arms_of(arguments)):
        for seed in range(1, arguments.seeds + 1):
            folder = f"{runs}/{arm}/seed-{seed}"
            if folder == real:
                continue
            draw = random.Random(1000 * number + seed)
            by = 0.002 * number + draw.gauss(0, 0.02)
            shutil.copytree(real, folder, ignore=NOT_COPIED)
            move_curve(folder, by)
            move_examples(folder, by, draw)
            move_suites(folder, draw)
            with open(f"{folder}.json", "w") as file:
                json.dump({**record, "fingerprint": "of a copy"}, file)


def settle(arguments, runs):
    """Makes runs that were kept runs of the study, about which the report has nothing to say."""
    for arm in arms_of(arguments):
        for seed in range(1, arguments.seeds + 1):
            path = f"{runs}/{arm}/seed-{seed}.json"
            with open(path) as file:
                record = json.load(file)
            if record["kept"]:
                record["fingerprint"], record["kept"] = record["kept"], ""
            with open(path, "w") as file:
                json.dump(record, file)


def make_runs(arguments, study):
    folder = f"{arguments.out}/study"
    shutil.rmtree(folder, ignore_errors=True)
    cloze(arguments, "study", "run", study, "--out", folder, "--only", "arm-01/1")
    copy_runs(arguments, f"{folder}/runs")
    only = [word for arm in arms_of(arguments) for word in ("--only", arm)]  # names of runs: without probes
    cloze(arguments, "study", "run", study, "--out", folder, "--keep", *only)
    settle(arguments, f"{folder}/runs")
    return folder


def measure(arguments, study, folder):
    """Seconds, by format, of each round, and the bytes of the report."""
    seconds, size = {form: [] for form in FORMATS}, {}
    for _ in range(arguments.rounds):
        for form in FORMATS:
            path = f"{arguments.out}/report.{form}"
            start = time.perf_counter()
            cloze(arguments, "study", "report", study, "--out", folder, "--format", form, "--output", path)
            seconds[form].append(time.perf_counter() - start)
            size[form] = os.path.getsize(path)
    return seconds, size


def check_complete(arguments):
    with open(f"{arguments.out}/report.json") as file:
        report = json.load(file)
    runs = sum(len(arm["runs"]) for arm in report["arms"])
    if runs != arguments.arms * arguments.seeds or any("kept" in note for note in report["notes"]):
        sys.exit(f"the report has {runs} finished runs and these notes: {report['notes']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", help="folder of `cloze prepare`")
    parser.add_argument("--cloze", default="build/cloze")
    parser.add_argument("--out", default="report-of-runs")
    parser.add_argument("--arms", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--points", type=int, default=20, help="held-out evaluations of a run")
    parser.add_argument("--sequences", type=int, default=1024, help="held-out sequences")
    parser.add_argument("--suites", type=int, default=11)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--megabytes", type=float, default=3)
    arguments = parser.parse_args()
    arguments.cloze, arguments.out = os.path.abspath(arguments.cloze), os.path.abspath(arguments.out)
    study = write_study(arguments)
    folder = make_runs(arguments, study)
    seconds, size = measure(arguments, study, folder)
    check_complete(arguments)
    for form in FORMATS:
        median, spread = statistics.median(seconds[form]), f"({min(seconds[form]):.2f} to {max(seconds[form]):.2f})"
        print(f"{form:9} {median:6.2f} s {spread}  {size[form] / 1e6:6.2f} MB")
    slowest = max(statistics.median(times) for times in seconds.values())
    if slowest > arguments.seconds or size["html"] > 1e6 * arguments.megabytes:
        sys.exit("the report is slower or its page is larger than it may be")


if __name__ == "__main__":
    main()
