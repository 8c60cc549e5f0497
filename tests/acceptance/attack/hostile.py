"""Folders and names from elsewhere: a run whose log holds line ends, quotes and shell code, links in the place of files, scratch folders and
temporary files that wait under a name; pipes, devices, holes and links anywhere in a run, an export, tokens, a study and a suite; tasks from elsewhere. Nothing
runs code, writes outside, hangs or sends escapes to a terminal; it may cost time and a sentence."""
import json
import os
import shutil

import hostile_tasks
from world import STEPS

RESUME = ["pretrain", "--run", "run-bert", "--resume", "--set", "data.tokens=tokens", "--set", f"train.budget.steps={STEPS + 2}",
          "--allow-config-change"]
ESCAPES = "\x1b]0;owned\x07\x1b[2J"


def hostile_names(canary):
    """Names that another interpreter would run, or that leave their place in a page, a table or a terminal."""
    return [f"x\n!touch {canary}\n#", f"x'; system(\"touch {canary}\"); '", f"$(touch {canary})", f"`touch {canary}`", f"|touch {canary}",
            f"</text><script>touch({canary})</script>", ESCAPES, "[1ex]*", "=cmd|' /C calc'!A0", "../../escaped", "\ufffe\uffff", "x" * 5000]


def snapshot(folder):
    """What stands outside of the attacked folder: names and bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def outside_of(folder):
    """A folder beside the case that nothing may touch, and the canary that nothing may make."""
    outside = folder.parent / f"{folder.name}.outside"
    shutil.rmtree(outside, ignore_errors=True)
    (outside / "folder").mkdir(parents=True)
    (outside / "file.txt").write_text("kept\n")
    (outside / "folder" / "notes.tmp-4194000").write_text("of the user\n")
    return outside, outside / "canary"


def add_rows(folder, draw, canary):
    """Rows with hostile keys in the log of a run, as long as it was so that a resume keeps what its checkpoint knows."""
    names = draw.sample(hostile_names(canary), 3)
    log = folder / "run-bert/metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows:
        if "mlm" in row:
            row.update({name: {"loss": 2.5, "count": 4} for name in names})
        if "held_out" in row:
            row["held_out"].update({f"{name}_loss": 2.0 for name in names})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    log.write_text(text)
    for path in (folder / "run-bert").glob("step-*/state.json"):  # its checkpoint knows this many bytes of the log
        state = json.loads(path.read_text())
        state["metrics_bytes"] = len(text.encode())
        path.write_text(json.dumps(state))
        manifest = path.parent / "manifest.json"
        facts = json.loads(manifest.read_text())
        facts["files"].pop("state.json", None)
        facts["version"] = 1  # of an earlier version, which had no fingerprint
        facts.pop("fingerprint", None)
        manifest.write_text(json.dumps(facts))


def attack_log(world, draw, folder, outside, canary):
    """A log with hostile keys, drawn by a resume."""
    add_rows(folder, draw, canary)
    answer = world.ask(RESUME, folder)
    return answer, "" if answer.code != 0 or (folder / "run-bert/loss.svg").exists() else "nothing is drawn"


def attack_name(world, draw, folder, outside, canary):
    """A run with a hostile name."""
    name = draw.choice([one for one in hostile_names(canary) if "/" not in one and len(one) < 200])
    answer = world.ask(world.pretrain("bert", name), folder)
    drawn = (folder / name / "loss.svg").exists()
    return answer, "" if answer.code != 0 or drawn else "nothing is drawn"


def attack_link(world, draw, folder, outside, canary):
    """A link in the place of a file of the run."""
    run = folder / "run-bert"
    events = [path.name for path in run.glob("events.out.tfevents.*")]
    name = draw.choice(["metrics.jsonl", "log.txt", "lock", "tokenizer", "run.yaml", "provenance.json", "summary.json", "latest", "best", "loss.svg",
                        "held_out.json", *events, "log.txt.tmp-1", "loss.svg.tmp-100000000000000"])
    path = run / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(outside / draw.choice(["file.txt", "folder", "absent.txt"]))
    return world.ask(RESUME if draw.random() < 0.7 else ["verify", "run", "run-bert"], folder), ""


def attack_scratch(world, draw, folder, outside, canary):
    """Links and folders of another user under names that a scratch folder might have."""
    scratch = folder / "scratch"
    scratch.mkdir()
    for pid in [os.getpid() + step for step in range(400)]:
        (scratch / f"cloze-{os.geteuid()}.tmp-{pid}").symlink_to(outside / "folder")
    return world.ask(["evaluate", "run-bert", "--text", "text.txt"], folder, {"TMPDIR": str(scratch)}), ""


def attack_text(world, draw, folder, outside, canary):
    """Escapes in a text and a file's name, through every verb that repeats them."""
    text = f"wa {ESCAPES} [MASK] \u009b31m wc"
    (folder / f"{ESCAPES.replace('/', '')}.txt").write_text((text + ".\n\n") * 40)
    command = draw.choice([["tokenize", "tokens/tokenizer", text], ["fill", "run-bert", text], ["score", "run-bert", "--file", f"{ESCAPES}.txt"],
                           ["prepare", f"{ESCAPES}.txt", "--vocab-size", "60", "--out", ESCAPES], ["evaluate", ESCAPES], ["describe", ESCAPES],
                           ["evaluate", "run-bert", "--text", f"{ESCAPES}.txt"], ["explain", "bert.yaml", ESCAPES], ["study", "run", ESCAPES]])
    return world.ask(command, folder), ""


VERBS = {"run-bert": [RESUME, ["verify", "run", "run-bert"], ["evaluate", "run-bert"], ["fill", "run-bert", "wa [MASK] wc"],
                      ["report", "run-bert", "--metric", "mlm"], ["export", "run-bert", "--to", "huggingface", "--out", "out"],
                      ["export", "run-bert", "--to", "torchscript", "--out", "out.pt"], ["pretrain", "--branch-from", "run-bert", "--run", "out"],
                      ["pretrain", "bert.yaml", "--set", "data.tokens=tokens", "--set", "init.from=run-bert", "--run", "out"]],
         "export": [["import", "export", "--out", "out"], ["tokenize", "export", "wa wb"],
                    ["prepare", "text.txt", "--tokenizer", "export", "--out", "out"],
                    ["export", "run-bert", "--to", "huggingface", "--out", "export", "--force"]],
         "tokens": [["verify", "data", "tokens"], ["pretrain", "bert.yaml", "--set", "data.tokens=tokens", "--run", "out"],
                    ["inspect", "objective", "bert.yaml", "--set", "data.tokens=tokens"]],
         "studies": [["study", "run", "study.yaml", "--jobs", "1"], ["study", "status", "study.yaml"], ["study", "report", "study.yaml"]],
         "suite": [["evaluate", "run-bert", "--suite", "suite"]],
         "run-task": [["evaluate", "run-task"], ["predict", "run-task", "test.tsv", "--out", "out.tsv"], ["verify", "run", "run-task"],
                      ["pretrain", "--run", "run-task", "--resume", "--set", "train.budget.epochs=4", "--allow-config-change"],
                      ["finetune", "run-task", "task.yaml", "--run", "out"]]}


def attack_place(world, draw, folder, outside, canary):
    """What is no file of its own in the place of a file or a folder."""
    (folder / "suite").mkdir()
    shutil.copy(folder / "suite.jsonl", folder / "suite")
    shutil.copy(folder / "suite.jsonl", folder / "suite/more.jsonl")
    place = draw.choice(list(VERBS))
    path = draw.choice(sorted((folder / place).rglob("*")))
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    kind = draw.choice(["pipe", "zeros", "file", "folder", "itself", "hole"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "hole":
        with open(path, "wb") as file:
            file.truncate(3 << 30)
    else:
        path.symlink_to({"zeros": "/dev/zero", "file": outside / "file.txt", "folder": outside / "folder", "itself": "."}[kind])
    answer = world.ask(draw.choice(VERBS[place]), folder)
    return answer, f"hangs at a {kind} for {path.relative_to(folder)}" if answer.code == -99 else ""


def make_masters(world):
    hostile_tasks.make_masters(world)


def on_tasks(kind):
    """An attack of hostile_tasks.py, whose fault is that which all answers have."""
    def attack_tasks(world, draw, folder, outside, canary):
        names = [*hostile_names(canary), f"/../../../{outside.name}/made"]
        return kind(world, draw, folder, outside, names), ""
    return attack_tasks


OWN = [attack_log, attack_name, attack_link, attack_scratch, attack_text, attack_place]
KINDS = {**{kind.__name__: kind for kind in OWN}, **{kind.__name__: on_tasks(kind) for kind in hostile_tasks.KINDS}}
WEIGHTS = {"attack_log": 2, "attack_link": 2, "attack_place": 6,
           "attack_task_file": 4, "attack_task_data": 4, "attack_task_rows": 4}


def attack(world, draw, name):
    kind = draw.choices(list(KINDS), [WEIGHTS.get(one, 1) for one in KINDS])[0]
    folder = world.case_folder(name, "run-bert", "tokens", "bert.yaml", "text.txt", "export", "study.yaml", "studies", "suite.jsonl",
                               *hostile_tasks.MASTERS)
    outside, canary = outside_of(folder)
    before = snapshot(outside)
    answer, fault = KINDS[kind](world, draw, folder, outside, canary)
    fault = fault or answer.fault((0, 1, 2), (0, 1))
    if snapshot(outside) != before:
        fault = "code runs" if canary.exists() else "something outside is changed"
    elif any(sign in answer.out + answer.err for sign in ("\x1b", "\x07", "\u009b")):
        fault = "escapes reach the terminal"
    shutil.rmtree(outside)
    return 1, fault and f"{kind}: {fault}: {answer.err[-300:]}"
