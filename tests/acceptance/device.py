#!/usr/bin/env python3
"""Holds the program on a GPU to itself on the processor, by the stand-in for a GPU (tests/support/fake_cuda).

    tests/acceptance/device.py build/cloze

Trains tiny models on both, in fp32 and in bf16, goes on with a run on the other device, evaluates, generates,
fine-tunes, predicts and exports, and asks for cards that are not there. Without the stand-in beside the program, which
a build with sanitizers lacks, it is skipped.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SMALL = ["--set", "model.hidden_size=32", "--set", "model.intermediate_size=64", "--set", "data.max_seq_length=32",
         "--set", "train.batch_size=4", "--set", "train.threads=1", "--set", "evaluation.sequences=16",
         "--set", "train.budget.steps=3", "--set", "checkpoint.log_every=1"]
TASK = """task: animals
kind: classification
data: {train: animals.tsv, valid: animals.tsv, test: animals.tsv, text: text, label: label}
"""

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cloze", type=pathlib.Path)
cloze = str(parser.parse_args().cloze.resolve())
library = pathlib.Path(cloze).parent / "libfake_cuda.so"
failures = []


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}\n  " + "\n  ".join(str(detail).strip().splitlines()[-12:]), flush=True)


def run(*words, card=True, code=0, **variables):
    """What a command prints, with the stand-in or without; it must end with this exit code."""
    preloaded = {"LD_PRELOAD": str(library)} if card else {}
    done = subprocess.run([cloze, *words], stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, **preloaded, **variables})
    check(f"exit code {code} of: {' '.join(words)}", done.returncode == code, done.stdout)
    return done.stdout


def pretrain(config, name, device, *more, **variables):
    return run("pretrain", config, *SMALL, "--set", f"data.tokens={config.split('/')[0]}-tokens", "--set",
               f"train.device={device}", "--run", name, *more, **variables)


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
    pathlib.Path("animals.tsv").write_text("text\tlabel\n" + "the cat sat\tcat\na dog barked\tdog\n" * 8)
    pathlib.Path("animals.yaml").write_text(TASK)
    for device in ("cpu", "cuda"):
        run("finetune", "bert-cuda-fp32", "animals.yaml", "--run", f"tuned-{device}", "--set", f"train.device={device}",
            "--set", "train.precision=fp32", "--set", "train.budget.epochs=1", "--set", "train.batch_size=4", "--set",
            "train.threads=1", "--set", "checkpoint.log_every=1")
    check_close("losses of fine-tuning", losses("tuned-cuda"), losses("tuned-cpu"), 1e-4)
    said = run("predict", "tuned-cuda", "animals.tsv", FAKE_CUDA_REPORT="predict.txt")
    check("predictions of a GPU's run are computed on it", "operators 0\n" not in pathlib.Path("predict.txt").read_text())
    said = run("predict", "tuned-cuda", "animals.tsv", card=False)
    check("without a GPU they are computed on the processor", "which is not here; it is computed on the CPU" in said, said)


def check_without_kernels():
    words = ["--set", "train.precision=fp32"]
    said = pretrain("bert/tiny", "no-kernels", "cuda", *words, FAKE_NVRTC_BROKEN="1", XDG_CACHE_HOME="no-cache")
    check("without NVRTC a line says what runs instead",
          "LibTorch's operators run instead, slower: NVRTC does not start" in " ".join(said.split()), said)
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
    check("no memory for the weights", "to train, and the GPU has 6.0 kB of memory; choose a smaller model" in said, said)
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
        for family in ("bert", "gpt2"):
            run("prepare", "text.txt", "--vocab-size", "300", "--for", family, "--out", f"{family}-tokens", card=False)
        check_training()
        check_without_kernels()
        check_other_device()
        check_use()
        check_benchmark()
        check_cards_that_are_missing()
    print("both devices agree" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
