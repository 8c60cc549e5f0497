"""Tasks from elsewhere: task files, tables, JSON, trees of folders, and fine-tuned runs whose rows were changed
together with their checksums."""
import ctypes
import ctypes.util
import gzip
import json
import os
import random

TUNED = {"run-task": "test.tsv", "run-tags": "tags.conll", "run-spans": "spans.json"}  # runs, and items for each
MASTERS = [*TUNED, *TUNED.values(), "train.tsv", "task.yaml", "tags.yaml", "spans.yaml"]


def make_masters(world):
    """Tasks of tags and of answers, and the runs that are fine-tuned on them."""
    draw = random.Random(5)
    tags = [draw.choices(["O", "B-X", "I-X"], k=6) for _ in range(20)]
    sentences = ["".join(f"w{draw.choice('abcdefgh')} {tag}\n" for tag in one) for one in tags]
    answers = [{"text": "wc wd", "answer_start": 6}]
    articles = [{"paragraphs": [{"context": f"wa wb wc wd we w{letter} wf wg.",
                                 "qas": [{"id": letter, "question": "wa wb", "answers": answers}]}]}
                for letter in "abcdefghijkl"]
    files = {"tags.conll": "\n".join(sentences), "spans.json": json.dumps({"version": "1.1", "data": articles}),
             "tags.yaml": "task: tags\nkind: tagging\ndata: {train: tags.conll, test: tags.conll, scheme: bio}\n",
             "spans.yaml": "task: spans\nkind: spans\ndata: {train: spans.json, test: spans.json}\n"}
    for name, text in files.items():
        (world.masters / name).write_text(text)
    for run in ("run-tags", "run-spans"):
        if not (world.masters / run / "summary.json").exists():
            world.make_one(run, world.finetune(run, f"{run[4:]}.yaml"))


def hostile_texts(names):
    """Names, and texts that are too long, too deep or no text."""
    return [*names, "a" * 3_000_000, "wa " * 10**6, "\0", "\ud800", "[" * 200_000, '{"a":' * 200_000, "\t" * 200_000,
            "\r", "\n\n", "-1", "1e999", "nan", "'", '"', "{0.__class__}", "%s%n", "{text}" * 9999]


VALUES = ["-1", "0", "1", "1e18", "9223372036854775807", "1e999", ".nan", "-.inf", "null", "''", "[]", "{}", "[[]]",
          "true", "/dev/zero", "pipe", ".", "/etc/passwd", "../../../../etc/passwd", "itself.yaml",
          "&a [*a]", "&a {<<: *a}", "!!python/object/apply:os.system ['touch canary']"]
KEYS = ["task", "task", "kind", "like", "metric", "cut", "head_tail", "stride", "max_length", "max_question", 
        "max_answer", "class_weights", "scale", "base", "labels", "labels", "data", *[f"data.{key}" for key in (
            "train", "train", "valid", "test", "format", "header", "text", "second", "label", "id", "group", 
            "candidates", "answers", "each", "skip_labels", "label_separator", "scheme")]]
FORMATS = ["tsv", "csv", "jsonl", "conll", "conllu", "squad", "trec", "folders"]
BOMBS = ["[" * 100_000, "a: " * 5000, "- " * 100_000, "\0" * 4096, "task: !!binary AAAA\nkind: classification\n", 
         "? [a]\n: b\n",
         "a: &k0 [x]\n" + "".join(f"b{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9)}]\n" for i in range(1, 12)),
         "task: t\nlabels: {" + ", ".join(f"l{i}: n{i}" for i in range(100_000)) + "}\n",
         "task: t\nlabels: {" + "a" * 2_000_000 + ": b}\n"]


def command(draw, task):
    return draw.choice([["finetune", "run-bert", task], ["finetune", "run-bert", task, "--run", "out"],
                        ["finetune", "run-bert", task, "--skip-bad", "--run", "out"], 
                        ["inspect", "task", "run-bert", task], ["inspect", "task", "run-bert", task, "--json"],
                        ["inspect", "task", "tokens", task]])


def hostile_value(draw, key, names):
    if key == "labels" and draw.random() < 0.7:
        return json.dumps({"up": draw.choice(names), "down": draw.choice(names)})
    if key == "task" and draw.random() < 0.7:
        return json.dumps(draw.choice(names))
    return draw.choice([*VALUES, *[json.dumps(text) for text in hostile_texts(names)]])


def attack_task_file(world, draw, folder, outside, names):
    """A task file with one or two hostile values, or that is no task file at all."""
    os.mkfifo(folder / "pipe")
    (folder / "itself.yaml").write_text("base: itself.yaml\n")
    changes = [(key, hostile_value(draw, key, names)) for key in draw.sample(KEYS, draw.choice([1, 1, 2]))]
    lines = [f"base: {draw.choice(['task.yaml', 'tags.yaml', 'spans.yaml'])}"]
    lines += [f"{key}: {value}" for key, value in changes if "." not in key]
    inner = [f"  {key.split('.')[1]}: {value}" for key, value in changes if "." in key]
    text = draw.choice(BOMBS) if draw.random() < 0.2 else "\n".join(lines + (["data:", *inner] if inner else [])) + "\n"
    (folder / "hostile.yaml").write_text(text)
    return world.ask(command(draw, "hostile.yaml"), folder)


def jsonl_of(draw, rows):
    deep = draw.choice(["", '{"text": ' + "[" * 100_000, '{"text": "wa", "label": "up", "text": "wb"}\n',
                        '{"text": 1e999, "label": {}}\n', '{"text": {"a": 1}}\n'])
    return "".join(json.dumps({"text": one, "label": other, "id": one}) + "\n" for one, other in rows) + deep


def squad_of(draw, texts):
    start = draw.choice([-1, 10**18, 10**30, 1.5, "6", None, 5, 10**6])
    answer = {"text": draw.choice([*texts, "wc wd"]), "answer_start": start}
    many = [{"text": "wa", "answer_start": 0}] * 99_999
    question = {"id": draw.choice([*texts, 1, None]), "question": draw.choice(texts),
                "answers": draw.choice([[answer], answer, [], many])}
    paragraph = {"context": draw.choice([*texts, "wa wb wc wd"]), "qas": [question] * draw.choice([1, 12])}
    return json.dumps({"data": [{"paragraphs": [paragraph]}]})


def hostile_table(draw, names):
    """Bytes of a table, of JSON or of words a line, with hostile cells or a hostile form."""
    texts = hostile_texts(names)
    rows = [("wa wb", "up"), ("wc wd", "down")] * 6
    for _ in range(draw.choice([1, 2, 6])):
        rows.insert(draw.randrange(len(rows)), (draw.choice([*texts, "wa"]), draw.choice([*texts, "up"])))
    head = "text\tlabel\n"
    flat = ["\t".join(cell.replace("\n", " ").replace("\t", " ") for cell in row) + "\n" for row in rows]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows]
    numbers = ["1", "1e308", "-1e308", "1e999", "nan", "0x10", "1e-400", "99999999999999999999"]
    bombs = [b"\0" * (200 << 20), head.encode() + b"wa wb\tup\nwa\tdown\n" * 10_000, b"w" * (100 << 20)]
    forms = {"tsv": lambda: head + "".join(flat), "csv": lambda: "text,label\n" + "".join(quoted),
             "jsonl": lambda: jsonl_of(draw, rows), "squad": lambda: squad_of(draw, texts),
             "conll": lambda: "".join(f"{one} {other}\n" + draw.choice(["", "\n"]) for one, other in rows),
             "labels": lambda: head + "".join(f"wa\tlabel{i // draw.choice([1, 3])}\n" for i in range(60_000)),
             "ids": lambda: "text\tlabel\tid\n" + "".join(f"wa wb\tup\t{draw.choice(names)!r}\n" for _ in range(30)),
             "columns": lambda: "\t".join(["text", "label", *["x"] * 300_000]) + "\n" + "\t" * 300_001 + "\n",
             "line": lambda: head + "w" * (17 << 20), "quote": lambda: 'text,label\n"' + "wa,up\n" * 500_000,
             "numbers": lambda: head + "".join(f"wa\t{draw.choice(numbers)}\n" for _ in range(20)),
             "gzip": lambda: gzip.compress(draw.choice(bombs), 1), "noise": lambda: draw.randbytes(4096)}
    content = forms[draw.choice(list(forms))]()
    return content if isinstance(content, bytes) else content.encode(errors="surrogatepass")


COLUMNS = {"choice": ["text: text, label: label, candidates: [text, label]"],
           "tagging": ["scheme: bio", "text: text, label: label"],
           "spans": ["text: text", "text: text, second: text, answers: label"]}


def attack_task_data(world, draw, folder, outside, names):
    """Hostile data of a task, which is trained on, or predicted by a run that is."""
    content = hostile_table(draw, names)
    packed = ".gz" if content[:2] == b"\x1f\x8b" else ""
    if draw.random() < 0.3:
        run = draw.choice(list(TUNED))
        file = f"hostile.{TUNED[run].split('.')[1]}{packed}"
        (folder / file).write_bytes(content)
        return world.ask(["predict", run, file, "--out", draw.choice(["out.tsv", "out.jsonl"])], folder)
    file = "hostile" + draw.choice([".tsv", ".csv", ".jsonl", ".conll", ".conllu", ".json", ".bio"]) + packed
    (folder / file).write_bytes(content)
    kind = draw.choice(["classification", "classification", "multilabel", "regression", "tagging", "spans", "choice"])
    columns = draw.choice(COLUMNS.get(kind, ["text: text, label: label"]))
    more = draw.choice(["", "id: id", "group: '{text}'", "each: text", "header: true",
                        f"format: {draw.choice(FORMATS)}"])
    data = f"{{train: {file}, test: {file}, {columns}, {more}}}"
    (folder / "hostile.yaml").write_text(f"task: t\nkind: {kind}\ndata: {data}\n")
    return world.ask(command(draw, "hostile.yaml"), folder)


def attack_task_folders(world, draw, folder, outside, names):
    """A folder for each label, with pipes, devices, links, holes and hostile names in it."""
    for label in ("up", "down", draw.choice([one for one in names if "/" not in one and len(one) < 200])):
        (folder / "texts" / label).mkdir(parents=True, exist_ok=True)
        for i in range(8):
            (folder / "texts" / label / f"{i}.txt").write_text(f"wa w{'abcdefgh'[i]} {label}")
    place = folder / "texts" / draw.choice(["up", "up/3.txt", "down/0.txt", "up/more.txt", "up/x.gz"])
    if place.exists():
        place.rename(folder / "away")
    kind = draw.choice(["pipe", "/dev/zero", "itself", "hole", "outside"])
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "hole":
        with open(place, "wb") as file:
            file.truncate(3 << 30)
    else:
        place.symlink_to({"itself": ".", "outside": outside / "folder"}.get(kind, kind))
    data = "{train: texts, test: texts, format: folders}"
    (folder / "hostile.yaml").write_text(f"task: t\nkind: classification\ndata: {data}\n")
    return world.ask(command(draw, "hostile.yaml"), folder)


def changed(draw, value, share):
    """JSON with some of its numbers and texts changed, and some of its lists and objects cut."""
    if isinstance(value, dict):
        return {key: changed(draw, one, share) for key, one in value.items() if draw.random() > share / 20}
    if isinstance(value, list):
        made = [changed(draw, one, share) for one in value]
        return made[:draw.randrange(len(made) + 1)] if draw.random() < share / 5 else made
    if draw.random() > share or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return draw.choice([-1, -2, 0, 1, 5, 17, 1000, 10**6, 2**31, 2**40, 2**63 - 1, -2**63, 1.5, None, "1"])
    return draw.choice([value, "", "\x1b[2J", None, 3, "é"])


def hash_of(data):
    """XXH3, as Cloze writes it."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_64bits.restype = ctypes.c_uint64
    return f"{library.XXH3_64bits(data, ctypes.c_size_t(len(data))):016x}"


def write_checksums(run, file):
    """Gives a file of a run's task its checksum, and the task its fingerprint, wherever they stand."""
    path = run / "task/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["made_from"]["items"][file.name] = hash_of(file.read_bytes())
    was = manifest.pop("fingerprint")
    content = {key: value for key, value in manifest.items() if not key.startswith("contents")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    manifest["fingerprint"] = hash_of(text.encode())
    path.write_text(json.dumps(manifest))
    for name in ("run.yaml", "provenance.json"):
        (run / name).write_text((run / name).read_text().replace(was, manifest["fingerprint"]))


def attack_task_rows(world, draw, folder, outside, names):
    """A fine-tuned run whose rows and items were changed together with their checksums."""
    run = draw.choice(list(TUNED))
    file = folder / run / "task" / draw.choice(["train.jsonl", "valid.jsonl", "test.jsonl"])
    share = draw.choice([0.003, 0.02, 0.1])
    lines = [json.dumps(changed(draw, json.loads(line), share)) for line in file.read_text().splitlines()]
    if draw.random() < 0.1:
        lines = lines[1:] + lines[:1]
    file.write_text("\n".join(lines) + "\n")
    write_checksums(folder / run, file)
    longer = ["--resume", "--set", "train.budget.epochs=4", "--allow-config-change"]
    verbs = [["evaluate", run], ["evaluate", run, "--json"], ["verify", "run", run],
             ["pretrain", "--run", run, *longer], ["predict", run, TUNED[run], "--out", "out.tsv"]]
    return world.ask(draw.choice(verbs), folder)


def attack_task_records(world, draw, folder, outside, names):
    """A fine-tuned run whose figures or predictions were changed, or are those of another run."""
    run, other = draw.sample(list(TUNED), 2)
    name = draw.choice(["summary.json", "predictions.jsonl"])
    file = folder / run / name
    if draw.random() < 0.2:
        file.write_bytes((folder / other / name).read_bytes())
    elif name == "summary.json":
        file.write_text(json.dumps(changed(draw, json.loads(file.read_text()), 0.1)))
    else:
        lines = [json.dumps(changed(draw, json.loads(line), 0.3)) for line in file.read_text().splitlines()]
        file.write_text("\n".join(lines) + "\n")
    verbs = [["evaluate", run], ["verify", "run", run], ["pretrain", "--run", run, "--resume"],
             ["evaluate", "--task", draw.choice(["task.yaml", "tags.yaml", "spans.yaml"]), "--predictions", f"{run}/predictions.jsonl"]]
    return world.ask(draw.choice(verbs), folder)


KINDS = [attack_task_file, attack_task_data, attack_task_folders, attack_task_rows, attack_task_records]
