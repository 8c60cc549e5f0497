#!/usr/bin/env python3
"""Holds the program to mistakes.tsv: a mistake a line, with its exit code and a part of the sentence that it gets.

usage: mistakes.py CLOZE [--print]      --print: every answer, to write new lines from
The commands are run by a shell in a folder with a text, a few broken files and the repository's configs. $T is
`--set data.tokens=tokens`, which are not there, $K the same of made/tokens, $B the config configs/bert/tiny.yaml.
made/run is a run that was trained for two steps, made/tuned one that was fine-tuned on whole.yaml.
"""
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
cloze = Path(sys.argv[1]).resolve()
PAIR = '{"sentence_good": "The cat sat.", "sentence_bad": "The cat sit."}\n'
FILES = {
    "text.txt": "The cat sat on the mat. Then it slept.\n\nA dog barked at the moon, and the cat woke.\n" * 20,
    "empty.txt": "",
    "binary.txt": "text\0more\n",
    "list.yaml": "- model\n- objectives\n",
    "open.yaml": "model: {kind: bert\n",
    "tab.yaml": "model:\n\tkind: bert\n",
    "twice.yaml": "model:\n  kind: bert\n  kind: gpt2\n",
    "self.yaml": "base: self.yaml\n",
    "empty.yaml": "# nothing yet\n",
    "orphan.yaml": "base: none.yaml\n",
    "kind.yaml": "model: {kind: brt}\n",
    "objective.yaml": "objectives:\n  - kind: mml\n",
    "study.yaml": "study: rates\nbase: configs/bert/tiny.yaml\nset: {data.tokens: tokens}\narms:\n  low: {}\n  high: {from: lwo}\n",
    "arms.yaml": "study: same\nbase: configs/bert/tiny.yaml\nset: {data.tokens: tokens}\narms:\n  a: {}\n  b: {}\n",
    "metric.yaml": "study: metric\nbase: configs/bert/tiny.yaml\nset: {data.tokens: tokens}\narms:\n  a: {}\n  b: {train.batch_size: 4}\nmetric: {objective: mml}\n",
    "one.yaml": "study: one\nbase: configs/bert/tiny.yaml\nset: {data.tokens: tokens}\narms:\n  a: {}\n",
    "seeds.yaml": "study: seeds\nbase: configs/bert/tiny.yaml\nset: {data.tokens: tokens}\narms:\n  a: {}\n  b: {train.batch_size: 4}\nseeds: [1, 1]\n",
    "mood.yaml": "task: mood\nkind: classification\ndata: {train: items.tsv, text: text, label: label}\nmetric: accuracy\n",
    "whole.yaml": "task: mood\nkind: classification\ndata: {train: items.tsv, valid: test, test: items.tsv, text: text, label: label}\nmetric: accuracy\n",
    "items.tsv": "text\tlabel\nthe cat sat\tgood\na dog barked\tbad\n",
    "points.csv": "size,tokens,loss\n1e6,2e7,4.1\n2e6,many,3.9\n",
    "short.csv": "size,tokens,loss\n1e6,2e7\n",
    "names.csv": "params,tokens,loss\n1e6,2e7,3\n",
    "bad.jsonl": '{"text": "One."}\n{"text": 3}\n',
    "fields.jsonl": '{"body": "One."}\n',
    "source.tsv": "one\ttwo\tthree\tfour\n",
    "vocab/vocab.txt": "the\nthe\n",
    "json/tokenizer.json": "[1]",
    "pieces/spiece.model": "no model",
    "folder/readme": "nothing",
    "broken/manifest.json": "{}",
    "pairs.jsonl": PAIR,
    "cut.jsonl": PAIR + PAIR[:40],
    "side.jsonl": PAIR + '{"sentence_good": "The cat sat.", "sentence_bad": ""}\n',
    "twice.jsonl": '{"UID": "sat", "pairID": 1, "sentence_good": "The cat sat.", "sentence_bad": "The cat sit."}\n' * 2,
    "long.jsonl": '{"sentence_good": "The cat sat.", "sentence_bad": "The' + " cat" * 200 + '."}\n',
    "silent.jsonl": '{"sentence_good": "The cat sat.", "sentence_bad": "\u200b"}\n',
    "keys.jsonl": '{"prompt": "The cat", "reply": "sat."}\n',
    "long.txt": "The" + " cat" * 200 + ".\n",
    "mixed.tsv": "The cat\tsat.\nThe cat sat.\n",
    "reading.csv": "item,word,prev_item,prev_word,Subtlex_log10,self_paced_reading_time\nThe,cat,,,2,300\n",
    "evaluation/full_eval/readme": "",
    "sat/fast_eval/blimp_fast/sat.jsonl": PAIR,
    "cut_evaluation/full_eval/blimp_filtered/sat.jsonl": PAIR + PAIR[:40],
    "empty_evaluation/fast_eval/blimp_fast/sat.jsonl": PAIR,
    "empty_evaluation/fast_eval/blimp_fast/slept.jsonl": "",
    "results/made/main/zero_shot/mlm/reading/predictions.json": "{}",
}


def make_world(folder):
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "cut.gz").write_bytes(gzip.compress(b"One line here.\n" * 50)[:-9])
    (folder / "fake.gz").write_text("no gzip\n")
    (folder / "configs").symlink_to(here.parents[1] / "configs")
    small = "".join(f" --set {change}" for change in [
        "data.tokens=made/tokens", "data.max_seq_length=32", "model.hidden_size=32", "model.intermediate_size=32", "train.batch_size=2",
        "train.budget.steps=2", "evaluation.sequences=4"])
    for command in ["cloze prepare text.txt --vocab-size 80 --held-out 0.2 --out made/tokens", f"cloze pretrain $B{small} --run made/run",
                    "cloze finetune made/run whole.yaml --run made/tuned --set train.budget.epochs=1"]:
        code, text = answer(command, folder)
        assert code == 0, text


def answer(command, folder):
    environment = {**os.environ, "PATH": f"{cloze.parent}:{os.environ['PATH']}", "NO_COLOR": "1", "B": "configs/bert/tiny.yaml",
                   "T": "--set data.tokens=tokens", "K": "--set data.tokens=made/tokens"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def faults(lines, folder):
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        command, code, sentence = line.split("\t")
        got, text = answer(command, folder)
        if "--print" in sys.argv:
            print(f"{command}\n    {got}: {text[-700:]}")
        elif got != int(code) or sentence not in text or "This is a bug" in text:
            yield f"mistakes.tsv:{number}: {command}\n  wanted {code}: {sentence}\n  got {got}: {text[-700:]}"


with tempfile.TemporaryDirectory() as name:
    make_world(Path(name))
    table = (here / "mistakes.tsv").read_text().splitlines()
    found = list(faults(table, Path(name)))
print("\n".join(found))
sys.exit(1 if found else 0)
