#!/usr/bin/env python3
"""Compiles the kernels of a GPU with NVIDIA's compiler, for cards of three generations; no card is needed.

    tests/acceptance/nvrtc.py

Without the environment of `./test --peers`, which has the compiler, the test is skipped.
"""
import ctypes
import sys
from pathlib import Path

import peers

peers.enter(__file__)
KERNELS = Path(__file__).resolve().parents[2] / "core/device/kernels.cu"


def library():
    for folder in map(Path, sys.path):
        for found in folder.glob("nvidia/*/lib/libnvrtc.so.[0-9]*"):
            for builtins in found.parent.glob("libnvrtc-builtins.so.[0-9]*"):
                ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(found)
    sys.exit("the environment has no NVRTC")


def text_of(nvrtc, program, what):
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


nvrtc, failed = library(), 0
for card in ("sm_80", "sm_90", "sm_100"):
    for element in ("float", "bf16"):
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), KERNELS.read_bytes(), b"kernels.cu", 0, None, None)
        options = [f"--gpu-architecture={card}".encode(), b"--std=c++17", f"-DELEMENT={element}".encode()]
        status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if status == 0 and len(text_of(nvrtc, program, "CUBIN")) > 1000:
            print(f"ok   {card} {element}")
        else:
            failed = 1
            print(f"BAD  {card} {element}\n{text_of(nvrtc, program, 'ProgramLog').decode()}")
sys.exit(failed)
