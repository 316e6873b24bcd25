"""Two exercises on the simulated GPU, and what learners make of them: for the checks' tests and for the judge's."""

from typing import Any

import numpy as np

from unrolled.checks import Budget, Spec
from unrolled.checks.compare import Mismatch
from unrolled.checks.spec import Draw, Mistake, case, gpu_case, normal, random_gpu_case
from unrolled.device import array_module


def layer(x: Any, weight: Any) -> Any:
    """The library's answer."""
    xp = array_module(x, weight)
    return xp.maximum(x @ weight, 0)


def _any_layer(rng: np.random.Generator) -> dict[str, Any]:
    n, i, o = (int(size) for size in rng.integers(2, 9, 3))
    return {"x": rng.standard_normal((n, i)).astype("f4"), "weight": rng.standard_normal((i, o)).astype("f4")}


LAYER = Spec(
    reference=layer,
    cases=[
        case("in NumPy", x=normal(3, 4), weight=normal(4, 2)),
        gpu_case("on the GPU", Budget(launches=4), x=normal(3, 4), weight=normal(4, 2)),
        random_gpu_case("any size", _any_layer, Budget(launches=4)),
    ],
    points=2,
    hints=("idea", "shapes", "code"),
    mistakes=[Mistake("negative values are still there", lambda x, weight: x @ weight)],
)


class KnownWork:
    """A function that launches products and comes back at once; it keeps how long the GPU really takes for them."""

    def __init__(self, products: int) -> None:
        self.products = products
        self._between: Any = None

    def __call__(self, x: Any) -> Any:
        xp = array_module(x)
        start, end = xp.cuda.Event(), xp.cuda.Event()
        start.record()
        for _ in range(self.products):
            x = x @ x
        end.record()
        self._between = xp.cuda.get_elapsed_time, start, end
        return x

    def true_seconds(self) -> float | None:
        """Of the last call; None before the first."""
        if self._between is None:
            return None
        elapsed, start, end = self._between
        return float(elapsed(start, end)) / 1000


def _timed(got: Any, expected: Any, inputs: dict[str, Any]) -> Mismatch | None:
    """Within a fifth of what the GPU took."""
    true = inputs["function"].true_seconds()
    if true is None:
        return Mismatch(("your function never called the function that it was given",))
    if not isinstance(got, float):
        return Mismatch((f"expected seconds, got {type(got).__name__}",))
    if abs(got - true) <= 0.2 * true:
        return None
    line = f"the GPU worked for {1000 * true:.3g} ms, you measured {1000 * got:.3g} ms"
    if got < true:
        return Mismatch((line, "the clock was read before the GPU had done its work: synchronize first"))
    return Mismatch((line,))


GPU_TIME = Spec(
    reference=lambda function, x: 0.0,
    cases=[gpu_case("twenty products", function=Draw(lambda rng: KnownWork(20)), x=normal(512, 512))],
    points=1,
    hints=("idea", "shapes", "code"),
    compare=_timed,
)

HEAD = "import numpy as np\nfrom unrolled import device\nfrom unrolled.device import array_module\n"
RIGHT = HEAD + "def answer(x, weight):\n    xp = array_module(x)\n    return xp.maximum(x @ weight, 0)"
HONEST_TIME = HEAD + (
    "def answer(function, x):\n    device.synchronize(x)\n    start = device.clock(x)\n    function(x)\n"
    "    device.synchronize(x)\n    return device.clock(x) - start"
)
WRONG = {
    "a function of NumPy": (
        HEAD + "def answer(x, weight):\n    return np.maximum(x @ weight, 0)",
        "crashed",
        ("__array_ufunc__", "a function of NumPy got a GPU array"),
    ),
    "a NumPy array among them": (
        HEAD + "def answer(x, weight):\n    y = x @ weight\n    return y * (device.to_host(y) > 0)",
        "crashed",
        ("Unsupported type", "a NumPy array met a GPU array"),
    ),
    "implicit conversion": (
        HEAD + "def answer(x, weight):\n    return np.maximum(np.asarray(x) @ weight, 0)",
        "crashed",
        ("Implicit conversion", "a function of NumPy got a GPU array"),
    ),
    "there and back": (
        HEAD + "def answer(x, weight):\n    y = np.maximum(device.to_host(x @ weight), 0)\n"
        "    return device.to_device(y, array_module(x))",
        "fail",
        ("2 transfers, none allowed: 1 x to host, 1 x to device",),
    ),
    "an if": (
        HEAD + "def answer(x, weight):\n    xp, y = array_module(x), x @ weight\n    if (y < 0).any():\n"
        "        y = xp.maximum(y, 0)\n    return y",
        "fail",
        ("1 transfer, none allowed: 1 x to host", "an `if`"),
    ),
    "left the GPU": (
        HEAD + "def answer(x, weight):\n    return np.maximum(device.to_host(x) @ device.to_host(weight), 0)",
        "fail",
        ("the result is a NumPy array: it left the GPU",),
    ),
    "waits": (
        HEAD + "def answer(x, weight):\n    xp, y = array_module(x), x @ weight\n    device.synchronize(x)\n"
        "    return xp.maximum(y, 0)",
        "fail",
        ("1 synchronization, none allowed",),
    ),
    "row by row": (
        HEAD
        + "def answer(x, weight):\n    xp = array_module(x)\n    y = xp.empty((len(x), weight.shape[1]), x.dtype)\n"
        "    for row in range(len(x)):\n        y[row] = xp.maximum(x[row] @ weight, 0)\n    return y",
        "fail",
        ("launches, at most 4 allowed:", "3 x matmul"),
    ),
    "an input overwritten": (
        HEAD + "def answer(x, weight):\n    xp = array_module(x)\n    y = xp.maximum(x @ weight, 0)\n"
        "    if xp is not np:\n        x[...] = 0\n    return y",
        "fail",
        ("changed its input x",),
    ),
    "negative values": (
        HEAD + "def answer(x, weight):\n    y = x @ weight\n    return y if array_module(x) is not np else y * (y > 0)",
        "fail",
        ("6 values differ",),
    ),
    "another GPU": (
        HEAD + "from unrolled import simgpu\nkept = simgpu.ones((3, 2), 'f4')\ndef answer(x, weight):\n"
        "    return np.maximum(x @ weight, 0) if array_module(x) is np else kept",
        "fail",
        ("the result lies on another GPU",),
    ),
}
"""Wrong on the GPU, right in NumPy: source, verdict, and what the finding has to say."""
ALWAYS_GPU = HEAD + (
    "from unrolled import simgpu as cp\ndef answer(x, weight):\n"
    "    return cp.maximum(cp.asarray(x) @ cp.asarray(weight), 0)"
)
TIMED = {
    "the clock that lies": (
        HEAD
        + "def answer(function, x):\n    start = device.clock(x)\n    function(x)\n    return device.clock(x) - start",
        "synchronize first",
    ),
    "the real clock": (
        HEAD + "import time\ndef answer(function, x):\n    start = time.perf_counter()\n    function(x)\n"
        "    device.synchronize(x)\n    return time.perf_counter() - start",
        "you measured",
    ),
}
"""Wrong ways to measure: source, and what the finding has to say."""
