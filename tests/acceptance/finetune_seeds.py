#!/usr/bin/env python3
"""Compares what fine-tunings with several seeds reach with what a plain loop of transformers reaches on its own.

    tests/acceptance/finetune_seeds.py build/cloze runs/bert-tiny sick-entailment trec-6 [--seeds 5] [--out seeds]

The run is exported once. Of each task and each seed, one network is fine-tuned by `cloze finetune --like huggingface`
and one by transformers and torch: its own tokenizer, first weights of the head, order, padding, AdamW and schedule, its
checkpoint chosen on the same valid part. Only the parts of the task are shared. A line of the table has both means over
seeds on the test part in points, their difference with its 95 % interval, and p of the paired t test, corrected by
Holm. Exits with 1 where that is below 0.05 and the means are more than a point apart. The same command goes on in
--out. Tasks of one label, a number (Pearson's r) or tags (accuracy) will do. Needs torch, transformers and scipy; says
so, and exits with 0, where they lack.
"""
import argparse
import copy
import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

try:
    import scipy.stats
    import torch
    import transformers as hf
except ImportError as missing:
    print(f"skipped: {missing}; install torch, transformers and scipy")
    sys.exit(0)

LONGEST, IGNORED = 128, -100


def run(options, *arguments):
    """Standard output; raises RuntimeError with what the program says where it fails."""
    done = subprocess.run([options.cloze, "--quiet", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode: raise RuntimeError(f"cloze {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def ours(options, task, seed):
    """The test figure in points, and the folder of the run."""
    out = options.out / f"{Path(task).stem}-{seed}"
    if not (out / "summary.json").exists():
        settings = [f"train.seed={seed}", f"optimizer.learning_rate={options.rate}", f"train.batch_size={options.batch}",
                    f"train.budget.epochs={options.epochs}", f"train.threads={options.threads}", "train.precision=fp32"]
        run(options, "finetune", options.run, task, "--like", "huggingface", "--run", out,
            *[word for one in settings for word in ("--set", one)])
    figures = next(iter(json.loads((out / "summary.json").read_text())["suites"].values()))
    return 100 * next(figures[name]["value"] for name in ("accuracy", "pearson") if name in figures), out


# -- The loop ----------------------------------------------------------------------------------------------------------

def scaled(gold, scale):
    """A number as a share of its scale, as the loss of ours sees it; labels as they are."""
    return (gold - scale[0]) / (scale[1] - scale[0]) if scale and isinstance(gold, float) else gold


class Part:
    """The items of a part of a task, as tokens of transformers."""

    def __init__(self, file, tokenizer, scale):
        items = [json.loads(line) for line in file.read_text().splitlines()]
        self.is_tagging = "words" in items[0]
        self.wanted = [scaled(self.gold(one), scale) for one in items]
        if self.is_tagging:
            coded = tokenizer([one["words"] for one in items], is_split_into_words=True, truncation=True,
                              max_length=LONGEST)
            self.first = [self.first_tokens(coded.word_ids(i)) for i in range(len(items))]
        else:
            seconds = [one["second"] for one in items] if items[0].get("is_pair") else None
            coded = tokenizer([one["text"] for one in items], seconds, truncation=True, max_length=LONGEST)
        self.rows = [{key: coded[key][i] for key in coded} for i in range(len(items))]

    @staticmethod
    def gold(item):
        gold = item["gold"]
        return next(gold[key] for key in ("label", "value", "labels") if key in gold)

    @staticmethod
    def first_tokens(words):
        """The place of the first token of each word that has one, by word."""
        places = {}
        for place, word in enumerate(words):
            if word is not None: places.setdefault(word, place)
        return places

    def batch(self, chosen, pad):
        width = max(len(self.rows[i]["input_ids"]) for i in chosen)
        inputs = {key: torch.tensor([self.rows[i][key] + [pad if key == "input_ids" else 0] *
                                     (width - len(self.rows[i][key])) for i in chosen]) for key in self.rows[0]}
        if not self.is_tagging: return inputs | {"labels": torch.tensor([self.wanted[i] for i in chosen])}
        labels = torch.full((len(chosen), width), IGNORED)
        for row, i in enumerate(chosen):
            for word, place in self.first[i].items(): labels[row, place] = self.wanted[i][word]
        return inputs | {"labels": labels}

    def figure(self, net, pad, is_regression):
        """Accuracy, or Pearson's r, in points. A word without a token counts as wrong."""
        net.eval()
        by_length = sorted(range(len(self.rows)), key=lambda i: len(self.rows[i]["input_ids"]))
        right, count, values = 0, 0, [0.0] * len(self.rows)
        with torch.no_grad():
            for at in range(0, len(by_length), 64):
                chosen = by_length[at:at + 64]
                inputs = self.batch(chosen, pad)
                labels = inputs.pop("labels")
                logits = net(**inputs).logits
                if is_regression:
                    for i, value in zip(chosen, logits.squeeze(-1).tolist()): values[i] = value
                else:
                    right += int((logits.argmax(-1) == labels).sum())
        net.train()
        if is_regression: return 100 * scipy.stats.pearsonr(values, self.wanted).statistic
        count = sum(len(one) for one in self.wanted) if self.is_tagging else len(self.wanted)
        return 100 * right / count


def theirs(options, folder, seed):
    """The test figure in points of the best epoch on the valid part."""
    tokenizer = hf.AutoTokenizer.from_pretrained(options.out / "base")
    found = re.search(r"scale: \[(.+), (.+)\]", (folder / "run.yaml").read_text())
    scale = [float(bound) for bound in found.groups()] if found else None
    parts = {name: Part(folder / f"task/{name}.jsonl", tokenizer, scale) for name in ("train", "valid", "test")}
    train = parts["train"]
    is_regression = isinstance(train.wanted[0], float)
    flat = [tag for row in train.wanted for tag in row] if train.is_tagging else train.wanted
    kind = hf.AutoModelForTokenClassification if train.is_tagging else hf.AutoModelForSequenceClassification
    torch.manual_seed(seed)
    net = kind.from_pretrained(options.out / "base", num_labels=1 if is_regression else int(max(flat)) + 1).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=options.rate, weight_decay=0.0)
    batches = math.ceil(len(train.rows) / options.batch)
    schedule = hf.get_linear_schedule_with_warmup(optimizer, 0, batches * options.epochs)
    best, chosen = -math.inf, None
    for _ in range(options.epochs):
        order = torch.randperm(len(train.rows)).tolist()
        for at in range(0, len(order), options.batch):
            net(**train.batch(order[at:at + options.batch], tokenizer.pad_token_id)).loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        figure = parts["valid"].figure(net, tokenizer.pad_token_id, is_regression)
        if figure > best: best, chosen = figure, copy.deepcopy(net.state_dict())
    net.load_state_dict(chosen)
    return parts["test"].figure(net, tokenizer.pad_token_id, is_regression)


def compared(pairs):
    """The mean of the differences, half of its 95 % interval, and p of the paired t test."""
    differences = [a - b for a, b in pairs]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    half = scipy.stats.t.ppf(0.975, len(differences) - 1) * error
    return statistics.mean(differences), half, scipy.stats.ttest_rel(*zip(*pairs)).pvalue


def holm(values):
    """Values of p corrected for their number."""
    corrected, most = list(values), 0.0
    for rank, i in enumerate(sorted(range(len(values)), key=lambda one: values[one])):
        most = max(most, min(1.0, (len(values) - rank) * values[i]))
        corrected[i] = most
    return corrected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze")
    parser.add_argument("run")
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("seeds"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    hf.utils.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    options.out.mkdir(exist_ok=True)
    if not (options.out / "base").exists():
        run(options, "export", options.run, "--to", "huggingface", "--out", options.out / "base")
    file = options.out / "figures.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    for task in options.tasks:
        for seed in range(1, options.seeds + 1):
            if f"{task} {seed}" in known: continue
            figure, folder = ours(options, task, seed)
            known[f"{task} {seed}"] = figure, theirs(options, folder, seed)
            file.write_text(json.dumps(known, indent=1))
    table = [[task, [known[f"{task} {seed}"] for seed in range(1, options.seeds + 1)]] for task in options.tasks]
    tests = [compared(pairs) for _, pairs in table]
    corrected = holm([p for _, _, p in tests])
    print("| task | cloze | transformers | difference | 95 % interval | p (Holm) |\n|---|---|---|---|---|---|")
    for (task, pairs), (mean, half, _), p in zip(table, tests, corrected):
        columns = [f"{statistics.mean(one):.2f} ± {statistics.stdev(one):.2f}" for one in zip(*pairs)]
        print(f"| {task} | {' | '.join(columns)} | {mean:+.2f} | [{mean - half:+.2f}, {mean + half:+.2f}] | {p:.3f} |")
    sys.exit(any(p < 0.05 and abs(mean) > 1 for (mean, _, _), p in zip(tests, corrected)))


main()
