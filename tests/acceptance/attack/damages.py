"""Damaged files: flipped bits, cuts, swapped and deleted files, appended bytes. No answer is a crash, and where a checksum guards a
file, its damage is not accepted."""
import json
import shutil

from world import FAMILIES, root, run_difference, state_difference

TEXT = "wa wb wc wd we"


# -- The damage --------------------------------------------------------------------------------------------------------

def flip(draw, path, _):
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 1, 1, 8])):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(draw, path, _):
    path.write_bytes(path.read_bytes()[:draw.randrange(path.stat().st_size)])


def append(draw, path, _):
    path.write_bytes(path.read_bytes() + bytes(draw.randrange(256) for _ in range(draw.choice([1, 3, 4096]))))


def delete(_, path, __):
    path.unlink()


def blank(draw, path, _):
    """A block of zeros, as a file system leaves after a crash."""
    data = bytearray(path.read_bytes())
    first = draw.randrange(len(data))
    data[first:first + 4096] = bytes(len(data[first:first + 4096]))
    path.write_bytes(data)


def swap(draw, path, others):
    """Another file of the folder in its place."""
    other = draw.choice(others)
    data = other.read_bytes()
    other.write_bytes(path.read_bytes())
    path.write_bytes(data)


def repeat(draw, path, _):
    """A part of the file once more."""
    data = path.read_bytes()
    first, last = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    path.write_bytes(data[:last] + data[first:])


KINDS = [flip] * 6 + [cut] * 3 + [append, delete, blank, swap, repeat]


def is_same(path, master):
    """Whether a file says the same as before: JSON may be written in another way."""
    if not path.exists():
        return False
    if path.read_bytes() == master.read_bytes():
        return True
    if path.suffix != ".json":
        return False
    try:
        return json.loads(path.read_bytes()) == json.loads(master.read_bytes())
    except ValueError:
        return False


# -- The targets -------------------------------------------------------------------------------------------------------
# Each has the masters of its folder, the files that are damaged, the command that reads them, and what has to hold if it ends with 0: of the
# files in `guarded` all are as before, the answer is one of undamaged files (`answers`), the result is that of undamaged files (`result`).

def matches(path, patterns):
    return any(path.match(pattern) for pattern in patterns)


class Target:
    def __init__(self, name, masters, files, command, guarded=(), answers=None, result=None, weight=1, sentences=(1,)):
        self.name, self.masters, self.files, self.command, self.guarded = name, masters, files, command, guarded
        self.answers, self.result, self.weight, self.sentences = answers, result, weight, sentences

    def check(self, world, draw, name):
        folder = world.case_folder(name, *self.masters)
        found = sorted(path for pattern in self.files for path in folder.glob(pattern) if path.is_file() and path.stat().st_size > 0)
        path = draw.choice(found)
        kind = draw.choice(KINDS)
        kind(draw, path, found)
        what = f"{self.name}, {kind.__name__} of {path.relative_to(folder)}"
        answer = world.ask(self.command, folder)
        fault = answer.fault((0, 1, 2), self.sentences)
        if not fault and answer.code == 0:
            fault = self.accepted(world, folder, found, answer)
        return fault and f"{what}: {fault}: {(answer.err or answer.out)[-300:]}"

    def accepted(self, world, folder, found, answer):
        for path in found:
            relative = path.relative_to(folder)
            if matches(relative, self.guarded) and not is_same(path, world.masters / relative):
                return f"accepts {relative}"
        if self.answers and answer.out not in self.answers(world):
            return f"answers otherwise: {answer.out[:200]}"
        return self.result(world, folder) if self.result else ""


def fill_answers(world):
    """What `fill` answers with each checkpoint of the run."""
    if "fill" not in world.outputs:
        world.outputs["fill"] = [world.ask(["--quiet", "fill", f"run-bert/{step.name}", "wa [MASK] wc"], world.masters).out
                                 for step in (world.masters / "run-bert").glob("step-*")]
    return world.outputs["fill"]


def tokenize_answers(world):
    if "tokenize" not in world.outputs:
        world.outputs["tokenize"] = [world.ask(["tokenize", "--json", "tokens/tokenizer", TEXT], world.masters).out]
    return world.outputs["tokenize"]


def resumed(world, folder):
    return run_difference(folder / "run-bert", world.masters / "run-bert")


def resumed_state(world, folder):
    """As `resumed`, of a run whose log, which nothing guards, is damaged."""
    return state_difference(folder / "run-bert", world.masters / "run-bert")


RESUME = ["pretrain", "--run", "run-bert", "--resume", "--set", "data.tokens=tokens"]
STORE = ["tokens/*.tokens", "tokens/*.bytes", "tokens/manifest.json", "tokens/tokenizer/*"]
STORE_GUARDED = ["tokens/*.tokens", "tokens/*.bytes", "tokens/manifest.json", "tokens/tokenizer/vocab.txt",
                 "tokens/tokenizer/cloze_tokenizer.json"]
CHECKPOINT_GUARDED = ["*.safetensors", "state.json", "config.yaml", "manifest.json"]
EXPORT_GUARDED = ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "cloze_tokenizer.json"]
PARITY = str(root / "tests/parity/bert")


def parity_folder(world):
    if not (world.masters / "parity").exists():
        shutil.copytree(PARITY, world.masters / "parity")


def foreign_tokenizers(world):
    """Tokenizers as others leave them: without Cloze's facts."""
    for kind, file in (("tokens-unigram", "spiece.model"), ("tokens-bpe", "tokenizer.json"), ("tokens", "tokenizer.json"),
                       ("tokens-unigram", "tokenizer.json")):
        folder = world.masters / f"foreign-{kind}-{file.split('.')[0]}"
        folder.mkdir(exist_ok=True)
        shutil.copy(world.masters / kind / "tokenizer" / file, folder / file)


def make_masters(world):
    parity_folder(world)
    foreign_tokenizers(world)
    fill_answers(world)
    tokenize_answers(world)


def targets():
    foreign = [Target(f"foreign {name}", [name], [f"{name}/*"], ["tokenize", name, TEXT], weight=4)
               for name in ("foreign-tokens-unigram-spiece", "foreign-tokens-bpe-tokenizer", "foreign-tokens-tokenizer",
                            "foreign-tokens-unigram-tokenizer")]
    runs = [Target(f"checkpoint of {family}", [f"run-{family}"], [f"run-{family}/step-*/*"], ["verify", "run", f"run-{family}"],
                   guarded=CHECKPOINT_GUARDED, weight=1) for family in FAMILIES]
    return foreign + runs + [
        Target("token store", ["tokens"], STORE, ["verify", "data", "tokens"], guarded=STORE_GUARDED, weight=20),
        Target("saved tokenizer", ["tokens"], ["tokens/tokenizer/*"], ["tokenize", "--json", "tokens/tokenizer", TEXT],
               answers=tokenize_answers, weight=8),
        Target("tokens of a new run", ["tokens", "bert.yaml"], STORE,
               ["pretrain", "bert.yaml", "--set", "data.tokens=tokens", "--run", "run-bert"], guarded=STORE_GUARDED, result=resumed, weight=3),
        Target("config of a run", ["run-bert"], ["run-bert/run.yaml"], ["config", "--resolved", "run-bert/run.yaml"], weight=8),
        Target("config", ["bert.yaml"], ["bert.yaml"], ["config", "--resolved", "bert.yaml"], weight=8),
        Target("study", ["study.yaml", "bert.yaml", "tokens"], ["study.yaml", "bert.yaml"], ["study", "plan", "study.yaml"], weight=4),
        Target("records of a study", ["studies", "study.yaml", "bert.yaml", "tokens"], ["studies/rates/*.json", "studies/rates/runs/*/*.*",
               "studies/rates/runs/*/*/*.json*"], ["study", "status", "study.yaml"], weight=4),
        Target("report of a study", ["studies", "study.yaml", "bert.yaml", "tokens"], ["studies/rates/*.json", "studies/rates/runs/*/*.*",
               "studies/rates/runs/*/*/*.json*"], ["study", "report", "study.yaml"], weight=4),
        Target("records of runs", ["run-bert", "run-roberta"], ["run-*/*.json*", "run-*/run.yaml", "run-*/best", "run-*/latest"],
               ["report", "run-bert", "run-roberta", "--metric", "mlm"], weight=6),
        Target("run that fills", ["run-bert"], ["run-bert/*", "run-bert/step-*/*", "run-bert/tokenizer/*"],
               ["--quiet", "fill", "run-bert", "wa [MASK] wc"], weight=4),
        Target("weights that fill", ["run-bert"], ["run-bert/step-*/*", "run-bert/best", "run-bert/latest", "run-bert/tokenizer/vocab.txt",
               "run-bert/tokenizer/cloze_tokenizer.json"], ["--quiet", "fill", "run-bert", "wa [MASK] wc"], answers=fill_answers, weight=4),
        Target("checkpoint that fills", ["run-bert"], ["run-bert/step-00000006/*"],
               ["--quiet", "fill", "run-bert/step-00000006", "wa [MASK] wc"], guarded=["weights.safetensors"], weight=3),
        Target("run that is resumed", ["run-bert", "tokens"], ["run-bert/step-*/*", "run-bert/best", "run-bert/latest"], RESUME, result=resumed,
               weight=3),
        Target("log of a run that is resumed", ["run-bert", "tokens"], ["run-bert/metrics.jsonl"], RESUME, result=resumed_state, weight=1),
        Target("export", ["export"], ["export/*"], ["import", "export", "--out", "back"], guarded=EXPORT_GUARDED, weight=6),
        Target("parity case", ["parity"], ["parity/*"], ["verify", "parity", "parity"], sentences=(0, 1), weight=2),
        Target("text", ["text.txt"], ["text.txt"], ["prepare", "text.txt", "--train", "wordpiece", "--vocab-size", "60", "--out", "t"], weight=3),
        Target("JSON lines", ["text.jsonl"], ["text.jsonl"],
               ["prepare", "text.jsonl", "--train", "wordpiece", "--vocab-size", "60", "--out", "t"], weight=3)]


ALL = targets()


def attack(world, draw, name):
    """One case: a damage, and the fault that it found."""
    target = draw.choices(ALL, [one.weight for one in ALL])[0]
    return 1, target.check(world, draw, name)
