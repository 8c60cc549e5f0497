#!/usr/bin/env python3
"""Holds docs/files.md to the files of runs: each key that one writes is there, and each that is there is written.

    tests/acceptance/files.py build/cloze

Trains a tiny model, goes on with it, answers a suite, and fine-tunes it on a toy task of each kind that predictions
differ by. An upper-case word of a key stands for any name, `*` for any rest.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

cloze = str(pathlib.Path(sys.argv[1]).resolve())
page = pathlib.Path(__file__).resolve().parents[2] / "docs/files.md"
SMALL = ["--set", "data.tokens=tokens", "--set", "train.threads=1", "--set", "train.batch_size=4", "--set",
         "evaluation.sequences=16", "--set", "checkpoint.log_every=1", "--set", "evaluation.every=2"]
failures = []


def run(*words):
    done = subprocess.run([cloze, "--quiet", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def keys_of(value, before=()):
    """The keys of an object, with those of objects in it and in its lists."""
    if isinstance(value, dict):
        return [key for name, inner in value.items() for key in keys_of(inner, (*before, name))]
    inner = [key for one in value if isinstance(one, dict) for key in keys_of(one, before)] if isinstance(value, list) else []
    return inner or [".".join(before)]


def documented():
    """By file: the patterns of its table."""
    tables = {}
    for heading, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page.read_text(), flags=re.M | re.S):
        cells = re.findall(r"^\| (`.*?) \|", text, flags=re.M)
        if heading == "`predictions.jsonl`":
            cells = re.findall(r"^\| [a-z ]+ \| (`.*) \|$", text, flags=re.M)
        tables[heading.strip("`")] = [key for cell in cells for key in re.findall(r"`([^`]+)`", cell)]
    return tables


def pattern_of(key):
    return re.compile(re.sub(r"[A-Z]+", "[^ ]+?", re.escape(key).replace(r"\*", ".*")))


def check(file, patterns, written):
    """patterns: of the page; written: the keys of all runs."""
    compiled = {key: pattern_of(key) for key in patterns}
    for key in sorted(written):
        if not any(pattern.fullmatch(key) for pattern in compiled.values()):
            failures.append(f"{file} has `{key}`, which the page does not name")
    for key, pattern in compiled.items():
        if not any(pattern.fullmatch(one) for one in written):
            failures.append(f"no run wrote `{key}` of {file}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("text.txt").write_text("The cat sat on the mat. Then it slept.\n\nA dog barked at it.\n" * 300)
        pathlib.Path("pairs.jsonl").write_text('{"sentence_good": "the cat sat", "sentence_bad": "cat the sat"}\n' * 4)
        pathlib.Path("rows.tsv").write_text("text\tmore\tlabel\tlabels\tvalue\tright\n" + "".join(
            f"the {w} sat\tit slept\t{w}\t{w}\t{i % 4}\t{i % 2}\n" for i in range(12) for w in ("cat", "dog")))
        pathlib.Path("words.conll").write_text("the O\ncat B-A\nsat O\n\na O\ndog B-A\nbarked O\n\n" * 6)
        pathlib.Path("spans.jsonl").write_text(
            '{"q": "who", "c": "the cat sat", "a": [{"text": "cat", "start": 4}]}\n' * 12)
        tasks = {"classification": "text: text, label: label", "multilabel": "text: text, label: labels",
                 "regression": "text: text, label: value", "choice": "text: text, candidates: [more, label], label: right",
                 "tagging": "", "spans": "text: q, second: c, answers: a", "generation": "text: text, label: more"}
        files = {"tagging": "words.conll", "spans": "spans.jsonl"}
        run("prepare", "text.txt", "--vocab-size", "300", "--out", "tokens")
        run("pretrain", "bert/tiny", *SMALL, "--set", "train.budget.steps=2", "--set", "evaluation.suites=[pairs.jsonl]",
            "--run", "base")
        run("prepare", "text.txt", "--for", "t5", "--vocab-size", "60", "--out", "t5")
        run("pretrain", "t5/tiny", *SMALL, "--set", "data.tokens=t5", "--set", "train.budget.steps=1", "--run", "base-t5")
        run("pretrain", "--run", "base", "--resume", "--set", "train.budget.steps=4")
        for kind, columns in tasks.items():
            parts = ", ".join(f"{part}: {files.get(kind, 'rows.tsv')}" for part in ("train", "valid", "test"))
            scale = "scale: [0, 3]\n" if kind == "regression" else ""
            pathlib.Path(f"{kind}.yaml").write_text(f"task: toy\nkind: {kind}\n{scale}data: {{{parts}, {columns}}}\n")
            base = "base-t5" if kind == "generation" else "base"
            run("finetune", base, f"{kind}.yaml", "--run", kind, "--set", "train.budget.epochs=1")
        tables = documented()
        scores = [f"{before}.{key}" for key in tables["A score"] for before in ("suites.SUITE.METRIC", "task.test.METRIC")]
        for file in ("metrics.jsonl", "summary.json", "held_out.json", "provenance.json", "predictions.jsonl"):
            written = set()
            for path in (pathlib.Path(name, file) for name in ("base", *tasks)):
                lines = ([] if not path.exists() else path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()])
                written |= {key for line in lines for key in keys_of(json.loads(line))}
            patterns = [key for key in tables[file] if not key.endswith("METRIC.*")]
            of_scores = [key for key in scores if key.replace(key.split(".")[-1], "*") in tables[file]]
            check(file, patterns + of_scores, written)
        here = {path.name for name in ("base", *tasks) for path in pathlib.Path(name).iterdir()}
        check("the folder", [key.rstrip("/") for key in tables["The folder"]], here)
    print("\n".join(failures) or "docs/files.md names what runs write")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
