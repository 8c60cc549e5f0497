#!/usr/bin/env bash
# Runs libFuzzer with AddressSanitizer on one parser that needs neither LibTorch nor configs, which clang cannot compile with g++ 12's library.
#   tests/fuzz/libfuzzer.sh TARGET [libFuzzer options]      TARGET: tokenizer_json, tokenizer_facts, vocab_txt, byte_bpe, sentencepiece, text, gz, xz,
#                                                           manifest, shard
# Needs: clang with its runtime, such as apt-get install clang-14 libclang-rt-14-dev; the newest that is installed is taken. Builds in build-fuzz/;
# finds go on growing in build-fuzz/TARGET.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:?name a target}
shift
out=build-fuzz
mkdir -p $out/objects "$out/$target"
newest=$(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -uV | tail -n 1) || true
compiler=${CXX:-$newest}
[ -n "$compiler" ] || { echo "no clang++ is installed; apt-get install clang-14 libclang-rt-14-dev, or name one with CXX="; exit 1; }
flags="-std=c++20 -O1 -g -fPIC -I. -include tests/fuzz/deduction.h -fsanitize=address"
sources="tests/fuzz/tokenizers.cpp tests/fuzz/text.cpp tests/fuzz/store.cpp"
for source in core/*.cpp core/report/*.cpp core/config/named_config.cpp; do
  sources+=" $source"
done
for name in {reading/{byte_source,columns,line_reader,reader,pair_reader,table_reader,text_lines},store/{manifest,shard,token_store}} tokenizer{,_impl,_folder} {open,save}_tokenizer; do
  sources+=" data/$name.cpp"
done
objects=()
for source in $sources data/tokenizers/*.cpp; do
  object=$out/objects/${source//\//_}.o
  [ "$object" -nt "$source" ] || "$compiler" $flags -fsanitize=fuzzer-no-link -w -c "$source" -o "$object"
  objects+=("$object")
done
"$compiler" $flags -fsanitize=fuzzer -DCLOZE_FUZZ_TARGET="fuzz_$target" tests/fuzz/libfuzzer.cpp "${objects[@]}" -o "$out/fuzz_$target" \
  -lsentencepiece -lutf8proc -lonig -lxxhash -lz -llzma -lspdlog -lfmt
seeds=("tests/fuzz/corpus/$target")
if [ "$target" = sentencepiece ]; then seeds=(-seed_inputs=tests/data/tokenizers/families/bare.model); fi  # as in tests/fuzz/targets.cpp
ASAN_OPTIONS=detect_leaks=0 "$out/fuzz_$target" -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$out/" "$@" "$out/$target" "${seeds[@]}"
