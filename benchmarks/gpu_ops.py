"""Every distinct operation that the course's training steps issue on a GPU, measured one by one on CuPy.

    python benchmarks/gpu_ops.py [--json benchmarks/results/gpu_ops.json]

A step is run on the simulated GPU, which writes down each launch: the operation, shapes, strides and dtypes. Then each
is replayed on CuPy: `host_us` is what the call costs the host, `device_us` what it costs the device, back to back with
others of its kind. `count` says how often it comes in a step of each batch size. The simulated GPU's model of time is
judged by this table. Writes and reads by index arrays come besides, since no step of the library has them: the fills of
lessons 03 and 07, and places drawn at random in arrays that fit in a GPU's L2 cache and that do not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import common
import gpu_common
from common import Row
from networks import KERAS, SOURCE_A, SOURCE_B

View = dict[str, Any]  # {"shape", "strides", "dtype"}


def _plain(x: Any) -> Any:
    return {"shape": list(x.shape), "strides": list(x.strides), "dtype": x.dtype} if hasattr(x, "strides") else x


def issued(case: Any) -> list[Row]:
    """Return what one training step launches: the second one, since the first makes memory.

    The step counts the right answers, too.
    """
    from unrolled import simgpu
    from unrolled.simgpu import current

    machine = current.machine()
    step = case.stepper(simgpu)
    with patch.object(machine, "launch", wraps=machine.launch) as launch:
        for images, labels in case.batches(simgpu, count=2):
            launch.reset_mock()
            order = simgpu.asarray(np.arange(case.batch))
            labels = labels[order]
            _, scores = step(images[order], labels)
            (scores.argmax(axis=1) == labels).sum()
    return [
        {"op": op, "inputs": list(map(_plain, inputs)), "outputs": list(map(_plain, outputs)), "options": {**options}}
        for op, inputs, outputs, options, _ in (call.args for call in launch.call_args_list)
    ]


def rows(cases: Any) -> list[Row]:
    """Return a row for each distinct launch of these steps."""
    found: dict[str, Row] = {}
    for case in cases:
        for launch in issued(case):
            options = {key: value for key, value in launch["options"].items() if key not in ("rate", "epsilon")}
            key = json.dumps([launch["op"], launch["inputs"], launch["outputs"], options])
            name = f"{launch['options'].get('name', launch['op'])}: {_sides(launch)}"
            row = found.setdefault(key, {"name": name, **launch, "count": Counter()})
            row["count"][case.name] += 1
    names: Counter[str] = Counter()
    for row in found.values():
        names[row["name"]] += 1
        if names[row["name"]] > 1:
            row["name"] += f" ({names[row['name']]})"  # the same shapes with other strides or options
        row.update(measured(row))
    return list(found.values())


def indexed_rows() -> list[Row]:
    """Return a row for each read and write by index arrays, with what is in these: "places".

    The quadratic fill writes n * n values into n rows of 4; the indexed fill n; the others `count` of a long array.
    """
    found = []
    for n in (980, 1960, 3920, 7840, 15_680):
        filled, winners = _view((n, 4)), {**_view((n,), "int64"), "places": 4}
        found.append(_row("quadratic fill", "setitem", [_view((n, 1)), winners], filled, [1]))
        numbers = {**_view((n,), "int64"), "places": "arange"}
        found.append(_row("indexed fill", "setitem", [_view((n,)), numbers, winners], filled, [0, 1]))
    for size in (100_000, 4_000_000, 250_000_000):
        for count in (100_000, 10_000_000):
            long, values, index = _view((size,)), _view((count,)), {**_view((count,), "int64"), "places": size}
            found.append(_row("scatter", "setitem", [values, index], long, [0]))
            found.append(_row("gather", "getitem", [long, index], values, [0]))
            found.append(_row("add.at", "add.at", [values, index], long, [0]))
    for row in found:
        row.update(measured(row))
    return found


def _view(shape: tuple[int, ...], dtype: str = "float32") -> View:
    itemsize = np.dtype(dtype).itemsize
    strides = [itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    return {"shape": list(shape), "strides": strides, "dtype": dtype}


def _row(what: str, op: str, inputs: list[View], output: View, axes: list[int]) -> Row:
    row = {"op": op, "inputs": inputs, "outputs": [output], "options": {"axes": axes}}
    return {"name": f"{what}: {_sides(row)}", **row, "count": {}}


def _sides(launch: Row) -> str:
    return " -> ".join(" ".join(_word(x) for x in launch[side]) for side in ("inputs", "outputs"))


def _word(x: Any) -> str:
    return f"{x['dtype']}{tuple(x['shape'])}" if isinstance(x, dict) else str(x)


def measured(row: Row) -> Row:
    """Return {"host_us", "device_us"}, in microseconds, or {"error"} where the launch cannot be replayed."""
    try:
        return gpu_common.costs(replay(row))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def replay(row: Row) -> Callable[[], Any]:
    """Return a function that does a launch's work on CuPy."""
    import cupy as cp

    from unrolled import kernels

    op, options = row["op"], row["options"]
    inputs, outputs = [_array(x) for x in row["inputs"]], [_array(x) for x in row["outputs"]]
    out = outputs[0]
    if op == "kernel":
        others = {key: value for key, value in options.items() if key != "name"}
        floats = {key: value for key, value in others.items() if isinstance(value, float)}
        whole = kernels.constants(**{key: value for key, value in others.items() if key not in floats})
        return partial(kernels.by_name(options["name"]), tuple(inputs), tuple(outputs), whole, **floats)
    if op in ("setitem", "add.at"):
        key = (slice(None),) * min(options["axes"]) + tuple(inputs[1:])
        return partial(out.__setitem__ if op == "setitem" else partial(cp.add.at, out), key, inputs[0])
    if op.startswith("random"):
        return partial(cp.random.default_rng(0).random, out.shape, dtype=out.dtype)
    if "axis" in options:
        return partial(getattr(inputs[0], op), axis=options["axis"])
    calls: dict[str, Callable[[], Any]] = {
        "copy": lambda: out.__setitem__(Ellipsis, inputs[0]),
        "fill": lambda: out.fill(inputs[0]),
        "getitem": lambda: inputs[0][inputs[1]],
        "where": lambda: cp.where(*inputs),
    }
    return calls[op] if op in calls else partial(getattr(cp, op), *inputs, out=out)


def _array(x: Any) -> Any:
    """An array of that shape, dtype and strides: small values, or the "places" of an index array."""
    import cupy as cp

    if not isinstance(x, dict):
        return x
    size = 1 + sum((n - 1) * s for n, s in zip(x["shape"], x["strides"], strict=True)) // np.dtype(x["dtype"]).itemsize
    if 0 in x["shape"]:
        return cp.zeros(x["shape"], x["dtype"])
    if x.get("places") == "arange":
        return cp.arange(size)
    if "places" in x:
        return cp.random.default_rng(0).integers(0, x["places"], size)
    kind = np.dtype(x["dtype"]).kind
    base = (cp.random.default_rng(0).random(size) + 0.1 if kind == "f" else cp.zeros(size)).astype(x["dtype"])
    return cp.lib.stride_tricks.as_strided(base, x["shape"], x["strides"])


if __name__ == "__main__":
    options = common.parser(__doc__).parse_args()
    found = [*rows([SOURCE_A[8], SOURCE_A[128], KERAS, SOURCE_B["16 channels"]]), *indexed_rows()]
    common.finish(options, found, **gpu_common.machine())
