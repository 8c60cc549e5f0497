#!/usr/bin/env python3
"""Times masked-language-model steps of BERT in transformers, in the shapes of configs/bert, and prints one line of JSON.

usage: peer_train.py bert-mini|bert-small|bert-base --mode default|tuned [--masked] [--steps 8] [--threads 2]
    default   fp32 and logits at every position, as transformers' Trainer runs it
    tuned     matrix multiplications under bf16 autocast; run it with LD_PRELOAD=libtcmalloc_minimal.so.4 as well
    --masked  the head sees predicted positions only, which is a change to the model's code
A step is forward, backward, clipping to norm 1 and AdamW (fused). Needs: torch, transformers.
"""
import argparse
import contextlib
import json
import resource
import statistics
import time

import torch
from transformers import BertConfig, BertForMaskedLM

SHAPES = {  # width, layers, sequences of 128 tokens a step
    "bert-mini": (256, 4, 32),
    "bert-small": (512, 4, 32),
    "bert-base": (768, 12, 8),
}
VOCAB, LENGTH, CLS, SEP, MASK, FIRST_WORD = 30522, 128, 101, 102, 103, 1000


def batch_of(sequences, generator):
    """Random words with 15 % of them to predict: of these 80 % are masked, 10 % replaced, 10 % kept."""
    ids = torch.randint(FIRST_WORD, VOCAB, (sequences, LENGTH), generator=generator)
    predicted = torch.rand(ids.shape, generator=generator) < 0.15
    predicted[:, [0, -1]] = False
    labels = ids.masked_fill(~predicted, -100)
    kind = torch.rand(ids.shape, generator=generator)
    ids[predicted & (kind < 0.8)] = MASK
    replaced = predicted & (kind >= 0.8) & (kind < 0.9)
    ids[replaced] = torch.randint(FIRST_WORD, VOCAB, (int(replaced.sum()),), generator=generator)
    ids[:, 0], ids[:, -1] = CLS, SEP
    return ids, labels


def loss_of(model, ids, labels, masked):
    if not masked:
        return model(input_ids=ids, labels=labels).loss
    at = labels >= 0
    logits = model.cls(model.bert(input_ids=ids).last_hidden_state[at])
    return torch.nn.functional.cross_entropy(logits.float(), labels[at])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("case", choices=SHAPES)
    parser.add_argument("--mode", choices=("default", "tuned"), default="default")
    parser.add_argument("--masked", action="store_true")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    width, layers, sequences = SHAPES[args.case]
    model = BertForMaskedLM(BertConfig(vocab_size=VOCAB, hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64,
                                       intermediate_size=4 * width)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    precision = torch.autocast("cpu", dtype=torch.bfloat16) if args.mode == "tuned" else contextlib.nullcontext()
    times = []
    for _ in range(args.steps + 2):  # the first two warm up
        ids, labels = batch_of(sequences, generator)
        start = time.perf_counter()
        with precision:
            loss = loss_of(model, ids, labels, args.masked)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"case": args.case, "mode": args.mode, "masked": args.masked, "ms_per_step": round(statistics.median(times[2:]), 1),
                      "ms": [round(t, 1) for t in times[2:]], "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}))


main()
