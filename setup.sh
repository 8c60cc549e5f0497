# Sourced by ./quickstart and ./test: installs missing dependencies and builds Cloze into build/ (with SANITIZE=address into build-address/,
# from the LibTorch of build/).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The packages of a build by their names in Debian 12 and 13 and Ubuntu 22.04 and 24.04, in Fedora, and in Arch.
DEBIAN="build-essential cmake ninja-build pkg-config python3 python3-venv libsentencepiece-dev libyaml-cpp-dev libcli11-dev
  libspdlog-dev nlohmann-json3-dev libxxhash-dev libutf8proc-dev libonig-dev libboost-math-dev liblbfgs-dev libeigen3-dev libcminpack-dev
  zlib1g-dev liblzma-dev libgoogle-perftools-dev catch2 ccache mold"
FEDORA="gcc-c++ cmake ninja-build pkgconf-pkg-config python3 sentencepiece-devel yaml-cpp-devel cli11-devel spdlog-devel json-devel
  xxhash-devel utf8proc-devel oniguruma-devel boost-devel liblbfgs-devel eigen3-devel cminpack-devel zlib-devel xz-devel gperftools-devel
  catch-devel ccache mold"
ARCH="base-devel cmake ninja pkgconf python sentencepiece yaml-cpp cli11 spdlog nlohmann-json xxhash libutf8proc oniguruma boost liblbfgs
  eigen cminpack zlib xz gperftools catch2 ccache mold"
TORCH_VERSION=2.13.0
CLANG_FORMAT_VERSION=23.1.5
ARROW_VERSION=26.0.1
PEERS="transformers==5.23.0 tokenizers==0.23.3 safetensors==0.8.0 sentencepiece==0.2.3 protobuf==7.36.2 nvidia-cuda-nvrtc==13.0.88 peft==0.21.2"
SANITIZE=${SANITIZE:-}
BUILD=build${SANITIZE:+-${SANITIZE/,/-}}   # commas separate options of the linker

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# minutes SECONDS: as words.
minutes() { if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi; }

# progress WHAT: of the output of a command on standard input, a line every PROGRESS_SECONDS, even while nothing comes: what ninja has built and the
# time left, else the last line.
progress() {
  local what=$1 every=${PROGRESS_SECONDS:-20} start=$SECONDS due wait piece line='' last='' built=0 total=0 work=0 done=0 object
  local -A cost=()
  if [ -s "$BUILD/plan" ]; then while read -r piece object; do cost[$object]=$piece; work=$((work + piece)); done <"$BUILD/plan"; fi
  due=$((SECONDS + every))
  while :; do
    wait=$((due - SECONDS))
    if [ "$wait" -le 0 ]; then
      say_progress
      due=$((SECONDS + every))
    elif IFS= read -r -t "$wait" piece; then   # read takes a byte at a time from a pipe; mawk would wait for 4 kB
      line+=$piece
      if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*\ )?([^ ]+)$ ]]; then
        built=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
        [ $((2 * ${#cost[@]})) -ge "$total" ] || work=0   # most files are compiled again
        done=$((done + ${cost[${BASH_REMATCH[4]}]:-0}))
      fi
      [[ ! $line =~ [^[:space:]] ]] || last=$line
      line=
    elif [ $? -gt 128 ]; then
      line+=$piece   # the time is over
    else
      break          # the output is
    fi
  done
  [ "$total" -eq 0 ] || [ "$built" -lt "$total" ] || say "built $built of $total in $(minutes $((SECONDS - start)))"
}

# say_progress: the line of progress, from its variables. What is being compiled counts as half built.
say_progress() {
  local time=$((SECONDS - start)) all=$work share=$done open=$((total - built)) running=${jobs:-1} left=
  if [ "$total" -eq 0 ]; then say "$what: $(minutes "$time")${last:+; ${last:0:80}}"; return; fi
  [ "$work" -gt 0 ] || all=$((100 * total)) share=$((100 * built))
  [ "$running" -le "$open" ] || running=$open
  [ "$open" -eq 0 ] || share=$((share + (all - share) * running / (2 * open)))
  if [ $((20 * share)) -ge "$all" ] && [ "$share" -lt "$all" ]; then left=", about $(minutes $((time * (all - share) / share + 1))) left"; fi
  say "built $built of $total in $(minutes "$time")$left"
}

# plan TARGET...: a line for each object that is missing: how long it takes in comparison, and its name. Measured: two seconds and one for each 7 kB,
# and twice that with LibTorch's headers.
plan() {
  ninja -C "$BUILD" -t commands "$@" 2>/dev/null | python3 -c '
import os, re, sys
os.chdir(sys.argv[1])
for line in sys.stdin:
    for name, source in re.findall(r" -o (\S+) -c (\S+)", line):
        if os.path.exists(name): continue
        parts = re.findall("#include \"(/.*)\"", open(source).read()) if "/Unity/" in source else [source]
        size = 50000 if name.endswith(".gch") else sum(map(os.path.getsize, parts))
        print((2 if "torch/include" in line else 1) * (200 + size // 70), name)
' "$BUILD" 2>/dev/null
}

# logged LOG WHAT COMMAND...: runs a command, its output in a file; says that it goes on.
logged() {
  local log=$1 what=$2
  shift 2
  "$@" 2>&1 | tee "$log" | progress "$what"
}

# manager: what installs packages here, or nothing.
manager() { local name; for name in apt-get dnf pacman; do ! command -v $name >/dev/null || { echo $name; return; }; done; }

# missing_packages NAME...: those that are not installed.
missing_packages() {
  local name
  case $(manager) in
    apt-get) for name in "$@"; do dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || echo "$name"; done ;;
    dnf) for name in "$@"; do rpm -q --whatprovides "$name" >/dev/null 2>&1 || echo "$name"; done ;;
    pacman) pacman -T "$@" || true ;;
  esac
}

# install_packages NAME...: installs those that are missing.
install_packages() {
  local missing root=() install
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] && return
  case $(manager) in
    apt-get) install=(apt-get install -y -qq) ;;
    dnf) install=(dnf install -y -q) ;;
    pacman) install=(pacman -S --needed --noconfirm) ;;
  esac
  install+=("${missing[@]}")
  [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null || die "packages are missing, and there is neither root nor sudo; ask an administrator to run: ${install[*]}; or install a wheel, which needs none of them (docs/installing.md)"; root=(sudo); }
  say "installing ${missing[*]}"
  # What was stopped in the midst of its packages is gone on with by dpkg alone.
  system_install() {
    local quietly=("${root[@]}" env DEBIAN_FRONTEND=noninteractive)
    [ "$(manager)" != apt-get ] || { "${quietly[@]}" dpkg --configure -a && "${quietly[@]}" apt-get update -qq; } && "${quietly[@]}" "${install[@]}"
  }
  logged build/packages.log "installing packages" system_install || die "${install[0]} failed; see build/packages.log, or install them by hand: ${missing[*]}"
}

# LibTorch: from CMAKE_PREFIX_PATH if set, else the CPU wheel of PyTorch, installed in the build folder.
find_libtorch() {
  if [ -n "${CMAKE_PREFIX_PATH:-}" ]; then return; fi
  local venv=build/venv torch
  torch=$(echo "$venv"/lib/python3*/site-packages/torch)
  if [ ! -e "$torch/share/cmake/Torch/TorchConfig.cmake" ]; then
    say "downloading LibTorch $TORCH_VERSION (the CPU wheel of torch, about 200 MB)"
    python3 -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
    pip_install() { PYTHONUNBUFFERED=1 "$venv/bin/pip" install --no-deps --disable-pip-version-check --progress-bar off "$@"; }
    torch_install() { pip_install "torch==$TORCH_VERSION+cpu" || pip_install "torch==$TORCH_VERSION"; }
    logged build/pip.log "installing LibTorch" torch_install ||
      die "pip cannot install torch $TORCH_VERSION; see build/pip.log, or provide a LibTorch: CMAKE_PREFIX_PATH=/path/to/libtorch $0"
    torch=$(echo "$venv"/lib/python3*/site-packages/torch)
    if [ -e "$torch/lib/libtorch_cuda.so" ]; then
      rm -rf "$venv"
      die "pip found the GPU build of torch alone; name the index of CPU wheels that PyTorch's page of installation has: PIP_EXTRA_INDEX_URL=ADDRESS $0; or a folder with the CPU wheel of torch $TORCH_VERSION: PIP_FIND_LINKS=/path/to/folder $0; or a LibTorch: CMAKE_PREFIX_PATH=/path/to/libtorch $0"
    fi
  fi
  export CMAKE_PREFIX_PATH="$PWD/$torch/share/cmake"
}

# find_arrow: the C++ library of Arrow in the wheel of pyarrow, installed in the build folder.
find_arrow() {
  local venv=build/arrow
  compgen -G "$venv/lib/python3*/site-packages/pyarrow/libparquet.so.*" >/dev/null && return
  say "downloading Arrow $ARROW_VERSION (the wheel of pyarrow, about 55 MB)"
  python3 -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
  logged build/arrow.log "installing Arrow" "$venv/bin/pip" install -q --no-deps --disable-pip-version-check "pyarrow==$ARROW_VERSION" ||
    die "pip cannot install pyarrow $ARROW_VERSION; see build/arrow.log, or configure with -DCLOZE_ARROW=/path/to/pyarrow"
}

# find_formatter: the clang-format version that tests/format.sh requires, installed in the build folder.
find_formatter() {
  local venv=build/format
  [ "$("$venv/bin/clang-format" --version 2>/dev/null | grep -o '[0-9.]*' | head -n 1)" = "$CLANG_FORMAT_VERSION" ] && return
  say "installing clang-format $CLANG_FORMAT_VERSION for the tests"
  python3 -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
  logged build/format.log "installing clang-format" "$venv/bin/pip" install -q --disable-pip-version-check "clang-format==$CLANG_FORMAT_VERSION" ||
    die "pip cannot install clang-format $CLANG_FORMAT_VERSION; see build/format.log"
}

# find_peers: transformers and what it needs, which the tests beside it import, installed in the build folder. The torch
# of LibTorch is not installed twice.
find_peers() {
  local venv=build/peers libtorch
  [ "$(cat "$venv/installed" 2>/dev/null)" = "$PEERS" ] && return
  say "installing ${PEERS%% *} and what it needs for the tests beside it (about 210 MB)"
  rm -rf "$venv"
  python3 -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
  libtorch=$(echo "$PWD"/build/venv/lib/python3*/site-packages)
  [ ! -d "$libtorch/torch" ] || echo "$libtorch" >"$(echo "$venv"/lib/python3*/site-packages)/libtorch.pth"
  pip_peers() { "$venv/bin/pip" install -q --disable-pip-version-check "torch==$1" $PEERS; }
  peers_install() { pip_peers "$TORCH_VERSION+cpu" || pip_peers "$TORCH_VERSION"; }
  logged build/peers.log "installing transformers" peers_install ||
    die "pip cannot install torch $TORCH_VERSION with $PEERS; see build/peers.log, or leave out --peers"
  echo "$PEERS" >"$venv/installed"
}

# ninja_status: what ninja writes on a terminal before the name of a file: the time left, which it knows from 1.12 on, else the time so far.
ninja_status() {
  local version
  version=$(ninja --version 2>/dev/null) || true
  [[ $version =~ ^[0-9]+\.[0-9]+ ]] && [ "$(printf '1.12\n%s\n' "$version" | sort -V | head -n 1)" = 1.12 ] && echo '[%f/%t, %W left] ' || echo '[%f/%t, %p, %es] '
}

# build TARGET...
build() {
  local jobs memory
  jobs=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)   # a compiler process takes up to 1.5 GB
  [ "$memory" -ge 1 ] || memory=1
  [ "$jobs" -le "$memory" ] || jobs=$memory
  say "building with $jobs jobs"
  logged "$BUILD/cmake.log" "configuring with cmake" \
    cmake -S . -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$CMAKE_PREFIX_PATH" -DCLOZE_SANITIZE="$SANITIZE" ||
    { tail -n 20 "$BUILD/cmake.log" >&2; die "cmake failed; see $BUILD/cmake.log"; }
  rm -f "$BUILD/ninja.log" "$BUILD/plan"
  if [ -t 2 ]; then   # ninja keeps its status on one line, and errors above it; a log would take the terminal from it
    NINJA_STATUS=${NINJA_STATUS-$(ninja_status)} ninja -C "$BUILD" -j "$jobs" "$@" || die "the build failed; see above"
  else
    plan "$@" >"$BUILD/plan" || true
    NINJA_STATUS='[%f/%t] ' logged "$BUILD/ninja.log" "building" ninja -C "$BUILD" -j "$jobs" "$@" ||
      { grep -E "error|FAILED" "$BUILD/ninja.log" | head -n 20 >&2; die "the build failed; see $BUILD/ninja.log"; }
  fi
}

mkdir -p build "$BUILD"
case $(manager) in
  apt-get) install_packages $DEBIAN ;;
  dnf) install_packages $FEDORA ;;
  pacman) install_packages $ARCH ;;
  *)
    missing=$(for tool in cmake ninja g++ pkg-config python3; do command -v $tool >/dev/null || printf ' %s' $tool; done)
    [ -z "$missing" ] || die "missing:$missing, and there is no apt-get, dnf or pacman to install them; install what Debian calls" $DEBIAN ;;
esac
find_libtorch
