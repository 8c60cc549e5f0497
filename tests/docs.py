#!/usr/bin/env python3
"""README, CONTRIBUTING and docs/ say what the repository and the program have.

usage: tests/docs.py [CLOZE]        CLOZE: the program, build/cloze by default
Checks that README leads to every page, links, paths, verbs, options, config keys, YAML blocks, excerpts of code
(```cpp FILE), lines that a diff adds, names of code in docs/architecture.md, docs/adding-*.md and CONTRIBUTING.md, the
tables of verbs, families, objectives, attention kinds, optimizers and configs with their parameter counts; and that
each page can be read: its width, the length of its sentences, and for whom it is. docs/config.md is generated; tests/cli/configs_test.cpp
keeps it current.
"""
import glob, re, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

root = Path(__file__).resolve().parent.parent
cloze = str(Path(sys.argv[1] if len(sys.argv) > 1 else root / "build/cloze").resolve())
pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
written = [page for page in pages if page.name != "config.md"]
WIDTH, CODE_WIDTH, TABLE_WIDTH = 100, 120, 150  # rows of tables and lines of code cannot be broken everywhere
SENTENCE = 25  # words, on average
mistakes = []


def wrong(page, number, what):
    mistakes.append(f"{page.relative_to(root)}:{number}: {what}")


def run(*arguments):
    done = subprocess.run([cloze, *arguments], capture_output=True, text=True, cwd=root)
    return done.returncode, done.stdout + done.stderr


# -- What the program has ----------------------------------------------------------------------------------------------

def verbs_of(help_text):
    """The names below `Verbs:` of a help text."""
    part = re.split(r"^Verbs:\s*$", help_text, flags=re.M)
    listed = part[1].lstrip("\n").split("\n\n")[0] if len(part) > 1 else ""
    return re.findall(r"^  ([a-z][a-z-]*)\b", listed, flags=re.M)


def options_of(help_text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", help_text))


verbs = verbs_of(run("--help")[1])
options = {(): options_of(run("--help")[1])}
for verb in verbs:
    text = run(verb, "--help")[1]
    options[verb,] = options_of(text) | options[()]
    for inner in verbs_of(text):
        options[verb, inner] = options_of(run(verb, inner, "--help")[1]) | options[()]
        if "[VERB]" in text: options[verb,] |= options[verb, inner]  # which may be left out
known_options = set().union(*options.values())

reference = run("config", "--markdown")[1]
rows = {key: [cell.strip() for cell in rest.split(" | ")]
        for key, rest in re.findall(r"^\| `([^`]+)` \| (.*) \|$", reference, flags=re.M)}
keys = set(rows) | {key[: -len(key) + key.rfind(".")] for key in rows if "." in key}  # a section is a key too


def choices(key):
    return rows[key][2].split(", ")


# -- What the pages say ------------------------------------------------------------------------------------------------

def blocks(page):
    """(language, first line number, text) of each fenced block, and the page with these lines blanked."""
    found, rest, fence = [], [], None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            if fence is None:
                fence = (line[3:].strip(), number + 1, [])
            else:
                found.append((fence[0], fence[1], "\n".join(fence[2])))
                fence = None
            rest.append("")
        else:
            (fence[2] if fence is not None else rest).append(line)
            if fence is not None: rest.append("")
    if fence is not None: wrong(page, fence[1], "a fenced block has no end")
    return found, rest


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def anchors(page):
    return {slug(line.lstrip("#")) for line in blocks(page)[1] if line.startswith("#")}


def length_of_sentences(lines):
    """The words and the sentences of prose; an item of a list ends a sentence."""
    prose = [line for line in lines if not line.startswith(("|", "#"))]
    text = re.sub(r"`[^`]*`", "Code", re.sub(r"\]\([^)]*\)", "]", "\n".join(prose)))
    parts = re.split(r"\n\s*\n|\n *(?:[-*]|\d+\.) |(?<=[.!?])\s+(?=[A-Z*\[])", text)
    counts = [len(re.findall(r"[A-Za-z0-9][\w'.,/-]*", part)) for part in parts]
    return sum(counts), max(1, sum(count > 0 for count in counts))


def split_words(call):
    return re.findall(r"\"[^\"]*\"|'[^']*'|\S+", call)


def commands(text):
    """(line offset, words, refused) of each call of cloze in a block; lines that end in a backslash go on."""
    joined, begins = "", 0
    for offset, line in enumerate(text.splitlines()):
        joined = joined + line if joined else line
        if not joined.strip(): begins, joined = offset + 1, ""
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        for call in re.finditer(r"(?:^|[\s(\"`])(?:build/)?cloze ((?:\"[^\"]*\"|'[^']*'|[^|;#`>)])*)", joined):
            yield begins, split_words(call[1]), "# refused" in joined
        begins, joined = offset + 1, ""


def check_command(page, number, words, refused=False):
    words = [word.strip("\"'") if word[0] in "\"'" else word for word in words]
    if not words or words[0].startswith("-") or not re.fullmatch(r"[a-z]+", words[0]): return  # prose
    if words[0] not in verbs:
        wrong(page, number, f"cloze has no verb '{words[0]}'")
        return
    at = tuple(words[:2]) if tuple(words[:2]) in options else (words[0],)
    for word in words:
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and option[0] not in options[at]: wrong(page, number, f"cloze {' '.join(at)} has no option {option[0]}")
    changes = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--set" and "$" not in words[i + 1]]
    files = [word for word in words if word.endswith(".yaml") and (root / word).exists()]
    configs = [file for file in files if not re.search("^task:", (root / file).read_text(), flags=re.M)]
    config = next(iter(configs), "configs/bert/tiny.yaml")
    if changes and not any(c.isupper() for change in changes for c in change.split("=")[0]):
        of_task = page.name == "fine-tuning.md" and any(change.startswith("objectives.0.") for change in changes)
        if of_task: changes.insert(0, "objectives=[{kind: classification, labels: [no, yes]}]")
        code, said = run("explain", config, "train.seed", *sum((["--set", change] for change in changes), []))
        if bool(code) != refused: wrong(page, number, said.strip() if code else "is not refused")


known_roots = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")} - {"build", "runs"}


def expanded(path):
    """a/{b,c}.h as a/b.h and a/c.h."""
    inner = re.search(r"\{([^{}]*)\}", path)
    if not inner: return [path]
    return [one for part in inner[1].split(",") for one in expanded(path[: inner.start()] + part.strip() + path[inner.end() :])]


def check_paths(page, number, text):
    for path in re.findall(r"(?<![\w./{-])[a-z_]+/[\w./{},*-]+", text):
        path = path.rstrip(".,:")
        if path.split("/")[0] not in known_roots or re.search(r"\b[A-Z]{3,}\b", path): continue
        for one in expanded(path):
            is_config = (root / "configs" / f"{one}.yaml").exists()  # bert/tiny
            if not is_config and not glob.glob(str(root / one)): wrong(page, number, f"there is no {one}")


def check_added(page, first, text):
    """The lines that a diff adds to a file, which stands above them, are there."""
    source = ""
    for offset, line in enumerate(text.splitlines()):
        if line.startswith(" "):
            check_paths(page, first + offset, line)
            source = (root / line.strip()).read_text() if (root / line.strip()).is_file() else ""
        elif line.startswith("+") and line[1:].strip() not in source:
            wrong(page, first + offset, f"no such line is there: {line[1:].strip()}")


readme = (root / "README.md").read_text()
for page in pages[2:]:
    if f"](docs/{page.name}" not in readme: wrong(page, 1, "README has no link to it")

rooms = (root / "tests/bench", root / "tests/acceptance")
scripts = "".join(path.read_text() for path in [root / "package", *(path for room in rooms for path in room.glob("**/*.py"))])
for page in written:
    fenced, lines = blocks(page)
    for language, first, text in fenced:
        if language.startswith("cpp ") and (root / language[4:]).exists():
            source = {line.strip() for line in (root / language[4:]).read_text().splitlines()}
            for offset, line in enumerate(text.splitlines()):
                if line.strip() not in source | {"", "..."}: wrong(page, first + offset, f"{language[4:]} has no such line")
        elif language.startswith("cpp "):
            wrong(page, first, f"there is no {language[4:]}")
        elif language == "diff":
            check_added(page, first, text)
        else:
            for offset, line in enumerate(text.splitlines()): check_paths(page, first + offset, line)
        for offset, *call in commands(text): check_command(page, first + offset, *call)
    for number, line in enumerate(lines, 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target): continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            if not linked.exists(): wrong(page, number, f"the link to {target} leads nowhere")
            elif anchor and anchor not in anchors(linked): wrong(page, number, f"{target}: no such heading")
        for span in re.findall(r"`([^`]+)`", line):
            check_paths(page, number, span)
            if re.match(r"(build/)?cloze ", span):
                for _, *call in commands(span): check_command(page, number, *call)
            elif re.match(r"--[a-z]", span):
                for option in options_of(span):
                    if option not in known_options and option not in scripts:
                        wrong(page, number, f"no verb and no script has an option {option}")
                if span.startswith("--set "): check_command(page, number, ["explain", *split_words(span)])
            elif re.fullmatch(r"(model|objectives|data|optimizer|schedule|train|evaluation|checkpoint|init)(\.\w+)+", span):
                key = re.sub(r"\.\d+", ".N", span)
                if key not in keys and not span.endswith((".json", ".safetensors")):
                    wrong(page, number, f"there is no config key {span}")
    for number, line in enumerate(page.read_text().splitlines(), 1):
        width = TABLE_WIDTH if line.startswith("|") else WIDTH if lines[number - 1] else CODE_WIDTH
        if len(line) > width and len(line.split()) > 1: wrong(page, number, f"{len(line)} columns, at most {width}")
    words, sentences = length_of_sentences(lines)
    if words > SENTENCE * sentences:
        wrong(page, 1, f"{words / sentences:.1f} words a sentence, at most {SENTENCE} on average")
    if page.parent == root / "docs" and not lines[2].startswith("For "): wrong(page, 3, "does not say for whom it is")

sources = "".join(path.read_text(errors="replace") for path in root.glob("**/*")
                  if path.suffix in (".h", ".cpp", ".inc", ".txt", ".py") and path.parts[len(root.parts)] in known_roots)
for page in [root / "CONTRIBUTING.md", root / "docs/architecture.md", *root.glob("docs/adding-*.md")]:
    for number, line in enumerate(blocks(page)[1], 1):
        for span in re.findall(r"`([^`]+)`", line):
            name = re.fullmatch(r"(?:\w+::)*([A-Za-z_]\w*[A-Z_]\w*)(?:\(\)|\(\w+\))?", span)
            if name and not re.search(r"\b" + name[1] + r"\b", sources) and not re.fullmatch("[A-Z]+|ARROWS_", name[1]):
                wrong(page, number, f"no source has the name {name[1]}")

with tempfile.TemporaryDirectory() as folder:
    for page in pages:
        for language, first, text in blocks(page)[0]:
            if language != "yaml" or text.startswith("task:"): continue  # tests/tasks reads those
            file = Path(folder) / "block.yaml"
            file.write_text(re.sub(r"(?<=base: )configs/", f"{root}/configs/", text) + "\n")
            code, said = run("explain", str(file), "train.seed")
            if code: wrong(page, first, said.strip().replace(folder + "/", ""))


def table(page, heading):
    """What stands in backticks in the first column of the first table below a heading, its first row left out."""
    names, lines = [], (root / page).read_text().splitlines()
    start = next((i for i, line in enumerate(lines) if re.fullmatch(r"#+ " + re.escape(heading), line)), None)
    if start is None:
        wrong(root / page, 1, f"there is no heading '{heading}'")
        return set()
    rows = 0
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            rows += 1
            if rows > 2: names += re.findall(r"`([^`]+)`", line.split("|")[1])
        elif rows or line.startswith("#"):
            break
    return set(names)


for page, heading, has in [
    ("README.md", "Verbs", verbs),
    ("README.md", "Models and objectives", choices("model.kind")),
    ("docs/models.md", "Families", choices("model.kind")),
    ("docs/models.md", "Attention kinds", choices("model.attention.kind")),
    ("docs/objectives.md", "All objectives", choices("objectives.N.kind")),
    ("docs/configs.md", "Optimizers", choices("optimizer.kind")),
    ("docs/models.md", "Configs", [str(path.relative_to(root / "configs"))[:-5] for path in root.glob("configs/*/*.yaml")
                                   if path.parent.name not in ("recipes", "studies", "tasks")]),
    ("docs/fine-tuning.md", "Recipes", [path.stem for path in root.glob("configs/recipes/*.yaml")]),
    ("docs/tasks.md", "Ready tasks", [path.stem for path in root.glob("configs/tasks/*.yaml")]),
    ("docs/studies.md", "Ready studies", [path.stem for path in root.glob("configs/studies/*.yaml")]),
]:
    said = table(page, heading)
    for name in sorted(set(has) - said): wrong(root / page, 1, f"'{heading}' lacks {name}")
    for name in sorted(said - set(has)): wrong(root / page, 1, f"'{heading}' has {name}, which there is not")

front = (root / "README.md").read_text().lower()
for kind in choices("optimizer.kind"):
    if not re.search(r"\b" + kind, front): wrong(root / "README.md", 1, f"the optimizer {kind} is not named")

# -- Parameter counts --------------------------------------------------------------------------------------------------

def parameters(config):
    named = re.search(r"^(base:|  vocab_size:)", (root / f"configs/{config}.yaml").read_text(), flags=re.M)
    said = run("describe", f"configs/{config}.yaml", *([] if named else ["--set", "model.vocab_size=8000"]))[1]
    count = re.search(r"^parameters\s+([\d,]+)", said, flags=re.M)
    return count[1] if count else said.strip()


counts = [(number, *re.fullmatch(r"\| `([a-z0-9_-]+/[a-z0-9_.-]+)` \|.*\| (.*) \|", line).groups())
          for number, line in enumerate((root / "docs/models.md").read_text().splitlines(), 1)
          if re.match(r"\| `[a-z0-9_-]+/", line)]
counts = [row for row in counts if (root / f"configs/{row[1]}.yaml").exists()]
with ThreadPoolExecutor(2) as pool:
    for (number, config, said), count in zip(counts, pool.map(parameters, [row[1] for row in counts])):
        if said == count: continue
        wrong(root / "docs/models.md", number, f"{config}: parameters {count}, not {said}")
        if not count[0].isdigit(): break  # the program does not run

# The headers of families repeat some of these counts.
table = {config: said for _, config, said in counts}
for header in sorted((root / "models/families").glob("*.h")):
    for number, line in enumerate(header.read_text().splitlines(), 1):
        for config, said in re.findall(r"([a-z0-9_-]+/[a-z0-9_.-]+) ([\d,]+\d)", line):
            if table.get(config) != said: wrong(header, number, f"{config}: parameters {table.get(config)}, not {said}")

print("\n".join(mistakes) or f"{len(pages)} pages, {len(verbs)} verbs, {len(rows)} keys: all that is named is there")
sys.exit(bool(mistakes))
