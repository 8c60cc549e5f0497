"""Every verb that writes, killed with SIGKILL in turn. What it writes is then absent, as before or whole; the same command makes it, and nothing
stays half-written beside it."""
import filecmp

from kills import attack_branch, attack_finetune, attack_pretrain, attack_study, killed
from world import difference, leftovers

CHAINS = {"pretrain": attack_pretrain, "branch": attack_branch, "finetune": attack_finetune, "study run": attack_study}
# The master that each verb makes, its inputs, and files in which times or paths differ.
VERBS = {"prepare": ("tokens", ["text.txt"], ("manifest.json",)),
         "prepare --force": ("tokens", ["text.txt", "tokens"], ("manifest.json",)),
         "import": ("import", ["export"], ("provenance.json",)),
         "export": ("export", ["run-bert"], ()),
         "export --force": ("export", ["run-bert", "export"], ()),
         "export --revisions": ("revisions", ["run-words"], ()),
         "export --revisions --force": ("revisions", ["run-words", "revisions"], ()),
         "torchscript": ("script.pt", ["run-gpt2"], None),
         "torchscript --force": ("script.pt", ["run-gpt2", "script.pt", "script.pt.receipt.json"], None),
         "report --output": ("report.html", ["run-bert"], ()),
         "study report --output": ("study.html", ["studies", "study.yaml", "bert.yaml", "tokens"], ()),
         "view --out": ("view.html", ["run-bert", "lines.txt"], ()),
         "inspect --picture": ("spans.svg", ["bert.yaml", "tokens"], ()),
         "evaluate --out": ("answers", ["run-bert", "suite.jsonl"], ()),
         "predict --out": ("labelled.tsv", ["run-task", "test.tsv"], ()),
         "collate": ("results", ["results"], ())}
KINDS = [*CHAINS, *VERBS]
MAKERS = {"torchscript": "script", "evaluate --out": "answers", "collate": "collation"}  # masters by other names than their results


def is_as(path, master, ignored):
    """Whether a result is that of an undisturbed command; `ignored` None: its bytes differ from time to time."""
    if ignored is None:
        return path.stat().st_size > 0
    return not difference(path, master, ignored) if path.is_dir() else path.exists() and filecmp.cmp(path, master, shallow=False)


def attack_verb(world, draw, name, verb):
    result, masters, ignored = VERBS[verb]
    folder = world.case_folder(name, *masters)
    maker = MAKERS.get(verb.removesuffix(" --force"), result)
    command = world.commands()[maker] + (["--force"] if verb.endswith("--force") else [])
    existed = (folder / result).exists() and verb != "collate"
    answer, was_killed = killed(world, draw, command, folder, maker)
    fault = answer.fault((0, -9))
    there = (folder / result).exists()
    if not fault and existed and not there:
        fault = "what was there before is gone"
    if not fault and there and verb != "collate" and not is_as(folder / result, world.masters / result, ignored):
        fault = "the result is there and not whole"
    if not fault and was_killed and (existed or not there):
        answer = world.ask(command, folder)
        fault = answer.fault((0,)) or ("" if is_as(folder / result, world.masters / result, ignored) else "the second try makes another result")
    fault = fault or leftovers_of(world, verb, command, folder)
    return int(was_killed), fault and f"{verb}: {fault}: {answer.err[-300:]}"


def leftovers_of(world, verb, command, folder):
    """What a kill left is swept by the next call of the same verb, which a result that is there may refuse."""
    if leftovers(folder):
        world.ask(command, folder)
    return leftovers(folder)


def attack(world, draw, name):
    """One kill of the verb whose turn it is by the number of the case."""
    verb = KINDS[int(name.rsplit("-", 1)[1]) % len(KINDS)]
    for _ in range(20):  # until one comes before the end
        kills, fault = CHAINS[verb](world, draw, name) if verb in CHAINS else attack_verb(world, draw, name, verb)
        if kills or fault:
            return 1, fault
    return 1, f"{verb}: ends before it is killed"
