"""unrolled.show: pictures of numbers, windows and training say what their data say, and what the mathematics says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawn import Drawn
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from pictures import CHANNELS, HISTORY, KERNEL, KERNELS, SQUARE, TIED, TRAINING_ONLY, bowl
from pictures import NETWORK as NET

from unrolled import ops, show
from unrolled.show import words
from unrolled.show.attention_blocks import Blocks
from unrolled.show.columns import patch_matrix
from unrolled.show.convolution import Steps, added, shared, windows
from unrolled.show.graph import BREAKS, PARAMETERS, STEPS, Graph, Network, backward, forward, losses, worked
from unrolled.show.images import Contestant, moments
from unrolled.show.matrices import Array, shares, speedup, walk
from unrolled.show.precision import Format, Values
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import BLUE, RED
from unrolled.show.training import Live, losses_along
from unrolled.show.winograd import filtered

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


@pytest.mark.parametrize(("order", "loads"), [("row", 8), ("column", 64)])
def test_walk_counts_cache_lines(order: Any, loads: int) -> None:
    one = walk(order)
    assert sorted(one.visits) == list(range(64))
    assert one.loads[-1] == loads
    for step, address in enumerate(one.visits):
        recent = dict.fromkeys(visited // 8 for visited in reversed(one.visits[: step + 1]))
        assert [*recent][:4] == [*one.cached[step]][::-1]
        assert one.in_cache(step)[address]


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


@pytest.mark.parametrize(
    ("bits", "largest", "beyond"), [((4, 3), 448, np.nan), ((5, 2), 57344, np.inf), ((3, 2), 28, 28), ((2, 1), 6, 6)]
)
def test_small_formats_are_those_of_the_standards(bits: tuple[int, int], largest: float, beyond: float) -> None:
    kind = Format(*bits)
    assert kind.largest == largest
    assert [kind.stored(value) for value in (largest, -largest, 1e6, 0.5)] == pytest.approx(
        [largest, -largest, beyond, 0.5], nan_ok=True
    )
    if bits == (2, 1):
        assert {kind.stored(value) for value in np.linspace(0, 6, 99)} == {0, 0.5, 1, 1.5, 2, 3, 4, 6}


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
    found = filtered(np.array(pixels), np.array(weights))
    assert found["products"].shape == (4,)
    assert np.allclose(found["results"], np.correlate(pixels, weights, "valid"), atol=1e-8)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("t", "block"), [(12, 4), (16, 3), (7, 1), (5, 5)])
def test_blocks_of_attention_end_where_softmax_of_the_whole_row_does(
    drawn: Drawn, t: int, block: int, causal: bool
) -> None:
    blocks = Blocks(t, block, causal)
    last = blocks.sums[-1]
    expected = ops.softmax(blocks.scores[blocks.row : blocks.row + 1]) @ blocks.values
    np.testing.assert_allclose(last.o / last.total, expected[0])
    assert last.m == blocks.scores[blocks.row].max()
    explorer = show.attention_blocks(t, block, causal)
    for step, keys in enumerate(blocks.path, start=1):
        ((_, scores),) = drawn.at(explorer, step=step).matrices
        np.testing.assert_array_equal(np.nan_to_num(scores, nan=-np.inf), blocks.scores[blocks.parts[blocks.at], keys])


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
    assert losses_along(bowl, np.array([[1.0, 0.0], [1e200, 0.0], [np.nan, 0.0]])).tolist() == [1.0, np.inf, np.inf]


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
    steps = Steps.of(x, kernel, stride, padding)
    by_image, by_kernel = shared(steps, grad, grad.size - 1)
    expected, weight, _ = ops.conv2d_backward(grad[None, None], x[None, None], kernel[None, None], stride, padding)
    np.testing.assert_allclose(by_image[padding : padding + 5, padding : padding + 6], expected[0, 0])
    np.testing.assert_allclose(by_kernel, weight[0, 0])


RNG = np.random.default_rng(5)


def test_numbers_stand_in_their_cells_and_those_too_small_to_read_are_left_out() -> None:
    cells = Cells(1.0, 0.5, 2, 3, 0.4, 0.3)
    for i, (row, column) in enumerate(np.ndindex(2, 3)):
        sheet = Sheet(2.0)
        assert sheet.numbers(cells, ["" if j != i else "−12" for j in range(6)])
        (text,) = sheet.figure().axes[0].patches
        vertices, box = text.get_path().vertices, np.array(cells.box(row, column))
        assert (box[:2] < vertices.min(axis=0)).all()
        assert (vertices.max(axis=0) < box[:2] + box[2:]).all()
        middle = (vertices.min(axis=0) + vertices.max(axis=0))[0] / 2
        assert middle == pytest.approx(box[0] + box[2] / 2, abs=0.01)
    sheet = Sheet(2.0)
    assert not sheet.numbers(Cells(0, 0, 1, 1, 0.05, 0.05), ["1"])
    assert not sheet.figure().axes[0].patches


def reference(x: np.ndarray, w: np.ndarray, stride: int | tuple[int, int], padding: int) -> np.ndarray:
    """The convolution, from a view of all windows."""
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    down, right = (stride, stride) if isinstance(stride, int) else stride
    windows = sliding_window_view(padded, w.shape[1:], axis=(1, 2))[:, ::down, ::right]
    return np.einsum("chwij,cij->hw", windows, w)


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 1), ((1, 3), 2)])
def test_convolution_ends_with_the_whole_output(drawn: Drawn, stride: int | tuple[int, int], padding: int) -> None:
    x, w = RNG.normal(size=(2, 6, 7)), RNG.normal(size=(2, 3, 2))
    expected = reference(x, w, stride, padding)
    drawn.at(show.convolution(x, w, stride, padding), position=expected.size - 1)
    np.testing.assert_allclose(drawn.matrices[-1][1], expected)


@pytest.mark.parametrize(
    ("explorer", "expected"),
    [
        (show.convolution(SQUARE, KERNEL, padding=1), reference(SQUARE[None], KERNEL[None], 1, 1)),
        (show.max_pool2d(SQUARE, 2), np.array([[2, 3], [3, 2]])),
    ],
    ids=["convolution", "max_pool2d"],
)
def test_the_output_fills_step_by_step(drawn: Drawn, explorer: show.Explorer, expected: np.ndarray) -> None:
    for position in range(expected.size):
        *_, (_, output) = drawn.at(explorer, position=position).matrices
        filled, empty = np.split(output.ravel(), [position + 1])
        np.testing.assert_array_equal(filled, expected.ravel()[: position + 1])
        assert np.isnan(empty).all()


@pytest.mark.parametrize("position", [0, 3, 5])
def test_convolution_lights_the_window_that_it_multiplies(drawn: Drawn, position: int) -> None:
    x, w = RNG.normal(size=(1, 6, 7)), RNG.normal(size=(1, 3, 2))
    drawn.at(show.convolution(x, w, stride=2), position=position)
    (grid, pixels), (_, window), (_, kernel), (_, products), (_, output) = drawn.matrices
    ((row, column, rows, columns),) = drawn.lit(grid, BLUE)
    assert (row, column) == (position // 3 * 2, position % 3 * 2)
    assert rows * columns == w.size == 6
    np.testing.assert_array_equal(window, pixels[row : row + rows, column : column + columns])
    np.testing.assert_array_equal(products, window * kernel)
    assert products.sum() == pytest.approx(output.ravel()[position])


def test_inputs_are_not_changed() -> None:
    x, w = SQUARE.astype(np.float32), KERNEL.astype(np.float32)
    show.convolution(x, w, padding=1).still()
    show.im2col(x, 3, padding=1).still()
    show.max_pool2d(x, 2, values=w[:2, :2]).still()
    np.testing.assert_array_equal(x, SQUARE)
    np.testing.assert_array_equal(w, KERNEL)


def test_patch_matrix_times_the_flat_kernel_is_the_convolution() -> None:
    matrix = patch_matrix(windows(CHANNELS, 3))
    np.testing.assert_array_equal(KERNELS.reshape(1, -1) @ matrix, [[39, 37, 16, 46]])
    assert matrix[:, 1].tolist() == CHANNELS[:, 0:3, 1:4].ravel().tolist()


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_im2col_lights_window_and_column_of_the_same_patch(drawn: Drawn, stride: int, padding: int) -> None:
    x = RNG.normal(size=(2, 5, 6))
    explorer = show.im2col(x, (2, 3), stride, padding)
    count = len(explorer.sliders["column"].values)
    for column in (0, count // 2, count - 1):
        *images, (_, flat), (grid, matrix) = drawn.at(explorer, column=column).matrices
        assert matrix.shape == (2 * 2 * 3, count)
        assert drawn.lit(grid, BLUE) == [(0, column, 12, 1)]
        np.testing.assert_array_equal(flat[:, 0], matrix[:, column])
        patches = []
        for cells, pixels in images:
            ((row, first, rows, columns),) = drawn.lit(cells, BLUE)
            assert (rows, columns) == (2, 3)
            patches.append(pixels[row : row + 2, first : first + 3].ravel())
        np.testing.assert_array_equal(np.concatenate(patches), flat[:, 0])


@pytest.mark.parametrize(("kernel_size", "stride"), [(2, None), (3, 1), ((2, 3), (1, 2))])
def test_the_last_position_has_the_whole_pooling_and_everything_put_back(
    drawn: Drawn, kernel_size: Any, stride: Any
) -> None:
    image = RNG.integers(0, 4, (2, 5, 7)).astype(float)
    expected = ops.max_pool2d(image[None], kernel_size, stride)
    values = RNG.normal(size=expected.shape[1:])
    explorer = show.max_pool2d(image, kernel_size, stride, values)
    drawn.at(explorer, position=expected[0, 0].size - 1)
    back = ops.max_unpool2d_loops(values[None], image[None], kernel_size, stride)
    for channel in range(2):
        shown = [array for _, array in drawn.matrices[4 * channel : 4 * channel + 4]]
        np.testing.assert_array_equal(shown[0], image[channel])
        np.testing.assert_array_equal(shown[1], expected[0, channel])
        np.testing.assert_array_equal(shown[2], values[channel])
        np.testing.assert_allclose(shown[3], back[0, channel])


def test_window_winner_and_place_are_framed(drawn: Drawn) -> None:
    drawn.at(show.max_pool2d(SQUARE, 2, values=[[1, 2], [3, 4]]), position=2)
    image, largest, values, back = (cells for cells, _ in drawn.matrices)
    for cells in (image, back):
        assert drawn.lit(cells, BLUE) == [(2, 0, 2, 2)]
        assert drawn.lit(cells, RED) == [(3, 0, 1, 1)]
    for cells in (largest, values):
        assert drawn.lit(cells, RED) == [(1, 0, 1, 1)]
    assert RED not in [colour for _, colour in drawn.hatches]


def test_tied_pixels_are_crossed_in_both_images(drawn: Drawn) -> None:
    drawn.at(show.max_pool2d(TIED, 2, values=[[5, 6], [7, 8]]), position=3)
    image, _, _, back = (cells for cells, _ in drawn.matrices)
    tied = [(2, 3), (3, 2), (3, 3)]
    crosses = [box for box, colour in drawn.hatches if colour == RED]
    assert crosses == [cells.box(*place) for cells in (image, back) for place in tied]
