"""Threads, processes, memory and /proc that are not to be had. The answer is a sentence or the whole result, nothing half-written stays, and when
there is enough again, the same command makes it."""
from signals import verbs
from world import leftovers

SIGNS = ("libgomp:", "Aborted")


def scarcity(world, draw):
    """Settings of scarce.cpp."""
    kind = draw.choice(["threads", "memory", "memory", "memory", "lasting", "proc"])
    if kind == "threads":
        return {"SCARCE_THREADS": str(draw.choice([0, 0, 1, 1, 2, 3, 4, 5, 6, 8]))}
    if kind == "proc":
        return {"SCARCE_PROC": "1"}
    settings = {"SCARCE_MEMORY": str(int(10 ** (6 * draw.random())))}
    return settings if kind == "memory" else {**settings, "SCARCE_LASTS": str(draw.choice([1, 4096, 1 << 20]))}


def attack(world, draw, name):
    verb, command, masters = draw.choice(verbs(world))
    folder = world.case_folder(name, *masters)
    settings = scarcity(world, draw)
    answer = world.ask(command, folder, {**settings, "LD_PRELOAD": str(world.scarce), "OMP_NUM_THREADS": "2"})
    fault = answer.fault((0,) if "SCARCE_PROC" in settings else (0, 1))
    fault = fault or next((f"answers '{sign}'" for sign in SIGNS if sign in answer.err), "")
    if not fault and answer.code != 0:
        is_begun = verb == "pretrain" and (folder / "run/run.yaml").exists()
        answer = world.ask([*command, "--resume"] if is_begun else command, folder)
        fault = answer.fault((0,)) or leftovers(folder)
    return 1, fault and f"{verb}, {settings}: {fault}: {answer.err[-300:]}"
