#!/usr/bin/env python3
"""What a build costs: seconds by folder from ninja's log, and how many units a change compiles again.

usage: build.py [BUILD] [--units HEADER...]

BUILD    a build folder, whose ninja log is read. Seconds are of the wall from a unit's start to its end: with as many
         jobs as idle cores they are processor seconds.
HEADER   a header, of which the `#include` lines say how many units a change compiles again, each source being one;
         default: objectives/mlm/mlm.h models/attention/kinds.h models/transformer_config.h run/config/config.h core/error.h
"""
import argparse
import collections
import re
import subprocess
from pathlib import Path

root = Path(__file__).resolve().parents[2]
HEADERS = ("objectives/mlm/mlm.h", "models/attention/kinds.h", "models/transformer_config.h", "run/config/config.h", "core/error.h")


def entries(build):
    """Start and end [ms] of each output of the last build, by its path; outputs of one command once."""
    latest = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, command = line.split("\t")
        latest[command] = (int(start), int(end), output)
    return sorted(latest.values())


def folder_of(output):
    """The target whose unit this is; `links` for what is no object."""
    if not output.endswith((".o", ".gch")):
        return "links and generated files"
    return output.split("CMakeFiles/")[1].split(".dir/")[0].removeprefix("cloze_")


def table(build):
    all_of = entries(build)
    by_folder = collections.defaultdict(list)
    for start, end, output in all_of:
        by_folder[folder_of(output)].append((end - start) / 1000)
    print(f"{'target':28}{'units':>6}{'seconds':>9}{'longest':>9}")
    for folder, seconds in sorted(by_folder.items(), key=lambda item: -sum(item[1])):
        print(f"{folder:28}{len(seconds):6}{sum(seconds):9.1f}{max(seconds):9.1f}")
    total = sum(end - start for start, end, _ in all_of) / 1000
    print(f"{'all':28}{len(all_of):6}{total:9.1f}")
    print("\nlongest units:")
    for start, end, output in sorted(all_of, key=lambda entry: entry[0] - entry[1])[:10]:
        print(f"{(end - start) / 1000:8.1f} s  {output}")


def includes_of(sources):
    """The project's files that each source includes, with those that they include."""
    direct = {name: [i for i in re.findall(r'^#include "([^"]+)"', (root / name).read_text(), re.M) if i in sources]
              for name in sources}

    def reached(name):
        found, left = set(), [name]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += direct[one]
        return found

    return {name: reached(name) for name in sources}


def compiled_again(headers):
    """The number of units, one a source as with -DCLOZE_UNITY=OFF, that a change of each header compiles again."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.cpp", "*.h", "*.inc"], capture_output=True, text=True)
    sources = set(listed.stdout.split())
    includes = includes_of(sources)
    of_program = includes["run/config/config.h"]  # in the precompiled header of the command line
    for header in headers:
        units = [name for name in sources if name.endswith(".cpp")
                 and (header in includes[name] or (Path(name).parent == Path("cli") and header in of_program))]
        yield header, len(units)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, nargs="?")
    parser.add_argument("--units", nargs="*", metavar="HEADER")
    arguments = parser.parse_args()
    if arguments.build:
        table(arguments.build)
    if arguments.units is not None:
        for header, units in compiled_again(arguments.units or HEADERS):
            print(f"{units:5}  {header}")


if __name__ == "__main__":
    main()
