#!/usr/bin/env python3
"""Runs two commands in turns and prints how many times faster the first is: the ratio of medians, and of each pair.

usage: paired.py OURS THEIRS [ROUNDS]      each prints, as its last line that is JSON, ms_per_step, or ms = [low, median, high]
"""
import json, statistics, subprocess, sys

ours, theirs, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 3


def run(command):
    out = subprocess.run(command, shell=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]
    if not rows: sys.exit(f"{command}: printed no JSON line\n{out.stdout[-500:]}{out.stderr[-500:]}")
    row = rows[-1]
    return row["ms_per_step"] if "ms_per_step" in row else statistics.median(row["ms"]), row.get("peak_rss_mb", row.get("rss_mb"))


pairs = [(run(ours), run(theirs)) for _ in range(rounds)]
a, b = [p[0][0] for p in pairs], [p[1][0] for p in pairs]
print(json.dumps(dict(ratio=round(statistics.median(b) / statistics.median(a), 2), pairs=[round(y / x, 2) for x, y in zip(a, b)], ours_ms=[round(x) for x in a], theirs_ms=[round(x) for x in b],
                      ours_mb=pairs[-1][0][1], theirs_mb=pairs[-1][1][1])))
