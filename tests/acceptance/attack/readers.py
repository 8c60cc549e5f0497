"""Readers beside a run that saves at every step and keeps one checkpoint: each finds a whole one."""
import time

READERS = 20  # beside one run
LONG = ["--set", "train.budget.steps=1000000", "--set", "checkpoint.every=1", "--set", "checkpoint.keep=1", "--set", "evaluation.every=5"]


def commands(draw):
    run = draw.choice(["run", "run", "run/"])
    return draw.choice([["evaluate", run], ["evaluate", run, "--checkpoint", "newest"], ["verify", "run", run], ["fill", run, "wa [MASK] wc"],
                        ["score", run, "lines.txt"], ["export", run, "--to", "huggingface", "--out", f"export-{draw.randrange(10**9)}"],
                        ["view", run, "lines.txt", "--out", "view.html"], ["evaluate", run, "--suite", "suite.jsonl"],
                        ["pretrain", "bert.yaml", "--set", "data.tokens=tokens", "--set", f"init.from={run}", "--set", "train.budget.steps=2",
                         "--run", f"other-{draw.randrange(10**9)}"]])


def attack(world, draw, name):
    folder = world.case_folder(name, "bert.yaml", "tokens", "lines.txt", "suite.jsonl")
    writer = world.start([*world.pretrain("bert", "run"), *LONG], folder)
    try:
        for _ in range(600):
            if (folder / "run/latest").exists():
                break
            time.sleep(0.05)
        for tried in range(1, READERS + 1):
            command = commands(draw)
            answer = world.ask(command, folder)
            fault = answer.fault((0,))
            if fault:
                return tried, f"`{' '.join(command)}` beside a pruning run: {fault}: {answer.err[-300:]}"
        return READERS, "" if writer.poll() is None else f"the run ended with {writer.returncode}: {writer.stderr.read()[-300:]}"
    finally:
        writer.kill()
        writer.communicate()
