#!/usr/bin/env python3
"""Holds `cloze score` and `cloze evaluate` to transformers: the exported folder of the same run, one text and one mask
at a time.

    python3 tests/acceptance/scores.py build/cloze texts.txt runs/bert runs/electra runs/xlnet runs/t5 runs/bart runs/gpt2
    python3 tests/acceptance/scores.py build/cloze chapter.txt runs/bert runs/gpt2 --stride 64
    python3 tests/acceptance/scores.py build/cloze --suite comps.jsonl runs/bert runs/t5

For each run it exports a Hugging Face folder, opens it with the Auto classes, and scores every text by the definition of
the form in fp64 from fp32 logits: no batch, no cache, no code of Cloze. Of a suite it scores every candidate of every item
(minimal pairs, completions), or every fact with its rank. It prints the largest difference of a text's sum for each run and
form, of lines of texts also bits per byte, and fails where a difference is above --tolerance. Needs torch, transformers and yaml.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import torch
import transformers
import yaml

FORMS = {
    "masked": ["pll", "pll-word-l2r", "pll-span"],
    "causal": ["likelihood"],
    "xlnet": ["likelihood"],
    "t5": ["pll", "likelihood"],
    "bart": ["pll", "likelihood"],
    "electra": ["detection"],
}


def kind_of(config):
    kinds = {"electra": "electra", "xlnet": "xlnet", "t5": "t5", "bart": "bart", "gpt2": "causal"}
    return kinds.get(config.model_type, "masked")


def open_model(folder, kind):
    classes = {"masked": transformers.AutoModelForMaskedLM, "causal": transformers.AutoModelForCausalLM,
               "xlnet": transformers.XLNetLMHeadModel, "t5": transformers.AutoModelForSeq2SeqLM,
               "bart": transformers.AutoModelForSeq2SeqLM, "electra": transformers.ElectraForPreTraining}
    return classes[kind].from_pretrained(folder, dtype=torch.float32).eval()


def log_probability(logits, token):
    return torch.log_softmax(logits.double(), -1)[token].item()


class Windows:
    """A text in tokens, those that count, and the parts in which a model reads them: (begin, end, first that counts)."""

    def __init__(self, ids, spans, words, begin, end):
        self.ids, self.spans, self.words, self.begin, self.end = ids, spans, words, begin, end

    def over(self, room, stride):
        count = len(self.ids)
        if count <= room:
            return [(0, count, self.begin, self.end)]
        assert stride, f"a text of {count} tokens does not fit in {room}; give --stride"
        found, end, scored = [], room, 0
        while scored < count:
            first, last = max(scored, self.begin), min(end, self.end)
            if first < last:
                found.append((end - room, end, first, last))
            scored, end = end, min(count, end + stride)
        return found

    def of_completion(self, room, stride):
        if self.begin <= room and self.end - self.begin <= room:
            return [(0, self.end, self.begin, self.end)]
        assert stride, f"a completion of {self.end - self.begin} tokens does not fit in {room}; give --stride"
        found, at = [], self.begin
        while at < self.end:
            end = min(self.end, at + (stride if found else room))
            found.append((max(0, at - room), end, at, end))
            at = end
        return found


class Oracle:
    """The scores of a passage: a list with the log-probability of each token that counts."""

    def __init__(self, folder, stride, row_length):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.config = transformers.AutoConfig.from_pretrained(folder)
        self.kind = kind_of(self.config)
        self.model = open_model(folder, self.kind)
        self.stride = stride
        sizes = ["max_position_embeddings", "n_positions"]
        known = [getattr(self.config, name, None) for name in sizes]
        self.length = next((size for size in known if size and self.kind not in ("t5", "xlnet")), row_length)
        self.ranks = []

    def passage(self, left, scored, right):
        text = left + scored + right
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids, spans = encoded["input_ids"], encoded["offset_mapping"]
        first, last = len(left), len(left) + len(scored)
        counts = [begin < last and (end > first or begin == end == first) for begin, end in spans]
        begin = counts.index(True) if any(counts) else 0
        end = begin + sum(counts)
        # A token that is the space before what is scored counts with it.
        before = spans[begin - 1] if begin > 0 else (0, 0)
        if before[0] < before[1] == first and not text[before[0]:first].strip(" "):
            begin -= 1
        return Windows(ids, spans, encoded.word_ids(), begin, end)

    def take(self, logits, token):
        self.ranks.append(1 + (logits > logits[token]).sum().item())
        return log_probability(logits, token)

    def masked(self, passage, form):
        tokenizer, found = self.tokenizer, []
        for begin, end, first, last in passage.over(self.length - 2, self.stride):
            for i in range(first, last):
                row = list(passage.ids[begin:end])
                for j in range(begin, end):
                    later = form == "pll-word-l2r" and j > i and passage.words[j] == passage.words[i]
                    if j == i or later or (form == "pll-span" and first <= j < last):
                        row[j - begin] = tokenizer.mask_token_id
                row = [tokenizer.cls_token_id] + row + [tokenizer.sep_token_id]
                found.append(self.take(self.model(torch.tensor([row])).logits[0, i - begin + 1], passage.ids[i]))
        return found

    def causal(self, passage, form):
        start = self.tokenizer.sep_token_id
        start = self.config.eos_token_id if start is None else start
        found = []
        for begin, end, first, last in passage.over(self.length, self.stride):
            frame = [start] if begin == 0 or first == begin else []
            logits = self.model(torch.tensor([frame + passage.ids[begin:last - 1]])).logits[0]
            found += [self.take(logits[i - begin + len(frame) - 1], passage.ids[i]) for i in range(first, last)]
        return found

    def xlnet(self, passage, form):
        found = []
        for begin, end, first, last in passage.over(self.length - 2, self.stride):
            ids = passage.ids[begin:end]
            n = len(ids)
            row = torch.tensor([ids + [self.tokenizer.sep_token_id, self.tokenizer.cls_token_id]])
            hidden = torch.zeros(1, n + 2, n + 2)
            for query in range(n + 2):
                for key in range(n):
                    hidden[0, query, key] = float(query >= n or key >= query)
            mapping = torch.zeros(1, n, n + 2)
            for i in range(n):
                mapping[0, i, i] = 1
            types = torch.tensor([[0] * (n + 1) + [2]])
            logits = self.model(row, perm_mask=hidden, target_mapping=mapping, token_type_ids=types).logits[0]
            found += [self.take(logits[i - begin], passage.ids[i]) for i in range(first, last)]
        return found

    def of_two(self, source, decoder):
        return self.model(torch.tensor([source]), decoder_input_ids=torch.tensor([decoder])).logits[0]

    def t5(self, passage, form):
        sentinel = self.tokenizer.convert_tokens_to_ids("<extra_id_0>")
        ids, end_token, start = passage.ids, self.tokenizer.eos_token_id, self.config.decoder_start_token_id
        found = []
        if form == "likelihood":
            for begin, end, first, last in passage.of_completion(self.length - 2, self.stride):
                logits = self.of_two(ids[begin:first] + [sentinel, end_token], [start, sentinel] + ids[first:last])
                found += [self.take(logits[i + 1], token) for i, token in enumerate(ids[first:last])]
            return found
        for begin, end, first, last in passage.over(self.length - 2, self.stride):
            for i in range(first, last):
                source = ids[begin:i] + [sentinel] + ids[i + 1:end] + [end_token]
                found.append(self.take(self.of_two(source, [start, sentinel])[1], ids[i]))
        return found

    def bart(self, passage, form):
        ids, mask = passage.ids, self.tokenizer.mask_token_id
        start, begin_token, end_token = self.config.decoder_start_token_id, self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        found = []
        for begin, end, first, last in passage.over(self.length - 2, self.stride):
            decoder = [start, begin_token] + ids[begin:last]
            if form == "likelihood":
                logits = self.of_two([begin_token] + ids[begin:first] + [mask, end_token], decoder)
                found += [self.take(logits[i - begin + 1], ids[i]) for i in range(first, last)]
                continue
            for i in range(first, last):
                source = [begin_token] + ids[begin:i] + [mask] + ids[i + 1:end] + [end_token]
                logits = self.of_two(source, decoder[: i - begin + 2])
                found.append(self.take(logits[i - begin + 1], ids[i]))
        return found

    def electra(self, passage, form):
        found = []
        for begin, end, first, last in passage.over(self.length - 2, self.stride):
            row = [self.tokenizer.cls_token_id] + passage.ids[begin:end] + [self.tokenizer.sep_token_id]
            logits = self.model(torch.tensor([row])).logits[0].double()
            found += torch.nn.functional.logsigmoid(-logits[first - begin + 1:last - begin + 1]).tolist()
        return found

    def score(self, left, scored, right, form):
        self.ranks = []
        if form == "likelihood":
            right = ""
        with torch.no_grad():
            return getattr(self, self.kind)(self.passage(left, scored, right), form)


def lines_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def row_length_of(run):
    """The length of windows of a model without a limit: data.max_seq_length of its run."""
    for folder in (run, os.path.dirname(os.path.abspath(run))):
        if os.path.exists(os.path.join(folder, "run.yaml")):
            with open(os.path.join(folder, "run.yaml"), encoding="utf-8") as file:
                return yaml.safe_load(file)["data"]["max_seq_length"]
    sys.exit(f"{run}: has no run.yaml")


def parts_of(line):
    """The context, the scored text and what follows it, of a line as `cloze score` reads it."""
    if line.startswith("{"):
        value = json.loads(line)
        if "text" in value:
            return "", value["text"], ""
        if "scored" in value:
            return value.get("left", ""), value["scored"], value.get("right", "")
        context, completion = value["context"], value["completion"]
    elif "\t" in line:
        context, completion = line.split("\t")
    else:
        return "", line, ""
    apart = not context or context[-1].isspace() or completion[0].isspace()
    return context + ("" if apart else " "), completion, ""


def compare_texts(arguments, run, oracle, form):
    """Pairs (difference, text) of lines of texts; also prints bits per byte."""
    command = [arguments.cloze, "--quiet", "score", run, arguments.texts, "--as", form, "--json"]
    command += ["--stride", str(arguments.stride)] if arguments.stride else []
    with open(arguments.texts, encoding="utf-8") as file:
        parts = [parts_of(line.rstrip("\n")) for line in file if line.strip()]
    ours = lines_of(command)
    theirs = [sum(oracle.score(*part, form)) for part in parts]
    if form != "detection":
        size = sum(line["bytes"] for line in ours) * -math.log(2)
        print(f"  bits per byte: {sum(line['sum'] for line in ours) / size:.6f}, by transformers {sum(theirs) / size:.6f}")
    return [(abs(line["sum"] - score), line["text"]) for line, score in zip(ours, theirs, strict=True)]


def compare_fact(item, oracle, form):
    masked = form.startswith("pll")
    if masked:
        logs = oracle.score(item["left"], item["object"], item["right"], form)
    else:
        logs = oracle.score("", item["left"] + item["object"] + item["right"], "", form)
    score = sum(logs) / (len(logs) if masked else 1)
    if "rank" in item and item["rank"] != oracle.ranks[0]:
        print(f"  {item['item']}: rank {item['rank']}, by transformers {oracle.ranks[0]}")
    return abs(score - item["score"]), item["item"]


def compare_suite(arguments, run, oracle, form, folder):
    """Pairs (difference, name) of the candidates or facts of a suite."""
    out = os.path.join(folder, f"answers-{form}")
    lines_of([arguments.cloze, "--quiet", "evaluate", run, "--suite", arguments.suite, "--as", form, "--out", out, "--json"])
    with open(out + "/predictions.jsonl", encoding="utf-8") as file:
        items = [json.loads(line) for line in file][:: arguments.every]
    found = []
    for item in items:
        if "object" in item:
            found.append(compare_fact(item, oracle, form))
            continue
        for one in item["candidates"]:
            logs = oracle.score(one.get("left", ""), one["scored"], one.get("right", ""), form)
            found.append((abs(one["sum"] - sum(logs)), item["item"]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze")
    parser.add_argument("texts", help="file as `cloze score` reads it; with --suite the first run")
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--suite", help="minimal pairs, completions or facts, instead of texts")
    parser.add_argument("--every", type=int, default=1, help="of a suite: score every N-th item only")
    parser.add_argument("--stride", type=int, default=0, help="of texts longer than the model")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    runs = [arguments.texts] * bool(arguments.suite) + arguments.runs
    failed = False
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            exported = os.path.join(folder, "exported")
            subprocess.run([arguments.cloze, "--quiet", "export", run, "--to", "huggingface", "--out", exported], check=True)
            oracle = Oracle(exported, arguments.stride, row_length_of(run))
            for form in FORMS[oracle.kind]:
                if arguments.stride and form == "pll-span":
                    continue  # of windows it would mask tokens together that are not read together
                if arguments.suite:
                    found = compare_suite(arguments, run, oracle, form, folder)
                else:
                    found = compare_texts(arguments, run, oracle, form)
                worst = max(found)
                failed |= not worst[0] <= arguments.tolerance
                print(f"{run} {form}: {len(found)} texts, largest difference {worst[0]:.2e} nats ({worst[1][:40]!r})",
                      flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
