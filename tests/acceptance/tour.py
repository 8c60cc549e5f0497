#!/usr/bin/env python3
"""Pastes the tour of the README into a shell, in a folder of its own, and holds what it prints to the README's block of output.

usage: tour.py CLOZE [FOLDER]      FOLDER: where it works and leaves its files; without one, a temporary folder. Takes minutes.
Every line of the block must be printed, whatever its numbers; `...` stands for lines that are left out. A `loss` below
its baseline in the block must be below it here. Needs the King James Bible of ./quickstart (Debian's package bible-kjv), which it makes there.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
NUMBER = r"[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?%?"


def section(title):
    readme = (root / "README.md").read_text()
    return re.findall(r"```\n(.*?)```", readme.split(f"## {title}\n")[1].split("\n## ")[0], re.S)


def pattern_of(line):
    """The line with any numbers and any amount of space."""
    parts = re.split(f"({NUMBER}|\\s+)", line.strip())
    return re.compile("".join(NUMBER if re.fullmatch(NUMBER, part) else r"\s+" if part.isspace() else re.escape(part) for part in parts if part))


def losses(lines):
    """The first numbers of the lines of a table of losses: of a model, and of the baseline below it."""
    for model, baseline in zip(lines, lines[1:]):
        if re.match(r"\s+unigram\s", baseline):
            yield model.split()[0], *(float(re.search(NUMBER, line)[0].replace(",", "")) for line in (model.split(None, 1)[1], baseline))


def prepare(folder, cloze):
    """What ./quickstart leaves: its text, its run, and the program under build/."""
    (folder / "build").symlink_to(cloze.parent)
    for name in ("configs", "tests"):
        (folder / name).symlink_to(root / name)
    (folder / "runs").mkdir()
    made = root / "runs"
    for name in ("quickstart-bible.txt", "quickstart"):
        if not (made / name).exists():
            sys.exit(f"{made / name} is missing; run ./quickstart first")
        (folder / "runs" / name).symlink_to(made / name)


def paste(folder, commands):
    """Each command by its own, since one of them is refused on purpose."""
    text = ""
    environment = {**os.environ, "NO_COLOR": "1"}
    for command in commands.splitlines():
        if not command.strip():
            continue
        if command.startswith("export "):
            environment["PATH"] = f"{folder}/build:{environment['PATH']}"
            continue
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(f"{done.returncode}  {command}", flush=True)
        if (done.returncode == 0) == ("# refused" in command):
            sys.exit(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        text += done.stdout + done.stderr
    return text


def check(printed, wanted):
    lines = printed.splitlines()
    missing = [line for line in wanted.splitlines() if line.strip() != "..." and not any(pattern_of(line).search(got) for got in lines)]
    above = [f"{name}: {loss} is not below the unigram baseline {baseline}" for name, loss, baseline in losses(lines) if loss >= baseline]
    if not list(losses(lines)):
        above.append("no loss stands above a unigram baseline")
    return [f"not printed: {line}" for line in missing] + above


def main(folder):
    commands, wanted = section("A tour")[:2]
    prepare(folder, Path(sys.argv[1]).resolve())
    faults = check(paste(folder, commands), wanted)
    print("\n".join(faults) if faults else "the tour prints what the README says")
    sys.exit(1 if faults else 0)


if len(sys.argv) > 2:
    Path(sys.argv[2]).mkdir(parents=True)
    main(Path(sys.argv[2]).resolve())
else:
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
