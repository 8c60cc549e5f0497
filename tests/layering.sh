#!/usr/bin/env bash
# Checks that every #include follows an arrow declared in CMakeLists.txt, and that every arrow is followed by one. A
# folder without arrows of its own is part of the one that it stands in. The houses at the top form no circle, nor do
# the rooms of any of them.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
declared=" $(sed -nE 's/^set\(ARROWS_([^ ]+) .*/\1/p' CMakeLists.txt | tr '\n' ' ')"
room_of() {
  local folder=$1
  while [[ $declared != *" $folder "* && $folder == */* ]]; do folder=${folder%/*}; done
  echo "$folder"
}
while read -r folder arrows; do
  used=" "
  for file in "$folder"/*.h "$folder"/*.cpp "$folder"/*.inc "$folder"/*/*.h "$folder"/*/*.cpp "$folder"/*/*/*.h "$folder"/*/*/*.cpp; do
    [ -e "$file" ] && [ "$(room_of "$(dirname "$file")")" = "$folder" ] || continue
    while read -r included; do
      target=$(room_of "$(dirname "$included")")
      used="$used$target "
      case " $folder $arrows " in *" $target "*) ;; *) echo "$file includes $included, but $folder has no arrow to $target"; status=1 ;; esac
    done < <(sed -nE 's/^#include "([^"]+)".*/\1/p' "$file")
  done
  for arrow in $arrows; do
    case "$used" in *" $arrow "*) ;; *) echo "$folder has an arrow to $arrow, but includes nothing of it"; status=1 ;; esac
  done
done < <(sed -nE 's/^set\(ARROWS_([^ ]+) "?([^)"]*)"?\)$/\1 \2/p' CMakeLists.txt)
# Houses: the first folder of each.
if ! sed -nE 's/^set\(ARROWS_([^ ]+) "?([^)"]*)"?\)$/\1 \2/p' CMakeLists.txt |
  awk '{ sub("/.*", "", $1); for (i = 2; i <= NF; ++i) { sub("/.*", "", $i); if ($i != $1) print $1, $i } }' | tsort >/dev/null; then
  echo "these houses include each other"; status=1
fi
# Rooms: the folders of a house.
for house in core data evaluation inference interchange models objectives run study tasks train; do
  if ! grep -rE "^#include \"$house/[a-z_]+/" "$house" |
    sed -nE "s#^$house/([a-z_]+)/[^:]*:.include \"$house/([a-z_]+)/.*#\1 \2#p" | awk '$1 != $2' | tsort >/dev/null; then
    echo "these rooms of $house include each other"; status=1
  fi
done
# Pretraining builds without tasks: no way of arrows leads from its loop to them.
if ! sed -nE 's/^set\(ARROWS_([^ ]+) "?([^)"]*)"?\)$/\1 \2/p' CMakeLists.txt |
  awk '{ for (i = 2; i <= NF; ++i) arrows[$1] = arrows[$1] " " $i }
    END {
      way[n = 1] = "train"
      for (k = 1; k <= n; ++k) {
        count = split(arrows[way[k]], to, " ")
        for (i = 1; i <= count; ++i) if (!seen[to[i]]++) way[++n] = to[i]
      }
      exit "tasks" in seen
    }'; then
  echo "arrows lead from train to tasks; put what knows both into train/tasks"; status=1
fi
# Only core/log.cpp uses spdlog, and folders without LibTorch do not include it.
if grep -rl 'spdlog' --include=*.h --include=*.cpp --exclude-dir=build --exclude-dir=tests . | grep -v '^./core/log.cpp$'; then echo "only core/log.cpp may use spdlog"; status=1; fi
if grep -lE '#include <(torch|ATen|c10)' $(git ls-files core data tasks study cli ':!core/tensor' ':!cli/engine'); then echo "these files must not include LibTorch"; status=1; fi
# JSON has one reader, whose depth and size are bounded, and one writer, which takes names that are not UTF-8.
if git grep -nE '[jJ]son::(parse|sax_parse)\(|(\.|->)dump\(' -- '*.h' '*.cpp' ':!tests' | grep -vE '^core/json\.cpp:|sax_parse\(text, &watch\)'; then echo "only core/json.cpp may parse and dump JSON; use parse_json and json_text"; status=1; fi
exit $status
