"""unrolled.show: pictures of numbers and training say what their data say, and what the mathematics says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import HISTORY, TRAINING_ONLY, bowl
from pictures import NETWORK as NET

from unrolled import ops, show
from unrolled.show import words
from unrolled.show.clipping import Values
from unrolled.show.columns import added
from unrolled.show.convolution import Steps, shared
from unrolled.show.float_ruler import Format
from unrolled.show.graph import BREAKS, PARAMETERS, STEPS, Graph, Network, backward, forward, losses, worked
from unrolled.show.learning_curves import Live
from unrolled.show.memory_walk import walk
from unrolled.show.optimizer_paths import losses as path_losses
from unrolled.show.parallel import shares, speedup
from unrolled.show.race import Contestant, moments
from unrolled.show.sliding_windows import windows
from unrolled.show.systolic_array import Array
from unrolled.show.winograd import Filtering

IMAGES = np.random.default_rng(1).random((10, 28, 28))
LABELS = np.arange(10)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1797, "1,797"), (0.5, "0.5"), (3.14159, "3.14"), (-0.5, "-0.5"), (1e-7, "1.00e-07"), (1234.5, "1,234"),
     (float("inf"), "infinity"), (float("nan"), "not a number")],
)  # fmt: skip
def test_numbers_read_as_people_say_them(value: float, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (2e-15, "0 s"), (2e-9, "2 ns"), (3.2e-6, "3.2 µs"), (0.9999e-3, "1 ms"), (0.024, "24 ms"), (1, "1 s"),
     (100, "100 s"), (1800, "30 min"), (9000, "2.5 h")],
)  # fmt: skip
def test_durations_choose_their_unit(value: float, text: str) -> None:
    assert words.seconds(value) == text


def test_other_words() -> None:
    assert words.amount(2.5e9, "flop/s") == "2.5 Gflop/s"
    assert words.amount(999.9e3, "B") == "1 MB"
    assert words.times(412.4) == "412 times"
    assert words.percent(0.999) == "99.9 %"
    assert words.count_of(1, "cell") == "1 cell"
    assert words.count_of(1200, "cell") == "1,200 cells"
    assert words.listing(["a", "b", "c"]) == "a, b and c"
    assert words.span("row", 3, 1) == "row 3"
    assert words.span("row", 3, 2) == "rows 3 to 4"


def test_race_counts_exactly_at_the_finish() -> None:
    runners = [Contestant("a", 0.1, LABELS), Contestant("b", 1e-4, LABELS)]
    at, start = moments(runners)
    assert runners[1].done(at[start]) == 10
    assert runners[1].done(at[start - 1]) < 10
    assert runners[0].done(at[-1]) == 10
    assert [runners[0].done(i / 10) for i in range(12)] == [*range(11), 10]  # 0.3 / 0.1 is a little less than 3


@pytest.mark.parametrize("workers", range(1, 9))
def test_workers_share_every_cell_as_equally_as_can_be(workers: int) -> None:
    share = shares(5, 7, workers)
    counts = np.bincount(share.ravel(), minlength=workers)
    assert counts.sum() == 35
    assert counts.max() - counts.min() <= 1
    assert speedup(5, 7, workers) == (counts.max(), 35 / counts.max())


def brute_force_loads(visits: list[int], line: int, lines: int) -> int:
    """Lines loaded by a cache that keeps the most recently used ones, found by looking back at every visit."""
    wanted = [address // line for address in visits]
    loads = 0
    for i, one in enumerate(wanted):
        recent = dict.fromkeys(reversed(wanted[:i]))
        loads += one not in list(recent)[:lines]
    return loads


@pytest.mark.parametrize(
    ("shape", "line", "lines"), [((8, 8), 8, 4), ((4, 6), 4, 2), ((5, 3), 8, 1), ((3, 2), 4, 2), ((3, 16), 8, 9)]
)
def test_walk_counts_cache_lines(shape: tuple[int, int], line: int, lines: int) -> None:
    for order in ("row", "column"):
        one = walk(shape, order, line, lines)
        assert sorted(one.visits) == list(range(shape[0] * shape[1]))
        for step in range(len(one.visits)):
            assert one.loads[step] == brute_force_loads(one.visits[: step + 1], line, lines)
            assert one.visits[step] // line in one.cached[step]
            assert len(one.cached[step]) <= lines
    assert walk(shape, "row", line, lines).loads[-1] == -(-shape[0] * shape[1] // line)


SIZES = st.integers(1, 4)


@given(SIZES, SIZES, SIZES, st.integers(0, 99))
def test_a_cell_multiplies_what_its_neighbours_had_a_step_before(n: int, k: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = Array(rng.normal(size=(n, k)), rng.normal(size=(k, m)))
    sums = np.zeros((n, m))
    for step in range(1, found.steps + 1):
        before, now = found.pairs(step - 1), found.pairs(step)
        for (row, column), (a, b) in now.items():
            assert column == 0 or before[row, column - 1][0] == a
            assert row == 0 or before[row - 1, column][1] == b
            sums[row, column] += a * b
        assert np.allclose(sums, found.sums(step))
    assert [found.pairs(step) for step in (0, found.steps + 1)] == [{}, {}]


@given(st.floats(-7e4, 7e4, allow_nan=False), st.booleans())
def test_numbers_are_stored_as_numpy_stores_them(value: float, small: bool) -> None:
    value = value * 1e-9 if small else value
    with np.errstate(over="ignore"):
        assert Format(5, 10).stored(value) == float(np.float16(value))
        assert Format(8, 23).stored(value) == float(np.float32(value))


def test_the_errors_of_clipping_add_up_and_the_best_limit_is_the_best() -> None:
    found = Values(np.random.default_rng(0).standard_t(3, 4000), 7)
    for limit in found.limits:
        scale = limit / 7
        stored = np.clip(np.rint(found.values / scale), -7, 7) * scale
        assert sum(found.errors(limit)) == pytest.approx(float(np.mean((found.values - stored) ** 2)))
    assert found.errors(found.limits[-1])[1] == 0
    assert sum(found.errors(found.best)) == min(sum(found.errors(limit)) for limit in found.limits)
    assert found.best < found.limits[-1]


NUMBERS = st.floats(-100, 100, width=32)


@given(st.lists(NUMBERS, min_size=4, max_size=4), st.lists(NUMBERS, min_size=3, max_size=3))
def test_four_products_give_the_two_results(pixels: list[float], weights: list[float]) -> None:
    found = Filtering(np.array(pixels), np.array(weights))
    assert found.products.shape == (4,)
    assert np.allclose(found.results, np.correlate(pixels, weights, "valid"), atol=1e-8)


def test_an_epoch_interrupted_before_its_validation_is_left_out() -> None:
    history = SimpleNamespace(**{**vars(HISTORY), "loss": [2.0, 1.0, 0.1, 0.05], "accuracy": [0.3, 0.7, 1.0, 1.0]})
    assert "epochs 1 to 3. After epoch 3: training loss 0.1" in show.learning_curves(history).alt


def test_live_curves_are_drawn_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[Any] = []
    live = show.live("now")
    live(None, TRAINING_ONLY)
    assert isinstance(live, Live)
    assert live.picture is not None
    assert "After epoch 2" in live.picture.alt  # nothing is displayed here: this is no notebook
    live._handle = SimpleNamespace(update=updates.append)
    assert live(None, HISTORY) is None, "a callback that returns something true would stop the training"
    assert updates == [live.picture]


def test_a_path_that_runs_to_infinity_has_an_infinite_loss() -> None:
    assert path_losses(bowl, np.array([[1.0, 0.0], [1e200, 0.0], [np.nan, 0.0]])).tolist() == [1.0, np.inf, np.inf]


NETWORK = Network.of(**NET)
LOSS_SIGN = len(BREAKS) - 1


def loss_with(name: str, value: np.ndarray) -> float:
    if name == "x":
        changed = Network(value, NETWORK.labels, NETWORK.parameters)
    else:
        changed = Network(NETWORK.x, NETWORK.labels, NETWORK.parameters | {name: value})
    return float(forward(changed)["loss"][0, 0])


@pytest.mark.parametrize("name", ["x", *PARAMETERS])
def test_gradients_are_those_of_the_loss(name: str) -> None:
    grads = backward(NETWORK, forward(NETWORK))
    value = NETWORK.x if name == "x" else NETWORK.parameters[name]
    expected = ops.numeric_gradient(lambda changed: loss_with(name, changed), value)
    np.testing.assert_allclose(grads[name], expected, atol=1e-8)


@pytest.mark.parametrize("broken", BREAKS[1:], ids=lambda broken: broken.short)
def test_each_break_spoils_its_own_gradient_and_none_that_was_computed_before(broken: object) -> None:
    values = forward(NETWORK)
    right, wrong = backward(NETWORK, values), backward(NETWORK, values, broken)  # type: ignore[arg-type]
    spoiled = [name for name in right if not np.array_equal(right[name], wrong[name])]
    assert spoiled[0] == broken.name  # type: ignore[attr-defined]


def test_a_broken_gradient_still_trains_unless_every_sign_is_wrong() -> None:
    for broken in BREAKS[:LOSS_SIGN]:
        curve = losses(NETWORK, broken, 40, 0.2)
        assert len(curve) == 41
        assert curve[-1] < 0.05 * curve[0]
    rising = losses(NETWORK, BREAKS[LOSS_SIGN], 40, 0.2)
    assert rising == sorted(rising)


def test_worked_numbers_are_right() -> None:
    graph = Graph(NETWORK)
    lines = [worked(graph, at) for at in range(len(STEPS))]
    assert lines[1] == "first value: 1 × 1 + 2 × (−1) + 0.5 = −0.5"
    assert lines[2] == "first value: −0.5 becomes 0"
    assert lines[6] == "first value: (0.2 − 1) / 2 = −0.4"
    assert lines[8] == "first value: the input was −0.5, so 0.2 becomes 0"


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_the_picture_of_col2im_adds_up_to_col2im(stride: int, padding: int) -> None:
    seen = windows(np.zeros((5, 6)), (3, 2), stride, padding)
    columns = np.random.default_rng(0).standard_normal((6, seen.output_size[0] * seen.output_size[1]))
    image = added(seen, columns, columns.shape[1] - 1)
    inside = image[padding : padding + 5, padding : padding + 6]
    np.testing.assert_allclose(inside, ops.col2im(columns, (1, 1, 5, 6), (3, 2), stride, padding)[0, 0])
    assert added(seen, columns, 0)[:3, :2].tolist() == columns[:, 0].reshape(3, 2).tolist()


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_the_picture_of_a_convolution_backward_adds_up_to_conv2d_backward(stride: int, padding: int) -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.standard_normal((5, 6)), rng.standard_normal((3, 2))
    grad = rng.standard_normal(windows(x, (3, 2), stride, padding).output_size)
    steps = Steps.of(x, kernel, stride, padding, 0.0)
    by_image, by_kernel = shared(steps, grad, grad.size - 1)
    expected, weight, _ = ops.conv2d_backward(grad[None, None], x[None, None], kernel[None, None], stride, padding)
    np.testing.assert_allclose(by_image[padding : padding + 5, padding : padding + 6], expected[0, 0])
    np.testing.assert_allclose(by_kernel, weight[0, 0])
