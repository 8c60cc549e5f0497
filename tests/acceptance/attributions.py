#!/usr/bin/env python3
"""Compares the values of words of `cloze attribute` with autograd of PyTorch on the exported run.

usage: attributions.py CLOZE RUN FILE [--baseline pad|mask]     RUN: fine-tuned on labels of one text; FILE: its items
The network is that of transformers, in double; gradients are taken by `inputs_embeds`, which keeps positions. Integrated
gradients take NumPy's points of Gauss and Legendre, rollout the attentions that transformers returns. Words are those of
the tokenizer's `word_ids`. Prints the largest difference of each method, and exits with 1 where one is above 1e-5, or
1e-6 in the mean. Differences are shares of what rounding is of: of the largest value, of occlusion of the score, and of
gradients times inputs, which cancel below a norm, of the product of their lengths. Needs torch, transformers and NumPy.
"""
import argparse, json, subprocess, sys, tempfile
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

parser = argparse.ArgumentParser()
parser.add_argument("cloze"), parser.add_argument("run"), parser.add_argument("file")
parser.add_argument("--baseline", default="pad")
asked = parser.parse_args()
METHODS = ["gradient-norm", "gradient-input", "integrated-gradients", "occlusion", "rollout"]


def cloze(*arguments):
    return subprocess.run([asked.cloze, "--quiet", *arguments], check=True, capture_output=True, text=True).stdout


def texts_of(predictions):
    """Of the lines of items, by the words of their attributions: transformers cuts the words again."""
    return [" ".join(word["word"] for word in one["words"]) for one in predictions]


class Model:
    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").double().eval()
        baseline = self.tokenizer.pad_token_id if asked.baseline == "pad" else self.tokenizer.mask_token_id
        self.table = self.network.get_input_embeddings().weight.detach()
        self.baseline = self.table[baseline]
        self.lengths = 1.0

    def score(self, embeddings, label):
        return self.network(inputs_embeds=embeddings).logits[:, label]

    def gradient(self, embeddings, label):
        embeddings = embeddings.clone().requires_grad_(True)
        return torch.autograd.grad(self.score(embeddings, label).sum(), embeddings)[0]

    def values(self, method, text, label):
        encoded = self.tokenizer(text, return_tensors="pt")
        words = np.array([-1 if word is None else word for word in encoded.word_ids()])
        own = self.table[encoded["input_ids"]]
        is_word = torch.tensor(words >= 0)[None, :, None]
        base = torch.where(is_word, self.baseline, own)
        if method == "gradient-norm": tokens = self.gradient(own, label).norm(dim=-1)
        elif method == "gradient-input":
            gradient = self.gradient(own, label)
            tokens = (gradient * own).sum(-1)
            self.lengths = float((gradient.norm(dim=-1) * own.norm(dim=-1)).max())
        elif method == "integrated-gradients":
            points, weights = np.polynomial.legendre.leggauss(50)
            tokens = sum(weight / 2 * (self.gradient(base + (1 + point) / 2 * (own - base), label) * (own - base)).sum(-1)
                         for point, weight in zip(points, weights))
        elif method == "occlusion":
            with torch.no_grad():
                whole = self.score(own, label)
                return [float(whole - self.score(torch.where(torch.tensor(words == word)[None, :, None], base, own), label))
                        for word in range(words.max() + 1)]
        else:
            with torch.no_grad():
                layers = self.network(**encoded, output_attentions=True).attentions
            joined = torch.eye(len(words), dtype=torch.double)
            for layer in layers: joined = (layer[0].mean(0) + torch.eye(len(words))) / 2 @ joined
            tokens = joined[:1]
        return [float(tokens[0, torch.tensor(words == word)].sum()) for word in range(words.max() + 1)]


failed = False
with tempfile.TemporaryDirectory() as place:
    cloze("export", asked.run, "--to", "huggingface", "--out", f"{place}/model")
    model = Model(f"{place}/model")
    for method in METHODS:
        lines = cloze("attribute", asked.run, asked.file, "--method", method, "--baseline", asked.baseline, "--json")
        explained = [one for one in map(json.loads, lines.splitlines()) if "words" in one and one.get("points", 50) == 50]
        label_ids = model.network.config.label2id
        shares = []
        for one, text in zip(explained, texts_of(explained)):
            mine, theirs = [word["value"] for word in one["words"]], model.values(method, text, label_ids[one["label"]])
            if len(mine) != len(theirs): sys.exit(f"{one['item']}: {len(mine)} words, {len(theirs)} in transformers")
            largest = {"occlusion": abs(one["score"]), "gradient-input": model.lengths}.get(method, np.abs(theirs).max())
            shares.append(np.abs(np.subtract(mine, theirs)).max() / largest)
        failed = failed or max(shares) > 1e-5 or np.mean(shares) > 1e-6
        print(f"{method}: {len(shares)} texts, values differ by at most {max(shares):.1e}, {np.mean(shares):.1e} in the mean")
sys.exit(int(failed))
