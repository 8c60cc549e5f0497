#!/usr/bin/env bash
# Checks that all C++ files are formatted as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=build/format/bin/clang-format
[ -x "$tool" ] || { echo "$tool is missing; ./test installs it"; exit 1; }
find . -path './build*' -prune -o \( -name '*.cpp' -o -name '*.h' -o -name '*.inc' \) -print | sort |
  xargs "$tool" --dry-run -Werror || { echo "format with: $tool -i FILE"; exit 1; }
# clang-format leaves long raw strings alone.
! LC_ALL=C.UTF-8 git grep -nE '^.{121,}' -- '*.cpp' '*.h' '*.inc' || { echo "lines of more than 120 columns"; exit 1; }
