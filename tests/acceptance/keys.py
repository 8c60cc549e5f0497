#!/usr/bin/env python3
"""Holds every key of a config to its word: with another value a run has other numbers, or the value is refused.

    tests/acceptance/keys.py build/cloze

Runs of a few steps are made by `pretrain` and by `finetune`, one for each key and value that is tried, until one of
the key's values changes weights, losses, figures, predictions or the files of the run, or all are refused in a
sentence.
Keys that count beside others have these in WITH; NONE says why a key changes no number. Exits with 1 for a key that is
accepted without effect.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

SMALL = """
data: {tokens: tokens, max_seq_length: 32}
train: {batch_size: 4, threads: 1, budget: {steps: 4}}
evaluation: {every: 0, sequences: 16}
checkpoint: {every: 0, log_every: 1}
schedule: {warmup: 0.5}
optimizer: {learning_rate: 1e-2}
"""
SIZES = "hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64"


def model(kind, more="max_position_embeddings: 64"):
    return f"model: {{kind: {kind}, {SIZES}, {more}}}\n"


# Runs whose keys are tried, of each those that no run before it has.
PRETRAINED = {
    "mlm": model("bert") + "objectives: [{kind: mlm}]",
    "albert": (model("albert", "max_position_embeddings: 64, embedding_size: 16") +
               "objectives: [{kind: mlm}, {kind: sop}]"),
    "nsp": model("bert") + "objectives: [{kind: mlm}, {kind: nsp}]",
    "rtd": model("electra") + "objectives: [{kind: rtd}]",
    "sbo": model("bert") + "objectives: [{kind: mlm, like: spanbert}, {kind: sbo}]",
    "longformer": model("longformer") + "objectives: [{kind: mlm}]",
    "bigbird": model("bigbird") + "objectives: [{kind: mlm}]",
    "performer": model("performer") + "objectives: [{kind: mlm}]",
    "modernbert": model("modernbert") + "objectives: [{kind: mlm}]",
    "clm": model("gpt2") + "objectives: [{kind: clm}]",
    "mntp": model("gpt2") + "objectives: [{kind: mntp}]",
    "t5": model("t5", "relative_attention_num_buckets: 8") + "objectives: [{kind: span_corruption}]",
    "bart": model("bart") + "objectives: [{kind: denoising}]",
    "pegasus": model("pegasus") + "objectives: [{kind: gap_sentences}]",
    "xlnet": model("xlnet", "mem_len: 0") + "objectives: [{kind: plm}]",
    "lstm": "model: {kind: lstm, hidden_size: 32}\nobjectives: [{kind: clm}]",
}
TASK = "task: toy\nkind: %s\ndata: {train: train.jsonl, valid: valid.jsonl, test: test.jsonl, %s}\n"
FINETUNED = {
    "classification": TASK % ("classification", "text: text, label: label"),
    "multilabel": TASK % ("multilabel", "text: text, label: labels"),
    "regression": TASK % ("regression", "text: text, label: length") + "scale: [0, 9]\n",
    "tagging": TASK % ("tagging", "text: words, label: tags"),
    "choice": TASK % ("choice", "text: text, candidates: candidates, label: right"),
    "spans": TASK % ("spans", "text: question, second: text, answers: answers"),
}
# Values of keys whose type does not tell them.
VALUES = {
    "checkpoint.at_words": ["[20]"], "data.mixture": ["[{tokens: other}]"], "data.tokens": ["other"],
    "evaluation.max_seq_length": ["16"], "evaluation.objectives": ["[{kind: mlm, mlm_probability: 0.3}]"],
    "evaluation.suites": ["[pairs.jsonl]"], "init.from": ["base"], "init.layers": ["[2, 1]"],
    "distil.teacher": ["base"], "distil.layers": ["[2, 1]"], "model.vocab_size": ["500"],
    "model.attention.global_layers": ["[0]"], "objectives.0.generator_hidden_size": ["1"],
    "objectives.0.class_weights": ["[1, 2]"], "objectives.0.labels": ["[a, b]"], "objectives.0.layer": ["[1]"],
    "objectives.0.mixture": ["[{share: 1, unit: word}]"], "objectives.0.mlm.mixture": ["[{share: 1, unit: word}]"],
    "objectives.0.scale": ["[0, 20]"], "optimizer.groups": ["[{role: norm, learning_rate: 0}]"],
    "optimizer.max_grad_norm": ["0.001"], "train.budget.epochs": ["0.05"], "train.budget.flops": ["1"],
    "train.budget.minutes": ["1e-9"], "train.phases": ["[{from: 0.5, batch_size: 2}]"],
    "task.name": ["x"], "task.file": ["x"], "task.fingerprint": ["x"], "task.class_weights": ["[1, 2]"],
    "task.cut": ["head_tail", "windows"], "task.data.answers": ["answers"],
    "task.data.format": ["tsv"], "task.data.scheme": ["bioes"], "task.kind": ["multilabel"], "task.max_length": ["6"],
    "task.labels": ["{animal: beast, human: human}"],
    "task.data.candidates": ["[text, question]"], "task.data.each": ["words"], "task.data.group": ["label"],
    "task.data.id": ["question"], "task.data.label": ["other"], "task.data.label_separator": ["+"],
    "task.data.second": ["question"], "task.data.skip_labels": ["[animal]"], "task.data.test": ["valid.jsonl"],
    "task.data.text": ["question"], "task.data.train": ["valid.jsonl"], "task.data.valid": ["train.jsonl"],
    "task.metric": ["f1_macro"], "task.scale": ["[0, 20]"],
}
# Keys that are tried with a run of their own: they mean nothing for the first that has them, nor for other verbs.
# Those of the task are tried with a kind that has none of them, too, which has to refuse them.
OWN = {"optimizer.decay_score_biases": "t5.yaml", "task.data.scheme": "tagging-task.yaml",
       "task.max_answer": "spans-task.yaml", "task.max_question": "spans-task.yaml",
       "task.stride": "classification-task.yaml"}
RATE = ["optimizer.learning_rate=30", "schedule.warmup=0"]
# What else a key needs to count, which its documentation names.
WITH = {
    "checkpoint.keep": ["checkpoint.every=1"], "model.reuse_len": ["model.mem_len=8"],
    "objectives.0.dupe_factor": ["train.budget.steps=40"],
    "evaluation.patience": ["evaluation.every=1", "optimizer.learning_rate=0"],
    "evaluation.suite_every": ["evaluation.suites=[pairs.jsonl]"],
    "evaluation.suite_items": ["evaluation.suites=[pairs.jsonl]"],
    "freeze.layers": ["init.from=base"], "init.probe": ["init.from=base"],
    "init.layers": ["init.from=base"], "distil.layers": ["distil.teacher=base", "distil.hidden=1"],
    **{f"distil.{key}": ["distil.teacher=base"] for key in (
        "like", "logits", "temperature", "tokens", "cosine", "hidden", "embeddings", "scores", "attention", "values",
        "patient")},
    "model.rope_theta": ["model.position_embeddings=rotary"],
    "objectives.0.decay_steps": ["objectives.0.initial_mlm_probability=0.5"],
    "objectives.0.draw_per": ["objectives.0.unit=word"],
    "objectives.0.max_ngram": ["objectives.0.unit=ngram"],
    "objectives.0.max_span_length": ["objectives.0.unit=span", "objectives.0.span_p=0.01"],
    "objectives.0.random_from": ["objectives.0.mask_prob=0.2", "objectives.0.random_prob=0.8"],
    "objectives.0.span_p": ["objectives.0.unit=span"],
    "optimizer.epsilon_hat": ["optimizer.bias_correction=true", "optimizer.epsilon=1e-3"],
    "schedule.decay_in_warmup": ["schedule.decay_from_start=true", "schedule.warmup=0.5"],
    "train.on_divergence": RATE, "train.deterministic": ["train.parts=4"],
    "task.cut": ["task.max_length=6"], "task.stride": ["task.cut=windows", "task.max_length=6"],
    "task.choose_threshold": ["task.metric=f1", "task.class_weights=[9, 1]"],
}
# Keys that change no number, and why.
TOKENIZER = "is set from the tokenizer"
SAME_BITS = "changes time or memory, and no bit"
NONE = {
    "model.pad_token_id": TOKENIZER, "model.bos_token_id": TOKENIZER, "model.eos_token_id": TOKENIZER,
    "train.gradient_checkpointing": SAME_BITS, "train.threads": SAME_BITS, "train.workers": SAME_BITS,
    "train.device": "needs a GPU", "train.dropout_masks": "needs a GPU",
    "train.precision": "is fp32 where a processor has no units for bf16",
    "train.on_nonfinite": "counts where a loss is not finite", "model.decoder_start_token_id": TOKENIZER,
    "task.task": "is a name", "task.data.header": "is of tables", "task.data.label_separator": "is of cells of tables",
    "finetune model.initializer_range": "is of the heads of Hugging Face's classes",
    "finetune model.freeze_pad_embedding": "no loss reaches padding",
    "finetune model.tie_word_embeddings": "the head of a task has no words",
    "model.forced_bos_token_id": "is of generating", "model.forced_eos_token_id": "is of generating",
}


def texts(seed, documents):
    draw = random.Random(seed)
    words = "the old young sailor girl cat saw found lost sold two apples lamp letter near under river bridge".split()
    lines = []
    for _ in range(documents):
        lines += [" ".join(draw.choices(words, k=draw.randint(4, 9))) + "." for _ in range(draw.randint(3, 6))] + [""]
    return "\n".join(lines)


def items(seed, count):
    """Lines with what each kind of task asks for."""
    draw = random.Random(seed)
    lines = []
    for i in range(count):
        who, what = draw.choice(["sailor", "girl", "cat"]), draw.choice(["two apples", "the lamp"])
        words = ["the", who, draw.choice(["saw", "found", "lost"]), *what.split(), *["near"] * draw.randint(0, 3)]
        text = " ".join(words)
        lines.append(json.dumps({
            "text": text, "question": f"what was lost {i}", "label": "animal" if who == "cat" else "human",
            "other": "two" if "two" in words else "one", "labels": [who, what], "length": len(words), "words": words,
            "tags": ["O", "B-WHO", "O", "B-WHAT", "I-WHAT"] + ["O"] * (len(words) - 5),
            "candidates": [what, "the river"], "right": 0,
            "answers": [{"text": what, "answer_start": text.index(what)}],
        }))
    return "\n".join(lines) + "\n"


def flat(yaml):
    """The scalars of block YAML as Cloze writes it, by path."""
    values, at = {}, []
    for line in yaml.splitlines():
        found = re.match(r"^( *)(- )?([\w-]+):(?: (.*))?$", line)
        if not found:
            continue
        indent, item, key, value = len(found[1]), found[2], found[3], found[4]
        if item:
            at = [one for one in at if one[0] < indent] + [(indent, "0")]
            indent += 2
        at = [one for one in at if one[0] < indent] + [(indent, key)]
        if value is not None:
            values[".".join(one[1] for one in at)] = value
    return values


class World:
    def __init__(self, program, folder):
        self.program, self.folder, self.runs = str(pathlib.Path(program).resolve()), pathlib.Path(folder), 0
        for name, seed in (("text", 1), ("other", 2)):
            (self.folder / f"{name}.txt").write_text(texts(seed, 60))
        for seed, (name, count) in enumerate((("train", 60), ("valid", 16), ("test", 16))):
            (self.folder / f"{name}.jsonl").write_text(items(seed, count))
        pair = {"sentence_good": "the cat saw two apples", "sentence_bad": "apples two saw cat the"}
        (self.folder / "pairs.jsonl").write_text("".join(json.dumps({**pair, "pairID": i}) + "\n" for i in range(3)))
        self.must("prepare", "text.txt", "--out", "tokens", "--vocab-size", "120", "--held-out", "0.2")
        self.must("prepare", "other.txt", "--out", "other", "--tokenizer", "tokens/tokenizer", "--held-out", "0.2")
        self.choices = {}
        for line in self.must("config", "--markdown").splitlines():
            cells = line.split("|")
            if line.startswith("| `") and cells[2].strip() == "text":
                key = cells[1].strip(" `").replace(".N.", ".0.")
                self.choices.setdefault(key, []).extend(cells[4].strip().split(", "))

    def call(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)

    def must(self, *arguments):
        answer = self.call(*arguments)
        if answer.returncode:
            sys.exit(f"{arguments}: {answer.stderr}")
        return answer.stdout

    @functools.lru_cache(None)
    def numbers(self, verb, settings=()):
        """What a run with settings is, as a hash; none: it was refused."""
        self.runs += 1
        name = f"run-{self.runs}"
        command = [*verb, "--run", name, "--quiet"]
        for one in settings:
            command += ["--set", one]
        answer = self.call(*command)
        run = self.folder / name
        try:
            if answer.returncode in (1, 2) and "cloze: error: " in answer.stderr and "is a bug" not in answer.stderr:
                return None
            if answer.returncode not in (0, 3):
                sys.exit(f"{command}: {answer.stderr}")
            found = hashlib.sha256()
            for path in sorted(run.rglob("*")):
                part = str(path.relative_to(run))
                if part.startswith(("tokenizer", "events", "log.txt", "run.yaml", "provenance", "init.json", "task")):
                    continue
                content = b""
                if path.name == "metrics.jsonl":
                    rows = [json.loads(line) for line in path.read_text().splitlines()]
                    content = json.dumps([{k: v for k, v in row.items() if k != "time"} for row in rows]).encode()
                elif path.name in ("held_out.json", "suites.json"):
                    content = json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k in
                                          ("losses", "suites")}).encode()
                elif path.name == "summary.json":
                    content = str((json.loads(path.read_text()).get("task") or {}).get("metric")).encode()
                elif path.name in ("weights.safetensors", "predictions.jsonl"):
                    content = path.read_bytes()
                found.update(part.encode() + content)
            return found.hexdigest()
        finally:
            shutil.rmtree(run, ignore_errors=True)

    def values(self, key, value):
        if key in VALUES:
            return VALUES[key]
        if key.startswith("evaluation.objectives.0."):
            return ["1"]
        if value in ("true", "false"):
            return ["false" if value == "true" else "true"]
        if re.fullmatch(r"-?\d+", value):
            number = int(value)
            return [str(one) for one in dict.fromkeys((number + 1, number * 2, max(number // 2, 0), 1, 2, 0)) if
                    one != number]
        if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", value):
            number = float(value)
            return [f"{one:g}" for one in dict.fromkeys((number / 2 + 0.25, number * 2, 0.5, 0.1, 0)) if one != number]
        return [one for one in self.choices.get(re.sub(r"^task\.", "", key), []) if one and one != value]


def fault_of(world, verb, key, value):
    """Why a key does not hold its word; none: a value of it counts, or every one is refused."""
    inner = "mlm." if key.startswith("objectives.0.mlm.") else ""
    beside = WITH.get(key.replace(inner, ""), [])
    beside = tuple(one.replace("objectives.0.", f"objectives.0.{inner}") for one in beside)
    before = world.numbers(verb, beside)
    accepted = []
    for one in world.values(key, value):
        now = world.numbers(verb, (*beside, f"{key}={one}"))
        if now not in (None, before):
            return None
        if now:
            accepted.append(one)
    tried = world.values(key, value)
    if tried and not accepted:
        return None
    return f"{' '.join(verb)}: {key} {'= ' + ', '.join(accepted) if tried else 'was not tried'}: nothing changes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="keys that begin so")
    parser.add_argument("--verb", default="", help="pretrain or finetune alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        world = World(arguments.cloze, folder)
        for name, yaml in PRETRAINED.items():
            (world.folder / f"{name}.yaml").write_text(yaml + SMALL)
        world.must("pretrain", "mlm.yaml", "--run", "base")
        bases = [(["pretrain", f"{name}.yaml"], flat(world.must("config", "--resolved", f"{name}.yaml")))
                 for name in PRETRAINED]
        for name, yaml in FINETUNED.items():
            (world.folder / f"{name}-task.yaml").write_text(yaml)
            verb, run = ["finetune", "base", f"{name}-task.yaml"], world.folder / f"tuned-{name}"
            world.must(*verb, "--run", str(run), "--set", "train.budget.epochs=1")
            task = json.loads((run / "task/manifest.json").read_text())["made_from"]["task"]["config"]
            of_run = {k: v for k, v in flat((run / "run.yaml").read_text()).items() if not k.startswith("task.")}
            bases.append((verb, of_run | {f"task.{k}": v for k, v in flat(task).items()}))
        seen, asked = {}, []
        for verb, keys in bases:
            known = seen.setdefault(verb[0], set())
            of_verb = [k for k in keys if OWN.get(k, verb[-1]).endswith("-task.yaml") == (verb[0] == "finetune")]
            asked += [(verb, k, keys[k]) for k in of_verb
                      if k not in known and not {k, f"{verb[0]} {k}"} & set(NONE) and k.startswith(arguments.only)]
            known.update(keys)
        asked = [((*verb[:-1], OWN.get(k, verb[-1])), k, value) for verb, k, value in asked]
        others = ("finetune", "base", "classification-task.yaml")
        asked += [(others, k, value) for verb, k, value in asked
                  if k in OWN and verb[-1].endswith("-task.yaml") and verb[-1] != others[-1]]
        asked = [one for one in asked if arguments.verb in ("", one[0][0])]
        faults = [one for one in pool.map(lambda one: fault_of(world, *one), asked) if one]
    for one in faults:
        print(one)
    print(f"{len(asked)} keys in {world.runs} runs, {len(faults)} without effect")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
