#!/usr/bin/env python3
"""Fused and plain operators in turns, on each instruction set of this processor: nothing fused may be slower.

usage: fused.py [CLOZE] [--work steps,held-out,suite,generation,torchscript] [--isa avx2,avx512] [--cases bert-mini,t5-mini] [--rounds 3] [--steps 6] [--python python3]
CLOZE: build/cloze. `steps` (the default) are of training. The other kinds of work run the case with its first weights on the text of docs/, and count no start:
held-out losses, minimal pairs, texts by 4 beams. `torchscript` is an exported file against the same weights in transformers, which --python must have.
A case is left out of what it cannot do. Libraries are held to the instruction set too. The last line says what breaks the rule.
"""
import argparse, json, statistics, subprocess, sys, tempfile, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from paired import paired
from shapes import cases, held_to, isas_of, root

args = argparse.ArgumentParser(usage=__doc__)
args.add_argument("cloze", nargs="?", default=str(root / "build/cloze")); args.add_argument("--isa"); args.add_argument("--cases"); args.add_argument("--work", default="steps")
args.add_argument("--rounds", type=int, default=3); args.add_argument("--steps", type=int, default=6); args.add_argument("--python", default="python3")
args = args.parse_args()
scratch = tempfile.TemporaryDirectory(prefix="fused-")
folder = Path(scratch.name)
tokenizers = {"performer": "bert"}   # the family whose tokenizer is trained, where it is another


def cloze(*words):
    done = subprocess.run([args.cloze, *map(str, words)], capture_output=True, text=True)
    if done.returncode: sys.exit(f"cloze {' '.join(map(str, words))}\n{done.stderr[-1000:]}")


def text():
    """The text, minimal pairs of it, and prompts."""
    names = [folder / name for name in ("text.txt", "pairs.jsonl", "prompts.txt", "prompt.txt")]
    if not names[0].exists():
        names[0].write_text("\n\n".join(page.read_text() for page in sorted((root / "docs").glob("*.md"))))
        sentences = [line.split() for line in names[0].read_text().splitlines() if line.isascii() and line[:1].isalpha() and 6 <= len(line.split()) <= 16]
        names[1].write_text("".join(json.dumps(dict(sentence_good=" ".join(s), sentence_bad=" ".join(s[:-2] + s[:-3:-1]))) + "\n" for s in sentences))
        names[2].write_text("\n".join(" ".join(s[:6]) for s in sentences[:8]) + "\n")
        names[3].write_text(" ".join(sentences[0][:6]) + "\n")
    return names


def run_of(case):
    """The case with its first weights."""
    made = folder / case
    if made.exists(): return made
    config, *options = cases[case].split()
    family = tokenizers.get(Path(config).parent.name, Path(config).parent.name)
    tokens = folder / f"tokens-{family}"
    if not tokens.exists(): cloze("prepare", text()[0], "--for", family, "--vocab-size", 2000, "--out", tokens)
    small = ["--set", "train.batch_size=1", "--set", "train.budget.steps=1", "--set", "schedule.warmup=0", "--set", "evaluation.sequences=1", "--set", "train.precision=fp32", "--set", f"data.tokens={tokens}"]
    cloze("pretrain", f"{root}/configs/{config}", *options, *small, "--run", made)
    return made


def command_of(work, case, much):
    """A command with much to do, or with next to nothing."""
    made, (whole, pairs, prompts, prompt) = run_of(case), text()
    tokens, length = 4096 if "base" in case or "gpt2" in case else 32768, int(case.split("-")[-1]) if case.endswith(("512", "4096")) else 128
    if work == "held-out": return f"{args.cloze} evaluate {made} --text {whole} --sequences {tokens // length if much else 1}"
    if work == "suite": return f"{args.cloze} evaluate {made} --suite {pairs} --limit {tokens // 1024 if much else 1}"
    new = tokens // 512 if much else 1
    return f"{args.cloze} generate {made} --file {prompts if much else prompt} --num-beams 4 --min-new-tokens {new} --max-new-tokens {new}"


def milliseconds(command):
    start = time.perf_counter()
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return 1000 * (time.perf_counter() - start) if done.returncode == 0 else None


def in_turns(work, case, env):
    """Milliseconds of work with fused and with plain operators, of each round; None: the case cannot do it."""
    forms = [env, env + " CLOZE_PLAIN=1"]
    idle, much = (lambda form: milliseconds(f"{form} {command_of(work, case, False)}")), (lambda form: milliseconds(f"{form} {command_of(work, case, True)}"))
    if much(env) is None: return None
    starts = [statistics.median(idle(form) for _ in range(3)) for form in forms]
    return list(zip(*[[much(form) - start for form, start in zip(forms, starts)] for _ in range(args.rounds)]))


def beside_transformers(case, env):
    """The same of an exported file and of transformers."""
    file, model = folder / f"{case}.pt", folder / f"{case}-hf"
    if not file.exists():
        cloze("export", run_of(case), "--to", "torchscript", "--out", file)
        cloze("export", run_of(case), "--to", "huggingface", "--out", model)
    rows, length = (1, 4096) if "4096" in case else (8, 512) if "512" in case else (16, 128)
    row = subprocess.run(f"{env} {args.python} {Path(__file__).parent}/torchscript.py {file} {model} {rows} {length} --rounds {args.rounds}", shell=True, capture_output=True, text=True)
    if row.returncode: sys.exit(row.stderr[-1000:])
    return json.loads(row.stdout)


def steps(case, env):
    command = f"{env} {args.cloze} benchmark {root}/configs/{cases[case]} --steps {args.steps} --steps-only --json"
    r = paired(command, command + " --plain", args.rounds)
    return r["ours_ms"], r["theirs_ms"]


isas = args.isa.split(",") if args.isa else isas_of(args.cloze)
chosen = args.cases.split(",") if args.cases else list(cases)
print(f"{'work':12} {'case':26} {'isa':12} {'fused':>8} {'plain':>8}  plain / fused: median, pairs [ms]", flush=True)
slower = []
for work in args.work.split(","):
    for case in chosen:
        for isa in isas:
            env = held_to(isa, best=None if args.isa else isas[-1])
            times = steps(case, env) if work == "steps" else beside_transformers(case, env) if work == "torchscript" else in_turns(work, case, env)
            if times is None: continue
            fused, plain = map(statistics.median, times)
            print(f"{work:12} {case:26} {isa:12} {fused:8.0f} {plain:8.0f}  {plain / fused:5.2f}  {[round(b / a, 2) for a, b in zip(*times)]}", flush=True)
            if plain / fused < 0.98: slower.append(f"{work} of {case} on {isa}")
print("slower than plain by more than 2 %: " + (", ".join(slower) or "nothing"))
