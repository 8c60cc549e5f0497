#!/bin/bash
# build_log.sh: a build that fails says where its errors are, whether it has a terminal or not; the tools of the build are stand-ins.
set -euo pipefail
setup=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/setup.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin build
printf '#!/bin/bash\n' > bin/cmake
printf '#!/bin/bash\necho "file.cpp: error: of this build"\nexit 1\n' > bin/ninja
chmod +x bin/*
{ echo 'set -euo pipefail; BUILD=build SANITIZE= CMAKE_PREFIX_PATH='
  sed -n '/^say()/p; /^die()/p; /^build_progress()/,/^}/p; /^build() {/,/^}/p' "$setup"
  echo 'build cloze'; } > build.sh
export PATH=$folder/bin:$PATH
answer() { echo 'error: of an old build' > build/ninja.log; "$@" 2>&1 || true; }
piped=$(answer bash build.sh)
grep -q 'of this build' build/ninja.log
on_terminal=$(answer script -qec 'bash build.sh' /dev/null < /dev/null)
for text in "$piped" "$on_terminal"; do
  case $text in *"of an old build"*) echo "an error of an old build is shown: $text"; exit 1 ;; esac
  case $text in *"error: of this build"*"error: the build failed; see "*) ;; *) echo "no error of this build: $text"; exit 1 ;; esac
done
case $piped in *"see build/ninja.log"*) ;; *) echo "no log is named: $piped"; exit 1 ;; esac
case $on_terminal in *ninja.log*) echo "a log that was not written is named: $on_terminal"; exit 1 ;; esac
