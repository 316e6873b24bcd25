"""unrolled.show: the pictures of windows draw the convolution, and the pooling, that they speak of."""

from typing import Any

import numpy as np
import pytest
from drawn import Drawn
from pictures import CHANNELS, KERNEL, KERNELS, SQUARE, TIED
from scipy.signal import correlate2d

from unrolled import ops, show
from unrolled.show.convolution import patch_matrix, windows
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import BLUE, RED

RNG = np.random.default_rng(5)


def test_numbers_stand_in_their_cells() -> None:
    cells = Cells(1.0, 0.5, 2, 3, 0.4, 0.3)
    for i, (row, column) in enumerate(np.ndindex(2, 3)):
        sheet = Sheet(2.0)
        assert sheet.numbers(cells, ["" if j != i else "−12" for j in range(6)])
        (text,) = sheet.figure().axes[0].patches
        (left, top), (right, bottom) = text.get_path().vertices.min(axis=0), text.get_path().vertices.max(axis=0)
        box_left, box_top, width, height = cells.box(row, column)
        assert box_left < left < right < box_left + width
        assert box_top < top < bottom < box_top + height
        assert (left + right) / 2 == pytest.approx(box_left + width / 2, abs=0.01)


def test_numbers_too_small_to_read_are_left_out() -> None:
    sheet = Sheet(2.0)
    assert not sheet.numbers(Cells(0, 0, 1, 1, 0.05, 0.05), ["1"])
    assert not sheet.figure().axes[0].patches


def reference(x: np.ndarray, w: np.ndarray, stride: int | tuple[int, int], padding: int) -> np.ndarray:
    """The convolution by SciPy, channel by channel."""
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    down, right = (stride, stride) if isinstance(stride, int) else stride
    return sum(correlate2d(a, b, "valid") for a, b in zip(padded, w, strict=True))[::down, ::right]


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 1), ((1, 3), 2)])
def test_convolution_ends_with_the_whole_output(drawn: Drawn, stride: int | tuple[int, int], padding: int) -> None:
    x, w = RNG.normal(size=(2, 6, 7)), RNG.normal(size=(2, 3, 2))
    expected = reference(x, w, stride, padding)
    drawn.at(show.convolution(x, w, stride, padding), position=expected.size - 1)
    np.testing.assert_allclose(drawn.matrices[-1][1], expected)


def test_convolution_fills_the_output_step_by_step(drawn: Drawn) -> None:
    explorer = show.convolution(SQUARE, KERNEL, padding=1)
    expected = reference(SQUARE[None], KERNEL[None], 1, 1)
    for position in range(16):
        output = drawn.at(explorer, position=position).matrices[-1][1]
        assert np.isfinite(output).sum() == position + 1
        np.testing.assert_array_equal(output.ravel()[: position + 1], expected.ravel()[: position + 1])


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


# max-pooling


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


def test_the_pooled_outputs_fill_step_by_step(drawn: Drawn) -> None:
    explorer = show.max_pool2d(SQUARE, 2)
    for position in range(4):
        (_, image), (_, output) = drawn.at(explorer, position=position).matrices
        np.testing.assert_array_equal(image, SQUARE)
        np.testing.assert_array_equal(output.ravel()[: position + 1], [2, 3, 3, 2][: position + 1])
        assert np.isnan(output.ravel()[position + 1 :]).all()


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
