#!/usr/bin/env python3
"""Times minimal pairs by pseudo-log-likelihood: `cloze evaluate --suite` against a batched transformers loop on the same weights.

    tests/bench/pseudo_likelihood.py build/cloze RUN blimp.jsonl.xz [--limit 20] [--repeats 2] [--batch 64] [--threads 2] [--all-logits]

RUN is a masked language model. The loop masks each token of both sentences of a pair, sorts all rows by length and computes
them in padded batches; it projects the masked positions alone, or with --all-logits every position, as scripts usually do.
Both work in turns; what counts is the ratio of their CPU seconds, which other work on the machine changes less than wall time.
Both must choose the same sentence of each pair, ties of equal sentences aside. Needs torch and transformers.
"""
import argparse
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")


def usage():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def timed(work):
    wall, cpu = time.time(), usage()
    result = work()
    return result, time.time() - wall, usage() - cpu


def pairs_of(path, limit):
    """The first items of each paradigm, as --limit takes them."""
    counts, pairs = {}, []
    with (lzma.open(path, "rt") if path.endswith(".xz") else open(path)) as lines:
        for line in lines:
            item = json.loads(line)
            counts[item["UID"]] = counts.get(item["UID"], 0) + 1
            if counts[item["UID"]] <= limit: pairs.append((item["sentence_good"], item["sentence_bad"]))
    return pairs


def by_cloze(options, folder):
    out = os.path.join(folder, f"out-{time.time_ns()}")
    subprocess.run([options.cloze, "--quiet", "evaluate", options.run, "--suite", options.suite, "--limit", str(options.limit), "--out", out],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
    with open(os.path.join(out, "predictions.jsonl")) as lines:
        return [json.loads(line) for line in lines]


def by_transformers(model, tokenizer, pairs, batch, all_logits):
    import torch
    sentences = list(dict.fromkeys(sentence for pair in pairs for sentence in pair))
    rows = []
    for number, sentence in enumerate(sentences):
        ids = tokenizer(sentence)["input_ids"]
        for position in range(1, len(ids) - 1):
            masked = list(ids)
            masked[position] = tokenizer.mask_token_id
            rows.append((masked, position, ids[position], number))
    rows.sort(key=lambda row: len(row[0]))
    sums = [0.0] * len(sentences)
    with torch.inference_mode():
        for begin in range(0, len(rows), batch):
            part = rows[begin:begin + batch]
            width = len(part[-1][0])
            ids = torch.tensor([row[0] + [tokenizer.pad_token_id] * (width - len(row[0])) for row in part])
            mask = torch.tensor([[1] * len(row[0]) + [0] * (width - len(row[0])) for row in part])
            at = torch.arange(len(part)), torch.tensor([row[1] for row in part])
            if all_logits:
                logits = model(ids, attention_mask=mask).logits[at]
            else:
                logits = model.cls(model.base_model(ids, attention_mask=mask).last_hidden_state[at])
            logs = torch.log_softmax(logits, -1)
            for (_, _, label, number), log in zip(part, logs):
                sums[number] += log[label].item()
    score = dict(zip(sentences, sums))
    return [(score[good], score[bad]) for good, bad in pairs]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze")
    parser.add_argument("run")
    parser.add_argument("suite")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--all-logits", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


def main():
    options = parsed()
    import torch
    import transformers
    torch.set_num_threads(options.threads)
    pairs = pairs_of(options.suite, options.limit)
    with tempfile.TemporaryDirectory() as folder:
        exported = os.path.join(folder, "exported")
        subprocess.run([options.cloze, "--quiet", "export", options.run, "--to", "huggingface", "--out", exported], check=True,
                       stdout=subprocess.DEVNULL)
        model = transformers.BertForMaskedLM.from_pretrained(exported).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
        ratios, different = [], 0
        for _ in range(options.repeats):
            ours, wall, cpu = timed(lambda: by_cloze(options, folder))
            theirs, their_wall, their_cpu = timed(lambda: by_transformers(model, tokenizer, pairs, options.batch, options.all_logits))
            ratios.append(their_cpu / cpu)
            different = sum((good > bad) != (item["choice"] == 0) for item, (good, bad) in zip(ours, theirs)
                            if not item["tie"] and abs(good - bad) > 1e-4)
            print(f"cloze {wall:.1f} s, {cpu:.1f} CPU s; transformers {their_wall:.1f} s, {their_cpu:.1f} CPU s; "
                  f"{their_cpu / cpu:.2f} times as fast by CPU, {their_wall / wall:.2f} by wall")
        print(f"{len(pairs):,} pairs, {len(ours):,} answers, {different} choices differ")
    return 1 if different or len(ours) != len(pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
