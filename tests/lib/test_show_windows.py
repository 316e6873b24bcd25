"""unrolled.show: the pictures of lesson 02 draw the convolution that they speak of."""

import re
from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate2d

from unrolled import show
from unrolled.show.columns import patch_matrix
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import BLUE
from unrolled.show.windows import windows

RNG = np.random.default_rng(5)
SQUARE = np.array([[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]])
KERNEL = np.array([[2, 0, 1], [0, 2, 1], [1, 0, 1]])
X = np.stack(
    [
        [[1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]],
        [[4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]],
        SQUARE.tolist(),
    ]
)
W = np.stack(
    [
        [[2, 0, 1], [0, 3, 0], [1, 0, 2]],
        [[0, 1, 3], [0, 1, 2], [1, 0, 0]],
        [[2, 0, 1], [0, 1, 2], [1, 0, 2]],
    ]
)


class Drawn:
    """What a picture puts on its sheet: matrices (grid, values) and outlines (box, colour)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.matrices: list[tuple[Any, np.ndarray]] = []
        self.outlines: list[tuple[tuple[float, ...], str]] = []
        matrix, outline = Sheet.matrix, Sheet.outline

        def keep_matrix(sheet: Sheet, cells: Any, values: Any, scale: Any) -> bool:
            self.matrices.append((cells, values))
            return matrix(sheet, cells, values, scale)

        def keep_outline(sheet: Sheet, box: Any, colour: str, width: float = 2.2) -> None:
            self.outlines.append((box, colour))
            outline(sheet, box, colour, width)

        monkeypatch.setattr(Sheet, "matrix", keep_matrix)
        monkeypatch.setattr(Sheet, "outline", keep_outline)

    def at(self, explorer: show.Explorer, **values: int) -> "Drawn":
        """Draw the explorer there, forgetting what was drawn before."""
        self.matrices, self.outlines = [], []
        explorer.at(**values)
        return self

    def lit(self, cells: Any, colour: str) -> list[tuple[int, int, int, int]]:
        """Row, column, rows and columns of the blocks of this grid that are outlined in the colour."""
        found = []
        for (left, top, width, height), its in self.outlines:
            inside = cells.left - 1e-6 <= left <= cells.right and cells.top - 1e-6 <= top <= cells.bottom
            if its == colour and inside:
                place = (top - cells.top) / cells.height, (left - cells.left) / cells.width
                found.append(tuple(round(v) for v in (*place, height / cells.height, width / cells.width)))
        return found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    return Drawn(monkeypatch)


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


def test_convolution_adds_the_seminars_three_channels(drawn: Drawn) -> None:
    explorer = show.convolution(X, W)
    assert [re.search(r"= (\d+)\.", explorer.at(position=i).alt)[1] for i in range(4)] == ["39", "37", "16", "46"]  # type: ignore[index]
    assert "adds up to 16 + 14 + 16 = 46" in explorer.at(position=3).alt
    assert len(drawn.at(explorer, position=0).matrices) == 3 * 4 + 1
    assert explorer.at(position=3).alt.endswith("filled: 39, 37, 16 and 46.")


def test_convolution_says_stride_padding_and_bias() -> None:
    alt = show.convolution(SQUARE, KERNEL, bias=3).at(position=1).alt
    assert "stride 1, padding 0" in alt
    assert "row 0, column 1 the window covers rows 0 to 2 and columns 1 to 3;" in alt
    assert "9 + 3 (bias) = 12" in alt
    assert "2 of 4 outputs" in alt
    assert alt.endswith("15 and 12.")
    assert "(2, 1)" in show.convolution(SQUARE, KERNEL, stride=(2, 1), padding=1).alt


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": np.ones((2, 3, 3))}, "kernel has 2 channels, image 1"),
        ({"kernel": np.ones((5, 3))}, r"kernel_size \(5, 3\) is larger than the padded image \(4, 4\)"),
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"padding": -1}, "padding must be at least 0, got -1"),
        ({"image": np.ones(4)}, r"image must be one \(H, W\) or \(C, H, W\) array, got shape \(4,\)"),
        ({"image": np.ones((9, 4, 4))}, "image has 9 channels"),
    ],
)
def test_convolution_names_what_does_not_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.convolution(**{"image": SQUARE, "kernel": KERNEL, **arguments})


def test_inputs_are_not_changed() -> None:
    x, w = SQUARE.astype(np.float32), KERNEL.astype(np.float32)
    show.convolution(x, w, padding=1).still()
    show.im2col(x, 3, padding=1).still()
    np.testing.assert_array_equal(x, SQUARE)
    np.testing.assert_array_equal(w, KERNEL)


def test_patch_matrix_times_the_flat_kernel_is_the_convolution() -> None:
    matrix = patch_matrix(windows(X, 3))
    np.testing.assert_array_equal(W.reshape(1, -1) @ matrix, [[39, 37, 16, 46]])
    assert matrix[:, 1].tolist() == X[:, 0:3, 1:4].ravel().tolist()


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


def test_im2col_says_what_it_costs() -> None:
    alt = show.im2col(np.ones((28, 28)), 3, padding=1).at(column=783).alt
    assert "patch matrix of 9 by 784" in alt
    assert (
        "Column 783 is the window of output row 27, column 27: rows 27 to 29 and columns 27 to 29 of the padded" in alt
    )
    assert "7,056 numbers from 784: 9 times the memory" in alt
    small = show.im2col([[2, 0, 1], [0, 2, 3], [1, 3, 1]], 2).at(column=1).alt
    assert "flattened row by row: 0, 1, 2, 3." in small
