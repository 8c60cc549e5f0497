#!/usr/bin/env python3
"""Attacks the program: kills, damaged files, failing calls, signals, two processes in one folder, folders of others, readers beside a run that
prunes, threads and memory that are not to be had. Prints the table of docs/trust.md.

usage: attack.py CLOZE [--kills N] [--writers N] [--readers N] [--damages N] [--calls N] [--scarce N] [--signals N] [--pairs N] [--hostile N]
                       [--seed S] [--minutes M] [--jobs J] [--folder DIR]
       attack.py CLOZE --seed S --case damages/17 [--folder DIR]        one case again, whose folder stays

N is the number of attempts, with --writers that of every verb that writes. A case is a function of the seed, the attack and its number, so that a
fault is found again with --case. With --folder the cases that are done stand in results-SEED.tsv, and the same command goes on where it was stopped;
the folders of cases that found a fault stay there. A folder in memory, such as /dev/shm, the one without --folder, spares the syncs of a disk, whose
files a killed process leaves as it leaves those in memory. Where a moment in time is drawn (a third of the kills, signals, pairs, readers), a busy
machine may meet another moment.
"""
import argparse
import importlib
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "attack"))
from world import World  # noqa: E402

ATTACKS = {"kills": "`kill -9` at a file operation or a random moment of pretrain (every family), prepare, import, export, study run",
           "writers": "`kill -9` of every verb that writes, in turn",
           "readers": "readers beside a run that saves every step and keeps one checkpoint",
           "damages": "damaged files: runs, checkpoints, tokens, tokenizers, exports, studies, configs, texts",
           "calls": "failing calls: write, sync, rename, mkdir, open, remove with ENOSPC, EIO, EACCES",
           "scarce": "threads, processes, memory and /proc that are not to be had, in every verb",
           "signals": "SIGINT, SIGTERM, SIGHUP at a random moment of every verb",
           "pairs": "two processes in one folder",
           "hostile": "names, logs, links and temporary folders made by others"}


class Results:
    """The cases that are done, in memory and in a file."""

    def __init__(self, path):
        self.path, self.lock, self.done = path, threading.Lock(), set()
        self.tried, self.failed = dict.fromkeys(ATTACKS, 0), dict.fromkeys(ATTACKS, 0)
        for line in path.read_text().splitlines() if path.exists() else []:
            attack, number, tried, fault = line.split("\t")
            self.count(attack, int(number), int(tried), fault)

    def count(self, attack, number, tried, fault):
        self.done.add((attack, number))
        self.tried[attack] += tried
        self.failed[attack] += bool(fault)

    def add(self, attack, number, tried, fault):
        with self.lock:
            self.count(attack, number, tried, fault)
            with open(self.path, "a") as file:
                file.write(f"{attack}\t{number}\t{tried}\t{fault}\n")


def one_case(world, attack, number, seed):
    name = f"{attack}-{number}"
    draw = random.Random(f"{seed}/{attack}/{number}")
    try:
        tried, fault = importlib.import_module(attack).attack(world, draw, name)
    except Exception as error:  # the case is reported, and the others go on
        tried, fault = 1, f"the script failed: {type(error).__name__}: {error}"
    if not fault:
        shutil.rmtree(world.folder / "cases" / name, ignore_errors=True)
    return tried, " ".join(fault.split())


def run_attack(world, attack, wanted, options, results, end):
    """Cases until there are `wanted` attempts, or the time is over."""
    numbers = iter(range(100 * wanted))
    lock = threading.Lock()

    def worker():
        while time.time() < end and results.tried[attack] < wanted:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            if (attack, number) in results.done:
                continue
            tried, fault = one_case(world, attack, number, options.seed)
            results.add(attack, number, tried, fault)
            if fault:
                print(f"{attack}/{number}: {fault}\n  again: {sys.argv[0]} {options.cloze} --seed {options.seed} --case {attack}/{number}",
                      file=sys.stderr, flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(worker) for _ in range(options.jobs)]:
            done.result()


def print_table(results, seed):
    print("| attack | tried | failed |\n|---|---:|---:|")
    for attack, words in ATTACKS.items():
        print(f"| {words} | {results.tried[attack]:,} | {results.failed[attack]:,} |")
    print(f"\nseed {seed}")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloze")
    for attack in ATTACKS:
        parser.add_argument(f"--{attack}", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case")
    parser.add_argument("--folder")
    return parser.parse_args(arguments)


def main(folder, options):
    world = World(options.cloze, folder)
    world.make()
    for attack in ATTACKS:
        module = importlib.import_module(attack)
        if hasattr(module, "make_masters"):
            module.make_masters(world)
    if options.case:
        attack, number = options.case.split("/")
        tried, fault = one_case(world, attack, int(number), options.seed)
        print(f"{options.case}: {fault or 'no fault'} (tried {tried})\n{world.folder / 'cases' / f'{attack}-{number}'}")
        return 1 if fault else 0
    results = Results(world.folder / f"results-{options.seed}.tsv")
    end = time.time() + 60 * options.minutes
    for attack in ATTACKS:
        kinds = len(importlib.import_module(attack).KINDS) if attack == "writers" else 1
        run_attack(world, attack, kinds * getattr(options, attack), options, results, end)
    print_table(results, options.seed)
    return 1 if any(results.failed.values()) else 0


if __name__ == "__main__":
    given = options_of(sys.argv[1:])
    if given.folder:
        sys.exit(main(given.folder, given))
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as temporary:
        sys.exit(main(temporary, given))
