"""The LSTM: all forms against PyTorch, forward and backward; what each costs; what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lstm_cases import Case, case
from ops_cases import Call

from unrolled import ops, simgpu
from unrolled.ops import threads
from unrolled.ops.lstm import columns
from unrolled.ops.lstm.sequence import FORMS, ON_GPU
from unrolled.simgpu.timeline import Timeline

ON_CPU = tuple(form for form in FORMS if form not in ON_GPU)
RNG = np.random.default_rng(3)
T, N, D, H = 4, 3, 5, 2


def floats(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


WEIGHTS = floats(4 * H, D), floats(4 * H, H), floats(4 * H)
X, STATE, GRAD = floats(T, N, D), (floats(1, N, H), floats(1, N, H)), floats(T, N, H)
STEP = floats(N, D), floats(N, H), floats(N, H)
GATES = ops.lstm_with_gates(X, [WEIGHTS])[0]


def lstm(x: Any, *layer: Any) -> Any:
    y, (h, c) = ops.lstm(x, [ops.LSTMWeights(*layer)])
    return y, h, c


def lstm_with_gates(x: Any, *layer: Any) -> Any:
    return tuple(ops.lstm_with_gates(x, [ops.LSTMWeights(*layer)])[0][0])


def lstm_backward(grad: Any, x: Any, *layer: Any) -> Any:
    weights = [ops.LSTMWeights(*layer)]
    by_x, (by_weights,) = ops.lstm_backward(grad, x, weights, ops.lstm_with_gates(x, weights)[0])
    return by_x, *by_weights


CALLS = {
    "lstm_step": Call(ops.lstm_step, (*STEP, *WEIGHTS)),
    "lstm_step_backward": Call(ops.lstm_step_backward, (STEP[1], STEP[2], floats(N, 4 * H), STEP[1], STEP[2])),
    "lstm": Call(lstm, (X, *WEIGHTS)),
    "lstm_with_gates": Call(lstm_with_gates, (X, *WEIGHTS)),
    "lstm_backward": Call(lstm_backward, (GRAD, X, *WEIGHTS)),
}


def gpu(x: Any) -> Any:
    return simgpu.asarray(x.astype(np.float32))


def test_a_step_by_hand() -> None:
    """The bias alone sets the gates: i, f and o half open, g at tanh(1)."""
    weights = np.zeros((4, 1)), np.zeros((4, 1)), np.array([0.0, 0.0, 1.0, 0.0])
    h, c = ops.lstm_step(np.zeros((1, 1)), np.zeros((1, 1)), np.full((1, 1), 2.0), *weights)
    np.testing.assert_allclose(c, 0.5 * 2 + 0.5 * np.tanh(1))
    np.testing.assert_allclose(h, 0.5 * np.tanh(c))


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_all_forms_for_the_cpu_are_pytorch(
    steps: int, n: int, inputs: int, hidden: int, layers: int, seed: int
) -> None:
    there = case(steps, n, inputs, hidden, layers, seed)
    for form in (*ON_CPU, None):
        there.check(form, 1e-9)


@pytest.mark.parametrize("rows", [1, 5, 12, None])
def test_strips_of_weights_and_weights_that_no_cache_holds(rows: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    there = case(4, 3, 2, 3, 2)
    if rows:
        monkeypatch.setattr(columns, "STRIP", 1)
        monkeypatch.setattr(threads, "SMALL_PRODUCT", rows * 3 * (3 + 2 + 1))
        monkeypatch.setattr(threads, "multiplies_as_it_lies", lambda: True)
    else:
        monkeypatch.setattr(columns, "CACHED_BYTES", 0)
    there.check(None, 1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_on_the_gpu_are_pytorch(form: str) -> None:
    case(3, 3, 5, 64, 2).on(gpu).check(form, 2e-4)


# what a forward pass of T steps and L layers launches: (products, launches besides)
LAUNCHES = {
    "combined": lambda t, layers: 2 * t * layers,
    "naive": lambda t, layers: 8 * t * layers,
    "streams": lambda t, layers: 2 * t * layers,
    "fused": lambda t, layers: 2 * t * layers,
    "transposed": lambda t, layers: 2 * t * layers,
    "inputs_at_once": lambda t, layers: (t + 1) * layers,
    "wavefront": lambda t, layers: 1 + (t + layers - 1) + (t + layers - 2 if layers > 1 else 0),
    "persistent": lambda t, layers: layers,
}


def traced(form: str, there: Case) -> Any:
    on_gpu = there.on(gpu)
    with simgpu.trace() as trace:
        ops.lstm(on_gpu.x, on_gpu.weights, on_gpu.state, form=form)
    return trace


@pytest.mark.parametrize("layers", [1, 3])
def test_products_and_launches_are_those_of_the_form(layers: int) -> None:
    steps = 5
    there = case(steps, 2, 64, 64, layers)
    launches = {}
    for form, products in LAUNCHES.items():
        trace = traced(form, there)
        names = [launch.op for launch in trace.launches]
        assert names.count("product") == products(steps, layers), form
        fused = [name for name in names if name.startswith("lstm_")]
        cells = {"wavefront": steps + layers - 1, "persistent": layers}.get(form, steps * layers)
        assert len(fused) == (0 if form in ("naive", "combined", "streams") else cells), form
        launches[form] = len(names)
    order = [launches[form] for form in ("naive", "combined", "fused", "inputs_at_once", "persistent")]
    assert order == sorted(set(order), reverse=True)


def test_streams_overlap() -> None:
    there = case(2, 16, 4096, 512, 1)  # products with the input that take longer than the next launch
    trace = traced("streams", there)
    products = [launch for launch in trace.launches if launch.op == "product"]
    assert len({launch.stream for launch in products}) == 2
    first, second = products[-2:]
    assert first.start < second.end
    assert second.start < first.end
    alone = traced("combined", there)
    assert {launch.stream for launch in alone.launches} == {0}


@pytest.fixture
def slow_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a kernel take a modelled second, beside the default stream five: only waits keep an order between streams."""
    enqueue = Timeline.enqueue

    def slow(self: Timeline, stream: int, seconds: float, work: float, engine: str) -> tuple[float, float]:
        return enqueue(self, stream, 5.0 if stream else 1.0, 0.0, f"{engine} of {stream}")

    monkeypatch.setattr(Timeline, "enqueue", slow)


@pytest.mark.usefixtures("slow_kernels")
@pytest.mark.parametrize("form", ["streams", "fused", "transposed"])
def test_the_second_stream_waits_for_its_inputs_and_is_waited_for(form: str) -> None:
    there = case(3, 2, 5, 64, 1).on(gpu)
    with simgpu.trace() as trace:
        x = there.x + 0
        kept, _ = ops.lstm_with_gates(x, there.weights, form=form)
    launches = trace.launches
    beside = [k for k, launch in enumerate(launches) if launch.stream]
    assert launches[beside[0]].start >= launches[0].end, "x was not there yet"
    for k in beside:  # next is the product with the last output; what comes then needs both
        assert launches[k + 2].start >= launches[k].end, "the product with the inputs was not there yet"

    with simgpu.trace() as trace:
        _, (by_weights,) = ops.lstm_backward(there.grad, x, there.weights, kept, form=form)
        by_weights.bias + 0
    launches = trace.launches
    beside = [k for k, launch in enumerate(launches) if launch.stream]
    first = [k for k in beside if not launches[k - 1].stream]
    assert len(first) == len(x)
    for k in first:  # the last three before it: a gradient by the sums, its product, and that added to 0
        assert launches[k].start >= launches[k - 3].end, "the gradient by the sums was not there yet"
    after = launches[beside[-1] + 1]
    assert after.start >= launches[beside[-1]].end, "the gradients were not there yet"


def test_without_a_gpu_the_fastest_is_inputs_at_once() -> None:
    there = case(2, 2, 2, 64, 2)
    np.testing.assert_array_equal(*(ops.lstm(there.x, there.weights, form=f)[0] for f in (None, "inputs_at_once")))
    there = there.on(gpu)
    with simgpu.trace() as trace:
        ops.lstm(there.x, there.weights)
    assert [launch.op for launch in trace.launches].count("lstm_persistent") == 2


LAYER = ops.LSTMWeights(*WEIGHTS)
REFUSED = [
    (lambda: ops.lstm(X[:0], [LAYER]), r"x has shape \(0, 3, 5\): a sequence needs at least"),
    (lambda: ops.lstm(X, []), "expected a list with an ops.LSTMWeights for each layer"),
    (lambda: ops.lstm(X[:, :, :3], [LAYER]), r"weights\[0\].weight_ih has shape \(8, 5\); expected \(8, 3\)"),
    (  # Keras's layout
        lambda: ops.lstm(X, [LAYER._replace(weight_hh=LAYER.weight_hh.T)]),
        r"weights\[0\].weight_hh has shape \(2, 8\); expected \(4 \* H, H\).*transpose it",
    ),
    (  # another batch's
        lambda: ops.lstm(X, [LAYER], (STATE[0][:, :2], STATE[1][:, :2])),
        r"state\[0\] has shape \(1, 2, 2\); expected \(1, 3, 2\) to fit \(layers, N, H\)",
    ),
    (lambda: ops.lstm(X, [LAYER], STATE[0]), r"(?s)state is .*expected two arrays \(h, c\)"),
    (lambda: ops.lstm(X, [LAYER], form="fast"), "form is 'fast'; expected one of naive, combined"),
    (lambda: ops.lstm(X, [LAYER], form="streams"), "form 'streams' needs float32 or float64 arrays on a GPU"),
    (
        lambda: ops.lstm(gpu(X), [ops.LSTMWeights(*map(gpu, LAYER))], form="persistent"),
        "a hidden size of 64, 128 .* got float32 and 2",
    ),
    (lambda: ops.lstm_backward(GRAD, X, [LAYER], []), "kept is of 0 layers; expected 1"),
    (lambda: ops.lstm_backward(GRAD[:2], X[:2], [LAYER], GATES), r"kept\[0\].y has .*\(4, 3, 2\); expected \(2, 3, 2"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
def test_what_does_not_fit_is_named(call: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()
