"""Two exercises whose answers are kernels, and what learners make of them: for the checks' tests and for the judge's.

In the first one the kernel itself is judged: the spec launches it. In the second one a function launches its own.
"""

import itertools
import linecache
from typing import Any

import numpy as np

from unrolled.checks import Budget, Spec
from unrolled.checks.spec import gpu_case, normal, random_gpu_case
from unrolled.device import array_module

THREADS = 64
_numbers = itertools.count()


def launched(kernel: Any, inputs: dict[str, Any]) -> Any:
    """Launch the kernel with as many blocks as the values need; the reference is called as it is."""
    x, y = inputs["x"], inputs["y"]
    xp = array_module(x)
    arguments = (x, y, xp.empty_like(x), np.int32(x.size))
    if xp is np:
        return kernel(*arguments)
    kernel(-(-x.size // THREADS), THREADS, arguments)
    return arguments[2]


def _any_vectors(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(3, 300))
    return {name: rng.standard_normal(n).astype("f4") for name in ("x", "y")}


NEAT = Budget(launches=1, own=1, read_sectors=1, written_sectors=1)
ADD = Spec(
    reference=lambda x, y, out, n: x + y,
    call=launched,
    cases=[
        gpu_case("130 values", NEAT, x=normal(130), y=normal(130)),
        random_gpu_case("any number", _any_vectors, NEAT),
    ],
    points=2,
    hints=("idea", "shapes", "code"),
)
TRANSPOSE = Spec(
    reference=lambda x: x.T.copy(),
    cases=[
        gpu_case(
            "64 x 96",
            Budget(
                launches=1,
                own=1,
                read_sectors=1.2,
                written_sectors=1.5,
                bank_conflicts=0,
                bytes_read=lambda inputs: 1.5 * inputs["x"].nbytes,
            ),
            x=normal(64, 96),
        )
    ],
    points=3,
    hints=("idea", "shapes", "code"),
)

HEAD = "import numpy as np\nfrom unrolled import simgpu as cp\nfrom unrolled.simgpu import jit\n"
_ADD = HEAD + "\n@jit.rawkernel()\ndef answer(x, y, out, n):\n"
GUARDED = _ADD + "    i = jit.grid(1)\n    if i < n:\n        out[i] = x[i] + y[i]\n"
WRONG = {
    "unguarded": (
        _ADD + "    i = jit.grid(1)\n    out[i] = x[i] + y[i]\n",
        (
            "line 8: out of bounds: thread (2, 0, 0) of block (2, 0, 0) reads x[130]; its shape is (130,)",
            "if i < n:",
            "below 0 is",
        ),
    ),
    "uncoalesced": (
        _ADD + "    i = jit.threadIdx.x * jit.gridDim.x + jit.blockIdx.x\n"
        "    if i < n:\n        out[i] = x[i] + y[i]\n",
        ("the kernels read ", "times the ", "at most 1 times allowed", "in line 9: out[i] = x[i] + y[i]"),
    ),
    "a sum by all": (
        _ADD + "    i = jit.grid(1)\n    if i < n:\n        out[i] = x[i] + y[i]\n    out[0] = cp.float32(i)\n",
        ("line 10: race: thread", "which another thread wrote, with no barrier between", "jit.syncthreads()"),
    ),
    "a difference": (_ADD + "    i = jit.grid(1)\n    if i < n:\n        out[i] = x[i] - y[i]\n", ("values differ",)),
    "refused": (_ADD + "    i = j = jit.grid(1)\n", ("raised UnsupportedError: line 7: an assignment to several",)),
    "other parameters": (_ADD.replace("n)", "n, m)") + "    pass\n", ("the function cannot be called as f(x=…",)),
}
"""Kernels that are no answer to ADD: a cell, and what the finding has to say."""

_TILED = """
TILE = 32

@jit.rawkernel()
def tiled(x, y, rows, columns):
    tile = jit.shared_memory(cp.float32, TILE * WIDTH)
    i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
    row, column = cp.int32(jit.blockIdx.y) * TILE, cp.int32(jit.blockIdx.x) * TILE
    for k in range(0, TILE, 8):
        if row + j + k < rows and column + i < columns:
            tile[(j + k) * WIDTH + i] = x[row + j + k, column + i]
    jit.syncthreads()
    for k in range(0, TILE, 8):
        if column + j + k < columns and row + i < rows:
            y[column + j + k, row + i] = tile[i * WIDTH + j + k]

def answer(x):
    rows, columns = x.shape
    y = cp.empty((columns, rows), x.dtype)
    tiled[(-(-columns // TILE), -(-rows // TILE)), (TILE, 8)](x, y, rows, columns)
    return y
"""
TILED = f"{HEAD}WIDTH = 33\n{_TILED}"
SCATTERED = {
    "naive": (
        HEAD + "@jit.rawkernel()\ndef naive(x, y, rows, columns):\n    i, j = jit.grid(2)\n"
        "    if j < rows and i < columns:\n        y[i, j] = x[j, i]\n\ndef answer(x):\n"
        "    y = cp.empty(x.shape[::-1], x.dtype)\n    naive[(4, 16), (32, 8)](x, y, *x.shape)\n    return y\n",
        ("the kernels write ", "at most 1.5 times allowed", "in line 8: y[i, j] = x[j, i]"),
    ),
    "banks": (f"{HEAD}WIDTH = 32\n{_TILED}", ("bank conflicts in shared memory, at most 0 allowed", "tile[i * WIDTH")),
    "the library's": (HEAD + "def answer(x):\n    return x.T.copy()\n", ("no launch of a kernel of your own",)),
    "a view beside a kernel": (
        HEAD + "@jit.rawkernel()\ndef idle(x):\n    pass\n\ndef answer(x):\n    idle[1, 32](x)\n    return x.T\n",
        ("24,576 of 24,576 bytes of the result were not written by a kernel of your own",),
    ),
    "the library's in the place of a kernel's": (
        f"{HEAD}WIDTH = 33\n{_TILED}\nown = answer\n\n"
        "def answer(x):\n    y = own(x)\n    y[5:] = x.T[5:]\n    return y\n",
        ("23,296 of 24,576 bytes of the result were not written",),
    ),
    "twice": (
        f"{HEAD}WIDTH = 33\n{_TILED}\nonce = answer\n\ndef answer(x):\n    once(x)\n    return once(x)\n",
        ("2 launches, at most 1 allowed", "bytes of global memory, at most"),
    ),
    "swallowed": (
        f"{HEAD}WIDTH = 33\n{_TILED}\nonce = answer\n\n@jit.rawkernel()\ndef far(x, y):\n    y[0, 0] = x[10**6, 0]\n\n"
        "def answer(x):\n    try:\n        far[1, 1](x, x)\n    except Exception:\n        pass\n    return once(x)\n",
        ("line 31: out of bounds: thread (0, 0, 0) of block (0, 0, 0) reads x[1000000, 0]",),
    ),
}
"""Functions that are no answer to TRANSPOSE."""


def answer(source: str) -> Any:
    """What a cell of this source calls `answer`. Its source can be found, as in a notebook."""
    name = f"<cell {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {}
    exec(compile(source, name, "exec"), names)
    return names["answer"]
