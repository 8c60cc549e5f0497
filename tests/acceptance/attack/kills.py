"""Processes killed with SIGKILL, at a file operation or after a time, and begun again until they are done."""
import time

from world import FAMILIES, difference, leftovers, run_difference

RESULT = {"prepare": "tokens", "force": "tokens", "import": "import", "export": "export", "script": "script.pt"}


def killed(world, draw, command, folder, master):
    """Runs a command that is killed somewhere; its answer, and whether it was killed before its end."""
    if draw.random() < 0.7:
        number = 1 + draw.randrange(max(world.calls[master], 1))
        _, more = world.attacked(folder, number, "kill")
        answer = world.ask(command, folder, more)
    else:
        answer = world.ask(command, folder, kill_after=0.02 + draw.random() * world.seconds[master])
    return answer, answer.code == -9


def run_command(world, draw, family, folder):
    """A run that has begun is resumed; one without a checkpoint may also be started again."""
    start = world.pretrain(family, "run")
    if not (folder / "run/run.yaml").exists():
        return start
    if not list((folder / "run").glob("step-*[0-9]")) and draw.random() < 0.5:
        return start
    return [*start, "--resume"] if draw.random() < 0.5 else ["pretrain", "--run", "run", "--resume"]


def chain(world, draw, folder, command, kill, most):
    """Up to `most` kills of one run, whose next command `command` gives, and then its end: the kills, the fault, and the last answer."""
    kills = 0
    for _ in range(draw.randint(1, most)):
        answer, was_killed = kill(command())
        kills += was_killed
        fault = answer.fault((0, -9))
        if fault:
            return kills, fault, answer
    if kills == 0:
        return 0, "", answer
    answer = world.ask(command(), folder)
    return kills, answer.fault((0,)), answer


def attack_pretrain(world, draw, name):
    """A chain of up to four kills of one run; the run ends in the bits of an uninterrupted one."""
    family = draw.choice(FAMILIES)
    folder = world.case_folder(name, f"{family}.yaml", "tokens-marked" if family == "t5" else "tokens")
    kills, fault, answer = chain(world, draw, folder, lambda: run_command(world, draw, family, folder),
                                 lambda command: killed(world, draw, command, folder, f"run-{family}"), 4)
    if kills > 0:
        fault = fault or run_difference(folder / "run", world.masters / f"run-{family}") or leftovers(folder)
    return kills, fault and f"{family}: {fault}: {answer.err[-300:]}"


def branch_command(world, draw, folder):
    """A branch that says what it is a branch of is resumed; one without a checkpoint may also be started again."""
    start = world.branch("run")
    if not (folder / "run/provenance.json").exists():
        return start
    if not list((folder / "run").glob("step-*[0-9]")) and draw.random() < 0.5:
        return start
    return world.resumed_branch("run")


def attack_branch(world, draw, name):
    """A chain of up to three kills of one branch, most of them in its first file operations."""
    folder = world.case_folder(name, "stem.yaml", "tokens", "run-stem")

    def kill(command):
        if draw.random() >= 0.7:
            return killed(world, draw, command, folder, "run-branch")
        _, more = world.attacked(folder, 1 + draw.randrange(24), "kill", "write,sync,rename")
        answer = world.ask(command, folder, more)
        return answer, answer.code == -9

    kills, fault, answer = chain(world, draw, folder, lambda: branch_command(world, draw, folder), kill, 3)
    if kills > 0:
        fault = fault or run_difference(folder / "run", world.masters / "run-branch") or leftovers(folder)
    return kills, fault and f"branch: {fault}: {answer.err[-300:]}"


def finetune_command(world, draw, folder):
    """A fine-tuning that has begun is resumed; one without a checkpoint may also be started again."""
    start = world.finetune("run")
    if not (folder / "run/provenance.json").exists():
        return start
    if not list((folder / "run").glob("step-*[0-9]")) and draw.random() < 0.5:
        return start
    return ["pretrain", "--run", "run", "--resume"]


def attack_finetune(world, draw, name):
    """A chain of up to three kills of one fine-tuning; it ends in the bits, rows and predictions of an uninterrupted one."""
    folder = world.case_folder(name, *world.TASK, "run-bert")
    kills, fault, answer = chain(world, draw, folder, lambda: finetune_command(world, draw, folder),
                                 lambda command: killed(world, draw, command, folder, "run-task"), 3)
    run, master = folder / "run", world.masters / "run-task"
    if kills > 0 and not fault:
        files = [file for file in ("predictions.jsonl", "hardest.md", "confusion.svg")
                 if not (run / file).exists() or (run / file).read_bytes() != (master / file).read_bytes()]
        fault = run_difference(run, master) or difference(run / "task", master / "task") or (f"{files[0]} is not as it was" if files else "")
        fault = fault or leftovers(folder)
    return kills, fault and f"finetune: {fault}: {answer.err[-300:]}"


def attack_study(world, draw, name):
    folder = world.case_folder(name, "study.yaml", "bert.yaml", "tokens")
    command = ["study", "run", "study.yaml", "--jobs", "1"]
    answer, was_killed = killed(world, draw, command, folder, "study")
    for _ in range(60):  # a run that outlives the study that began it keeps its claim until it has saved
        answer = world.ask(command, folder)
        fault = answer.fault((0, 1))
        if fault or (answer.code == 0 and ", 0 run by other processes" in answer.err):
            break
        time.sleep(0.5)
    fault = fault or answer.fault((0,))
    for arm in ("low", "high"):
        for run in sorted((world.masters / "studies").rglob(f"{arm}/*/run.yaml")):
            fault = fault or run_difference(folder / run.parent.relative_to(world.masters), run.parent)
    fault = fault or leftovers(folder)
    return int(was_killed), fault and f"study: {fault}: {answer.err[-300:]}"


def commands_of(world, draw, verb):
    """The command, what it needs, and its master."""
    if verb in ("prepare", "force"):
        master = draw.choice(["tokens", "tokens-unigram", "tokens-bpe"])
        command = next(found for found_name, found in world.commands().items() if found_name == master)
        command = [*command[:-1], "tokens"]
        return (command, ["text.txt", "text.jsonl"], master) if verb == "prepare" else (
            [*command, "--force"], ["text.txt", "text.jsonl", "tokens"], master)
    if verb == "import":
        return ["import", "export", "--out", "import"], ["export"], "import"
    if verb == "export":
        return ["export", "run-bert", "--to", "huggingface", "--out", "export", "--force"], ["run-bert"], "export"
    return ["export", "run-gpt2", "--to", "torchscript", "--out", "script.pt", "--force"], ["run-gpt2"], "script"


def attack_verb(world, draw, name):
    """A kill of a verb that makes something: after it the result is absent, old or complete, and a second try makes it."""
    verb = draw.choice(["prepare", "prepare", "force", "force", "import", "export", "script"])
    command, masters, master = commands_of(world, draw, verb)
    folder = world.case_folder(name, *masters)
    answer, was_killed = killed(world, draw, command, folder, master)
    fault = answer.fault((0, -9))
    if fault:
        return int(was_killed), f"{verb}: {fault}: {answer.err[-300:]}"
    result = folder / RESULT[verb]
    if verb == "force" and world.ask(["verify", "data", "tokens"], folder).code != 0:
        return int(was_killed), f"{verb}: neither the old tokens nor the new ones"
    is_whole = verb == "import" and result.exists()
    if is_whole:  # it is not made again, so it has to be complete
        answer = world.ask(["verify", "run", "import"], folder)
    else:
        answer = world.ask([part for part in command if part != "--force" or verb != "prepare"], folder)
    fault = answer.fault((0,)) or leftovers(folder) or verb_difference(world, verb, result, master)
    return int(was_killed), fault and f"{verb}: {fault}: {answer.err[-300:]}"


def verb_difference(world, verb, result, master):
    if verb in ("prepare", "force"):
        return difference(result, world.masters / master, ignored=("manifest.json",)) or (
            "" if (result / "manifest.json").exists() else "there is no manifest.json")
    if verb == "script":
        return "" if result.stat().st_size > 0 and result.with_name("script.pt.receipt.json").exists() else "there is no export"
    return difference(result, world.masters / RESULT[verb], ignored=("provenance.json",))


def attack(world, draw, name):
    """One case: the number of kills, and the fault that it found."""
    kind = draw.random()
    if kind < 0.6:
        return attack_pretrain(world, draw, name)
    if kind < 0.66:
        return attack_branch(world, draw, name)
    if kind < 0.72:
        return attack_finetune(world, draw, name)
    if kind < 0.97:
        return attack_verb(world, draw, name)
    return attack_study(world, draw, name)
