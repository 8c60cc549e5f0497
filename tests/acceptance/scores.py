#!/usr/bin/env python3
"""Holds `cloze score` to transformers: the same texts, the exported folder of the same run, one text and one mask at a time.

    python3 tests/acceptance/scores.py build/cloze texts.txt runs/bert runs/electra runs/xlnet runs/t5 runs/bart runs/gpt2

For each run it exports a Hugging Face folder, opens it with the Auto classes, and scores every text by the definition of
the form in fp64 from fp32 logits: no batch, no cache, no code of Cloze. It prints the largest difference of a text's sum
for each run and form, and fails where one is above --tolerance. Needs torch and transformers.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
import transformers

FORMS = {
    "masked": ["pll", "pll-word-l2r"],
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


def words_of(text, spans):
    """The number of the white-space word of each token, by its last character; a space belongs to the word after it."""
    numbers, starts = [], []
    inside = False
    word = -1
    for character in text:
        word += not character.isspace() and not inside
        inside = not character.isspace()
        numbers.append(word)
    for begin, end in spans:
        blank = not text[begin:end].strip()
        starts.append(numbers[max(begin, end - 1)] + blank)
    return starts


class Oracle:
    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.kind = kind_of(transformers.AutoConfig.from_pretrained(folder))
        self.model = open_model(folder, self.kind)

    def tokens(self, text):
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return encoded["input_ids"], encoded["offset_mapping"]

    def masked(self, text, form):
        tokenizer = self.tokenizer
        ids, spans = self.tokens(text)
        words = words_of(text, spans)
        total = 0
        for i, token in enumerate(ids):
            row = list(ids)
            for j in range(i, len(ids)):
                if j == i or (form == "pll-word-l2r" and words[j] == words[i]):
                    row[j] = tokenizer.mask_token_id
            row = [tokenizer.cls_token_id] + row + [tokenizer.sep_token_id]
            total += log_probability(self.model(torch.tensor([row])).logits[0, i + 1], token)
        return total

    def causal(self, text, form):
        begin = self.tokenizer.sep_token_id
        begin = self.model.config.eos_token_id if begin is None else begin
        ids, _ = self.tokens(text)
        logits = self.model(torch.tensor([[begin] + ids])).logits[0]
        return sum(log_probability(logits[i], token) for i, token in enumerate(ids))

    def xlnet(self, text, form):
        ids, _ = self.tokens(text)
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
        return sum(log_probability(logits[i], token) for i, token in enumerate(ids))

    def t5(self, text, form):
        ids, _ = self.tokens(text)
        sentinel = self.tokenizer.convert_tokens_to_ids("<extra_id_0>")
        end, start = self.tokenizer.eos_token_id, self.model.config.decoder_start_token_id
        if form == "likelihood":
            decoder = [start, sentinel] + ids
            logits = self.model(torch.tensor([[sentinel, end]]), decoder_input_ids=torch.tensor([decoder])).logits[0]
            return sum(log_probability(logits[i + 1], token) for i, token in enumerate(ids))
        total = 0
        for i, token in enumerate(ids):
            source = ids[:i] + [sentinel] + ids[i + 1:] + [end]
            logits = self.model(torch.tensor([source]), decoder_input_ids=torch.tensor([[start, sentinel]])).logits[0]
            total += log_probability(logits[1], token)
        return total

    def bart(self, text, form):
        ids, _ = self.tokens(text)
        config, mask = self.model.config, self.tokenizer.mask_token_id
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        decoder = torch.tensor([[config.decoder_start_token_id, begin] + ids])
        if form == "likelihood":
            logits = self.model(torch.tensor([[begin, mask, end]]), decoder_input_ids=decoder).logits[0]
            return sum(log_probability(logits[i + 1], token) for i, token in enumerate(ids))
        total = 0
        for i, token in enumerate(ids):
            source = torch.tensor([[begin] + ids[:i] + [mask] + ids[i + 1:] + [end]])
            logits = self.model(source, decoder_input_ids=decoder[:, : i + 2]).logits[0]
            total += log_probability(logits[i + 1], token)
        return total

    def electra(self, text, form):
        ids, _ = self.tokens(text)
        row = torch.tensor([[self.tokenizer.cls_token_id] + ids + [self.tokenizer.sep_token_id]])
        logits = self.model(row).logits[0, 1:-1].double()
        return torch.nn.functional.logsigmoid(-logits).sum().item()

    def score(self, text, form):
        with torch.no_grad():
            return getattr(self, self.kind)(text, form)


def ours(cloze, run, texts, form):
    command = [cloze, "--quiet", "score", run, texts, "--as", form, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze")
    parser.add_argument("texts", help="file with one text a line")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(arguments.runs):
            exported = os.path.join(folder, str(number))
            subprocess.run([arguments.cloze, "--quiet", "export", run, "--to", "huggingface", "--out", exported], check=True)
            oracle = Oracle(exported)
            for form in FORMS[oracle.kind]:
                scores = ours(arguments.cloze, run, arguments.texts, form)
                worst = max((abs(s["sum"] - oracle.score(s["text"], form)), s["text"]) for s in scores)
                failed |= not worst[0] <= arguments.tolerance
                print(f"{run} {form}: {len(scores)} texts, largest difference {worst[0]:.2e} nats ({worst[1][:40]!r})")
    sys.exit(failed)


if __name__ == "__main__":
    main()
