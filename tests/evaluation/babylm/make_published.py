"""Writes published.json: what the published BabyLM program says of made-up items, scores and predictions.

    python3 make_published.py CLONE > published.json

CLONE is a checkout of github.com/babylm-org/babylm-eval at 45fe2c1. Needs torch, transformers, datasets, scipy, pandas
and statsmodels.
"""
import contextlib
import io
import json
import pathlib
import random
import sys
import tempfile
import types

import torch

sys.path.insert(0, f"{sys.argv[1]}/strict")
from evaluation_pipeline import collate_preds
from evaluation_pipeline.sentence_zero_shot import compute_results, read_files, run

random.seed(11)
NOUNS = ["owl", "spoon", "lamp", "river", "cup", "bird"]


def noun():
    return random.choice(NOUNS)


def lines(items):
    return "".join(json.dumps(item) + "\n" for item in items)


def pairs(count, **more):
    return lines({"sentence_good": f"the {noun()} sleeps .", "sentence_bad": f"the {noun()} sleep .", **more} for _ in range(count))


def wugs(count):
    return lines({"sentences": f"a {noun()}ity\ta {noun()}ness", "ratio": random.randint(0, 4) / 4} for _ in range(count))


def ewok(count, domain):
    return lines({"Domain": domain, "ContextType": random.choice(["direct", "indirect"]), "ContextDiff": "swap", "TargetDiff": "naïve",
                  "Context1": f"It is a {noun()}.", "Context2": f"It was a {noun()}.", "Target1": f"The {noun()} is hot.",
                  "Target2": f"The {noun()} is cold."} for _ in range(count))


def boxes(counts):
    return lines({"numops": operations, "input_prefix": f"Jar {k} holds the", "options": [f" {noun()}.", f" {noun()} here.", " cup there."]}
                 for operations, count in enumerate(counts) for k in range(count))


def comps(count):
    return lines({"prefix_acceptable": f"An {noun()}", "prefix_unacceptable": f"A {noun()}", "property_phrase": "can fly."} for _ in range(count))


def blimp(uid, field, term, count):
    return pairs(count, UID=uid, field=field, linguistics_term=term)


DATASETS = [  # task, folder, files
    ("blimp", "blimp_filtered", {"deep_island.jsonl": blimp("deep_island", "syntax", "islands", 7), "npi_1.jsonl": blimp("npi_1", "semantics", "npi", 3),
                                 "raising.jsonl": blimp("raising", "syntax_semantics", "control", 4)}),
    ("blimp", "supplement_filtered", {"turns.jsonl": pairs(5), "hyper.jsonl": pairs(3)}),
    ("ewok", "ewok_filtered", {"heat.jsonl": ewok(4, "heat"), "space.jsonl": ewok(5, "space")}),
    ("entity_tracking", "entity_tracking", {"regular.jsonl": boxes([3, 2]), "ambiref.jsonl": boxes([2, 0, 4]), "move_contents.jsonl": boxes([5])}),
    ("wug_adj", "wug_adj_nominalization", {"wug_adj_nominalization.jsonl": wugs(9)}),
    ("wug_past", "wug_past_tense", {"wug_past_tense.jsonl": wugs(6)}),
    ("comps", "comps", {f"{name}.jsonl": comps(3) for name in ["comps_base", "comps_wugs", "comps_wugs_dist-before", "comps_wugs_dist-in-between"]}),
]


def report(task, folder, files):
    args = types.SimpleNamespace(task=task, save_predictions=True)
    items = [read_files.decode(line, pathlib.Path(name), task, False, None) for name in sorted(files) for line in files[name].splitlines()]
    sums = [[float(torch.tensor(random.choice([-20.0, random.uniform(-30, -10)]))) for _ in item["sentences"]] for item in items]
    ones = {1.0: {}}
    predictions = {1.0: compute_results.defaultdict(list)}
    with contextlib.redirect_stderr(io.StringIO()):
        metadatas = [{k: v for k, v in item.items() if k not in ["sentences", "completions", "prefixes", "label"]} for item in items]
        compute_results_of = compute_results.rank_and_evaluate
        if "wug" in task: compute_results_of = compute_results.rank_and_evaluate_wug
        compute_results.update_subset_to_stats(ones, metadatas)
        log_probs = {1.0: [torch.tensor(column) for column in zip(*sums)]}
        compute_results_of(args, ones, log_probs, items, [item["label"] for item in items], metadatas, [item["UID"] for item in items], predictions)
    if "wug" in task:
        accuracies, average = run.process_results_wug(ones)
    else:
        accuracies, average = run.process_results(args, ones)
    text = io.StringIO()
    run.create_evaluation_report(1.0, average[1.0], accuracies[1.0], task=task, file=text)
    return {"task": task, "folder": folder, "files": files, "sums": sums, "average": float(average[1.0]), "report": text.getvalue(),
            "predictions": json.dumps({uid: {"predictions": found} for uid, found in predictions[1.0].items()})}


def reading_csv(rows=60):
    head = "item,word,prev_item,prev_word,prev_length,length,context_length,Subtlex_log10,RTfirstfix,RTfirstpass,RTgopast,RTrightbound,self_paced_reading_time"
    table = [head]
    for i in range(rows):
        before = ["the", noun(), random.randint(1, 9)] if i % 5 else ["", "", ""]
        times = [random.choice(["NA", random.randint(150, 400), random.randint(150, 400)]) for _ in range(5)]
        table.append(",".join(map(str, ["None" if i == 7 else "the old", noun(), *before, random.randint(1, 9), i % 5, random.randint(10, 60) / 10, *times])))
    return "\n".join(table) + "\n"


def predictions_of(files, choices):
    """Predictions of items, each one of `choices(item)`, by file."""
    return {name.removesuffix(".jsonl"): {"predictions": [{"id": f"x_{k}", "pred": random.choice(choices(json.loads(line)))} for k, line in
                                                          enumerate(content.splitlines())]} for name, content in files.items()}


def fast():
    """Data and predictions of the fast evaluation."""
    data = {"blimp_fast": {"deep_island.jsonl": pairs(4), "npi_1.jsonl": pairs(4)}, "supplement_fast": {"turns.jsonl": pairs(3)},
            "ewok_fast": {"heat.jsonl": ewok(3, "heat")}, "entity_tracking_fast": {"regular.jsonl": boxes([2, 3])},
            "wug_adj_nominalization": {"wug_adj_nominalization.jsonl": wugs(8)}, "wug_past_tense": {"wug_past_tense.jsonl": wugs(5)},
            "reading": {"reading_data.csv": reading_csv()}}
    sides = lambda item: [item["sentence_good"], item["sentence_bad"] + "\n"]
    found = {"blimp/blimp_fast": predictions_of(data["blimp_fast"], sides), "blimp/supplement_fast": predictions_of(data["supplement_fast"], sides),
             "ewok/ewok_fast": predictions_of(data["ewok_fast"], lambda item: [" " + item["Target1"], " " + item["Target2"]])}
    options = [json.loads(line) for line in data["entity_tracking_fast"]["regular.jsonl"].splitlines()]
    found["entity_tracking/entity_tracking_fast"] = {
        f"regular_{n}_ops": {"predictions": [{"id": f"r_{k}", "pred": random.choice(item["options"])} for k, item in enumerate(options)
                                             if item["numops"] == n]} for n in range(2)}
    for task, folder, count in [("wug_adj", "wug_adj_nominalization", 8), ("wug_past", "wug_past_tense", 5)]:
        found[f"{task}/{folder}"] = {task: {"predictions": [{"id": f"w_{k}", "pred": "x", "prob": 0.5 if task == "wug_past" else random.random()}
                                                            for k in range(count)]}}
    found["reading"] = {"reading": {"predictions": [{"id": i, "pred": random.expovariate(0.2), "prev_pred": random.expovariate(0.2) if i % 5 else float("nan")}
                                                    for i in range(60)]}}
    return data, found


def full(reports, found):
    """Predictions of the whole evaluation, and of fine-tuned tasks."""
    whole = {f"{one['task']}/{one['folder']}": json.loads(one["predictions"]) for one in reports}
    whole["reading"] = found["reading"]
    surprisals = [{"step": step, "word_count": 10, "target_word": "owl", "context_id": c, "context": "the", "surprisal": random.uniform(0, 9)}
                  for step in collate_preds.STRICT_SMALL_FAST_REVISIONS for c in range(2)]
    tuned = {task: {part: {"predictions": [{"id": f"{task}_{k}", "pred": k % 2} for k in range(2)]} for part in [task, "shared"]} for task in
             ["boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc"]}
    return whole, {"metadata": {"model_name": "baby"}, "results": surprisals}, tuned


def sizes_of(folders):
    """The sizes that the program asks of these predictions: those that they have."""
    sizes = {}
    for name, parts in folders.items():
        task = "blimp_supplement" if "supplement" in name else name.split("/")[0]
        counts = {part.lower(): len(one["predictions"]) for part, one in parts.items()}
        sizes[task] = counts if len(set(counts.values())) > 1 or "_ops" in str(counts) else next(iter(counts.values()))
    return sizes


def collated(data, found, whole, surprisals, tuned):
    collate_preds.FULL_SIZES = sizes_of(whole) | {task: 2 for task in tuned}
    collate_preds.FAST_SIZES = sizes_of(found)
    collate_preds.AOA_SIZE = 2
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)

        def write(path, content):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))

        for folder, files in data.items():
            for file, content in files.items(): write(root / "fast_eval" / folder / file, content)
        model = root / "results" / "baby"
        for folder, parts in whole.items(): write(model / "main/zero_shot/mlm" / folder / "predictions.json", parts)
        write(model / "main/zero_shot/mlm/AoA_word/surprisal.json", surprisals)
        for task, parts in tuned.items(): write(model / "main/finetune" / task / "predictions.json", parts)
        for revision in collate_preds.STRICT_SMALL_FAST_REVISIONS:
            for folder, parts in found.items(): write(model / revision / "zero_shot/mlm" / folder / "predictions.json", parts)
        args = types.SimpleNamespace(model_path_or_name=pathlib.Path("baby"), backend="mlm", results_dir=root / "results", revision_name="main",
                                     fast=True, fast_eval_dir=root / "fast_eval", track="strict-small", multimodal=False)
        scores = collate_preds.get_revision_fast_eval_metrics(args, "chck_1M")
        collate_preds.collate_preds(args)
        text = (model / "all_full_preds_and_fast_scores_mlm.json").read_text()
    return {"text": text, "scores": {task: json.dumps(score) for task, score in scores.items()}}


published = {"full": collate_preds.FULL_SIZES, "fast": collate_preds.FAST_SIZES, "acquisition": collate_preds.AOA_SIZE,
             "strict-small": collate_preds.STRICT_SMALL_FAST_REVISIONS, "strict": collate_preds.OTHER_FAST_REVISIONS}
reports = [report(*dataset) for dataset in DATASETS]
data, found = fast()
whole, surprisals, tuned = full(reports, found)
answers = collated(data, found, whole, surprisals, tuned)
texts = lambda folders: {name: json.dumps(parts) for name, parts in folders.items()}
print(json.dumps({"reports": reports, "sizes": published,
                  "collation": {"data": data, "fast": texts(found), "full": texts(whole), "surprisals": json.dumps(surprisals), "tuned": texts(tuned),
                                "full_sizes": collate_preds.FULL_SIZES, "fast_sizes": collate_preds.FAST_SIZES, **answers}}))
