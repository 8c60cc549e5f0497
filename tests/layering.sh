#!/usr/bin/env bash
# Every #include of a folder must follow an arrow that CMakeLists.txt declares.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
while read -r folder arrows; do
  for file in "$folder"/*.h "$folder"/*.cpp "$folder"/*.inc; do
    [ -e "$file" ] || continue
    while read -r included; do
      below=$(dirname "$included")
      case " $folder $arrows " in *" $below "*) ;; *) echo "$file includes $included, but $folder has no arrow to $below"; status=1 ;; esac
    done < <(sed -nE 's/^#include "([^"]+)".*/\1/p' "$file")
  done
done < <(sed -nE 's/^set\(ARROWS_([^ ]+) "?([^)"]*)"?\)$/\1 \2/p' CMakeLists.txt)
# The log's library stays behind its facade, and folders without LibTorch stay without it.
if grep -rln 'spdlog' --include=*.h --include=*.cpp core data models objectives run evaluation train generation interchange analysis cli | grep -v '^core/log.cpp$'; then echo "spdlog belongs to core/log.cpp alone"; status=1; fi
if grep -lE '#include <(torch|ATen|c10)' core/*.h core/*.cpp data/*.h data/*.cpp data/tokenizers/* cli/*.h cli/*.cpp core/kernels/* 2>/dev/null; then echo "LibTorch is not included there"; status=1; fi
exit $status
