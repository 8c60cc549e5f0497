"""Readers beside a run that saves at every step and keeps one checkpoint: each finds a whole one."""
import time
from concurrent.futures import ThreadPoolExecutor

READERS = 50  # beside one run
AT_ONCE = 4
LONG = ["--set", "train.budget.steps=1000000", "--set", "checkpoint.every=1", "--set", "checkpoint.keep=1", "--set", "evaluation.every=5"]


def command(draw, number):
    """A verb that reads the run; what it writes has a name of its own."""
    run = draw.choice(["run", "run", "run/"])
    return draw.choice([["evaluate", run], ["evaluate", run, "--checkpoint", "newest"], ["evaluate", run, "--all-checkpoints"],
                        ["verify", "run", run], ["fill", run, "wa [MASK] wc"],
                        ["score", run, "lines.txt"], ["export", run, "--to", "huggingface", "--out", f"export-{number}"],
                        ["export", run, "--to", "torchscript", "--out", f"script-{number}.pt"],
                        ["view", run, "lines.txt", "--out", f"view-{number}.html"], ["evaluate", run, "--suite", "suite.jsonl"],
                        ["inspect", "task", run, "task.yaml"],
                        ["pretrain", "bert.yaml", "--set", "data.tokens=tokens", "--set", f"init.from={run}", "--set", "train.budget.steps=2",
                         "--run", f"other-{number}"],
                        ["finetune", run, "task.yaml", "--run", f"tuned-{number}", "--set", "train.budget.epochs=1"]])


def newest(folder):
    """The number of the run's last step; 0 before the first."""
    latest = folder / "run/latest"
    return int(latest.read_text().strip().removeprefix("step-")) if latest.exists() else 0


def attack(world, draw, name):
    """One run and its readers, several at once: how many have ended, and how many of them failed."""
    folder = world.case_folder(name, "bert.yaml", "tokens", "lines.txt", "suite.jsonl", *world.TASK)
    writer = world.start(["--quiet", *world.pretrain("bert", "run"), *LONG], folder)
    commands = [command(draw, number) for number in range(READERS)]
    try:
        for _ in range(1200):
            if newest(folder) > 0:
                break
            time.sleep(0.05)
        first = newest(folder)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(lambda one: world.ask(one, folder), commands))
        if writer.poll() is not None:
            return READERS, f"the run ended with {writer.returncode}: {writer.stderr.read()[-300:]}"
        faults = [(fault, one, answer) for one, answer in zip(commands, answers, strict=True) if (fault := answer.fault((0,)))]
        if faults:
            fault, one, answer = faults[0]
            return READERS, f"{len(faults)} of {READERS} beside a pruning run, first `{' '.join(one)}`: {fault}: {answer.err[-300:]}"
        return READERS, "" if newest(folder) >= first + READERS else f"the run made {newest(folder) - first} steps only"
    finally:
        writer.kill()
        writer.communicate()
