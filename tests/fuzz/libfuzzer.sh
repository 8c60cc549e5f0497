#!/usr/bin/env bash
# Runs libFuzzer with AddressSanitizer on one parser that needs neither LibTorch nor configs, which clang 19 cannot compile with g++ 12's library.
#   tests/fuzz/libfuzzer.sh TARGET [libFuzzer options]      TARGET: tokenizer_json, tokenizer_facts, vocab_txt, byte_bpe, sentencepiece, text, gz, xz,
#                                                           manifest, shard
# Needs: apt-get install clang-19 libclang-rt-19-dev. Builds in build-fuzz/; finds go on growing in build-fuzz/TARGET.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:?name a target}
shift
out=build-fuzz
mkdir -p $out/objects "$out/$target"
compiler=${CXX:-clang++-19}
flags="-std=c++20 -O1 -g -fPIC -I. -fsanitize=address"
sources="core/json.cpp core/file.cpp core/log.cpp core/spelling.cpp tests/fuzz/tokenizers.cpp tests/fuzz/text.cpp tests/fuzz/store.cpp"
for name in byte_source line_reader reader pair_reader manifest shard token_store tokenizer tokenizer_impl tokenizer_folder open_tokenizer save_tokenizer; do
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
ASAN_OPTIONS=detect_leaks=0 "$out/fuzz_$target" -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$out/" "$@" "$out/$target" "tests/fuzz/corpus/$target"
