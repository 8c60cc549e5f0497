#!/bin/bash
# build_log.sh: a build that fails says where its errors are, whether it has a terminal or not; one that lasts says how far it is while it goes on;
# packages that were stopped half-way are gone on with, those of other distributions are installed by their names, and who may not install them
# gets one line for all.
# The tools of the build are stand-ins.
set -euo pipefail
setup=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/setup.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin build
{ echo 'set -euo pipefail; BUILD=build SANITIZE= CMAKE_PREFIX_PATH='
  sed -n '/^[a-z_]*() {.*}$/p; /^[a-z_]*() {$/,/^}/p' "$setup"   # its functions
  echo 'build cloze'; } > build.sh
export PATH=$folder/bin:$PATH
fail() { echo "$*"; exit 1; }
stand_in() { { echo '#!/bin/bash'; cat; } > "bin/$1"; chmod +x "bin/$1"; }

# -- Errors
stand_in nproc <<< 'echo 2'
stand_in cmake <<< ''
stand_in ninja <<< 'echo "file.cpp: error: of this build"; exit 1'
answer() { echo 'error: of an old build' > build/ninja.log; "$@" 2>&1 || true; }
piped=$(answer bash build.sh)
grep -q 'of this build' build/ninja.log
on_terminal=$(answer script -qec 'bash build.sh' /dev/null < /dev/null)
for text in "$piped" "$on_terminal"; do
  case $text in *"of an old build"*) fail "an error of an old build is shown: $text" ;; esac
  case $text in *"error: of this build"*"error: the build failed; see "*) ;; *) fail "no error of this build: $text" ;; esac
done
case $piped in *"see build/ninja.log"*) ;; *) fail "no log is named: $piped" ;; esac
case $on_terminal in *ninja.log*) fail "a log that was not written is named: $on_terminal" ;; esac

# -- Progress: each stand-in says a few bytes and goes on only when the line about them has come.
await='await() { for ((i = 0; i < 80; ++i)); do [ ! -e "$1" ] || return 0; sleep 0.1; done; touch late; }'
stand_in cmake <<< "$await"'; echo "-- Found Torch"; await configuring'
stand_in ninja <<< "$await"'
  case "$*" in *" -t commands "*)   # fifty small files and fifty large ones
    for file in {1..100}; do echo "c++ -Itorch/include -o $file.o -c $PWD/$((file > 50)).cpp"; done
    exit ;;
  esac
  [ "$NINJA_STATUS" = "[%f/%t] " ] || echo "its lines cannot be read"
  for file in {1..40}; do echo "[$file/100] Building CXX object $file.o"; done
  await 40
  printf "[50/1"; await half; echo "00] Building CXX object 50.o"   # a part of a line is no line
  await 50
  echo "[100/100] Linking"'
echo > 0.cpp
head -c 99999 /dev/zero > 1.cpp
text= lines=0
while IFS= read -r line; do
  text+=$line$'\n'
  lines=$((lines + 1))
  case $line in
    "configuring with cmake: "*"; -- Found Torch") touch configuring ;;
    "built 40 of 100 in "*", about "*" left")
      [[ $line =~ in\ ([0-9]+)\ s,\ about\ ([0-9]+)\ s ]]
      [ "${BASH_REMATCH[2]}" -gt $((4 * BASH_REMATCH[1])) ] || fail "the files that take long are not counted as such: $line"
      [ ! -e 40 ] || touch half
      touch 40 ;;
    "built 50 of 100 in "*", about "*" left") touch 50 ;;
    "built 100 of 100 in "*) touch 100 ;;
  esac
done < <(NINJA_STATUS='%f ' PROGRESS_SECONDS=1 bash build.sh 2>&1 || echo "it failed")
[ ! -e late ] || fail "a line came late or never: $text"
for file in configuring 40 half 50 100; do [ -e $file ] || fail "no line for $file: $text"; done
[ $lines -le 12 ] || fail "too many lines: $text"
case $text in *fail* | *"cannot be read"*) fail "$text" ;; esac

# -- Packages: what a stopped installation has only unpacked is missing, and dpkg goes on with it first.
{ sed '$d' build.sh; echo 'install_packages whole half none'; } > packages.sh
stand_in dpkg-query <<< 'case "$*" in *whole) echo installed ;; *half) echo unpacked ;; *) exit 1 ;; esac'
for tool in dpkg apt-get; do stand_in $tool <<< "echo $tool \"\$@\" >> said"; done
stand_in sudo <<< '"$@"'
bash packages.sh 2> /dev/null
printf '%s\n' 'dpkg --configure -a' 'apt-get update -qq' 'apt-get install -y -qq half none' | diff said - || fail "packages are installed in another way"
for system in "dnf: dnf install -y -q half none" "pacman: pacman -S --needed --noconfirm half none"; do
  rm said
  stand_in rpm <<< 'case "$*" in *whole) ;; *) exit 1 ;; esac'
  stand_in dnf <<< 'echo dnf "$@" >> said'
  stand_in pacman <<< '[ "$1" != -T ] || { printf "%s\n" half none; exit 127; }; echo pacman "$@" >> said'
  { sed '$d' build.sh; echo "manager() { echo ${system%%:*}; }; install_packages whole half none"; } > other.sh
  bash other.sh 2> /dev/null
  echo "${system#*: }" | diff said - || fail "packages of another distribution are installed in another way"
done
stand_in id <<< 'echo 1000'
{ sed '$d' build.sh; echo 'command() { [ "$2" != sudo ] && builtin command "$@"; }; install_packages whole half none'; } > user.sh
asked=$(bash user.sh 2>&1) && fail "packages are installed without root"
case $asked in *"ask an administrator to run: apt-get install -y -qq half none; "*) ;; *) fail "no line for an administrator: $asked" ;; esac
