"""unrolled.show.max_pool2d: the window, the winner and the place where a value returns are those of the pooling."""

from typing import Any

import numpy as np
import pytest

from unrolled import ops, show
from unrolled.show.pooling import PooledImage
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, RED

RNG = np.random.default_rng(3)
SQUARE = np.array([[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]])
TIED = np.array([[0, 0, 2, 0], [0, 0, 1, 3], [0, 4, 0, 0], [1, 4, 0, 0]])


class Drawn:
    """The matrices, outlines and hatches of one picture."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.matrices: list[tuple[Any, np.ndarray]] = []
        self.outlines: list[tuple[tuple[float, ...], str]] = []
        self.crosses: list[tuple[float, ...]] = []
        matrix, outline, hatch = Sheet.matrix, Sheet.outline, Sheet.hatch

        def keep_matrix(sheet: Sheet, cells: Any, values: Any, scale: Any) -> bool:
            self.matrices.append((cells, values))
            return matrix(sheet, cells, values, scale)

        def keep_outline(sheet: Sheet, box: Any, colour: str, width: float = 2.2) -> None:
            self.outlines.append((box, colour))
            outline(sheet, box, colour, width)

        def keep_hatch(sheet: Sheet, boxes: Any, pattern: str, colour: str = "") -> None:
            self.crosses += list(boxes) if colour == RED else []
            hatch(sheet, boxes, pattern, colour)

        monkeypatch.setattr(Sheet, "matrix", keep_matrix)
        monkeypatch.setattr(Sheet, "outline", keep_outline)
        monkeypatch.setattr(Sheet, "hatch", keep_hatch)

    def at(self, explorer: show.Explorer, position: int) -> "Drawn":
        self.matrices, self.outlines, self.crosses = [], [], []
        explorer.at(position=position)
        return self

    def boxes(self, cells: Any, colour: str) -> list[tuple[float, ...]]:
        """The outlined boxes of this colour that lie in a grid."""
        return [
            box
            for box, its in self.outlines
            if its == colour and cells.left - 1e-6 <= box[0] < cells.right and cells.top - 1e-6 <= box[1] < cells.bottom
        ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    return Drawn(monkeypatch)


@pytest.mark.parametrize(("kernel_size", "stride"), [(2, None), (3, 1), ((2, 3), (1, 2))])
def test_the_last_position_has_the_whole_pooling_and_everything_put_back(
    drawn: Drawn, kernel_size: Any, stride: Any
) -> None:
    image = RNG.integers(0, 4, (2, 5, 7)).astype(float)
    expected = ops.max_pool2d(image[None], kernel_size, stride)
    values = RNG.normal(size=expected.shape[1:])
    explorer = show.max_pool2d(image, kernel_size, stride, values)
    drawn.at(explorer, expected[0, 0].size - 1)
    back = ops.max_unpool2d_loops(values[None], image[None], kernel_size, stride)
    for channel in range(2):
        shown = [array for _, array in drawn.matrices[4 * channel : 4 * channel + 4]]
        np.testing.assert_array_equal(shown[0], image[channel])
        np.testing.assert_array_equal(shown[1], expected[0, channel])
        np.testing.assert_array_equal(shown[2], values[channel])
        np.testing.assert_allclose(shown[3], back[0, channel])


def test_the_outputs_fill_step_by_step(drawn: Drawn) -> None:
    explorer = show.max_pool2d(SQUARE, 2)
    for position in range(4):
        (_, image), (_, output) = drawn.at(explorer, position).matrices
        np.testing.assert_array_equal(image, SQUARE)
        np.testing.assert_array_equal(output.ravel()[: position + 1], [2, 3, 3, 2][: position + 1])
        assert np.isnan(output.ravel()[position + 1 :]).all()


def test_window_winner_and_place_are_framed(drawn: Drawn) -> None:
    drawn.at(show.max_pool2d(SQUARE, 2, values=[[1, 2], [3, 4]]), 2)
    image, largest, values, back = (cells for cells, _ in drawn.matrices)
    for cells in (image, back):
        assert drawn.boxes(cells, BLUE) == [cells.box(2, 0, 2, 2)]
        assert drawn.boxes(cells, RED) == [cells.box(3, 0)]
    for cells in (largest, values):
        assert drawn.boxes(cells, RED) == [cells.box(1, 0)]
    assert drawn.crosses == []


def test_tied_pixels_are_crossed_in_both_images(drawn: Drawn) -> None:
    drawn.at(show.max_pool2d(TIED, 2, values=[[5, 6], [7, 8]]), 3)
    image, _, _, back = (cells for cells, _ in drawn.matrices)
    tied = [(2, 3), (3, 2), (3, 3)]
    assert drawn.crosses == [cells.box(*place) for cells in (image, back) for place in tied]


def test_the_still_stands_where_there_is_something_to_see() -> None:
    assert "3 others (crossed) are as large; the first wins. The value 8 goes there." in str(
        show.max_pool2d(TIED, 2, values=[[5, 6], [7, 8]])
    )
    assert "The value 4 goes there, on top of 2: 6." in str(show.max_pool2d(SQUARE, 3, 1, [[1, 2], [3, 4]]))
    assert "The largest is 3, at row 1, column 3." in str(show.max_pool2d(SQUARE, 2))


def test_channels_say_their_largest() -> None:
    assert str(show.max_pool2d(np.stack([SQUARE, TIED]), 2)).endswith("The largest of each channel: 3, 3.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel_size": 5}, r"kernel_size \(5, 5\) is larger than the padded image \(4, 4\)"),
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"values": np.ones((2, 3))}, r"values have shape \(2, 3\); expected \(1, 2, 2\)"),
    ],
)
def test_what_does_not_fit_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.max_pool2d(**{"image": SQUARE, "kernel_size": 2, **arguments})


def test_inputs_are_not_changed() -> None:
    image, values = TIED.copy(), np.ones((2, 2))
    pooling = PooledImage.of(image, 2, None, values)
    pooling.put_back(3)
    show.max_pool2d(image, 2, values=values).still()
    np.testing.assert_array_equal(image, TIED)
    np.testing.assert_array_equal(values, 1)
