"""File operations that fail: a write, a sync, a rename, a folder or a file that cannot be made or removed, with ENOSPC, EIO or EACCES, once or from
then on. The answer is one sentence, or the result is whole; and when the operations work again, the same command makes it."""
import errno

from kills import RESULT, commands_of, verb_difference
from world import FAMILIES, leftovers, run_difference

REASONS = {"write": ["ENOSPC", "EIO"], "sync": ["EIO", "ENOSPC"], "rename": ["EACCES", "EIO", "ENOSPC"], "mkdir": ["EACCES", "ENOSPC"],
           "open": ["EACCES", "EIO", "ENOSPC"], "remove": ["EACCES", "EIO"]}


def failing(world, draw, folder, master):
    """The environment of a failing call, and what it is."""
    call = draw.choice([*REASONS, "write", "write", "open"])
    reason = draw.choice(REASONS[call])
    share = {"write": 0.4, "open": 0.3}.get(call, 0.12)  # about: of all operations that are counted
    number = 1 + draw.randrange(max(2, int(world.calls[master] * share)))
    lasts = draw.random() < 0.4
    fired, more = world.attacked(folder, number, getattr(errno, reason), call, lasts)
    return fired, more, f"{call} {number} fails with {reason}{' from then on' if lasts else ''}"


def left_by(what, folder):
    """As leftovers; the lock of a process that has ended is in nobody's way, and stays where its removal fails."""
    left = leftovers(folder)
    return "" if what.startswith("remove") and left.endswith("/lock") else left


def attack_pretrain(world, draw, name):
    family = draw.choice(FAMILIES)
    folder = world.case_folder(name, f"{family}.yaml", "tokens-marked" if family == "t5" else "tokens")
    fired, more, what = failing(world, draw, folder, f"run-{family}")
    start = world.pretrain(family, "run")
    answer = world.ask(start, folder, more)
    if not fired.exists():
        return 0, ""
    fault = answer.fault((0, 1))
    if not fault and answer.code != 0:
        again = [*start, "--resume"] if (folder / "run/run.yaml").exists() else start
        answer = world.ask(again, folder)
        fault = answer.fault((0,))
    fault = fault or run_difference(folder / "run", world.masters / f"run-{family}") or left_by(what, folder)
    return 1, fault and f"{family}, {what}: {fault}: {answer.err[-300:]}"


def attack_verb(world, draw, name):
    verb = draw.choice(["prepare", "prepare", "force", "import", "export", "script"])
    command, masters, master = commands_of(world, draw, verb)
    folder = world.case_folder(name, *masters)
    fired, more, what = failing(world, draw, folder, master)
    answer = world.ask(command, folder, more)
    if not fired.exists():
        return 0, ""
    fault = answer.fault((0, 1))
    if not fault and answer.code != 0:
        answer = world.ask(command, folder)
        fault = answer.fault((0,))
    is_told = ".tmp-" in answer.err and "cannot be removed" in answer.err
    fault = fault or verb_difference(world, verb, folder / RESULT[verb], master) or ("" if is_told else leftovers(folder))
    return 1, fault and f"{verb}, {what}: {fault}: {answer.err[-300:]}"


READING = {"run-bert": [["fill", "run-bert", "wa [MASK]"], ["verify", "run", "run-bert"], ["evaluate", "run-bert"], ["report", "run-bert", "--metric", "mlm"],
                        ["describe", "run-bert/run.yaml"]],
           "tokens": [["verify", "data", "tokens"], ["tokenize", "tokens/tokenizer", "wa wb"]],
           "study": [["study", "status", "study.yaml"], ["study", "plan", "study.yaml"], ["study", "report", "study.yaml"]]}


def attack_reader(world, draw, name):
    """A verb that only reads, of which an opening or another call fails."""
    master = draw.choice([*READING])
    masters = {"study": ["studies", "study.yaml", "bert.yaml", "tokens"], "run-bert": ["run-bert", "tokens"]}.get(master, [master])
    folder = world.case_folder(name, *masters)
    command = draw.choice(READING[master])
    reason = draw.choice(["EACCES", "EIO", "EMFILE"])
    fired, more = world.attacked(folder, 1 + draw.randrange(24), getattr(errno, reason), draw.choice(["open", ""]))
    answer = world.ask(command, folder, more)
    if not fired.exists():
        return 0, ""
    fault = answer.fault((0, 1, 2))
    return 1, fault and f"{' '.join(command)}, a call fails with {reason}: {fault}: {answer.err[-300:]}"


def attack(world, draw, name):
    """One case: whether a call failed, and the fault that it found."""
    return draw.choice([attack_pretrain, attack_pretrain, attack_verb, attack_verb, attack_reader])(world, draw, name)
