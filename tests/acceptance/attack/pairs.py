"""Two processes in one folder. One of them does the work; the other is told who works there, or finds it done, and nothing is broken."""
import time

from kills import verb_difference
from world import Answer, leftovers, run_difference


def commands(world):
    """What both do, its masters, and how the result is judged."""
    def run(folder):
        return run_difference(folder / "run", world.masters / "run-bert")

    def resumed(folder):
        return run_difference(folder / "run-bert", world.masters / "run-bert")

    def made(verb, master):
        result = {"prepare": "tokens", "import": "import", "export": "export"}[verb]
        return lambda folder: verb_difference(world, verb, folder / result, master)

    return [(world.pretrain("bert", "run"), ["bert.yaml", "tokens"], run),
            (["pretrain", "--run", "run-bert", "--resume"], ["run-bert", "tokens"], resumed),
            (world.prepare("tokens"), ["text.txt"], made("prepare", "tokens")),
            (world.prepare("tokens", more=("--force",)), ["text.txt", "tokens"], made("prepare", "tokens")),
            (["import", "export", "--out", "import"], ["export"], made("import", "import")),
            (["export", "run-bert", "--to", "huggingface", "--out", "export", "--force"], ["run-bert"], made("export", "export")),
            (["study", "run", "study.yaml", "--jobs", "1"], ["study.yaml", "bert.yaml", "tokens"], lambda folder: "")]


def attack(world, draw, name):
    command, masters, difference = draw.choice(commands(world))
    folder = world.case_folder(name, *masters)
    begin = time.time()
    first = world.start(command, folder)
    time.sleep(draw.choice([0, draw.random() * 0.3, draw.random()]))
    second = world.start(command, folder)
    answers = []
    for process in (second, first):
        out, err = process.communicate()
        answers.append(Answer(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"), time.time() - begin))
    fault = next((found for found in (answer.fault((0, 1, 2)) for answer in answers) if found), "")
    if not fault and all(answer.code != 0 for answer in answers):
        fault = "neither did the work"
    fault = fault or difference(folder) or leftovers(folder)
    return 1, fault and f"twice `{' '.join(command)}`: {fault}: {' | '.join(answer.err[-200:] for answer in answers)}"
