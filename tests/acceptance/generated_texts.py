#!/usr/bin/env python3
"""Takes runs that generate to transformers, and their figures to sacrebleu and rouge_score.

    tests/acceptance/generated_texts.py build/cloze [--folder /tmp/generated] [--figures TASK ITEMS PREDICTIONS]

A tiny T5, a tiny BART and a tiny GPT-2 of one step are fine-tuned for a few steps to say words of their sources
again, and exported. Then
- `model.generate` of the exported folder, which reads generation_config.json, gives the texts of `cloze predict`,
- the figures of `cloze evaluate predictions`, of several references each, are those of the two programs to 1e-9.
--figures compares those of a task and of predictions that are there, in place of all this.

A fault is a line; exits with 1 then. Without the environment beside transformers (`./test --peers`) the test is
skipped; without sacrebleu 2.6.0 and rouge_score 0.1.2 in it the figures are, which is said.
"""
import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

import peers

peers.enter(__file__)
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from finetune_beside import pretrain, run, set_all  # noqa: E402

FAMILIES = ("t5", "bart", "gpt2")
WORDS = "red green blue pale dark cat dog boat mill lamp sleeps sails turns burns, slowly there; (again) 3,5 so-so".split()
TASK = """task: echo
kind: generation
data: {{train: echo-train.jsonl, valid: echo-test.jsonl, test: echo-test.jsonl, id: id, text: "say: {{source}}",
       label: target}}
max_length: 40
max_target: 16
decoding: {decoding}
"""
DECODINGS = ["{num_beams: 1}", "{num_beams: 3, length_penalty: 0.6, min_new_tokens: 3, no_repeat_ngram_size: 2}"]
SETTINGS = ["train.budget.steps=12", "train.batch_size=16", "optimizer.learning_rate=1e-2", "evaluation.every=12",
            "checkpoint.every=12"]


def sentence(draw, length):
    return " ".join(draw.choice(WORDS) for _ in range(length))


def write_items(folder):
    draw = random.Random(5)
    for part, count in ("train", 120), ("test", 40):
        lines = []
        for i in range(count):
            source = sentence(draw, draw.randint(2, 9))
            references = [" ".join(source.split()[:3]), sentence(draw, 4), source.replace(" ", "\n", 1)]
            lines.append(json.dumps({"id": f"{part}-{i}", "source": source, "target": references[:1 + i % 3]}))
        (folder / f"echo-{part}.jsonl").write_text("\n".join(lines) + "\n")


def items_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def export_faults(program, folder, family, number):
    task = folder / f"echo-{number}.yaml"
    task.write_text(TASK.format(decoding=DECODINGS[number]))
    place, out = folder / f"{family}-{number}", folder / f"{family}-{number}-hf"
    run(program, "finetune", pretrain(program, folder, family), task, "--run", place, *set_all(SETTINGS))
    run(program, "export", place, "--to", "huggingface", "--out", out)
    said = {one["item"]: one["text"] for one in items_of(place / "predictions.jsonl")}
    of_decoder = family == "gpt2"
    model = (hf.AutoModelForCausalLM if of_decoder else hf.AutoModelForSeq2SeqLM).from_pretrained(out).eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(out)
    for one in items_of(folder / "echo-test.jsonl"):
        ids = tokenizer("say: " + one["source"], truncation=True, max_length=40)["input_ids"]
        if of_decoder: ids += [tokenizer.eos_token_id]
        with torch.inference_mode():
            made = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long))[0]
        text = tokenizer.decode(made[len(ids) if of_decoder else 0:], skip_special_tokens=True,
                                clean_up_tokenization_spaces=False)
        if text.strip() != said[one["id"]].strip(): yield f"{one['id']}: {text!r}, not {said[one['id']]!r}"


def figure_faults(program, task, items, predictions):
    """What the two programs say of the same texts. `items`: the test part, with lists of references as `target`."""
    import sacrebleu
    from rouge_score import rouge_scorer
    told = json.loads(run(program, "evaluate", "predictions", "--task", task, "--predictions", predictions, "--json"))
    found = {one["metric"]: one["value"] for one in told["metrics"]}
    texts = [one["text"] for one in items_of(Path(predictions))]
    references = [one["target"] for one in items]
    most = max(map(len, references))
    columns = [[each[i] if i < len(each) else None for each in references] for i in range(most)]
    wanted = {}
    for name, metric in ("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF()):
        wanted[name] = metric.corpus_score(texts, columns).score / 100
        if told["signatures"][name] != str(metric.get_signature()):
            yield f"{name}: signature {told['signatures'][name]}, not {metric.get_signature()}"
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"])
    scores = [scorer.score_multi(each, text) for each, text in zip(references, texts)]
    for name in scores[0]: wanted[name] = sum(one[name].fmeasure for one in scores) / len(scores)
    for name, value in wanted.items():
        if abs(found[name] - value) > 1e-9: yield f"{name}: {found[name]}, not {value}"


def predictions_of(folder):
    """Texts that share some words with the references of the test part."""
    draw = random.Random(7)
    lines = []
    for one in items_of(folder / "echo-test.jsonl"):
        words = draw.choice(one["target"]).split() + sentence(draw, draw.randint(0, 3)).split()
        if draw.random() < 0.5: draw.shuffle(words)
        text = draw.choice(["\n", " "]).join([" ".join(words[:2]), " ".join(words[2:])])
        lines.append(json.dumps({"item": one["id"], "text": "" if draw.random() < 0.1 else text}))
    path = folder / "said.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def has_programs():
    try:
        import rouge_score  # noqa: F401
        import sacrebleu  # noqa: F401
        return True
    except ImportError:
        print("figures: not compared; sacrebleu and rouge_score cannot be imported")
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("--folder", type=Path, help="of runs and tasks (default: a new temporary one)")
    parser.add_argument("--figures", type=Path, nargs=3, metavar=("TASK", "ITEMS", "PREDICTIONS"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    hf.utils.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    program = options.cloze.resolve()
    with tempfile.TemporaryDirectory(prefix="generated-") as scratch:
        folder = (options.folder or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        write_items(folder)
        cases = {f"{family} with {DECODINGS[number]}":
                 lambda family=family, number=number: export_faults(program, folder, family, number)
                 for family in FAMILIES for number in range(len(DECODINGS))}
        (folder / "echo.yaml").write_text(TASK.format(decoding=DECODINGS[0]))
        asked = [folder / "echo.yaml", folder / "echo-test.jsonl", predictions_of(folder)]
        if options.figures:
            cases, asked = {}, options.figures
        if has_programs(): cases["figures"] = lambda: figure_faults(program, asked[0], items_of(asked[1]), asked[2])
        wrong = 0
        for name, faults_of in cases.items():
            try:
                faults = list(faults_of())
            except Exception as error:  # the other cases go on
                faults = [" ".join(f"{type(error).__name__}: {error}".split())]
            wrong += bool(faults)
            print(f"{name}: {'the same' if not faults else f'{len(faults)} differ'}", *faults[:3], sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
