#!/usr/bin/env python3
"""Takes fine-tuned runs to transformers and compares what both predict.

    tests/acceptance/exported_tasks.py build/cloze [--folder /tmp/exported]

A tiny BERT and a tiny GPT-2 of one step are fine-tuned for a few steps on the made-up tasks of finetune_beside.py, and
exported. Then
- pipeline("text-classification") has the labels and the value of `cloze predict`, a text at a time and in batches,
- pipeline("token-classification", aggregation_strategy="first") has its tags, the first word's too,
- the code in docs/exports.md, as it stands there, has its answers and its choices.

A fault is a line; exits with 1 then. Without the environment beside transformers (`./test --peers`) the test is
skipped.
"""
import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import peers

peers.enter(__file__)
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from finetune_beside import pretrain, run, set_all, write_task  # noqa: E402

STEPS = 12
SETTINGS = [f"train.budget.steps={STEPS}", "train.batch_size=16", "optimizer.learning_rate=1e-3", "schedule.warmup=0",
            f"evaluation.every={STEPS}", f"checkpoint.every={STEPS}"]
DOCS = Path(__file__).resolve().parents[2] / "docs/exports.md"


def code_of(kind):
    """The block of Python in docs/exports.md that loads the folder of this task."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if f"runs/{kind}-hf" in block)


def answer_of(code, given, name):
    """What the code leaves in `name`, where `given` takes the place of its own examples."""
    for variable, value in given.items():
        code, count = re.subn(rf"^{variable} = .*$", lambda _: f"{variable} = {value!r}", code, flags=re.MULTILINE)
        if count != 1: raise RuntimeError(f"docs/exports.md: {count} lines give '{variable}'")
    scope = {}
    exec(code, scope)
    return scope[name]


def exported(program, folder, family, kind):
    """The folder of a fine-tuned run, the items of its test part, and what `cloze predict` says of them."""
    source, (task, _) = pretrain(program, folder, family), write_task(folder, kind)
    place = folder / f"{family}-{kind}"
    if not place.exists():
        run(program, "finetune", source, task, "--like", "huggingface", "--run", place, *set_all(SETTINGS))
    out = Path(f"{place}-hf")
    run(program, "export", place, "--to", "huggingface", "--out", out, *(["--force"] if out.exists() else []))
    test = folder / f"{kind}-test.jsonl"
    items = [json.loads(line) for line in test.read_text().splitlines()]
    said = [json.loads(line) for line in run(program, "predict", place, test, "--json").splitlines() if line[0] == "{"]
    if len(said) != len(items): raise RuntimeError(f"{len(said)} predictions of {len(items)} items")
    return str(out), items, said


def text_faults(program, folder, family, kind):
    out, items, said = exported(program, folder, family, kind)
    texts = [{"text": one["a"], **({"text_pair": one["b"]} if "b" in one else {})} for one in items]
    for batch in 1, 16:
        ask = hf.pipeline("text-classification", model=out, batch_size=batch,
                          function_to_apply="none" if kind == "regression" else None)
        for one, told, found in zip(items, said, ask(texts)):
            if kind == "regression": same = abs(found["score"] - told["value"]) < 1e-3
            else: same = found["label"] == told["label"]
            if not same: yield f"{one['id']}, batches of {batch}: {found}, not {told}"


def tag_faults(program, folder, family):
    out, items, said = exported(program, folder, family, "tagging")
    ask = hf.pipeline("token-classification", model=out, aggregation_strategy="first")
    raw = hf.AutoModelForTokenClassification.from_pretrained(out).eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(out)
    for one, told in zip(items, said):
        sentence = " ".join(one["a"])
        row = tokenizer(sentence, return_tensors="pt")
        with torch.inference_mode(): ids = raw(**row).logits[0].argmax(-1)
        words = row.word_ids(0)
        firsts = [words.index(word) for word in sorted(set(words) - {None})]
        tags = [raw.config.id2label[int(ids[place])] for place in firsts]
        if tags != told["tags"]: yield f"{one['id']}: {tags}, not {told['tags']}"
        # Phrases of the pipeline are those of the tags, by their words.
        named = [tag.split("-")[-1] for tag in told["tags"]]
        grouped = [group["entity_group"] for group in ask(sentence)]
        wanted = [name for i, name in enumerate(named)
                  if name != "O" and (i == 0 or named[i - 1] != name or told["tags"][i].startswith("B-"))]
        if grouped != wanted: yield f"{one['id']}, in groups: {grouped}, not {wanted}"


def span_faults(program, folder):
    out, items, said = exported(program, folder, "bert", "spans")
    code = code_of("squad").replace("runs/squad-hf", out)
    for one, told in zip(items, said):
        best = told["n_best"][0]["answer"] or told["n_best"][1]["answer"]
        found = answer_of(code, {"question, context": (one["a"], one["b"])}, "answer")
        if found != best: yield f"{one['id']}: '{found}', not '{best}'"


def choice_faults(program, folder):
    out, items, said = exported(program, folder, "bert", "choice")
    code = code_of("copa").replace("runs/copa-hf", out)
    for one, told in zip(items, said):
        found = answer_of(code, {"premise, candidates": (one["a"], one["b"])}, "best")
        if found != told["choice"]: yield f"{one['id']}: {found}, not {told['choice']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("--folder", type=Path, help="of runs and tasks (default: a new temporary one)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hf.utils.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    program = options.cloze.resolve()
    with tempfile.TemporaryDirectory(prefix="exported-") as scratch:
        folder = (options.folder or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        cases = {f"{family} {kind}": lambda family=family, kind=kind: text_faults(program, folder, family, kind)
                 for family in ("bert", "gpt2") for kind in ("classification", "regression")}
        cases["gpt2 tagging"] = lambda: tag_faults(program, folder, "gpt2")
        cases["bert spans"] = lambda: span_faults(program, folder)
        cases["bert choice"] = lambda: choice_faults(program, folder)
        wrong = 0
        for name, faults_of in cases.items():
            try:
                faults = list(faults_of())
            except Exception as error:  # the other cases go on
                faults = [" ".join(f"{type(error).__name__}: {error}".split())]
            wrong += bool(faults)
            print(f"{name}: {'as predicted' if not faults else f'{len(faults)} differ'}", *faults[:3], sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
