"""Two exercises on CUDA graphs, and what learners make of them: for the checks' tests and for the judge's."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks import Budget, Spec, graphs
from unrolled.checks.spec import Draw, gpu_case, normal

HEAD = "from unrolled import device\n"


def step(x: Any, total: Any, count: Any) -> None:
    """The library's answer: total = 2x + count, and count goes up."""
    total[...] = 2 * x + count
    count += 1


def _capture(function: Any, inputs: Any) -> Any:
    buffers = {name: inputs[name] for name in ("x", "total", "count")}
    return graphs.replayed(function, buffers, [{"x": batch} for batch in inputs["batches"]], ["total", "count"])


def _batches(rng: np.random.Generator) -> list[Any]:
    return list(rng.standard_normal((3, 4)).astype("f4"))


def _zero(rng: np.random.Generator) -> Any:
    return np.zeros(1, "f4")


STEP = Spec(
    reference=step,
    cases=[
        gpu_case(
            "captured", Budget(nodes=3, made=0, graphs=3, synchronizations=2),
            x=normal(4), total=normal(4), count=Draw(_zero), batches=Draw(_batches),
        )
    ],
    points=2,
    hints=("idea", "shapes", "code"),
    call=_capture,
    on_real=False,
)  # fmt: skip
"""A step that the judge captures, and launches on three batches."""


def epoch(x: Any, steps: int) -> Any:
    """The library's answer: x + steps."""
    return x + steps


EPOCH = Spec(
    reference=epoch,
    cases=[gpu_case("five steps", Budget(graphs=5, launches=7, transfers=None, synchronizations=None),
                    x=normal(4), steps=5)],
    points=1,
    hints=("idea", "shapes", "code"),
)  # fmt: skip
"""A loop that the learner captures."""

RIGHT = (
    HEAD
    + """
def answer(x, total, count):
    xp = device.array_module(x)
    xp.multiply(x, 2, out=total)
    total += count
    count += 1
"""
)

WRONG = {  # the source, the verdict, and what is said
    "a counter of the host": (
        HEAD + "calls = []\n"
        "def answer(x, total, count):\n"
        "    device.array_module(x).multiply(x, 2, out=total)\n"
        "    total += len(calls) - 1\n"
        "    calls.append(1)\n"
        "    count += 1\n",
        "fail",
        ["every value is off by -1"],
    ),
    "arrays made": (
        "def answer(x, total, count):\n    total[...] = x * 2 + count\n    count += 1\n",
        "fail",
        ["2 arrays made while a stream was capturing, none allowed", "4 kernels in a graph, at most 3"],
    ),
    "a read": (
        "def answer(x, total, count):\n    total[...] = x * 2 + float(count[0])\n",
        "crashed",
        ["so D2H transfers are disallowed", "nothing may be copied to the host"],
    ),
    "a product": (
        "def answer(x, total, count):\n    total[...] = (x[:, None] @ x[None])[0, 0]\n",
        "crashed",
        ["calling cuBLAS API during stream capture", "in a kernel of your own"],
    ),
    "a wait": (
        "from unrolled import device\ndef answer(x, total, count):\n    device.synchronize(x)\n",
        "crashed",
        ["cudaErrorStreamCaptureUnsupported", "nothing waits for the GPU"],
    ),
    "a stream of its own": (  # that nothing joins to the captured one, so it works at once
        HEAD + "def answer(x, total, count):\n"
        "    xp = device.array_module(x)\n"
        "    with xp.cuda.Stream(non_blocking=True):\n"
        "        xp.multiply(x, 2, out=total)\n"
        "        total += count\n"
        "        count += 1\n",
        "fail",
        ["two streams race", "reads what `copy` on stream 255 writes", "wait_event"],
    ),
    "a swallowed error": (
        HEAD + "def answer(x, total, count):\n"
        "    try:\n        device.synchronize(x)\n    except Exception:\n        pass\n",
        "crashed",
        ["cudaErrorStreamCaptureInvalidated"],
    ),
}

BEGINS = "    stream.wait_event(xp.cuda.Stream.null.record())\n"
REPLAYED = (
    HEAD
    + """
def answer(x, steps):
    xp = device.array_module(x)
    y = x.copy()
    stream = xp.cuda.Stream(non_blocking=True)
    stream.wait_event(xp.cuda.Stream.null.record())
    with stream:
        stream.begin_capture()
        y += 1
        graph = stream.end_capture()
        for _ in range(steps):
            graph.launch()
    xp.cuda.Stream.null.wait_event(stream.record())
    return y
"""
)
JOINS = "    xp.cuda.Stream.null.wait_event(stream.record())\n"
RACES = {  # the source, and what is said
    "does not wait for its inputs": (REPLAYED.replace(BEGINS, ""), "reads what `copy` on the default stream writes"),
    "does not let others wait": (REPLAYED.replace(JOINS, ""), "a copy to the host on the default stream reads what"),
    "launches outside": (
        REPLAYED.replace("        stream.begin", "        y *= 1\n        stream.begin")
        .replace("        for _", "    for _")
        .replace("            graph", "        graph"),
        "`with stream:` goes to the default stream",
    ),
}
EAGER = "def answer(x, steps):\n    y = x.copy()\n    for _ in range(steps):\n        y += 1\n    return y\n"
