# Sourced by ./quickstart and ./test: installs missing dependencies and builds Cloze into build/ (with SANITIZE=address into build-address/,
# from the LibTorch of build/).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

PACKAGES="build-essential cmake ninja-build pkg-config python3 python3-venv libsentencepiece-dev libyaml-cpp-dev libcli11-dev
  libspdlog-dev nlohmann-json3-dev libxxhash-dev libutf8proc-dev libonig-dev libboost-math-dev liblbfgs-dev zlib1g-dev liblzma-dev libgoogle-perftools-dev catch2 ccache mold"
TORCH_VERSION=2.13.0
CLANG_FORMAT_VERSION=23.1.5
SANITIZE=${SANITIZE:-}
BUILD=build${SANITIZE:+-${SANITIZE/,/-}}   # commas separate options of the linker

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# install_packages NAME...: installs missing Debian packages.
install_packages() {
  local missing=()
  for name in "$@"; do dpkg -s "$name" >/dev/null 2>&1 || missing+=("$name"); done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "missing packages, and no apt-get to install them: ${missing[*]}"
  local root=()
  [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null || die "neither root nor sudo; ask an administrator to run: apt-get install ${missing[*]}"; root=(sudo); }
  say "installing ${missing[*]}"
  { "${root[@]}" apt-get update -qq && DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq "${missing[@]}"; } >build/apt.log 2>&1 ||
    die "apt-get failed; see build/apt.log, or install manually: ${missing[*]}"
}

# LibTorch: from CMAKE_PREFIX_PATH if set, else the CPU wheel of PyTorch, installed in the build folder.
find_libtorch() {
  if [ -n "${CMAKE_PREFIX_PATH:-}" ]; then return; fi
  local venv=build/venv torch
  torch=$(echo "$venv"/lib/python3*/site-packages/torch)
  if [ ! -e "$torch/share/cmake/Torch/TorchConfig.cmake" ]; then
    say "downloading LibTorch $TORCH_VERSION (the CPU wheel of torch, about 200 MB)"
    python3 -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
    "$venv/bin/pip" install -q --no-deps --disable-pip-version-check "torch==$TORCH_VERSION+cpu" >build/pip.log 2>&1 ||
      "$venv/bin/pip" install -q --no-deps --disable-pip-version-check "torch==$TORCH_VERSION" >>build/pip.log 2>&1 ||
      die "pip cannot install torch $TORCH_VERSION; see build/pip.log, or provide a LibTorch: CMAKE_PREFIX_PATH=/path/to/libtorch $0"
    torch=$(echo "$venv"/lib/python3*/site-packages/torch)
    if [ -e "$torch/lib/libtorch_cuda.so" ]; then
      rm -rf "$venv"
      die "pip installed the GPU build of torch without its CUDA libraries; make a CPU wheel available to pip, or provide a LibTorch: CMAKE_PREFIX_PATH=/path/to/libtorch $0"
    fi
  fi
  export CMAKE_PREFIX_PATH="$PWD/$torch/share/cmake"
}

# find_formatter: the clang-format version that tests/format.sh requires, installed in the build folder.
find_formatter() {
  local venv=build/format
  [ "$("$venv/bin/clang-format" --version 2>/dev/null | grep -o '[0-9.]*' | head -n 1)" = "$CLANG_FORMAT_VERSION" ] && return
  python3 -m venv "$venv" || die "python3 -m venv failed; install python3-venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "clang-format==$CLANG_FORMAT_VERSION" >build/format.log 2>&1 ||
    die "pip cannot install clang-format $CLANG_FORMAT_VERSION; see build/format.log"
}

# build_progress: of ninja's lines on standard input, one for each tenth of the build.
build_progress() {
  awk -F'[][/]' '/^\[[0-9]+\/[0-9]+\]/ {tenth = int(10 * $2 / $3); if (tenth > shown) {shown = tenth; print "built " $2 " of " $3; fflush()}}' >&2
}

# build TARGET...
build() {
  cmake -S . -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$CMAKE_PREFIX_PATH" -DCLOZE_SANITIZE="$SANITIZE" >"$BUILD/cmake.log" 2>&1 ||
    { tail -n 20 "$BUILD/cmake.log" >&2; die "cmake failed; see $BUILD/cmake.log"; }
  local jobs memory
  jobs=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)   # a compiler process takes up to 1.5 GB
  [ "$memory" -ge 1 ] || memory=1
  [ "$jobs" -le "$memory" ] || jobs=$memory
  say "building with $jobs jobs"
  rm -f "$BUILD/ninja.log"
  if [ -t 2 ]; then   # ninja keeps its status on one line, and errors above it; a log would take the terminal from it
    ninja -C "$BUILD" -j "$jobs" "$@" || die "the build failed; see above"
  else
    ninja -C "$BUILD" -j "$jobs" "$@" 2>&1 | tee "$BUILD/ninja.log" | build_progress ||
      { grep -E "error|FAILED" "$BUILD/ninja.log" | head -n 20 >&2; die "the build failed; see $BUILD/ninja.log"; }
  fi
}

mkdir -p build "$BUILD"
command -v apt-get >/dev/null || for tool in cmake ninja g++ python3; do command -v $tool >/dev/null || die "$tool is missing, and there is no apt-get to install it; install: $PACKAGES"; done
command -v apt-get >/dev/null && install_packages $PACKAGES
find_libtorch
