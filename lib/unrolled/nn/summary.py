"""What a network is made of, as a table: shapes, parameters, multiply-adds, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from unrolled.nn.layers import Layer, Shape

COLUMNS = ("layer", "output", "parameters", "multiply-adds", "bytes")


@dataclass(frozen=True)
class LayerRow:
    """One layer; all counts are for one sample, forward.

    output: the shape that leaves, without N. multiply_adds: multiplications with an addition. bytes: of the output.
    """

    layer: str
    output: Shape
    parameters: int
    multiply_adds: int
    bytes: int


@dataclass(frozen=True)
class Summary:
    """The layers of a network. `print(summary)` shows the table."""

    input_shape: Shape
    rows: tuple[LayerRow, ...]
    itemsize: int = 4  # bytes of a value

    @classmethod
    def of(cls, layers: Sequence[Layer], input_shape: Shape, outputs: Sequence[Shape], itemsize: int) -> Summary:
        """Return the table of built layers and the shapes that leave them, of values with `itemsize` bytes."""
        rows = []
        for layer, shape in zip(layers, outputs, strict=True):
            parameters = sum(map(prod, layer.parameter_shapes.values()))
            rows.append(LayerRow(repr(layer), shape, parameters, layer.multiply_adds, prod(shape) * itemsize))
        return cls(input_shape, tuple(rows), itemsize)

    @property
    def parameters(self) -> int:
        """How many numbers training changes."""
        return sum(row.parameters for row in self.rows)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of all layers, for one sample, forward. Training takes about three times as many."""
        return sum(row.multiply_adds for row in self.rows)

    @property
    def bytes(self) -> int:
        """Bytes of all outputs together, for one sample. Training keeps as many for each sample of a batch."""
        return sum(row.bytes for row in self.rows)

    def __str__(self) -> str:
        lines = [
            COLUMNS,
            ("input", str(self.input_shape), "", "", f"{prod(self.input_shape) * self.itemsize:,}"),
            *((row.layer, str(row.output), *_numbers(row)) for row in self.rows),
            ("total, one sample", "", *_numbers(self)),
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(_line(line, widths) for line in lines)

    __repr__ = __str__


def _numbers(row: LayerRow | Summary) -> list[str]:
    return [f"{value:,}" if value else "" for value in (row.parameters, row.multiply_adds, row.bytes)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first two columns flush left, numbers flush right."""
    words = [f"{cell:<{width}}" for cell, width in zip(cells[:2], widths[:2], strict=True)]
    numbers = [f"{cell:>{width}}" for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(words + numbers).rstrip()
