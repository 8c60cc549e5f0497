#!/usr/bin/env python3
"""Asks zsh and fish what they complete with the scripts of `cloze completion`, where they are installed.

usage: completion.py CLOZE      (bash is asked by tests/cli/help_test.cpp)
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLOZE = Path(sys.argv[1]).resolve()
ASKED = [
    ("cloze pret", ["pretrain"]),
    ("cloze --quiet pret", ["pretrain"]),
    ("cloze verify ", ["data", "parity", "run"]),
    ("cloze study pl", ["plan"]),
    ("cloze study plan x.yaml --jo", ["--jobs"]),
    ("cloze pretrain --res", ["--resume"]),
    ("cloze --verb", ["--verbose"]),
    ("cloze fill runs/a --checkpoint ", ["best", "newest"]),
    ("cloze export runs/a --to t", ["torchscript"]),
    ("cloze prepare x.txt --train w", ["wordpiece"]),
    ("cloze prepare x.txt --format js", ["jsonl"]),
    ("cloze config modern", ["modernbert"]),
    ("cloze completion f", ["fish"]),
    ("cloze pretrain x.yaml --set optimizer.learning_r", ["optimizer.learning_rate="]),
    ("cloze pretrain x.yaml --set train.precision=b", ["train.precision=bf16"]),
    ("cloze pretrain x.yaml --set data.tokens=min", ["mine.yaml"]),
    ("cloze pretrain min", ["mine.yaml"]),
    ("cloze config --resolved min", ["mine.yaml"]),
    ("cloze pretrain --run min", ["mine.yaml"]),
    ("cloze pretrain --qui", ["--quiet"]),
    ("cloze explain x.yaml optimizer.learning_r", ["optimizer.learning_rate"]),
    ("cloze evaluate runs/a --format jso", ["jsonl"]),
    ("cloze pretrain x.yaml --set like=google", ["like=google-bert"]),
]
ZSH = r"""
autoload -Uz compinit; compinit -u -D
compadd() { local -a found; builtin compadd -A found "$@"; print -r -- "FOUND:${(j:|:)found}:"; builtin compadd "$@" }
ask() { zle complete-word; print -r -- "ASKED:" }
zle -N ask; bindkey '^I' ask; setopt no_beep no_list_beep; LISTMAX=100000; PS1=''
"""


def answer_of_fish(script, line, folder):
    asked = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], cwd=folder, capture_output=True, text=True,
                           timeout=60)
    return sorted({found.split("\t")[0] for found in asked.stdout.splitlines()}), asked.stderr


def read_until(terminal, end):
    text, last = "", time.monotonic() + 30
    while end not in text and time.monotonic() < last:
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r", "", text)


def answer_of_zsh(script, line, folder):
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm", PS1="", COLUMNS="200", LINES="50")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    os.write(terminal, f"source {folder}/ask.zsh; source {script}; print READY:''DONE\n".encode())
    started = read_until(terminal, "READY:DONE")
    os.write(terminal, line.encode() + b"\t")
    text = read_until(terminal, "ASKED:")
    os.close(terminal)
    os.waitpid(child, 0)
    faults = [found for found in (started + text).splitlines() if re.match(r"(zsh|_cloze\w*|\S*\.zsh):(\d+:)? ", found)]
    found = {name for block in re.findall(r"FOUND:(.*?):\n", text, re.S) for name in block.split("|") if name}
    return sorted(found), "\n".join(faults)


def faults_of(shell, answer, folder):
    script = folder / f"completion.{shell}"
    script.write_text(subprocess.run([CLOZE, "completion", shell], check=True, capture_output=True, text=True).stdout)
    for line, wanted in ASKED:
        found, errors = answer(script, line, folder)
        found = [name.removeprefix("data.tokens=") for name in found]  # which zsh does not repeat
        if "--help" in found and wanted[0][0] != "-":
            found.remove("--help")
        if found != wanted or errors:
            yield f"{shell}: '{line}' is completed by {found}, not {wanted}; {errors}"


faults = []
with tempfile.TemporaryDirectory() as name:
    world = Path(name)
    (world / "mine.yaml").write_text("")
    (world / "ask.zsh").write_text(ZSH)
    for shell, answer in (("zsh", answer_of_zsh), ("fish", answer_of_fish)):
        if shutil.which(shell):
            faults += faults_of(shell, answer, world)
        else:
            print(f"warning: not tested: the completion of {shell}, which is not installed")
print("\n".join(faults))
sys.exit(1 if faults else 0)
