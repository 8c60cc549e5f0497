#!/bin/bash
# install.sh BUILD: installs into a folder of its own, and runs the program from there without the environment of the build.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix/cloze" > /dev/null
cd "$prefix"
installed() { env -i PATH=/usr/bin:/bin "$prefix/cloze/bin/cloze" "$@"; }
installed --version
installed describe bert/tiny | tail -n 1
installed describe cloze/share/cloze/configs/bert/tiny.yaml | tail -n 1
