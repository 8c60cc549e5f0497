#!/usr/bin/env python3
"""Fine-tunes beside a plain loop of PyTorch with the classes of transformers: the same first weights, batches, rates.

    tests/acceptance/finetune_beside.py build/cloze [--family bert] [--kind spans] [--folder /tmp/beside]

For every family and kind of task that transformers has a class for: a run of one step is fine-tuned by `cloze finetune`
for 50 steps without dropout in fp32, its first weights are exported, `cloze inspect task --json` gives the batches, and
AdamW with clipping and a linear schedule takes the same steps. A line of the table has the largest difference of the
losses (limit 1e-4) and of the rates, and how many predictions of the test part are others. Exits with 1 where
something differs. Texts are made up here. Needs the environment beside transformers (`./test --peers`).
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

peers.enter(__file__)
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from torch.nn import functional as F  # noqa: E402

STEPS, BATCH, WARMUP, RATE, DECAY, EPSILON, LIMIT = 50, 8, 5, 2e-4, 0.01, 1e-6, 1e-4
FAMILIES = {"bert": "Bert", "roberta": "Roberta", "albert": "Albert", "electra": "Electra", "xlnet": "XLNet",
            "t5": "T5", "bart": "Bart", "gpt2": "GPT2", "modernbert": "ModernBert", "distilbert": "DistilBert",
            "longformer": "Longformer"}
SUFFIXES = {"classification": "ForSequenceClassification", "regression": "ForSequenceClassification",
            "multilabel": "ForSequenceClassification", "tagging": "ForTokenClassification",
            "spans": "ForQuestionAnswering", "choice": "ForMultipleChoice"}
SCALE = 14  # of regression: targets from 0 to this are 0 to 1 in the loss
WITHOUT_DROPOUT = ["model.hidden_dropout_prob=0", "model.attention_probs_dropout_prob=0",
                   "objectives.0.classifier_dropout=0"]
SETTINGS = [f"train.budget.steps={STEPS}", f"train.batch_size={BATCH}", f"optimizer.learning_rate={RATE}",
            f"optimizer.weight_decay={DECAY}", f"optimizer.epsilon={EPSILON}", f"schedule.warmup={WARMUP}",
            f"checkpoint.every={STEPS}", f"evaluation.every={STEPS}", "checkpoint.log_every=1", *WITHOUT_DROPOUT]


def class_of(family, kind):
    """The class in transformers, or None."""
    name = FAMILIES[family] + SUFFIXES[kind] + ("Simple" if (family, kind) == ("xlnet", "spans") else "")
    return getattr(hf, name, None)


# -- Texts and tasks ---------------------------------------------------------------------------------------------------

WORDS = [a + b for a in "ba ce di fo gu ka le mi no pu".split() for b in "rt sol nen vig dam".split()]
COLOURS = {"red": "warm", "orange": "warm", "blue": "cold", "green": "cold", "grey": "none", "white": "none"}


def sentence(draw, least=4, most=14):
    return draw.choices(WORDS, k=draw.randint(least, most))


def with_colour(draw):
    """Words, one of them a colour, and its place."""
    words, colour = sentence(draw), draw.choice(list(COLOURS))
    place = draw.randrange(len(words))
    words[place] = colour
    return words, colour, place


def line_of(draw, kind):
    """An item as an object of JSON lines."""
    words, colour, place = with_colour(draw)
    text = " ".join(words)
    if kind == "classification": return {"a": text, "b": " ".join(sentence(draw)), "label": COLOURS[colour]}
    if kind == "regression": return {"a": text, "label": place + draw.random()}
    if kind == "multilabel": return {"a": text, "label": sorted({COLOURS[colour], *draw.sample(["early", "late"], 1)})}
    if kind == "choice":
        others = draw.sample([one for one in COLOURS if one != colour], draw.randint(1, 3))
        right = draw.randint(0, len(others))
        return {"a": text, "b": others[:right] + [colour] + others[right:], "label": right}
    if kind == "tagging": return {"a": words, "label": ["B-" + COLOURS[w] if w in COLOURS else "O" for w in words]}
    is_known = draw.random() < 0.8
    answer = {"text": [colour], "answer_start": [text.index(colour)]}
    if not is_known: answer = {"text": [], "answer_start": []}
    return {"a": "what colour stands here", "b": text, "label": answer}


KEYS = {  # of `data`
    "classification": "text: a, second: b, label: label", "regression": "text: a, label: label",
    "multilabel": "text: a, label: label", "choice": "text: a, candidates: b, label: label",
    "tagging": "text: a, label: label", "spans": "text: a, second: b, answers: label"}


def write_task(folder, kind):
    """The task file, and one whose training part is the test part. Batches of 8 do not divide the training part."""
    draw = random.Random(kind)
    for part, count in ("train", 150), ("test", 60):
        lines = [json.dumps({"id": f"{part}-{i}", **line_of(draw, kind)}) for i in range(count)]
        (folder / f"{kind}-{part}.jsonl").write_text("\n".join(lines) + "\n")
    files = [folder / f"{kind}.yaml", folder / f"{kind}-of-test.yaml"]
    for file, train in zip(files, ("train", "test")):
        file.write_text(f"task: {kind}\nkind: {kind}\nmax_length: 64\n" +
                        (f"scale: [0, {SCALE}]\n" if kind == "regression" else "") +
                        f"data: {{train: {kind}-{train}.jsonl, valid: {kind}-test.jsonl, test: {kind}-test.jsonl, "
                        f"id: id, {KEYS[kind]}}}\n")
    return files


# -- The program -------------------------------------------------------------------------------------------------------

def run(program, *arguments):
    """Standard output; raises RuntimeError with what the program says where it fails."""
    done = subprocess.run([program, "--quiet", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode: raise RuntimeError(f"cloze {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def set_all(settings):
    return [word for one in settings for word in ("--set", one)]


def pretrain(program, folder, family):
    """A run of one step."""
    tokens, out = folder / f"tokens-{family}", folder / family
    if not (folder / "text.txt").exists():
        draw = random.Random(1)
        paragraphs = ["\n".join(" ".join(with_colour(draw)[0]) + "." for _ in range(8)) for _ in range(120)]
        (folder / "text.txt").write_text("\n\n".join(paragraphs) + "\n")
    if not out.exists():
        run(program, "prepare", folder / "text.txt", "--for", family, "--vocab-size", 400, "--held-out", 0.1,
            "--out", tokens)
        run(program, "pretrain", f"{family}/tiny", "--run", out,
            *set_all([f"data.tokens={tokens}", "train.budget.steps=1", "schedule.warmup=0", "train.batch_size=4"]))
    return out


# -- The loop ----------------------------------------------------------------------------------------------------------

class Rows:
    """Rows of one batch, padded as the family's tokenizer pads: XLNet on the left."""

    def __init__(self, examples, family, kind, pad):
        self.kind, self.examples, self.left = kind, examples, family == "xlnet"
        rows = [row for one in examples for row in one["choices"]] if kind == "choice" else examples
        self.lengths = [len(row["input_ids"]) for row in rows]
        self.inputs = {name: torch.tensor([self.padded(row[name], pad if name == "input_ids" else 0) for row in rows])
                       for name in ("input_ids", "attention_mask", "token_type_ids") if name in rows[0]}
        if family == "longformer" and kind == "tagging":
            self.inputs["global_attention_mask"] = torch.zeros_like(self.inputs["input_ids"])
            self.inputs["global_attention_mask"][:, 0] = 1
        if kind == "choice": self.by_item(max(len(one["choices"]) for one in examples))

    def padded(self, values, filler):
        rest = [filler] * (max(self.lengths) - len(values))
        return rest + values if self.left else values + rest

    def by_item(self, most):
        """[items, candidates, T]; an item with fewer candidates has its first one again, which counts for nothing."""
        places, at = [], 0
        for one in self.examples:
            count = len(one["choices"])
            places.append(list(range(at, at + count)) + [at] * (most - count))
            at += count
        self.absent = torch.tensor([[i >= len(one["choices"]) for i in range(most)] for one in self.examples])
        self.inputs = {name: one[torch.tensor(places)] for name, one in self.inputs.items()}

    def shifts(self):
        """How far the tokens of each row stand from its beginning."""
        return [max(self.lengths) - length if self.left else 0 for length in self.lengths]

    def loss(self, out):
        if self.kind == "spans": return self.span_loss(out)
        wanted = [one["labels" if self.kind in ("multilabel", "tagging") else "label"] for one in self.examples]
        if self.kind == "tagging":
            wanted = torch.tensor([self.padded(row, -100) for row in wanted])
            return F.cross_entropy(out.logits.flatten(0, 1), wanted.flatten(), ignore_index=-100)
        wanted = torch.tensor(wanted)
        if self.kind == "multilabel": return F.binary_cross_entropy_with_logits(out.logits, wanted.float())
        if self.kind == "regression": return F.mse_loss(out.logits.squeeze(-1), wanted / SCALE)
        logits = out.logits.masked_fill(self.absent, -torch.inf) if self.kind == "choice" else out.logits
        return F.cross_entropy(logits, wanted)

    def span_loss(self, out):
        """Over real tokens."""
        real = self.inputs["attention_mask"] == 1
        sums = 0
        for name, logits in ("start", out.start_logits), ("end", out.end_logits):
            wanted = torch.tensor([one[name] + shift for one, shift in zip(self.examples, self.shifts())])
            sums += F.cross_entropy(logits.masked_fill(~real, -torch.inf), wanted)
        return sums / 2


def optimizer_of(net):
    """AdamW that spares biases and norms."""
    groups = {True: [], False: []}
    for name, parameter in net.named_parameters():
        groups["bias" not in name and "norm" not in name.lower() and parameter.dim() > 1].append(parameter)
    return torch.optim.AdamW([{"params": groups[True], "weight_decay": DECAY},
                              {"params": groups[False], "weight_decay": 0.0}], lr=RATE, eps=EPSILON)


def batches_of(examples, items):
    """Batches that end with the epoch."""
    for first in range(0, len(examples), items):
        epoch = examples[first:first + items]
        yield from (epoch[i:i + BATCH] for i in range(0, len(epoch), BATCH))


def train(net, batches):
    """The loss and the rate of each step. Dropout is off in eval()."""
    net.eval()
    optimizer = optimizer_of(net)
    schedule = hf.get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    losses, rates = [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = batch.loss(net(**batch.inputs))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return losses, rates


# -- Predictions -------------------------------------------------------------------------------------------------------

def predictions_of(net, rows):
    """By item what predictions.jsonl has of it; of spans the most likely tokens, which it has not."""
    with torch.no_grad(): out = net(**rows.inputs)
    names, found = net.config.id2label, {}
    for i, one in enumerate(rows.examples):
        if rows.kind == "spans":
            real = rows.inputs["attention_mask"][i] == 1
            ends = [logits[i].masked_fill(~real, -torch.inf).argmax() for logits in (out.start_logits, out.end_logits)]
            found[one["item"]] = [int(end) for end in ends]
            continue
        logits = out.logits[i]
        if rows.kind == "classification": found[one["item"]] = names[int(logits.argmax())]
        if rows.kind == "regression": found[one["item"]] = logits.item() * SCALE
        if rows.kind == "multilabel": found[one["item"]] = [names[k] for k in range(len(logits)) if logits[k] > 0]
        if rows.kind == "choice": found[one["item"]] = int(logits.masked_fill(rows.absent[i], -torch.inf).argmax())
        if rows.kind == "tagging":
            first = torch.tensor(rows.padded(one["labels"], -100)) >= 0
            found[one["item"]] = [names[k] for k in logits.argmax(-1)[first].tolist()]
    return found


def as_trained(net, kind):
    """A network of an exported folder, whose last layer has the scale of a regression, with the outputs of training."""
    last = [m for m in net.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 1]
    if kind == "regression":
        with torch.no_grad():
            for values in last[-1].parameters(): values /= SCALE
    return net


def predictions_in(file, kind):
    key = {"classification": "label", "regression": "value", "multilabel": "labels", "tagging": "tags",
           "choice": "choice"}[kind]
    return {one["item"]: one[key] for one in map(json.loads, file.read_text().splitlines())}


def others(mine, theirs):
    """How many predictions are others; values may differ by a hundredth."""
    if mine.keys() != theirs.keys(): return f"{len(mine)} items of {len(theirs)}"
    return sum(abs(mine[item] - one) > 0.01 if isinstance(one, float) else mine[item] != one
               for item, one in theirs.items())


# -- A case ------------------------------------------------------------------------------------------------------------

def compare(program, folder, family, kind, cls):
    """The first and the last loss, the largest differences of losses and of rates, and the predictions that differ."""
    source, (task, of_test) = pretrain(program, folder, family), write_task(folder, kind)
    place = folder / f"{family}-{kind}"
    finetune = ["finetune", source, task, "--like", "huggingface", *set_all(SETTINGS)]
    if "activation_dropout" in (source / "run.yaml").read_text(): finetune += set_all(["model.activation_dropout=0"])
    if (family, kind) == ("t5", "tagging"): finetune += set_all(["model.architecture=encoder"])
    run(program, *finetune, "--run", place)
    run(program, *finetune, "--run", f"{place}-first", *set_all([
        "train.budget.steps=1", "schedule.warmup=0", "optimizer.learning_rate=0", "checkpoint.every=1",
        "evaluation.every=1"]))  # a step of rate 0
    for name in f"{place}-first", str(place): run(program, "export", name, "--to", "huggingface", "--out", name + "-hf")

    def rows_of(task, count):
        """The rows in the order of training, and how many an epoch has."""
        found = json.loads(run(program, "inspect", "task", place, task, "--examples", count, "--json"))
        return found["examples"], found["counts"]["train"]["rows" if kind in ("tagging", "spans") else "items"]

    net = as_trained(cls.from_pretrained(f"{place}-first-hf", attn_implementation="eager"), kind)
    pad = net.config.pad_token_id if net.config.pad_token_id is not None else 0
    batches = batches_of(*rows_of(task, 2 * STEPS * BATCH))
    losses, rates = train(net, [Rows(batch, family, kind, pad) for batch in batches][:STEPS])
    steps = [one for one in map(json.loads, (place / "metrics.jsonl").read_text().splitlines()) if "loss" in one]
    if len(steps) != len(losses): raise RuntimeError(f"{len(steps)} steps of {len(losses)}")
    lost = max(abs(one["loss"] - loss) for one, loss in zip(steps, losses))
    rated = max(abs(one["learning_rate"] - rate) for one, rate in zip(steps, rates))

    test = Rows(rows_of(of_test, 60)[0], family, kind, pad)
    mine = predictions_of(net, test)
    trained = as_trained(cls.from_pretrained(f"{place}-hf", attn_implementation="eager"), kind).eval()
    differ = others(mine, predictions_of(trained, test))
    if kind != "spans": differ = max(differ, others(mine, predictions_in(place / "predictions.jsonl", kind)))
    return losses[0], losses[-1], lost, rated, differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=Path)
    parser.add_argument("--family", choices=FAMILIES, help="this family only")
    parser.add_argument("--kind", choices=SUFFIXES, help="this kind only")
    parser.add_argument("--folder", type=Path, help="of runs and tasks (default: a new temporary one)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hf.utils.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="beside-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    print("| family | kind | losses, first and last | differ by | rates differ by | other predictions of 60 |")
    print("|---|---|---:|---:|---:|---:|")
    for family in [options.family] if options.family else FAMILIES:
        for kind in [options.kind] if options.kind else SUFFIXES:
            cls = class_of(family, kind)
            if cls is None: continue
            try:
                found = compare(options.cloze.resolve(), folder, family, kind, cls)
            except Exception as error:  # the other cases go on
                found = " ".join(f"{type(error).__name__}: {error}".split())
            if isinstance(found, str):
                print(f"| {family} | {kind} | {found} | | | |", flush=True)
                wrong += 1
                continue
            first, last, lost, rated, differ = found
            wrong += not (lost <= LIMIT and rated <= 1e-9 and differ == 0)
            print(f"| {family} | {kind} | {first:.4f} {last:.4f} | {lost:.1e} | {rated:.1e} | {differ} |", flush=True)
    print(f"\n{wrong} differ (torch {torch.__version__}, transformers {hf.__version__}; {folder})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
