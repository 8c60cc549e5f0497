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
# As in a wheel that lies beside another torch than it was built for.
touch cloze/__main__.py
mkdir torch
echo "__version__ = '2.99.0+cu130'" >torch/version.py
if said=$(installed describe bert/tiny 2>&1); then echo "another torch is taken"; exit 1; fi
[[ $said == *"torch 2.99.0+cu130 is installed, and this Cloze needs torch 2."*"; pip install 'torch==2."* ]] || { echo "$said"; exit 1; }
