#!/usr/bin/env python3
"""Times transformers on texts with labels, fine-tuning a BERT or predicting with one, and prints one line of JSON.

usage: peer_finetune.py FOLDER TABLE [--padding trainer|grouped|batch|full] [--bf16] [--steps 60] [--threads 2]
       peer_finetune.py FOLDER TABLE --predict
    FOLDER     a BERT as transformers saves it;  TABLE: a TSV of `sentence` and `label`, .xz too
    trainer    steps of Trainer, which draws batches of like length and pads them to their longest row
    grouped    the same in a bare loop: a step is forward, backward, clipping to norm 1 and AdamW (fused)
    batch      batches of any lengths, padded to their longest row
    full       rows padded to 128 tokens, as in run_glue.py by default
    --predict  pipeline("text-classification") with batches of 32
Steps have 32 texts. Of `trainer`, which needs accelerate, all options but precision, length and rate are its defaults.
"""
import argparse
import contextlib
import csv
import json
import lzma
import random
import resource
import statistics
import tempfile
import time

import torch
import transformers

BATCH, LONGEST, RATE, WARM_UP = 32, 128, 2e-5, 5
MEGA_BATCH = 50  # batches that LengthGroupedSampler sorts together


def read(path):
    with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def batches(rows, padding, steps):
    """Lists of rows, one for each step."""
    draw = random.Random(1)
    rows = draw.sample(rows, len(rows))
    size = MEGA_BATCH * BATCH if padding == "grouped" else BATCH
    chosen = []
    for first in range(0, len(rows), size):
        part = sorted(rows[first:first + size], key=lambda row: len(row[0]))
        few = [part[i:i + BATCH] for i in range(0, len(part), BATCH)]
        chosen += draw.sample(few, len(few))  # so that a part of a mega-batch has all lengths
        if len(chosen) >= steps: return chosen[:steps]
    raise SystemExit(f"{len(rows)} rows are too few for {steps} steps")


def padded(batch, padding, filler):
    width = LONGEST if padding == "full" else max(len(ids) for ids, _ in batch)
    return {"input_ids": torch.tensor([ids + [filler] * (width - len(ids)) for ids, _ in batch]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in batch]),
            "labels": torch.tensor([label for _, label in batch])}


def gemm_rate(dtype):
    """Multiplications and additions a second of a square matrix product."""
    a = torch.randn(2048, 2048).to(dtype)
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - start)
    return 2 * 2048**3 / statistics.median(seconds)


def finetune_by_trainer(options, tokenizer, table):
    times = {}

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, arguments, state, *_, **__):
            times[state.global_step] = time.perf_counter()

    rows = tokenizer([row["sentence"] for row in table], truncation=True, max_length=LONGEST)
    rows = [{"input_ids": ids, "attention_mask": mask, "labels": int(row["label"])}
            for ids, mask, row in zip(rows["input_ids"], rows["attention_mask"], table)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=options.steps + WARM_UP, per_device_train_batch_size=BATCH, learning_rate=RATE,
            train_sampling_strategy="group_by_length", bf16=options.bf16, use_cpu=True, report_to="none",
            save_strategy="no", disable_tqdm=True)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(options.folder, num_labels=2)
        transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[Clock()],
                             data_collator=transformers.DataCollatorWithPadding(tokenizer)).train()
    return times[options.steps + WARM_UP] - times[WARM_UP]


def finetune_bare(options, tokenizer, table):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(options.folder, num_labels=2).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, fused=True)
    steps = options.steps + WARM_UP
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, 0, steps)
    ids = tokenizer([row["sentence"] for row in table], truncation=True, max_length=LONGEST)["input_ids"]
    rows = list(zip(ids, (int(row["label"]) for row in table)))
    precision = torch.autocast("cpu", dtype=torch.bfloat16) if options.bf16 else contextlib.nullcontext()
    for step, batch in enumerate(batches(rows, options.padding, steps)):
        if step == WARM_UP: start = time.perf_counter()
        with precision: loss = model(**padded(batch, options.padding, tokenizer.pad_token_id)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return time.perf_counter() - start


def finetune(options, tokenizer, table):
    dtype = torch.bfloat16 if options.bf16 else torch.float32
    rates = [gemm_rate(dtype)]
    by = finetune_by_trainer if options.padding == "trainer" else finetune_bare
    seconds = by(options, tokenizer, table)
    rates.append(gemm_rate(dtype))
    return {"examples_per_second": options.steps * BATCH / seconds, "gemm_rate": statistics.mean(rates)}


def predict(options, table):
    ask = transformers.pipeline("text-classification", model=options.folder, batch_size=BATCH)
    texts = [row["sentence"] for row in table]
    ask(texts[:BATCH])
    start = time.perf_counter()
    found = ask(texts, truncation=True)
    seconds = time.perf_counter() - start
    return {"examples_per_second": len(texts) / seconds, "labels": [one["label"] for one in found]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("table")
    parser.add_argument("--padding", choices=("trainer", "grouped", "batch", "full"), default="grouped")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    table = read(options.table)
    if options.predict: found = predict(options, table)
    else: found = finetune(options, transformers.AutoTokenizer.from_pretrained(options.folder), table)
    print(json.dumps(found | {"peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
