#!/bin/bash
# cpp_sample.sh BUILD TORCH_LIB: docs/cpp is built as docs/torchscript.md says, reads exported files, tokenizes and classifies as the program does.
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

# A classifier, texts of which are longer than it reads: the labels and probabilities of `cloze predict`, in one program with LibTorch.
for i in $(seq 60); do
  printf 'the old boat number %d went slowly over the wide sea to the far shore\tsea\n' "$i"
  printf 'a small train number %d ran past the green hill into the far town\tland\n' "$i"
done > items.tsv
cut -f1 items.tsv > texts
printf '%s\n' 'task: places' 'kind: classification' 'data: {train: items.tsv, test: items.tsv, text: 0, label: 1}' 'max_length: 12' > places.yaml
"$cloze" --quiet prepare texts --vocab-size 50 --held-out 0.2 --document line --out tokens 2> log
for config in roberta/tiny gpt2/tiny t5/tiny; do
  name=pretrained-${config%/*}
  "$cloze" --quiet pretrain "$config" --set data.tokens=tokens --set train.budget.steps=1 --run "$name" 2> log || { cat log; exit 1; }
  "$cloze" --quiet finetune "$name" places.yaml --set train.budget.epochs=1 --run "$name-places" 2> log || { cat log; exit 1; }
  "$cloze" --quiet export "$name-places" --to torchscript --out "$name.pt"
  "$cloze" --quiet export "$name-places" --to huggingface --out "$name-hf"
  timeout 60 "$build/cpp_sample/classify" "$name.pt" "$name-hf" < texts > labels
  "$cloze" --quiet predict "$name-places" items.tsv --json 2> log > predictions
  python3 - labels predictions <<'PYTHON' || { echo "classify differs from cloze predict of $name"; exit 1; }
import json
import sys

labels = [line.split("\t") for line in open(sys.argv[1])]
predictions = [json.loads(line) for line in open(sys.argv[2])]
assert len(labels) == 120 and [one["label"] for one in predictions] == [label for label, _ in labels]
largest = [max(one["probabilities"].values()) for one in predictions]
assert all(abs(float(mine) - its) < 1e-4 for (_, mine), its in zip(labels, largest)), largest
PYTHON
done
