#!/usr/bin/env python3
"""Milliseconds for each batch of beam search: `cloze generate` and transformers' `generate`, alternating, on the same weights.

usage: generate.py RUN TEXTS [--rounds 3] [--batches 12] [--batch-size 8] [--num-beams 4] [--new-tokens 64]
RUN: an encoder-decoder; TEXTS: a file with one text per line. Exactly --new-tokens tokens are generated for each text. The time of `cloze` is that
of the whole process, start and loading included; that of transformers is of `generate` alone. fp32 in both.
"""
import argparse, json, statistics, subprocess, tempfile, time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("run"); args.add_argument("texts")
for option, value in (("rounds", 3), ("batches", 12), ("batch-size", 8), ("num-beams", 4), ("new-tokens", 64)): args.add_argument("--" + option, type=int, default=value)
args = args.parse_args()

import torch, transformers

lines = [line for line in Path(args.texts).read_text().splitlines() if line.strip()][: args.batches * args.batch_size]
assert len(lines) == args.batches * args.batch_size, f"{args.texts} has too few lines"
with tempfile.TemporaryDirectory() as folder:
    texts = Path(folder) / "texts"
    texts.write_text("\n".join(lines) + "\n")
    subprocess.run([root / "build/cloze", "export", args.run, "--to", "huggingface", "--out", f"{folder}/model"], check=True, capture_output=True)
    tokens = [json.loads(line)["ids"] for line in subprocess.run([root / "build/cloze", "tokenize", f"{args.run}/tokenizer", "--json"], input=texts.read_text(), check=True, capture_output=True, text=True).stdout.splitlines()]
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(f"{folder}/model").eval()
    begin = [model.config.bos_token_id] if model.config.model_type == "bart" else []
    count = dict(num_beams=args.num_beams, min_new_tokens=args.new_tokens, max_new_tokens=args.new_tokens)

    def transformers_ms():
        start = time.perf_counter()
        for first in range(0, len(tokens), args.batch_size):
            rows = [begin + row + [model.config.eos_token_id] for row in tokens[first : first + args.batch_size]]
            longest = max(map(len, rows))
            ids = torch.tensor([row + [model.config.pad_token_id] * (longest - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
            with torch.inference_mode(): model.generate(input_ids=ids, attention_mask=mask, do_sample=False, **count)
        return (time.perf_counter() - start) * 1000 / args.batches

    def cloze_ms():
        start = time.perf_counter()
        subprocess.run([root / "build/cloze", "generate", args.run, "--file", texts, "--batch-size", str(args.batch_size), "--num-beams", str(args.num_beams), "--min-new-tokens", str(args.new_tokens),
                        "--max-new-tokens", str(args.new_tokens)], check=True, capture_output=True)
        return (time.perf_counter() - start) * 1000 / args.batches

    pairs = [(cloze_ms(), transformers_ms()) for _ in range(args.rounds)]
a, b = [p[0] for p in pairs], [p[1] for p in pairs]
print(json.dumps(dict(ratio=round(statistics.median(b) / statistics.median(a), 2), pairs=[round(y / x, 2) for x, y in pairs], ours_ms=[round(x) for x in a], theirs_ms=[round(x) for x in b])))
