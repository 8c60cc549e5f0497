#!/bin/bash
# cpp_sample.sh BUILD TORCH_LIB: docs/cpp is built as docs/exports.md says, reads exported files, and tokenizes as the program does.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1 torch=$2 cloze=$1/cloze
if [ -e "$torch/libtorch_cuda.so" ] && ! command -v nvcc > /dev/null; then
  echo "skipped: cpp_sample: the package config of LibTorch with CUDA needs nvcc"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake -S "$root/docs/cpp" -B "$build/cpp_sample" -DCMAKE_BUILD_TYPE=Release -DCLOZE="$root" \
      -DCMAKE_PREFIX_PATH="$torch/../share/cmake"
cmake --build "$build/cpp_sample"
cd "$scratch"

# says CASE LINE: the reader prints this line of a golden case, as exported.
says() {
  if [ ! -e "$1.pt" ]; then
    "$cloze" --quiet import "$root/tests/parity/$1" --out "$1"
    "$cloze" --quiet export "$1" --to torchscript --out "$1.pt"
    "$build/cpp_sample/reader" "$1.pt" 12 81 7 | tee "$1.txt"
  fi
  grep -qFx -- "$2" "$1.txt" || { echo "reader does not print '$2' of $1"; exit 1; }
}
says bert "prediction_logits [1, 3, 96]"
says bert "seq_relationship_logits [1, 2]"
says gpt2 "logits [1, 3, 96]"
says gpt2 "[ CPULongType{1,23} ]"

tokenizer=$root/tests/data/tokenizers/families/t5.model
printf 'the cat sat\n\n  on  the mat.\n' > texts
"$build/cpp_sample/ids" "$tokenizer" t5 < texts | tee ids
"$cloze" tokenize "$tokenizer" --json < texts | sed -E 's/.*"ids":\[([0-9,]*)\].*/\1/; s/([0-9]),/\1 /g; s/.$/& /; s/$/1 /' | diff ids -
