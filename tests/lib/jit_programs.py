"""Kernels as text, for `cupyx.jit` and for the simulated compiler alike: what is accepted, what is refused, and how.

A program sees `jit`, `cp`, `np` and `math`, and the names of `NAMES`. A refused one may be refused on a GPU by CuPy or,
a step later, by CUDA's compiler.
"""

# ruff: noqa: E501

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from unrolled.simgpu.lockstep.faults import CompileException

THREADS = 64
_numbers = itertools.count()
NAMES: dict[str, Any] = {
    "TILE": 8,
    "HALF": 0.5,
    "SIZES": (3, 4),
    "CONFIG": SimpleNamespace(WIDTH=5),
    "z": 5,
    "THING": object(),
}


def kernel(source: str, jit: Any, cp: Any, **names: Any) -> Any:
    """The kernel that the text defines, made with `@jit.rawkernel()`; its source can be found, as in a notebook."""
    name = f"<kernel {next(_numbers)}>"
    text = source.strip("\n") + "\n"
    if not text.startswith("@"):
        text = "@jit.rawkernel()\n" + text
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"jit": jit, "cp": cp, "np": np, "math": math, **NAMES, **names}
    exec(compile(text, name, "exec"), namespace)
    return namespace[text.rpartition("\ndef ")[2].partition("(")[0].strip()]


@dataclass(frozen=True)
class Program:
    """A kernel and its arguments: arrays of the host (the first one is the output), and numbers."""

    name: str
    source: str
    arguments: Sequence[Any] = field(default_factory=lambda: (np.zeros(THREADS, "f"), np.arange(THREADS, dtype="f")))
    refused: tuple[type[BaseException], ...] = ()
    words: str = ""

    def run(self, jit: Any, cp: Any) -> Any:
        """The output, on the host again, after a launch of one block."""
        arguments = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in self.arguments]
        kernel(self.source, jit, cp)[1, THREADS](*arguments)
        return arguments[0].get()


def body(*lines: str, parameters: str = "y, x") -> str:
    """A kernel of these lines."""
    return "\n".join([f"def kernel({parameters}):", *(f"    {line}" for line in lines)])


def accepted(name: str, *lines: str, dtype: str = "f", more: Sequence[Any] = (), parameters: str = "y, x") -> Program:
    """A program that writes y from x = 0, 1, 2, … (float32) and gives what `EXPECTED` says."""
    arguments = (np.zeros(THREADS, dtype), np.arange(THREADS, dtype="f"), *more)
    return Program(name, body(*lines, parameters=parameters), arguments)


T = "t = jit.threadIdx.x"
I = "i = cp.int32(jit.threadIdx.x)"  # noqa: E741
t = np.arange(THREADS)
f32 = np.float32

ACCEPTED: list[tuple[Program, Any]] = [
    (accepted("an index is unsigned", T, "y[t] = (t - 1) > t", dtype="i"), t == 0),
    (accepted("an unsigned index and a number", T, "y[t] = (t + 3) * 2", dtype="i"), (t + 3) * 2),
    (accepted("an unsigned index compares with int32", T, "y[t] = t < n", dtype="i", more=[7], parameters="y, x, n"), t < 7),
    (accepted("int32 goes with int64", T, "y[t] = t + x.shape[0]", dtype="q"), t + 64),
    (accepted("unsigned goes into int32", I, "i = jit.threadIdx.x * 2", "y[i // 2] = i", dtype="i"), np.r_[: 2 * 64 : 2]),
    (accepted("whole numbers divide down", I, "y[i] = (i - 32) // 5", dtype="i"), (t - 32) // 5),
    (accepted("whole numbers leave a positive rest", I, "y[i] = (i - 32) % 5", dtype="i"), (t - 32) % 5),
    (accepted("division by 0 is 0", I, "y[i] = i // (i - i) + i % (i - i)", dtype="i"), 0 * t),
    (accepted("true division is float64", I, "y[i] = i / 7", dtype="d"), t / 7),
    (accepted("float32 stays float32", I, "y[i] = x[i] * 0.1", dtype="d"), (t.astype("f") * f32(0.1)).astype("d")),
    (accepted("float literals are float32", I, "y[i] = 0.1", dtype="d"), np.full(64, f32(0.1), "d")),
    (accepted("int is int64, float is float64", I, "y[i] = int(x[i]) * 2**31 + float(i)", dtype="d"), t * 2.0**31 + t),
    (accepted("a variable keeps its type", I, "a = 0.5", "a = i", "y[i] = a / 2"), t / 2),
    (accepted("an int32 wraps around", I, "y[i] = (i + 2147483000) + 1000", dtype="i"), (t + 2147484000).astype("i")),
    (accepted("constants are Python's", I, "y[i] = -7 // 2 + 2**3 - (6 % 4) + (not 0)"), 0 * t + 3),
    (accepted("constants of the program", I, "y[i] = TILE * HALF + SIZES[1] + CONFIG.WIDTH + math.pi"), 0 * t + 13 + f32(math.pi)),
    (accepted("infinity", I, "y[i] = -math.inf if i == 0 else float('inf')", dtype="d"), np.where(t == 0, -np.inf, np.inf)),
    (accepted("casts", I, "y[i] = cp.int32(x[i] * 0.5) + np.float32(0.25)"), t // 2 + 0.25),
    (accepted("a cast cuts", I, "y[i] = cp.int32(x[i] - 32.5)", dtype="i"), np.trunc(t - 32.5)),
    (accepted("a cast of a type by another name", "f = cp.int32", I, "y[i] = f(2.7)", dtype="i"), 0 * t + 2),
    (accepted("functions of CuPy", I, "y[i] = cp.sqrt(x[i]) + cp.exp(-x[i])"), np.sqrt(t.astype("f")) + np.exp(-t.astype("f"))),
    (accepted("a function of a whole number is float32", I, "y[i] = cp.sqrt(i)", dtype="d"), np.sqrt(t.astype("f")).astype("d")),
    (accepted("min and max", I, "y[i] = max(min(x[i], 40.0), 3.0, 5.0)"), np.clip(t, 5, 40)),
    (accepted("and decides first", I, "if i < 10 and x[i] > 3.0:", "    y[i] = 1.0"), (t < 10) & (t > 3)),
    (accepted("and guards an index", I, "y[i] = 1.0 if i > 0 and x[i - 1] > 3.0 else 0.0"), t > 4),
    (accepted("or and not", I, "y[i] = not (i < 10 or i > 20)", dtype="i"), (t >= 10) & (t <= 20)),
    (accepted("an expression with if", I, "y[i] = x[i] if i % 2 == 0 else -1"), np.where(t % 2, -1, t)),
    (accepted("bits", I, "y[i] = ((i << 3) | 1) ^ (i >> 1) & ~i", dtype="i"), ((t << 3) | 1) ^ ((t >> 1) & ~t)),
    (accepted("powers", I, "y[i] = i ** 2 + (-2) ** 3", dtype="i"), t**2 - 8),
    (accepted("a while loop", I, "s = 0", "k = i", "while k > 0:", "    s += k", "    k -= 1", "y[i] = s"), t * (t + 1) / 2),
    (accepted("break and continue", I, "s = 0", "for k in range(100):", "    if k == i:", "        break", "    if k % 2 == 0:", "        continue", "    s += k", "y[i] = s"), [sum(range(1, n, 2)) for n in t]),
    (accepted("a loop backwards", I, "s = 0", "for k in range(i, -1, -1):", "    s += k", "y[i] = s"), t * (t + 1) / 2),
    (accepted("a loop in strides of an index", T, "for k in range(t, 64, jit.blockDim.x):", "    y[k] = x[k]"), t),
    (accepted("the counter stays", I, "for k in range(i + 1):", "    pass", "y[i] = k"), t),
    (accepted("jit.range", I, "s = 0", "for k in jit.range(4, unroll=True):", "    s += k", "y[i] = s"), 0 * t + 6),
    (accepted("a loop that a constant begins", I, "while True:", "    y[i] += 1.0", "    if y[i] > 3.0:", "        break"), 0 * t + 4),
    (accepted("a branch that a constant chooses", I, "if TILE > 100:", "    y[0] = nothing", "else:", "    y[i] = 1.0"), 0 * t + 1),
    (accepted("sizes", I, "n, = x.shape", "y[i] = x.size + len(x) + x.ndim + n + x.strides[0]"), 0 * t + 3 * 64 + 5),
    (accepted("tuples", I, "a, b = i, 2 * i", "p = (b, a)", "y[i] = p[0] - p[1]"), t),
    (accepted("grid and gridsize", "i, j = jit.grid(2)", "w, h = jit.gridsize(2)", "y[i] = i + j + w + h"), t + 64 + 1),
    (accepted("laneid and warpsize", T, "y[t] = jit.laneid() < jit.warpsize and jit.laneid() > 3"), t % 32 > 3),
    (accepted("a pointer into shared memory", T, "s = jit.shared_memory(cp.float32, 64)", "p = s + 1", "s[t] = x[t]", "jit.syncthreads()", "y[t] = p[t % 63]"), t % 63 + 1),
    (accepted("all dimensions have y and z", "y[jit.threadIdx.x] = jit.blockDim.y + jit.gridDim.z + jit.blockIdx.x"), 0 * t + 2),
    (accepted("atomics", T, "jit.atomic_add(y, t % 2, 1)", "jit.atomic_max(y, 2, t)", "jit.atomic_min(y, 3, -cp.int32(t))", dtype="i"), np.r_[32, 32, 63, -63, [0] * 60]),
    (accepted("a swap by atomic_cas", T, "if jit.atomic_cas(y, 0, 0, 1) == 0:", "    y[1] = 1", dtype="i"), np.r_[1, 1, [0] * 62]),
    (accepted("shuffles", T, "v = x[t]", "y[t] = jit.shfl_xor_sync(0xffffffff, v, 1) + jit.shfl_down_sync(0xffffffff, v, 2)"), (t ^ 1) + np.where(t % 32 < 30, t + 2, t)),
    (accepted("shuffles in parts of a warp", T, "v = x[t]", "y[t] = jit.shfl_sync(0xffffffff, v, 0, width=8) + jit.shfl_up_sync(0xffffffff, v, 1, width=8)"), t // 8 * 8 + np.where(t % 8 > 0, t - 1, t)),
    (accepted("a return guards", I, "if i >= 10:", "    return", "y[i] = 1.0"), t < 10),
    (accepted("a name in both branches", I, "if i > 5:", "    v = 1", "else:", "    v = 2", "y[i] = v"), np.where(t > 5, 1, 2)),
    (accepted("a docstring and pass", '"""Says what."""', "pass", I, "y[i] = 1.0"), 0 * t + 1),
    (accepted("an assert on constants", I, "assert TILE == 8", "y[i] = 1.0"), 0 * t + 1),
    (accepted("np.int64 keeps its type", I, "y[i] = n + i", dtype="q", more=[np.int64(2**40)], parameters="y, x, n"), t + 2**40),
    (accepted("a parameter is a variable", I, "n = n + 1", "y[i] = n", more=[4], parameters="y, x, n"), 0 * t + 5),
    (Program("rows of a matrix", body(I, "row = x[i // 8]", "y[i] = row[i % 8] + x[1][2] + x[i // 8, 0]"), (np.zeros(64, "f"), t.reshape(8, 8).astype("f"))), t + 10 + t // 8 * 8),
    (Program("a view with strides", body(I, "y[i] = x[i % 8, i // 8]"), (np.zeros(64, "f"), t.reshape(8, 8).astype("f"))), t % 8 * 8 + t // 8),
    (Program("float16 computes in float32", body(I, "y[i] = x[i] * x[i] + x[i]"), (np.zeros(64, "e"), t.astype("e"))), (t * t + t).astype("e")),
    (Program("two of float16", body(I, "y[i] = (x[i] if i > 5 else x[0]) + max(x[i], 0.5) + min(x[i], x[1])"), (np.zeros(64, "f"), t.astype("e"))), np.where(t > 5, t, 0) + np.maximum(t, 0.5) + np.minimum(t, 1)),
    (Program("uint8 and bool", body(I, "y[i] = x[i] + (i > 3)"), (np.zeros(64, "B"), t.astype("B"))), t + (t > 3)),
    (Program("int8 multiplies in int32", body(I, "y[i] = x[i] * x[i]"), (np.zeros(64, "i"), (2 * t).astype("b"))), 4 * t * t),
    (Program("an int8 variable keeps the last bits", body(I, "v = x[i] * x[i]", "y[i] = v"), (np.zeros(64, "i"), (2 * t).astype("b"))), (4 * t * t).astype("b")),
    (Program("minus uint8 is negative", body(I, "y[i] = -x[i]"), (np.zeros(64, "i"), t.astype("B"))), -t),
    (accepted("a small integer keeps the last bits of a float", I, "y[i] = cp.int8(x[i] * 100)", dtype="i"), (100 * t).astype("b")),
    (Program("NaN in whole numbers", body("y[0] = cp.int64(x[0])", "y[1] = cp.int32(x[0])", "y[2] = cp.int32(cp.float32(x[0]))"), (np.zeros(3, "q"), np.full(64, np.nan))), [-(2**63), -(2**31), 0]),
    (accepted("a parameter called threadIdx", "y[0] = threadIdx", more=[1], parameters="y, x, threadIdx"), t == 0),
    (accepted("a float is held at the ends of int32", I, "y[i] = cp.int32(x[i] * 1e9)", dtype="i"), np.minimum(t * 1e9, 2.0**31 - 1)),
    (Program("an array without axes", body(I, "y[i] = x[()] + i"), (np.zeros(64, "f"), np.array(3, "f"))), t + 3),
    (Program("an index of two for atomics", body(I, "jit.atomic_add(x, (i % 2, 1), 1.0)", "jit.syncthreads()", "y[i] = x[1, 1]"), (np.zeros(64, "f"), np.zeros((2, 2), "f"))), 0 * t + 32),
    (accepted("arrays in a tuple", I, "p = (y, x)", "p[0][i] = p[1][i] + 1.0"), t + 1),
    (Program("a device function that writes", "@jit.rawkernel(device=True)\ndef put(a, i, v):\n    row = a\n    row[i] = v\n\n@jit.rawkernel()\ndef kernel(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    put(y, i, x[i])"), t),
    (Program("a device function", "@jit.rawkernel(device=True)\ndef twice(v, n):\n    if n > 5:\n        return v * 2\n    return v\n\n@jit.rawkernel()\ndef kernel(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    y[i] = twice(x[i], i)"), np.where(t > 5, 2 * t, t)),
]  # fmt: skip


def refused(
    name: str, kind: Any, words: str, *lines: str, more: Sequence[Any] = (), parameters: str = "y, x"
) -> Program:
    arguments = (np.zeros(THREADS, "f"), np.arange(THREADS, dtype="f"), *more)
    return Program(
        name, body(*lines, parameters=parameters), arguments, kind if isinstance(kind, tuple) else (kind,), words
    )


REFUSED: list[Program] = [
    refused("int32 into uint32", TypeError, "Cannot cast from 'int32' to uint32", T, "k = t + n", more=[1], parameters="y, x, n"),
    refused("a loop's counter and an index", TypeError, "Cannot cast from 'int32' to uint32", T, "for k in range(3):", "    y[t + k] = 0.0"),
    refused("a step added to an index", TypeError, "Cannot cast from 'int32' to uint32", T, "t += 1"),
    refused("int32 assigned to unsigned", TypeError, "Cannot cast from 'int32' to uint32", T, "t = 1 + cp.int32(2) * cp.int32(t)"),
    refused("a float into a whole number", TypeError, "Cannot cast from 'float32' to int32", "s = 0", "s = x[0]"),
    refused("a float added to a whole number", TypeError, "float32", "s = 0", "s += x[0]"),
    refused("a negative number for an index", OverflowError, "-1", T, "y[t] = t + (-1)"),
    refused("a variable that is a word of C++", CompileException, "`double` is a word of C", "double = 2 * x[0]"),
    refused("a counter that is a word of C++", CompileException, "`new` is a word of C", "for new in range(3):", "    y[0] = 1.0"),
    refused("a parameter that is a word of C++", CompileException, "`new` is a word of C", "y[0] = 1.0", more=[1], parameters="y, x, new"),
    *(Program(f"a kernel called {name}", f"def {name}(y, x):\n    y[0] = 1.0", refused=(CompileException,), words="CUDA's headers") for name in ("max", "exp", "half", "main", "printf", "std")),
    refused("a parameter called NULL", CompileException, "NULL", "y[0] = 1.0", more=[1], parameters="y, x, NULL"),
    refused("a parameter that hides threadIdx", CompileException, "hides", T, more=[1], parameters="y, x, threadIdx"),
    refused("a constant that does not fit", OverflowError, "out of bounds", "y[0] = cp.int8(300.0)"),
    refused("int64 with uint64", TypeError, "Cannot cast from 'int64' to uint64", "y[0] = n + cp.uint64(x[0])", more=[np.int64(3)], parameters="y, x, n"),
    *(
        Program(f"float16 of an array {name}", body(f"y[0] = {text}"), (np.zeros(64, "f"), t.astype("e")), (CompileException,), "float16")
        for name, text in {"or a number": "x[0] if x[1] > 0 else 0.5", "with a computed one": "min(x[0], -x[1])"}.items()
    ),
    Program("float16 in place", body("y[0] += cp.float16(1)"), (np.zeros(64, "e"), t), (CompileException,), "float16"),
    Program("float16 in place, and then a float into a whole number", body("y[0] += cp.float16(1)", "s = 0", "s += x[0]"), (np.zeros(64, "e"), np.zeros(1)), (TypeError,), "float64"),
    refused("the sign of a float", NotImplementedError, "sign does not take float32", "y[0] = cp.sign(x[0])"),
    refused("an unknown name", NameError, "'nothing' is not known", "y[0] = nothing"),
    refused("a name set later", NameError, "'late' is not known", "for k in range(3):", "    y[0] = late", "    late = 1.0"),
    refused("print", TypeError, "print", "print(x[0])"),
    refused("abs", TypeError, "abs cannot be called", "y[0] = abs(x[0])"),
    refused("NumPy's function", TypeError, "cannot be called", "y[0] = np.exp(x[0])"),
    refused("a function of math", TypeError, "cannot be called", "y[0] = math.exp(x[0])"),
    refused("a float as an index", TypeError, "whole number", "y[x[0]] = 1.0"),
    refused("too many indices", IndexError, "2 indices", "y[0, 0] = 1.0"),
    refused("a slice", (ValueError, TypeError), "", "y[0:2] = 1.0"),
    refused("an index of a number", TypeError, "no parts", "a = 1", "y[0] = a[0]"),
    refused("an unknown attribute", AttributeError, "dtype", "y[0] = x.dtype"),
    refused("an unknown name of jit", AttributeError, "nothing", "jit.nothing()"),
    refused("a chain of comparisons", NotImplementedError, "chain", "y[0] = 0 < x[0] < 1"),
    refused("is", KeyError, "Is", "y[0] = x[0] is x[1]"),
    refused("a plus sign", KeyError, "UAdd", "y[0] = +x[0]"),
    refused("minus a bool", TypeError, "", "y[0] = -(x[0] > 1)"),
    refused("and on arrays", TypeError, "", "y[0] = x and y"),
    refused("bits of a float", TypeError, "does not take float32", "y[0] = x[0] & 1"),
    refused("a matrix product", KeyError, "MatMult", "y[0] = x @ x"),
    refused("a class", NotImplementedError, "class", "class A:", "    pass"),
    refused("a nested function", NotImplementedError, "function of its own", "def inner():", "    return 1"),
    refused("a lambda inside", NotImplementedError, "", "g = lambda a: a"),
    refused("del", NotImplementedError, "delete", "del x"),
    refused("with", ValueError, "with", "with x:", "    pass"),
    refused("try", ValueError, "neither raises nor catches", "try:", "    pass", "except ValueError:", "    pass"),
    refused("raise", ValueError, "neither raises nor catches", "raise ValueError"),
    refused("import", ValueError, "import", "import os"),
    refused("global", ValueError, "outside", "global TILE"),
    refused("a list", ValueError, "no meaning", "a = [1, 2]"),
    refused("a formatted text", ValueError, "no meaning", "a = f'{x}'"),
    refused("a comprehension", ValueError, "no meaning", "a = {k for k in range(3)}"),
    refused("a loop over a tuple", (NotImplementedError, AttributeError), "", "for v in SIZES:", "    pass"),
    refused("else of a loop", NotImplementedError, "else", "for k in range(3):", "    pass", "else:", "    pass"),
    refused("else of while", NotImplementedError, "else", "while x[0] > 0:", "    pass", "else:", "    pass"),
    refused("two targets", NotImplementedError, "", "a = b = 1"),
    refused("range of a float", TypeError, "whole numbers", "for k in range(x[0]):", "    pass"),
    refused("a value returned", ValueError, "it returns float32", "return x[0]"),
    refused("unequal types of a choice", TypeError, "chooses between", "y[0] = x[0] if x[0] > 0 else jit.threadIdx.x"),
    refused("a size that only threads know", TypeError, "before the kernel runs", "n = 32", "s = jit.shared_memory(cp.float32, n)"),
    refused("a grid of 4 axes", ValueError, "1, 2 or 3", "i = jit.grid(4)"),
    refused("atomic_max of a float", TypeError, "takes no float32", "jit.atomic_max(y, 0, 1.0)"),
    refused("an atomic operation on a number", TypeError, "of an array", "a = 1", "jit.atomic_add(a, 0, 1)"),
    refused("a mask out of range", ValueError, "0xffffffff", "v = jit.shfl_sync(2**32, x[0], 0)"),
    refused("a width that is no power of 2", ValueError, "2, 4, 8", "v = jit.shfl_sync(0xffffffff, x[0], 0, width=5)"),
    refused("an array assigned to another", TypeError, "cannot take", "a = x[0]", "a = x"),
    refused("too few to unpack", ValueError, "unpack", "a, b, c = (x[0], 1)"),
    refused("a constant changed", (TypeError, AttributeError, NameError), "", "TILE += 1"),
    refused("a variable with the name of something outside", TypeError, "outside the kernel", "z = jit.threadIdx.z"),
    refused("min of one", TypeError, "two numbers", "y[0] = min(x[0])"),
    refused("unknown keyword", TypeError, "", "jit.syncthreads(mask=1)"),
    refused("star arguments", NotImplementedError, "args", "pass", parameters="*y"),
    refused("default values", NotImplementedError, "efault", "pass", parameters="y, x, n=1"),
    refused("one argument too few", TypeError, "positional", "pass", parameters="y, x, n"),
    refused("a division of constants by 0", ZeroDivisionError, "", "y[0] = 1 // 0"),
    refused("a text as a number", (NotImplementedError, TypeError), "", "y[0] = 'a'"),
    refused("any object", (NotImplementedError, TypeError), "", "y[0] = THING"),
]  # fmt: skip
