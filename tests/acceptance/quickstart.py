#!/usr/bin/env python3
"""./quickstart MY.txt with a small model and a built program: Ctrl-C saves, the same command goes on, and words of held-out text are filled in.

usage: quickstart.py CLOZE
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
NOUNS = "king ox well tower river lamb lion harp sword field vine tent stone ship crown".split()
NAMES = "Abner Boaz Caleb Dinah Esther Hagar Jael Keturah Leah Micah Naomi Orpah Rachel Samuel Tamar".split()


def text():
    """Sentences of a name and of nouns, each of which is followed by the same one wherever it stands."""
    draws = random.Random(1)
    sentences = []
    for _ in range(80 * 8):
        first = draws.randrange(len(NOUNS))
        chain = [NOUNS[(first + 4 * i) % len(NOUNS)] for i in range(draws.randrange(7, 12))]
        sentences.append(f"{draws.choice(NAMES)} saw {' '.join(chain)}.")
    return "\n\n".join("\n".join(sentences[i : i + 8]) for i in range(0, len(sentences), 8)) + "\n"


def prepare(folder, cloze):
    """The script as it is, without its downloads and its build."""
    (folder / "quickstart").write_text((root / "quickstart").read_text())
    (folder / "quickstart").chmod(0o755)
    functions = [line for line in (root / "setup.sh").read_text().splitlines() if re.match(r"(say|die)\(\)", line)]
    (folder / "setup.sh").write_text('set -euo pipefail\ncd "$(dirname "${BASH_SOURCE[0]}")"\n' + "\n".join(functions) + "\nbuild() { :; }\n")
    (folder / "build").mkdir()
    (folder / "build/cloze").symlink_to(cloze)
    (folder / "configs/modernbert").mkdir(parents=True)
    (folder / "configs/modernbert/quickstart.yaml").write_text(f"""base: {root}/configs/modernbert/quickstart.yaml
model: {{hidden_size: 64, intermediate_size: 64, num_hidden_layers: 1}}
optimizer: {{learning_rate: 1e-2}}
data: {{max_seq_length: 32}}
train: {{budget: {{steps: 300}}, batch_size: 8}}
evaluation: {{sequences: 64}}
checkpoint: {{log_every: 20}}
""")
    (folder / "my text.txt").write_text(text())


def call(folder, interrupt):
    """The exit code and what was printed; `interrupt`: at the first step, by a signal to the group, as a terminal does it."""
    child = subprocess.Popen(["./quickstart", "my text.txt"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    printed = ""
    for line in child.stdout:
        printed += line
        if interrupt and line.startswith("step "):
            os.killpg(child.pid, signal.SIGINT)
            interrupt = False
    return child.wait(), printed


def check(printed, condition, fault):
    if not condition: sys.exit(f"{fault}:\n{printed}")


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    prepare(folder, Path(sys.argv[1]).resolve())
    run = folder / "runs/quickstart-my-text-txt"

    code, printed = call(folder, interrupt=True)
    check(printed, code == 130, f"exit code {code} after Ctrl-C")
    check(printed, printed.endswith("stopped; ./quickstart my\\ text.txt goes on from here\n"), "no word about how to go on")
    check(printed, list(run.glob("step-*")) and not (run / "summary.json").exists(), "nothing is saved")

    code, printed = call(folder, interrupt=False)
    check(printed, code == 0, f"exit code {code}")
    check(printed, f"resumed from runs/{run.name}/step-" in printed, "training does not go on from the checkpoint")
    check(printed, re.search(r"^step +\d+/300 .*\beta \d", printed, re.M), "training does not say the time that is left")
    check(printed, (run / "model.pt").exists() and (run / "summary.json").exists(), "a file is missing")
    filled = re.findall(r"^  (.*\[(\w+)\].*)\n    (\w+) .*%   right$", printed, re.M)
    check(printed, filled and all(best == word and sentence.replace(f"[{word}]", word) in text() for sentence, word, best in filled),
          "no word is filled in as the text has it")
    said = re.search(r"^  (\d+) of (\d+) are the words of the text$", printed, re.M)
    shown = [len(re.findall(f"   {word}", printed)) for word in ("right\n", "wrong: ")]
    check(printed, said and [int(said[1]), int(said[2])] == [shown[0], sum(shown)], "the sentences are not counted")
