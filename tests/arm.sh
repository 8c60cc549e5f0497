#!/usr/bin/env bash
# Compiles the kernels (core/kernels) for Arm, runs them under qemu, and compares what they compute with those of this processor, which the tests hold to
# loops in double. Not part of the test run. Needs: build/, and apt-get install g++-aarch64-linux-gnu qemu-user-static
set -euo pipefail
cd "$(dirname "$0")/.."
for program in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$program" >/dev/null || { echo "not tested on Arm: $program is missing; apt-get install g++-aarch64-linux-gnu qemu-user-static"; exit 0; }
done
for kernel in attention kernels; do
  [ -f "build/kernels/${kernel}_portable.cpp" ] || { echo "build/kernels/${kernel}_portable.cpp is missing: configure build/ first"; exit 1; }
done
out=build/arm
mkdir -p "$out"
flags="-std=c++20 -O3 -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror -Wno-psabi -I."
aarch64-linux-gnu-g++ $flags -static core/kernels/{cpu,gemm,kernels,attention}.cpp build/kernels/{attention,kernels}_portable.cpp tests/arm/kernels.cpp -o "$out/arm"
g++ $flags tests/arm/kernels.cpp build/libcloze_core_kernels.a -o "$out/here"
CLOZE_ISA=portable "$out/here" >"$out/here.txt"
qemu-aarch64-static "$out/arm" >"$out/arm.txt"
python3 - "$out/here.txt" "$out/arm.txt" <<'P'
import sys
here, arm = ([line.split("\t") for line in open(path)] for path in sys.argv[1:])
assert [name for name, _ in here] == [name for name, _ in arm], "the kernels differ in name"
worst = 0
for (name, a), (_, b) in zip(here, arm):
    a, b = [float(x) for x in a.split()], [float(x) for x in b.split()]
    error = max(abs(x - y) / (abs(x) + 1) for x, y in zip(a, b))
    limit = 1e-2 if name.startswith("bf16") else 2e-5
    if len(a) != len(b) or not error <= limit: sys.exit(f"{name}: differs by {error:.2g} on Arm")
    worst = max(worst, error if limit < 1e-3 else 0)
print(f"{len(here)} results on Arm equal those of this processor; in fp32 they differ by {worst:.1g} at most")
P
