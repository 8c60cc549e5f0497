#!/usr/bin/env python3
"""Holds `cloze evaluate --suite babylm` and `cloze babylm collate` to the published program of the BabyLM Challenge.

    git clone https://github.com/babylm-org/babylm-eval
    tests/acceptance/babylm_data.py DATA evaluation_data
    tests/acceptance/babylm.py build/cloze babylm-eval/strict evaluation_data runs/bert runs/gpt2 runs/bart:enc_dec_mask

For each run it exports a Hugging Face folder, lets the published program answer the first --items items of every
paradigm with it, and compares: reports, predictions and the column `official`. Probabilities of WUG's sentences and
surprisals of reading times differ in the last bits of fp32, so they are compared by size; another choice is a fault
unless the published sums are equal within these bits (`moved`), as those of the same words in two orders are where a
decoder ignores its source. Then both programs collate the same predictions: invented ones of the published sizes, or
those of --results with invented ones for what they lack. Exits with 1 where something differs. Needs torch,
transformers, datasets, aiohttp, scipy and statsmodels.

The published program (at 45fe2c1) is run as it is, but for:
- files of a folder in the order of their names; there in the order of the directory, which moves with the machine
- enc_dec_mask and enc_dec_prefix: items have no '_image', at which it stops (KeyError)
- enc_dec_prefix: WUG's pairs have a prefix for one sentence only, so the other is not scored (KeyError of a NaN)
- mntp: GPT-2 has no masked class in transformers; its causal class is opened, and sees both sides. Its tokenizer puts
  no token before a text, and the first one is then predicted by the last position of the batch, index -1; in rankings
  it gets the token that ends texts, which stands there in training
"""
import argparse
import collections
import contextlib
import csv
import io
import json
import math
import os
import pathlib
import random
import re
import runpy
import shutil
import subprocess
import sys
import tempfile

os.environ["TQDM_DISABLE"] = "1"
TASKS = {
    "full_eval": [("blimp", "blimp_filtered"), ("blimp", "supplement_filtered"), ("ewok", "ewok_filtered"),
                  ("entity_tracking", "entity_tracking"), ("wug_adj", "wug_adj_nominalization"),
                  ("wug_past", "wug_past_tense"), ("comps", "comps")],
    "fast_eval": [("blimp", "blimp_fast"), ("blimp", "supplement_fast"), ("ewok", "ewok_fast"),
                  ("entity_tracking", "entity_tracking_fast"), ("wug_adj", "wug_adj_nominalization"),
                  ("wug_past", "wug_past_tense")],
}
margins = collections.defaultdict(list)  # of the published program's last task: best sum over second, as a share
ROUNDING = 5e-7


def lines(path):
    with path.open(encoding="utf-8", newline="\n") as file:
        return file.readlines()


def cut(data, out, items):
    """The first items of every paradigm, of each some more than of the last; of reading times 30 * items words."""
    for number, source in enumerate(sorted(data.rglob("*.*"))):
        target = out / source.relative_to(data)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".csv":
            rows = list(csv.reader(io.StringIO(source.read_text(encoding="utf-8"))))
            with target.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(rows[: 1 + 30 * items])
            continue
        counts = collections.Counter()
        with target.open("w", encoding="utf-8") as file:
            for line in lines(source):
                group = json.loads(line).get("numops")
                counts[group] += 1
                if counts[group] <= items + number % 4: file.write(line)


class Both:
    """GPT-2 whose tokens attend to both sides."""

    def __init__(self, model):
        self.model = model

    def to(self, _): return self
    def eval(self): return self

    def __call__(self, input_ids, attention_mask, **_):
        import torch
        allowed = attention_mask[:, None, None, :].bool().expand(-1, 1, input_ids.shape[1], -1)
        hidden = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
        return self.model(input_ids=input_ids, attention_mask=hidden)


def mend_published(folder):
    """Makes the program importable, with the four changes named above."""
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    import transformers
    transformers.logging.set_verbosity_error()
    from evaluation_pipeline.sentence_zero_shot import compute_results, dataset, read_files
    rank = compute_results.rank_and_evaluate

    def rank_and_keep(arguments, stats, sums, *others):
        for uid, row in zip(others[3], zip(*(one.tolist() for one in sums[1.0]))):
            second, best = sorted(row)[-2:]
            margins[uid].append((best - second) / abs(best))
        rank(arguments, stats, sums, *others)
    compute_results.rank_and_evaluate = rank_and_keep
    ranking = dataset.CompletionRankingDataset
    for name in ("process_enc_dec_mask_sentences", "process_enc_dec_prefix_sentences"):
        def with_images(self, sentences, image, process=getattr(ranking, name)):
            found = process(self, sentences, image)
            return found | {f"sentence_{i}_image": None for i in range(len(sentences["sentences"]))}
        setattr(ranking, name, with_images)
    start = ranking.__init__

    def start_with_end(self, arguments):
        start(self, arguments)
        end = self.tokenizer.eos_token
        if arguments.backend == "mntp" and not self.tokenizer("a b")["input_ids"][0] == self.tokenizer.cls_token_id:
            from tokenizers.processors import TemplateProcessing
            ids = [(end, self.tokenizer.eos_token_id)]
            self.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=f"{end} $A", special_tokens=ids)
    ranking.__init__ = start_with_end
    decode_wug = read_files.decode_wug
    read_files.decode_wug = lambda raw, task: decode_wug(raw, task) | {"prefixes": [None, None]}
    iterdir = pathlib.Path.iterdir
    pathlib.Path.iterdir = lambda path: iter(sorted(iterdir(path)))
    masked = transformers.AutoModelForMaskedLM
    from_pretrained = masked.from_pretrained

    def open_masked(path, **options):
        if transformers.AutoConfig.from_pretrained(path).model_type != "gpt2": return from_pretrained(path, **options)
        return Both(transformers.AutoModelForCausalLM.from_pretrained(path).eval())
    masked.from_pretrained = open_masked


def published(module, *arguments):
    """Runs a module of the published program with its arguments."""
    sys.argv = [module, *map(str, arguments)]
    margins.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_module(f"evaluation_pipeline.{module}", run_name="__main__")


def cloze(program, *arguments):
    done = subprocess.run([program, "--quiet", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode: sys.exit(f"cloze {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def far(ours, theirs):
    """The largest difference of numbers in two JSON values; infinite where something else differs."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) and math.isnan(theirs): return 0
        return abs(ours - theirs) / max(1, abs(theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict) and list(ours) == list(theirs):
        return max((far(ours[key], theirs[key]) for key in ours), default=0)
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return max((far(a, b) for a, b in zip(ours, theirs)), default=0)
    return 0 if type(ours) is type(theirs) and ours == theirs else math.inf


class Comparison:
    def __init__(self):
        self.failed = False

    def says(self, what, equal, note):
        self.failed |= not equal
        print(f"{'equal ' if equal else 'DIFFER'} {what}: {note}", flush=True)

    def reports(self, what, ours, theirs):
        self.says(what, ours.read_bytes() == theirs.read_bytes(), ", ".join(theirs.read_text().split("\n")[-3:-2]))

    def predictions(self, what, ours, theirs, numbers):
        a, b = ((one / "predictions.json").read_bytes() for one in (ours, theirs))
        if a == b: return self.says(what, True, f"{len(a):,} bytes")
        a, b = json.loads(a), json.loads(b)
        distance = far(a, b)
        if numbers or list(a) != list(b):
            return self.says(what, distance < 1e-5, f"bytes differ, numbers by {distance:.1e}")
        pairs = {uid: zip(a[uid]["predictions"], b[uid]["predictions"]) for uid in b}
        other = [margins[uid][i] for uid in pairs for i, (x, y) in enumerate(pairs[uid]) if x != y]
        self.says(what, max(other) < ROUNDING, f"{len(other)} moved, whose sums differ by {max(other):.1e}")
        return len(other)

    def officials(self, what, figures, report):
        """Figures of Cloze's table against the lines of a report, to its digits."""
        scale = 1 if "RHO" in report else 100
        theirs = dict(re.findall(r"^(.+): (-?[\d.]+|nan)$", report, re.MULTILINE))
        theirs[""] = report.split("\n")[-3]
        kinds = ("accuracy",) if scale == 100 else ("spearman",)
        ours = {f.get("group", ""): f"{scale * f['official']:.2f}" for f in figures if f["metric"] in kinds}
        both = [name for name in ours if name in theirs]
        wrong = [f"{name or 'all'} {ours[name]}, not {theirs[name]}" for name in both if ours[name] != theirs[name]]
        self.says(what, not wrong and "" in both, "; ".join(wrong) or f"{len(both)} figures")


def compare_run(comparison, options, run, data, work):
    path, _, backend = run.partition(":")
    path = pathlib.Path(path).resolve()
    part = "fast_eval" if options.fast else "full_eval"
    exported = work / "models" / path.name
    ours, theirs = (work / side / (backend or "own") for side in ("ours", "theirs"))
    checkpoint = ["--checkpoint", options.checkpoint]
    if not exported.exists():
        cloze(options.cloze, "export", path, "--to", "huggingface", *checkpoint, "--out", exported)
    more = (["--backend", backend] if backend else []) + (["--fast"] if options.fast else [])
    answers = json.loads(
        cloze(options.cloze, "evaluate", path, "--suite", data, "--results", ours, "--json", *checkpoint, *more))
    figures = {suite["suite"]: suite["figures"] for suite in answers["runs"][0]["suites"]}
    main = pathlib.Path(path.name).stem + "/main/zero_shot"
    backend = backend or next((ours / main).iterdir()).name
    for task, folder in TASKS[part]:
        if not (data / part / folder).is_dir():
            print(f"absent {backend} {folder}")
            continue
        what = f"{path.name} {backend} {folder}"
        try:
            published("sentence_zero_shot.run", "--model_path_or_name", exported, "--backend", backend, "--task", task,
                      "--data_path", data / part / folder, "--save_predictions", "--output_dir", theirs)
        except KeyError:  # it finds no best temperature
            print(f"absent {what}: all probabilities are the same, at which the published program stops")
            continue
        a, b = (one / main / backend / task / folder for one in (ours, theirs))
        if comparison.predictions(what + " predictions", a, b, numbers="wug" in task): continue
        comparison.reports(what + " report", a / "best_temperature_report.txt", b / "best_temperature_report.txt")
        comparison.officials(what + " official", figures[folder], (b / "best_temperature_report.txt").read_text())
    kind = "enc_dec" if backend.startswith("enc_dec") else backend
    published("reading.run", "--model_path_or_name", exported, "--backend", kind, "--output_dir", theirs,
              "--data_path", data / part / "reading/reading_data.csv")
    a, b = ours / main / backend / "reading", theirs / main / kind / "reading"
    comparison.reports(f"{path.name} {backend} reading report", a / "report.txt", b / "report.txt")
    comparison.predictions(f"{path.name} {backend} reading predictions", a, b, numbers=True)


def invented(rng, count, key, texts=("A box.", " caf\u00e9 \u2014 \"x\"\n", "\U0001f600 \\ tab\t"), prob=False):
    items = [{"id": f"{key}_{i}", "pred": rng.choice(texts)} for i in range(count)]
    return {"predictions": [item | {"prob": rng.random()} if prob else item for item in items]}


def write(path, value, indent=None):
    if path.exists(): return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")


def fill_data(data, rng, domains):
    """The answers of tasks that the data lack."""
    files = {"ewok_fast": [f"{name}.jsonl" for name in domains], "wug_past_tense": ["wug_past_tense.jsonl"]}
    for folder, names in files.items():
        if (data / folder).is_dir(): continue
        (data / folder).mkdir()
        for name in names:
            items = [{"Target1": f"It is {i}.", "sentences": "a\tb", "ratio": rng.random()} for i in range(100)]
            (data / folder / name).write_text("".join(json.dumps(item) + "\n" for item in items))


def fill(model, backend, data, rng, program):
    """Predictions of the published sizes for every task that the results of a model lack."""
    full, fast = program.FULL_SIZES, program.FAST_SIZES
    steps = program.STRICT_SMALL_FAST_REVISIONS
    zero = model / "main/zero_shot" / backend
    whole = {"blimp": "blimp/blimp_filtered", "blimp_supplement": "blimp/supplement_filtered",
             "ewok": "ewok/ewok_filtered", "entity_tracking": "entity_tracking/entity_tracking", "comps": "comps/comps"}
    for task, folder in whole.items():
        write(zero / folder / "predictions.json", {key: invented(rng, size, key) for key, size in full[task].items()})
    surprisals = [{"step": step, "target_word": "ball", "surprisal": rng.random() * 20}
                  for step in steps for _ in range(program.AOA_SIZE)]
    write(zero / "AoA_word/surprisal.json", {"metadata": {"model_name": model.name}, "results": surprisals}, indent=2)
    for task in ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc"):
        choices = invented(rng, full[task], task, texts=(0, 1))
        write(model / "main/finetune" / task / "predictions.json", {task: choices})
    for revision in ["main", *steps]:
        fill_revision(model / revision / "zero_shot" / backend, data, rng, fast, revision != "main")


def fill_revision(folder, data, rng, sizes, checkpoint):
    """The tasks of every revision, and those of the fast evaluation, which checkpoints have alone."""
    for task, name in (("wug_adj", "wug_adj_nominalization"), ("wug_past", "wug_past_tense")):
        write(folder / task / name / "predictions.json", {task: invented(rng, sizes[task], task, prob=True)})
    words = [{"id": i, "pred": rng.expovariate(0.1), "prev_pred": rng.choice([math.nan, 2.5, rng.random()])}
             for i in range(sizes["reading"])]
    write(folder / "reading/predictions.json", {"reading": {"predictions": words}})
    if not checkpoint: return
    keys = {"blimp/blimp_fast": "sentence_good", "blimp/supplement_fast": "sentence_good", "ewok/ewok_fast": "Target1"}
    for name, key in keys.items():
        parts = {}
        for file in sorted((data / pathlib.Path(name).name).iterdir()):
            size = sizes["blimp_supplement" if "supplement" in name else name.split("/")[0]]
            answers = [rng.choice([json.loads(line)[key] + " ", "no"]) for line in lines(file)[:size]]
            parts[file.stem] = {"predictions": [{"id": f"{file.stem}_{i}", "pred": a} for i, a in enumerate(answers)]}
        write(folder / name / "predictions.json", parts)
    boxes = {key: invented(rng, size, key) for key, size in sizes["entity_tracking"].items()}
    write(folder / "entity_tracking/entity_tracking_fast/predictions.json", boxes)


def compare_collations(comparison, options, work):
    from evaluation_pipeline import collate_preds
    rng = random.Random(7)
    data, results, backend = work / "whole_data", work / "collate", "mlm"
    shutil.copytree(options.data / "fast_eval", data / "fast_eval", dirs_exist_ok=True)
    model = results / (options.results.name if options.results else "invented")
    if options.results:
        shutil.copytree(options.results, model, dirs_exist_ok=True)
        backend = next((model / "main/zero_shot").iterdir()).name
    fill_data(data / "fast_eval", rng, collate_preds.EWOK_SIZES)
    fill(model, backend, data / "fast_eval", rng, collate_preds)
    shared = ["--backend", backend, "--track", "strict-small", "--fast"]
    published("collate_preds", "--model_path_or_name", model.name, "--results_dir", results, *shared,
              "--fast_eval_dir", data / "fast_eval")
    file = model / f"all_full_preds_and_fast_scores_{backend}.json"
    theirs = file.rename(work / "theirs.json")
    cloze(options.cloze, "babylm", "collate", results, "--model", model.name, *shared, "--data", data)
    # The last digits of regressions are as the machine's BLAS rounds, there and here; they stand at the end.
    halves = [one.read_text(encoding="utf-8").rpartition('"reading": ') for one in (file, theirs)]
    same = halves[0][0] == halves[1][0]
    distance = far(*(json.loads(half[2][:-2]) for half in halves)) if same else math.inf
    note = f"{len(halves[0][0]):,} bytes; gains of reading times differ by {distance:.1e}"
    comparison.says(f"{model.name} {backend} collate", distance < 1e-9, note)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze", type=pathlib.Path)
    parser.add_argument("published", type=pathlib.Path, help="folder `strict` of babylm-eval")
    parser.add_argument("data", type=pathlib.Path, help="evaluation data: full_eval and fast_eval")
    parser.add_argument("runs", nargs="*", help="run, or run:backend")
    parser.add_argument("--items", type=int, default=20, help="items of each paradigm")
    parser.add_argument("--fast", action="store_true", help="the fast evaluation")
    parser.add_argument("--checkpoint", default="best")
    parser.add_argument("--results", type=pathlib.Path, help="results of a model to collate")
    parser.add_argument("--work", type=pathlib.Path, help="folder to keep what both write (default: a temporary one)")
    options = parser.parse_args()
    for name in ("cloze", "published", "data", "results", "work"):
        if getattr(options, name): setattr(options, name, getattr(options, name).resolve())
    runs = [str(pathlib.Path(run).resolve()) for run in options.runs]
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or pathlib.Path(temporary)
        cut(options.data, work / "data", options.items)
        mend_published(options.published)
        for run in runs: compare_run(comparison, options, run, work / "data", work)
        compare_collations(comparison, options, work)
    sys.exit(comparison.failed)


if __name__ == "__main__":
    main()
