#!/usr/bin/env python3
"""Alternates two commands and prints how many times faster the first is: the ratio of medians, and of each pair.

usage: paired.py CLOZE PEER [ROUNDS]      the last JSON line that each prints has ms_per_step, or ms = [low, median, high], or cpu_ms for kernels alone
"""
import json, statistics, subprocess, sys


def run(command, pick=lambda row: True):
    """Milliseconds and megabytes of the last JSON line that `pick` accepts."""
    out = subprocess.run(command, shell=True, capture_output=True, text=True)
    rows = [row for row in (json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")) if pick(row)]
    if not rows: sys.exit(f"{command}: printed no JSON line\n{out.stdout[-500:]}{out.stderr[-500:]}")
    row = rows[-1]
    times = row.get("ms_per_step") or row.get("ms") or row["cpu_ms"]   # wall-clock time if measured
    return statistics.median(times) if isinstance(times, list) else times, row.get("peak_rss_mb", row.get("rss_mb"))


def paired(cloze, peer, rounds=3, pick=lambda row: True):
    pairs = [(run(cloze, pick), run(peer, pick)) for _ in range(rounds)]
    a, b = [p[0][0] for p in pairs], [p[1][0] for p in pairs]
    return dict(ratio=round(statistics.median(b) / statistics.median(a), 2), pairs=[round(y / x, 2) for x, y in zip(a, b)], ours_ms=[round(x) for x in a], theirs_ms=[round(x) for x in b],
                ours_mb=pairs[-1][0][1], theirs_mb=pairs[-1][1][1])


if __name__ == "__main__":
    if len(sys.argv) < 3: sys.exit(__doc__)
    print(json.dumps(paired(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 3)))
