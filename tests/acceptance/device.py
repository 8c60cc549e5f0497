#!/usr/bin/env python3
"""Holds the program on a GPU to itself on the processor, by the stand-in for a GPU (tests/support/fake_cuda).

    tests/acceptance/device.py build/cloze

Trains tiny models on both, in fp32 and in bf16, goes on with a run on the other device, evaluates, generates,
fine-tunes, predicts and exports, and asks for cards that are not there. Without the stand-in beside the program, which
a build with sanitizers lacks, it is skipped.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SMALL = ["--set", "model.hidden_size=32", "--set", "model.intermediate_size=64", "--set", "data.max_seq_length=32",
         "--set", "train.batch_size=4", "--set", "train.threads=1", "--set", "evaluation.sequences=16",
         "--set", "train.budget.steps=3", "--set", "checkpoint.log_every=1", "--set", "train.dropout_masks=exact"]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cloze", type=pathlib.Path)
cloze = str(parser.parse_args().cloze.resolve())
library = pathlib.Path(cloze).parent / "libfake_cuda.so"
failures = []


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}\n  " + "\n  ".join(str(detail).strip().splitlines()[-12:]), flush=True)


def run(*words, card=True, nccl=True, code=0, log=subprocess.STDOUT, **variables):
    """What a command prints, with the stand-ins or without, and with its log; it must end with this exit code."""
    libraries = [library, library.with_name("libfake_nccl.so")][: 1 + nccl]
    preloaded = {"LD_PRELOAD": " ".join(map(str, libraries))} if card else {}
    done = subprocess.run([cloze, *words], stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=log, env={**os.environ, **preloaded, **variables})
    check(f"exit code {code} of: {' '.join(words)}", done.returncode == code, done.stdout)
    return done.stdout


def pretrain(config, name, device, *more, **how):
    return run("pretrain", config, *SMALL, "--set", f"data.tokens={config.split('/')[0]}-tokens", "--set",
               f"train.device={device}", "--run", name, *more, **how)


def losses(name):
    rows = [json.loads(line) for line in pathlib.Path(name, "metrics.jsonl").read_text().splitlines()]
    return [row[key] for row in rows for key in ("loss", "held_out_loss") if key in row]


def check_close(what, a, b, error):
    check(what, len(a) == len(b) and all(abs(x - y) <= error * abs(y) for x, y in zip(a, b)), f"{a}\n{b}")


def check_training():
    for precision, error in (("fp32", 1e-4), ("bf16", 5e-3)):
        names = {device: f"bert-{device}-{precision}" for device in ("cpu", "cuda")}
        for device, name in names.items():
            pretrain("bert/tiny", name, device, "--set", f"train.precision={precision}",
                     FAKE_CUDA_REPORT=f"{name}.txt")
        check_close(f"losses in {precision}", losses(names["cuda"]), losses(names["cpu"]), error)
        counts = pathlib.Path(f"{names['cuda']}.txt").read_text()
        check("no operator has tensors of both devices", "\nmixed 0\n" in counts, counts)


def check_other_device():
    said = pretrain("bert/tiny", "bert-cuda-fp32", "cpu", "--resume", "--set", "train.precision=fp32", "--set",
                    "train.budget.steps=5", card=False)
    check("a run goes on on the processor, and says so", "train.device" in said, said)
    check("the run on the processor has all steps", len(losses("bert-cuda-fp32")) > 4)
    said = pretrain("bert/tiny", "bert-cpu-fp32", "cuda", "--resume", "--set", "train.precision=fp32", "--set",
                    "train.budget.steps=5")
    check("a run goes on on a GPU, and says so", "train.device" in said, said)


def check_processes():
    """Several processes with a card each, by the stand-in's NCCL, train what one with a card trains, to the same bytes."""
    if len(os.sched_getaffinity(0)) < 2:
        return print("not tried: several processes with a card each, for want of a second core")
    shared = ["--set", "train.parts=3", "--set", "train.accumulation=3"]
    for config, more in (("bert/tiny", []), ("bert/tiny", ["--set", "optimizer.kind=lamb"]), ("xlnet/tiny", [])):
        one, two = (f"{config.split('/')[0]}-{len(more)}-by-{n}" for n in (1, 2))
        pretrain(config, one, "cuda", *shared, *more)
        cards = {"CUDA_VISIBLE_DEVICES": "2,3"} if more else {}
        pretrain(config, two, "cuda", *shared, *more, "--processes", "2", FAKE_CUDA_DEVICES="4", **cards)
        for file in sorted(pathlib.Path(one).glob("step-*/**/*")):
            other = pathlib.Path(two, *file.parts[1:])
            if file.suffix == ".safetensors":
                check(f"{other} has the bytes of {file}", file.read_bytes() == other.read_bytes())
    run("pretrain", "--run", "bert-0-by-2", "--resume", "--set", "train.budget.steps=5")
    words = ["bert/tiny", "refused", "cuda", *shared, "--processes", "2"]
    said = pretrain(*words, code=2)
    check("a card for each process is asked for", "start as many processes as a machine has GPUs" in said, said)
    said = pretrain(*words, code=1, CUDA_VISIBLE_DEVICES="0")
    check("two processes of one card are refused", "has each process a card of its own?" in said, said)
    together = dict(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 9999))
    with concurrent.futures.ThreadPoolExecutor() as threads:
        ranks = [threads.submit(pretrain, *words[:-2], code=2, RANK=r, LOCAL_RANK=r, FAKE_CUDA_DEVICES="2",
                                FAKE_CUDA_CAPABILITY=str(8 + int(r)), **together) for r in "01"]
    said = ranks[0].result()
    check("cards of two kinds are refused", "the compute capability of the GPU is 9.9, and 8.8 of rank 0" in said, said)
    said = pretrain(*words, code=2, nccl=False, FAKE_CUDA_DEVICES="2")
    check("a machine without NCCL is told", "need NCCL, libnccl.so.2, and the function nccl" in said, said)


def check_use():
    """What verbs print of a run of a GPU is what they print without one."""
    pretrain("gpt2/tiny", "gpt2", "cuda")
    measured = [json.loads(run("evaluate", "bert-cuda-bf16", "--json", card=card).splitlines()[-1])["held_out"]["mlm"]["loss"]
                for card in (True, False)]
    check_close("held-out losses of a GPU's run without one", measured[:1], measured[1:], 1e-5)
    for words in (["generate", "gpt2", "the cat", "--max-new-tokens", "5"],
                  ["fill", "bert-cuda-bf16", "the [MASK] sat"]):
        with_card, without = run(*words), run(*words, card=False)
        check(f"{words[0]} of a GPU's run needs no GPU", with_card.splitlines()[-1:] == without.splitlines()[-1:],
              with_card + without)
    run("export", "bert-cuda-bf16", "--to", "huggingface", "--out", "exported", card=False)
    pathlib.Path("pairs.jsonl").write_text('{"sentence_good": "the cat sat", "sentence_bad": "cat the sat"}\n' * 3)
    pathlib.Path("few.txt").write_text("The cat sat on the mat.\nA dog barked.\n")
    for words in (["score", "bert-cuda-bf16", "few.txt"], ["score", "gpt2", "few.txt"],
                  ["evaluate", "bert-cuda-bf16", "--suite", "pairs.jsonl"],
                  ["view", "bert-cuda-bf16", "few.txt", "--out", "page.html"]):
        check_both(*words)


def check_both(*words):
    """Holds the figures of a command on the GPU to those without one."""
    on_card, without = (numbers_of(*words, "--json", card=card, FAKE_CUDA_REPORT="asked.txt") for card in (True, False))
    # The axes of a view have either sign, and what is 0 has that of its rounding.
    sizes = [[round(abs(number), 12) for number in numbers] for numbers in (on_card, without)]
    check_close(f"figures of {' '.join(words)}", *sizes, 2e-4)
    check(f"{words[0]} of a GPU's run is computed on it", "operators 0\n" not in pathlib.Path("asked.txt").read_text())


def numbers_of(*words, **how):
    """All numbers of the lines of JSON that a command prints."""
    def walk(value):
        if isinstance(value, dict):
            value = [value[key] for key in sorted(value) if key not in ("time", "seconds")]
        if isinstance(value, list):
            return [number for one in value for number in walk(one)]
        return [value] if isinstance(value, (int, float)) else []
    lines = run(*words, log=subprocess.DEVNULL, **how).splitlines()
    return [number for line in lines for number in walk(json.loads(line))]


def check_words(name, file):
    """Words have the values of the processor; the completeness of these is rounding."""
    on_card, without = ([[word["value"] for word in json.loads(line).get("words", [])] for line in run(
        "attribute", name, file, "--json", card=card, log=subprocess.DEVNULL).splitlines()] for card in (True, False))
    close = all(max(map(abs, b), default=0) * 1e-3 >= max((abs(x - y) for x, y in zip(a, b)), default=0)
                for a, b in zip(on_card, without))
    check(f"words of {name}", len(on_card) == len(without) > 1 and close, f"{on_card}\n{without}")


def check_tasks():
    """Each kind of task has the losses and predictions of the processor."""
    texts = [("the cat sat", "a mouse slept"), ("a dog barked", "the cat ran")]
    rows = [(*texts[i // 8], i) for i in range(16)]
    table = "".join(f"{text}\t{more}\t{text.split()[1]}\t{1 + i % 4}\t{i % 2}\n" for text, more, i in rows)
    pathlib.Path("rows.tsv").write_text("text\tmore\tlabel\tvalue\tright\n" + table)
    pathlib.Path("words.conll").write_text("the O\ncat B-A\nsat O\n\na O\ndog B-A\nbarked O\n\n" * 6)
    answers = [json.dumps({"q": "who", "c": text, "a": [{"text": text.split()[1], "start": text.index(" ") + 1}]})
               for text, _, _ in rows]
    pathlib.Path("answers.jsonl").write_text("\n".join(answers) + "\n")
    kinds = {"classification": "text: text, label: label", "multilabel": "text: text, label: label",
             "regression": "text: text, label: value", "choice": "text: text, candidates: [more, label], label: right",
             "tagging": "", "spans": "text: q, second: c, answers: a"}
    files = {"tagging": "words.conll", "spans": "answers.jsonl"}
    for kind, columns in kinds.items():
        name = files.get(kind, "rows.tsv")
        scale = "scale: [1, 4]\n" if kind == "regression" else ""
        parts = ", ".join(f"{part}: {name}" for part in ("train", "valid", "test"))
        pathlib.Path(f"{kind}.yaml").write_text(f"task: toy\nkind: {kind}\n{scale}data: {{{parts}, {columns}}}\n")
        for device in ("cpu", "cuda"):
            run("finetune", "bert-cuda-fp32", f"{kind}.yaml", "--run", f"{kind}-{device}", "--set",
                f"train.device={device}", "--set", "train.precision=fp32", "--set", "train.budget.epochs=1", "--set",
                "train.batch_size=4", "--set", "train.threads=1", "--set", "checkpoint.log_every=1", "--set",
                "train.dropout_masks=exact")
        check_close(f"losses of {kind}", losses(f"{kind}-cuda"), losses(f"{kind}-cpu"), 1e-4)
        check_both("predict", f"{kind}-cuda", name)
        if kind in ("classification", "regression", "spans"): check_words(f"{kind}-cuda", name)
    said = run("predict", "tagging-cuda", "words.conll", card=False)
    check("without a GPU they are computed on the processor", "not here; it is computed on the CPU" in said, said)


def check_without_kernels():
    words = ["--set", "train.precision=fp32"]
    said = pretrain("bert/tiny", "no-kernels", "cuda", *words, FAKE_NVRTC_BROKEN="1", XDG_CACHE_HOME="no-cache")
    check("without NVRTC a line says what runs instead",
          "LibTorch's operators run instead, slower; its attention may add in another order in each run: NVRTC "
          "does not start" in " ".join(said.split()), said)
    check_close("losses without kernels", losses("no-kernels"), losses("bert-cpu-fp32")[:len(losses("no-kernels"))], 1e-4)


def check_cards_that_are_missing():
    said = pretrain("bert/tiny", "none", "cuda:9", code=2)
    check("cuda:9", "train.device is 'cuda:9', but there is one GPU; use cuda" in said, said)
    said = pretrain("bert/tiny", "none", "cuda:9", code=2, FAKE_CUDA_DEVICES="2")
    check("cuda:9 of two", "but there are 2 GPUs; use cuda:0 to cuda:1" in said, said)
    said = pretrain("bert/tiny", "none", "cuda", code=2, FAKE_CUDA_DEVICES="0")
    check("no driver", "but LibTorch finds no GPU; `nvidia-smi` tells" in said, said)
    said = pretrain("bert/tiny", "none", "cuda", card=False, code=2)
    check("no CUDA", "has no CUDA; " in said or "finds no GPU" in said, said)
    said = pretrain("bert/tiny", "none", "cuda", code=1, FAKE_CUDA_MEMORY="600000")
    check("no memory for the first step", "the GPU is out of memory; lower train.batch_size" in said, said)
    said = pretrain("bert/tiny", "none", "cuda", code=2, FAKE_CUDA_MEMORY="6000")
    check("no memory for the weights", "and the GPU has 6.0 kB of memory; choose a smaller model" in said, said)
    said = pretrain("bert/tiny", "old", "cuda", "--set", "train.precision=bf16", FAKE_CUDA_CAPABILITY="7")
    check("a card without bf16 computes in fp32", "this GPU has no bf16 units" in said, said)


def check_benchmark():
    told = json.loads(run("benchmark", "bert/tiny", *SMALL, "--set", "data.tokens=bert-tokens", "--set",
                          "train.device=cuda", "--steps", "3", "--json").splitlines()[-1])
    parts = [told["ledger"][part] for part in ("forward", "backward", "optimizer")]
    check("a benchmark has the rate of the GPU's products, its memory and the times of its work",
          told["gemm_bf16_gflops"] > 0 and told["peak_gpu_mb"] > 0 and min(parts) > 0, told)


def main():
    if not library.exists():
        print(f"skipped: {library} is not there")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("text.txt").write_text("The cat sat on the mat. Then it slept.\n\nA dog barked.\n" * 400)
        for family in ("bert", "gpt2", "xlnet"):
            run("prepare", "text.txt", "--vocab-size", "300", "--for", family, "--out", f"{family}-tokens", card=False)
        check_training()
        check_without_kernels()
        check_processes()
        check_other_device()
        check_use()
        check_tasks()
        check_benchmark()
        check_cards_that_are_missing()
    print("both devices agree" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
