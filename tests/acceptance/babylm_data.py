#!/usr/bin/env python3
"""Writes BabyLM's evaluation data as its OSF folder has them, from copies of the same data in other forms.

    tests/acceptance/babylm_data.py DATA OUT

DATA has blimp/blimp.jsonl.xz and babylm-eval/ (blimp_filtered_ids.tsv.xz, supplement_filtered.jsonl.xz,
entity_tracking.jsonl.xz, wug_adj_nominalization.jsonl, reading_data.csv.xz). OUT/full_eval gets the tasks that these
hold; OUT/fast_eval their first items, as many as the fast evaluation has (its own choice of items is another).
"""
import collections, json, lzma, pathlib, sys

fast_pairs = {"blimp": 200, "supplement": 50}


def lines(path):
    with (lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8")) as file:
        yield from (line.rstrip("\n") for line in file)


def write(folder, name, items):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")


def main(data, out):
    full, fast = out / "full_eval", out / "fast_eval"
    kept = set(tuple(line.split("\t")) for line in list(lines(data / "babylm-eval/blimp_filtered_ids.tsv.xz"))[1:])
    groups = collections.defaultdict(list)
    for line in lines(data / "blimp/blimp.jsonl.xz"):
        item = json.loads(line)
        if (item["UID"], str(item["pairID"])) in kept: groups["blimp", item["UID"]].append(item)
    for line in lines(data / "babylm-eval/supplement_filtered.jsonl.xz"):
        item = json.loads(line)
        groups["supplement", item.pop("UID")].append(item)
    for (task, uid), items in groups.items():
        write(full / f"{task}_filtered", uid, items)
        write(fast / f"{task}_fast", uid, items[: fast_pairs[task]])
    boxes = collections.defaultdict(list)
    for line in lines(data / "babylm-eval/entity_tracking.jsonl.xz"):
        item = json.loads(line)
        boxes[item.pop("subset")].append(item)
    for name, items in boxes.items(): write(full / "entity_tracking", name, items)
    write(fast / "entity_tracking_fast", "regular", boxes["regular"])
    wugs = [json.loads(line) for line in lines(data / "babylm-eval/wug_adj_nominalization.jsonl")]
    for folder in (full, fast):
        write(folder / "wug_adj_nominalization", "wug_adj_nominalization", wugs)
        (folder / "reading").mkdir(parents=True, exist_ok=True)
        (folder / "reading/reading_data.csv").write_bytes(lzma.open(data / "babylm-eval/reading_data.csv.xz").read())


if len(sys.argv) != 3: sys.exit(__doc__)
main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
