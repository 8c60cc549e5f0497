#!/usr/bin/env python3
"""Forward passes of a file that `cloze export --to torchscript` wrote and of the same weights in transformers, in turns, on the same ids.

usage: torchscript.py FILE FOLDER ROWS LENGTH [--rounds 3]      FOLDER: of `cloze export --to huggingface`. Prints the milliseconds of each round of both.
"""
import argparse, json, time

args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("file"); args.add_argument("folder"); args.add_argument("rows", type=int); args.add_argument("length", type=int); args.add_argument("--rounds", type=int, default=3)
args = args.parse_args()

import torch, transformers

config = transformers.AutoConfig.from_pretrained(args.folder)
model = getattr(transformers, config.architectures[0]).from_pretrained(args.folder).eval()
file = torch.jit.load(args.file)
ids = torch.randint(10, config.vocab_size, (args.rows, args.length), generator=torch.Generator().manual_seed(1))
mask = torch.ones_like(ids)
decoded = dict(decoder_input_ids=ids) if config.is_encoder_decoder else {}


def ms(forward):
    start = time.perf_counter()
    forward()
    return 1000 * (time.perf_counter() - start)


ours, theirs = (lambda: file(ids, mask.bool(), **decoded)), (lambda: model(input_ids=ids, attention_mask=mask, **decoded))
with torch.inference_mode():
    for _ in range(3): ours(), theirs()
    print(json.dumps(list(zip(*[(ms(ours), ms(theirs)) for _ in range(args.rounds)]))))
