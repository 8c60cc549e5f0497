#!/usr/bin/env bash
# Checks that all C++ files are formatted as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=build/format/bin/clang-format
[ -x "$tool" ] || { echo "$tool is missing; ./test installs it"; exit 1; }
find . -path ./build -prune -o \( -name '*.cpp' -o -name '*.h' -o -name '*.inc' \) -print | sort |
  xargs "$tool" --dry-run -Werror || { echo "format with: $tool -i FILE"; exit 1; }
