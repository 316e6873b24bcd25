"""Runs the CUDA source of our kernels on the CPU: g++ compiles it with stand-ins for what CUDA offers.

Blocks run one after the other. The threads of a block run one after the other, too, unless the source makes them meet:
then each runs up to where it waits for others, and they take turns in one order or the other, whatever the load.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from unrolled.kernels import kernel as kernels

COMPILER = shutil.which("g++")
STAND_INS = r"""
#include <math.h>
#include <string.h>
#define __global__
#define __device__
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)
#define __popc __builtin_popcount
struct uint4 { unsigned x, y, z, w; };
struct float4 { float x, y, z, w; };
#define __shared__ static
struct Dim { unsigned x; };
static Dim blockDim, blockIdx, threadIdx;
inline void __threadfence() {}
inline int atomicAdd(int* at, int more) { int before = *at; *at += more; return before; }  // blocks run in turn
template <class V> V __ldcg(const V* at) { return *at; }
inline int min(int a, int b) { return a < b ? a : b; }
inline float __int_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
"""
HALF = r"""
struct T {
    unsigned short bits;
    T() = default;
    T(float x) { _Float16 y = x; memcpy(&bits, &y, 2); }
    operator float() const { _Float16 y; memcpy(&y, &bits, 2); return y; }
    T& operator+=(float x) { return *this = T((float)*this + x); }
};
"""
MEETING = r"""
#include <ucontext.h>
struct Meeting { unsigned size, here, phase; };
static ucontext_t scheduler, threads[1024];
static char stacks[1024][1 << 16];
static bool ended[1024];
static Meeting block_meets, warp_meets[32];
static double shuffled[32][32];
inline void meet(Meeting& at) {
    unsigned me = threadIdx.x, phase = at.phase;
    if (++at.here == at.size) { at.here = 0; ++at.phase; }
    while (at.phase == phase) swapcontext(&threads[me], &scheduler);
}
template <class One> void together(unsigned block, One one) {
    static One* body;
    body = &one;
    block_meets = {block, 0, 0};
    for (auto& warp : warp_meets) warp = {32, 0, 0};
    for (unsigned t = 0; t < block; ++t) {
        ended[t] = false;
        getcontext(&threads[t]);
        threads[t].uc_stack.ss_sp = stacks[t];
        threads[t].uc_stack.ss_size = sizeof stacks[t];
        threads[t].uc_link = &scheduler;
        makecontext(&threads[t], [] { (*body)(threadIdx.x); ended[threadIdx.x] = true; }, 0);
    }
    for (unsigned left = block; left;)
        for (unsigned i = 0; i < block; ++i) {
            unsigned t = blockIdx.x % 2 ? block - 1 - i : i;  // who comes first must not matter
            if (ended[t]) continue;
            threadIdx.x = t;
            swapcontext(&scheduler, &threads[t]);
            left -= ended[t];
        }
}
inline void __syncthreads() { meet(block_meets); }
inline void __syncwarp() { meet(warp_meets[threadIdx.x / 32]); }
template <class V> V __shfl_sync(unsigned, V value, int from) {
    unsigned warp = threadIdx.x / 32;
    shuffled[warp][threadIdx.x % 32] = value;
    __syncwarp();
    V other = (V)shuffled[warp][from];
    __syncwarp();
    return other;
}
template <class V> V __shfl_xor_sync(unsigned all, V value, int far) {
    return __shfl_sync(all, value, threadIdx.x % 32 ^ far);
}
inline unsigned __ballot_sync(unsigned all, bool yes) {
    unsigned found = 0;
    for (int lane = 0; lane < 32; ++lane) found |= (unsigned)__shfl_sync(all, (int)yes, lane) << lane;
    return found;
}
"""
ALONE = "for (unsigned t = 0; t < block; ++t) one(t);"
TOGETHER = "blockIdx.x = b; together(block, one);"
RUN = r"""
extern "C" void EXPORTED(unsigned blocks, unsigned block, PARAMETERS) {
    blockDim.x = block;
    for (unsigned b = 0; b < blocks; ++b) {
        auto one = [=](unsigned t) { blockIdx.x = b; threadIdx.x = t; NAME(ARGUMENTS); };
        THREADS
    }
}
"""
UNDEFINE = "".join(f"#undef {name}\n" for name in kernels.FUNCTIONS)

Version = tuple[kernels.Kernel, str, kernels.Constants]
"""A kernel, the character of its dtype, its constants: what CuPy would compile once."""


def launch(library: Library, kernel: kernels.Kernel, inputs: Any, outputs: Any, options: dict[str, Any]) -> None:
    """As CuPy would: the same code, threads and arguments; for arrays of NumPy in C order."""
    size = kernel.size(inputs, outputs)
    if not size:
        return
    doubles = [ctypes.c_double(value) for value in options.values() if isinstance(value, float)]
    run = library.run(version(kernel, inputs, options))
    pointers = [
        np.ctypeslib.as_ctypes(x.reshape(-1).view("H" if x.dtype.char == "e" else x.dtype)) for x in (*inputs, *outputs)
    ]
    block = options.get("block", kernel.block)
    run(-(-kernel.threads(size, options) // block), block, *pointers, ctypes.c_int(size), *doubles)


def version(kernel: kernels.Kernel, inputs: Any, options: dict[str, Any]) -> Version:
    """What a launch with these needs to have compiled."""
    constants = kernels.constants(**{name: int(x) for name, x in options.items() if not isinstance(x, float)})
    return kernel, inputs[0].dtype.char, constants


class Library:
    """Versions of kernels, compiled together: most of the compiler's time goes to the headers of C++."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self._names = {one: f"run_{number}" for number, one in enumerate(dict.fromkeys(versions))}
        folder = Path(mkdtemp())
        source = folder / "kernels.cpp"
        source.write_text(STAND_INS + MEETING + "".join(_source(one, name) for one, name in self._names.items()))
        assert COMPILER
        options = ("-std=c++17", "-w", "-shared", "-fPIC", "-fno-strict-aliasing")
        subprocess.run([COMPILER, *options, source, "-o", folder / "kernels.so"], check=True)
        self._loaded = ctypes.CDLL(str(folder / "kernels.so"))
        shutil.rmtree(folder)

    def run(self, wanted: Version) -> Any:
        return getattr(self._loaded, self._names[wanted])


def _source(one: Version, exported: str) -> str:
    """A version in a namespace of its own, and the function that runs its blocks."""
    kernel, dtype, constants = one
    code = kernels.code(kernel, constants, dtype, False).replace('extern "C" ', "").replace(kernels.HALF, HALF)
    code = re.sub(r"extern __shared__ (.*)\[\];", r"static \1[1 << 14];", code)  # as large as a launch may ask for
    found = re.search(rf"void[^;{{]* {kernel.name}\(\s*(.*?)\) {{", code, re.DOTALL)
    assert found, "the source has no function of the kernel's name"
    parameters = " ".join(found[1].split())
    names = ", ".join(parameter.split()[-1].lstrip("*") for parameter in parameters.split(","))
    run = RUN.replace("PARAMETERS", parameters).replace("NAME", f"{exported}_code::{kernel.name}")
    run = run.replace("ARGUMENTS", names).replace("EXPORTED", exported)
    run = run.replace("THREADS", TOGETHER if "_sync" in code or "__syncthreads" in code else ALONE)
    return f"namespace {exported}_code {{\n{code}\n{run}\n}}\n{UNDEFINE}"
