# Builds for Arm on another processor, with Debian's crossbuild-essential-arm64 and the libraries of arm64:
#   cmake -G Ninja -B build-aarch64 -DCMAKE_TOOLCHAIN_FILE=packaging/aarch64.cmake -DCMAKE_PREFIX_PATH=FOLDER/torch
# FOLDER has torch's wheel for aarch64, unpacked. Tests run under qemu, where that is there. docs/installing.md
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
find_program(QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU} -L /usr/aarch64-linux-gnu)
endif()
