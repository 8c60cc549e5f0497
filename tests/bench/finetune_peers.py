#!/usr/bin/env python3
"""Fine-tuning BERT-mini on SST-2 and predicting with it: Cloze and transformers in turns.

    tests/bench/finetune_peers.py build/cloze glue-sst2 bert-base-uncased-vocab.txt [--only train,predict] [--rounds 2]

glue-sst2 has train.tsv (or .tsv.xz) and dev.tsv. A BERT-mini with first weights and the published vocabulary is made
by transformers and imported, so that nothing else is needed. Four parts:

    train    examples a second and peak memory of --steps steps of 32 texts, in fp32 and, where the processor has units
             for it, in bf16, against each --padding of peers/peer_finetune.py: Trainer with grouped padding, a bare
             loop with the same, and full padding. Steps alone are timed; the memory is that of the whole process.
             Beside it what share of the rate of a matrix product of torch the operations of ours are
    predict  `cloze predict` of --texts texts, its start and loading included, against the loaded pipeline of
             transformers with batches of 32, both in fp32; the labels of both have to be equal
    inspect  seconds of `cloze inspect task` for SST-2
    metrics  seconds of `cloze evaluate --task --predictions` for --items items

Wanted are 3 times the speed of Trainer in bf16 and 5 times that of full padding in fp32, a third of the memory,
4 times the speed of the pipeline, 5 seconds and 2 seconds. Exits with 1 where a label differs. Needs torch,
transformers and accelerate; all of it takes about ten minutes on two cores, `--rounds 1 --steps 5 --texts 64
--items 1000` seconds.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEER = Path(__file__).parent / "peers/peer_finetune.py"
BATCH, WARM_UP = 32, 5
PARTS = ("train", "predict", "inspect", "metrics")
MAKE_BERT = """
import sys, shutil, torch, transformers
torch.manual_seed(1)
config = transformers.BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
transformers.BertForMaskedLM(config).save_pretrained(sys.argv[1])
shutil.copy(sys.argv[2], sys.argv[1] + "/vocab.txt")
"""


def run(*command):
    """Standard output, seconds and peak megabytes of a process."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=said, text=True)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        said.seek(0)
        if status: sys.exit(f"{' '.join(map(str, command))}\n{said.read()}")
    return out, time.perf_counter() - start, usage.ru_maxrss / 1024


def peer(options, *arguments):
    return json.loads(run(sys.executable, PEER, *arguments, "--threads", options.threads)[0].splitlines()[-1])


def rounded(ratios):
    return f"{statistics.median(ratios):.2f} times {[round(ratio, 2) for ratio in ratios]}"


def has_bf16_units():
    flags = Path("/proc/cpuinfo").read_text().split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.train = next(path for path in sorted(options.data.glob("train.tsv*")))
        self.task = folder / "sst2.yaml"
        self.task.write_text(
            "task: sst2\nkind: classification\nlabels: {'0': negative, '1': positive}\nmetric: accuracy\n"
            f"data: {{train: {self.train}, valid: test, test: {options.data / 'dev.tsv'}, text: sentence, "
            f"label: label}}\n")
        self.base = folder / "mini"

    def cloze(self, *arguments):
        return run(self.options.cloze, "--quiet", *arguments)

    def make_base(self):
        run(sys.executable, "-c", MAKE_BERT, self.folder / "made", self.options.vocab)
        self.cloze("import", self.folder / "made", "--out", self.base)
        self.cloze("export", self.base, "--to", "huggingface", "--out", self.folder / "mini-hf")

    def finetune(self, name, precision):
        """A run of the steps; examples and operations a second after the first steps, and peak megabytes."""
        steps, place = self.options.steps + WARM_UP, self.folder / name
        settings = {"train.budget.steps": steps, "train.precision": precision, "train.threads": self.options.threads,
                    "evaluation.every": steps, "checkpoint.every": steps, "checkpoint.log_every": 1}
        set_all = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        memory = self.cloze("finetune", self.base, self.task, "--run", place, "--like", "huggingface", *set_all)[2]
        lines = [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]
        first, last = (next(one for one in lines if one["step"] == step and "loss" in one) for step in (WARM_UP, steps))
        seconds = last["time"]["seconds"] - first["time"]["seconds"]
        return self.options.steps * BATCH / seconds, (last["flops"] - first["flops"]) / seconds, memory

    def compare_training(self):
        for precision in self.options.precisions:
            ours, theirs = [], {padding: [] for padding in self.options.padding}
            for turn in range(self.options.rounds):
                ours.append(self.finetune(f"{precision}-{turn}", precision))
                for padding, found in theirs.items():
                    bf16 = ["--bf16"] if precision == "bf16" else []
                    found.append(peer(self.options, self.folder / "mini-hf", self.train, "--padding", padding,
                                      "--steps", self.options.steps, *bf16))
            speed, operations, memory = (statistics.median(column) for column in zip(*ours))
            gemm_rate = statistics.median(one["gemm_rate"] for found in theirs.values() for one in found)
            print(f"train {precision}: cloze {speed:.0f} examples/s, {memory:.0f} MB, {operations / gemm_rate:.2f} of "
                  "the rate of a matrix product", flush=True)
            for padding, found in theirs.items():
                ratios = [mine[0] / one["examples_per_second"] for mine, one in zip(ours, found)]
                their_speed, their_memory = (statistics.median(one[key] for one in found)
                                             for key in ("examples_per_second", "peak_rss_mb"))
                print(f"    transformers, {padding}: {their_speed:.0f} examples/s, {their_memory:.0f} MB; cloze is "
                      f"{rounded(ratios)} as fast, with {memory / their_memory:.2f} of the memory", flush=True)

    def compare_predictions(self):
        """How many labels differ."""
        options, texts, out = self.options, self.folder / "texts.tsv", self.folder / "predicted.jsonl"
        read = "xz -dc" if self.train.suffix == ".xz" else "cat"
        subprocess.run(f"{read} '{self.train}' | head -{options.texts + 1} > '{texts}'", shell=True, check=True)
        tuned, exported = self.folder / "tuned", self.folder / "tuned-hf"
        self.finetune(tuned.name, options.precisions[-1])
        self.cloze("export", tuned, "--to", "huggingface", "--out", exported)
        ratios, speeds = [], []
        for _ in range(options.rounds):
            seconds = self.cloze("predict", tuned, texts, "--out", out)[1]
            found = peer(options, exported, texts, "--predict")
            speeds.append(options.texts / seconds)
            ratios.append(speeds[-1] / found["examples_per_second"])
        mine = [json.loads(line)["label"] for line in out.read_text().splitlines()]
        differ = sum(a != b for a, b in zip(mine, found["labels"], strict=True))
        print(f"predict: cloze {statistics.median(speeds):.0f} texts/s, {rounded(ratios)} as fast as the pipeline; "
              f"{differ} of {len(mine)} labels differ", flush=True)
        return differ

    def time_inspection(self):
        seconds = [self.cloze("inspect", "task", self.base, self.task)[1] for _ in range(self.options.rounds)]
        print(f"inspect: {statistics.median(seconds):.2f} s", flush=True)

    def time_metrics(self):
        draw, count = random.Random(1), self.options.items
        gold = draw.choices("abc", k=count)
        made = [one if draw.random() < 0.8 else draw.choice("abc") for one in gold]
        few, items, predictions = (self.folder / name for name in ("few.tsv", "items.tsv", "made.txt"))
        few.write_text("text\tlabel\nx\ta\ny\tb\nz\tc\n")
        items.write_text("text\tlabel\n" + "".join(f"text {i}\t{one}\n" for i, one in enumerate(gold)))
        predictions.write_text("\n".join(made) + "\n")
        task = self.folder / "items.yaml"
        task.write_text(f"task: items\nkind: classification\nlabels: {{a: a, b: b, c: c}}\n"
                        "metric: [accuracy, f1_macro, mcc]\n"
                        f"data: {{train: {few}, valid: {few}, test: {items}, text: text, label: label}}\n")
        seconds = [self.cloze("evaluate", "--task", task, "--predictions", predictions, "--json")[1]
                   for _ in range(self.options.rounds)]
        print(f"metrics: {count:,} items in {statistics.median(seconds):.2f} s", flush=True)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("data", type=Path, help="folder of SST-2")
    parser.add_argument("vocab", type=Path, help="vocabulary of BERT, a token a line")
    parser.add_argument("--only", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--precisions", default="fp32,bf16" if has_bf16_units() else "fp32")
    parser.add_argument("--padding", default="trainer,grouped,full", help="of trainer, grouped, batch, full")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100,
                        help=f"that are timed, after {WARM_UP} others; Trainer sorts each 50 by length")
    parser.add_argument("--texts", type=int, default=4000, help="to predict")
    parser.add_argument("--items", type=int, default=1_000_000, help="to judge")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="that is made for runs (default: a temporary one)")
    options = parser.parse_args()
    for name in "only", "precisions", "padding": setattr(options, name, getattr(options, name).split(","))
    for name in "cloze", "data", "vocab": setattr(options, name, getattr(options, name).resolve())
    unknown = set(options.only) - set(PARTS)
    if unknown: parser.error(f"--only: {', '.join(unknown)} is none of {', '.join(PARTS)}")
    return options


def main():
    options = parsed()
    with tempfile.TemporaryDirectory(prefix="finetune-peers-") as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        bench, differ = Bench(options, folder), 0
        if set(options.only) - {"metrics"}: bench.make_base()
        if "train" in options.only: bench.compare_training()
        if "predict" in options.only: differ = bench.compare_predictions()
        if "inspect" in options.only: bench.time_inspection()
        if "metrics" in options.only: bench.time_metrics()
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
