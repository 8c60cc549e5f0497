"""The world that is attacked: texts, tokens, and a tiny run of every family, made in seconds; and how cloze is asked."""
import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

here = Path(__file__).resolve().parent
root = here.parents[2]
STEPS = 6
TINY = {"model.hidden_size": 16, "model.num_hidden_layers": 1, "model.num_attention_heads": 2, "model.intermediate_size": 16,
        "data.max_seq_length": 16, "train.batch_size": 4, "train.budget.steps": STEPS, "train.threads": 1, "evaluation.every": 3,
        "evaluation.sequences": 4, "checkpoint.every": 2, "checkpoint.log_every": 1}
FAMILIES = ["bert", "modernbert", "roberta", "distilbert", "albert", "electra", "longformer", "bigbird", "performer", "spanbert", "gpt2",
            "gpt-bert", "t5", "bart", "mbart", "pegasus", "transformer", "xlnet", "lstm"]
STABLE = {"schedule.shape": "constant", "schedule.warmup": 2}  # so that the run can be branched
OWN_CONFIGS = {"stem": {"base": f"{root}/configs/bert/tiny.yaml"},
               "words": {"base": f"{root}/configs/bert/tiny.yaml", "checkpoint": {"at_words": [100, 200]}},
               "mbart": {"model": {"kind": "mbart"}, "objectives": [{"kind": "denoising"}]},
               "pegasus": {"model": {"kind": "pegasus"}, "objectives": [{"kind": "gap_sentences"}]},
               "transformer": {"model": {"kind": "transformer"}, "objectives": [{"kind": "denoising"}]}}
STUDY = "study: rates\nbase: bert.yaml\nset: {data.tokens: tokens}\narms:\n  low: {optimizer.learning_rate: 1e-4}\n  high: {optimizer.learning_rate: 1e-2}\nseeds: 1\n"


class Answer:
    """What a command answered. `code` is negative for a process that died of a signal."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def fault(self, codes, sentences=(1,)):
        """What no answer may be, whatever the attack; empty for an answer that may be. `sentences`: how many an error has."""
        text = self.out + self.err
        for sign in ("This is a bug", "terminate called", "what():", "frame #", "Segmentation", "Assertion"):
            if sign in text:
                return f"answers '{sign}'"
        if self.code not in codes:
            return f"died of signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        spoken = [line for line in self.err.splitlines() if line.startswith("cloze: ")]
        if self.code in (1, 2) and len(spoken) not in sentences:
            return f"exit code {self.code} with {len(spoken)} sentences"
        if any(len(line) > 4000 for line in spoken):
            return f"a sentence of {max(map(len, spoken))} characters"
        return ""


class World:
    """cloze    the program
    folder   with the masters, which no case changes, under `world`, and a folder of each case that works
    """

    TASK = ("task.yaml", "train.tsv", "test.tsv")

    def __init__(self, cloze, folder):
        self.cloze, self.folder, self.masters = Path(cloze).resolve(), Path(folder).resolve(), Path(folder).resolve() / "world"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.shim, self.scarce = self.folder / "failing_calls.so", self.folder / "scarce.so"
        self.seconds, self.calls, self.outputs = {}, {}, {}

    def environment(self, more=None):
        """With programs that a plot or a hook could start."""
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder), "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8", **(more or {})}

    def start(self, command, folder, more=None):
        return subprocess.Popen([str(self.cloze), *command], cwd=folder, env=self.environment(more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, command, folder, more=None, kill_after=None, patience=600):
        """Runs cloze to its end, or kills it after `kill_after` seconds; a command that hangs has the code -99."""
        begin = time.time()
        process = self.start(command, folder, more)
        try:
            out, err = process.communicate(timeout=kill_after or patience)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            code = -9 if kill_after else -99
        return Answer(code, out.decode(errors="replace"), err.decode(errors="replace"), time.time() - begin)

    def attacked(self, folder, number, action, calls="", lasts=False):
        """The environment in which a file operation of cloze fails, or kills it."""
        fired = folder.parent / f"{folder.name}.fired"
        fired.unlink(missing_ok=True)
        return fired, {"LD_PRELOAD": str(self.shim), "ATTACK_ROOT": str(folder), "ATTACK_N": str(number), "ATTACK_ACTION": str(action),
                       "ATTACK_CALLS": calls, "ATTACK_LASTS": "1" if lasts else "", "ATTACK_FIRED": str(fired)}

    # -- The masters ---------------------------------------------------------------------------------------------------

    def make(self):
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", self.shim, here / "failing_calls.c", "-ldl"], check=True)
        subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-O1", "-o", self.scarce, here / "scarce.cpp", "-ldl"], check=True)
        facts = self.folder / "world.json"
        if facts.exists():
            self.seconds, self.calls, self.outputs = json.loads(facts.read_text())
            return
        shutil.rmtree(self.masters, ignore_errors=True)
        self.masters.mkdir()
        self.write_texts()
        for name, command in self.commands().items():
            self.make_one(name, command)
        facts.write_text(json.dumps([self.seconds, self.calls, self.outputs]))

    def make_one(self, name, command):
        """Runs a command that makes a master, with its time and the number of its file operations."""
        count = self.folder / "count"
        count.unlink(missing_ok=True)
        answer = self.ask(command, self.masters, {"LD_PRELOAD": str(self.shim), "ATTACK_ROOT": str(self.masters), "ATTACK_COUNT": str(count)})
        if answer.code != 0:
            raise SystemExit(f"{name}: cloze {' '.join(command)}\n{answer.out}{answer.err}")
        self.seconds[name] = answer.seconds
        self.calls[name] = int(count.read_text()) if count.exists() else 0
        self.outputs[name] = answer.out

    def write_texts(self):
        draw = random.Random(11)
        lines = []
        for _ in range(40):
            for _ in range(8):
                word = draw.randrange(16)
                words = []
                for _ in range(8):
                    words.append("w" + chr(97 + word))
                    word = (3 * word + 1) % 16
                lines.append(" ".join(words) + ".")
            lines.append("")
        text = "\n".join(lines)
        (self.masters / "text.txt").write_text(text)
        (self.masters / "text.jsonl").write_text("".join(json.dumps({"text": part}) + "\n" for part in text.split("\n\n") if part.strip()))
        (self.masters / "study.yaml").write_text(STUDY)
        (self.masters / "lines.txt").write_text("wa wb wc wd we\nwb wc wf\n")
        (self.masters / "suite.jsonl").write_text('{"sentence_good": "wa wb wc", "sentence_bad": "wc wb wa", "UID": "order", "linguistics_term": "x"}\n')
        self.write_task(draw)
        answers = self.masters / "results/baby/main/zero_shot/mlm/blimp/blimp_filtered"
        answers.mkdir(parents=True)
        (answers / "predictions.json").write_text("{}")
        for name in [*FAMILIES, "stem", "words"]:
            config = json.loads(json.dumps(OWN_CONFIGS.get(name, {"base": f"{root}/configs/{name}/tiny.yaml"})))
            for key, value in {**TINY, **(STABLE if name == "stem" else {})}.items():
                if name == "lstm" and key in ("model.num_attention_heads", "model.intermediate_size"):
                    continue
                *sections, last = key.split(".")
                at = config
                for section in sections:
                    at = at.setdefault(section, {})
                at[last] = value
            (self.masters / f"{name}.yaml").write_text(json.dumps(config, indent=1) + "\n")  # JSON is YAML

    def write_task(self, draw):
        """A task of texts with one of two labels."""
        for file, items in (("train.tsv", 24), ("test.tsv", 6)):
            lines = [" ".join("w" + draw.choice("abcdefgh") for _ in range(5)) + ("\tup" if draw.random() < 0.5 else "\tdown") for _ in range(items)]
            (self.masters / file).write_text("\n".join(["text\tlabel", *lines]) + "\n")
        (self.masters / "task.yaml").write_text(
            "task: moods\nkind: classification\ndata: {train: train.tsv, test: test.tsv, text: text, label: label}\n")

    def prepare(self, out, kind="wordpiece", text="text.txt", more=()):
        size = {"byte_bpe": "300", "unigram": "40"}.get(kind, "60")
        return ["prepare", text, "--format", "lines" if text.endswith("txt") else "jsonl", "--train", kind, "--vocab-size", size,
                "--held-out", "0.2", "--threads", "1", "--out", out, *more]

    def pretrain(self, family, run):
        return ["pretrain", f"{family}.yaml", "--set", f"data.tokens={'tokens-marked' if family == 't5' else 'tokens'}", "--run", run]

    def branch(self, run):
        """A branch of the run `run-stem`, four steps longer than it."""
        return ["pretrain", "--branch-from", "run-stem", "--run", run, "--set", f"train.budget.steps={STEPS + 4}"]

    def resumed_branch(self, run):
        return ["pretrain", "stem.yaml", "--set", "data.tokens=tokens", "--set", f"train.budget.steps={STEPS + 4}", "--run", run, "--resume"]

    def finetune(self, run, task="task.yaml"):
        return ["finetune", "run-bert", task, "--run", run, "--set", "train.batch_size=8", "--set", "train.threads=1"]

    def commands(self):
        """Every command that makes a master, in their order."""
        runs = {f"run-{family}": self.pretrain(family, f"run-{family}") for family in FAMILIES}
        return {"tokens": self.prepare("tokens"),
                "tokens-marked": self.prepare("tokens-marked", more=("--sentinels", "20")),
                "tokens-unigram": self.prepare("tokens-unigram", "unigram"),
                "tokens-bpe": self.prepare("tokens-bpe", "byte_bpe", "text.jsonl"),
                **runs,
                "run-stem": self.pretrain("stem", "run-stem"),
                "run-branch": self.branch("run-branch"),
                "export": ["export", "run-bert", "--to", "huggingface", "--out", "export"],
                "import": ["import", "export", "--out", "import"],
                "script": ["export", "run-gpt2", "--to", "torchscript", "--out", "script.pt"],
                "study": ["study", "run", "study.yaml", "--jobs", "1"],
                "run-words": self.pretrain("words", "run-words"),
                "revisions": ["export", "run-words", "--to", "huggingface", "--revisions", "--out", "revisions"],
                "report.html": ["report", "run-bert", "--metric", "mlm", "--output", "report.html"],
                "study.html": ["study", "report", "study.yaml", "--output", "study.html"],
                "view.html": ["view", "run-bert", "lines.txt", "--out", "view.html"],
                "spans.svg": ["inspect", "objective", "bert.yaml", "--set", "data.tokens=tokens", "--picture", "spans.svg"],
                "answers": ["evaluate", "run-bert", "--suite", "suite.jsonl", "--out", "answers"],
                "run-task": self.finetune("run-task"),
                "labelled.tsv": ["predict", "run-task", "test.tsv", "--out", "labelled.tsv"],
                "collation": ["babylm", "collate", "results/baby", "--partial"]}

    def case_folder(self, name, *masters):
        """A folder for a case, with copies of masters."""
        folder = self.folder / "cases" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for master in masters:
            source = self.masters / master
            if source.is_dir():
                shutil.copytree(source, folder / master)
            else:
                shutil.copy(source, folder / master)
        return folder


def difference(one, other, ignored=()):
    """The first file by which two folders differ; empty where they are alike. Times differ in JSON."""
    files = [sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) for folder in (one, other)]
    for name in sorted(set(files[0]) ^ set(files[1])):
        if not any(part in name for part in ignored):
            return f"{name} is in one folder only"
    for name in files[0]:
        if not any(part in name for part in ignored) and (one / name).read_bytes() != (other / name).read_bytes():
            return f"{name} differs"
    return ""


def rows_of(run):
    """The rows of a run's log without their times."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("time", None)
    return rows


def state_difference(run, reference):
    """How weights, moments and memory of a run differ from those of an uninterrupted one; empty where they do not."""
    last = max(path.name for path in reference.glob("step-*"))
    if not (run / last).is_dir():
        return f"{run.name} has no {last}"
    files, wanted = ({path.name: path.read_bytes() for path in (one / last).glob("*.safetensors")} for one in (run, reference))
    for name in sorted(set(files) | set(wanted)):
        if files.get(name) != wanted.get(name):
            return f"{run.name}: {name} differs from that of an uninterrupted run"
    return ""


def run_difference(run, reference):
    """How a run and its log differ from an uninterrupted one; empty where they do not."""
    fault = state_difference(run, reference)
    if fault or rows_of(run) == rows_of(reference):
        return fault
    return f"{run.name}: metrics.jsonl differs from that of an uninterrupted run"


def leftovers(folder):
    """What a finished command may not leave beside its result."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    left = [name for name in names if ".tmp-" in name or ".partial" in name or name.endswith("/lock") or name.endswith(".part")]
    return f"leaves {left[0]}" if left else ""
