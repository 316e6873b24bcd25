"""Where a sliding window falls: output sizes, and for every place inside the window the pixels it meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.kernels.columns import meet
from unrolled.ops.arguments import IntOrPair, pair

Index: TypeAlias = Any  # picks from the last two axes of an array


@dataclass(frozen=True)
class Windows:
    """All places of a window (kernel_size) over an image (size): every field is (vertical, horizontal)."""

    size: tuple[int, int]
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]

    @classmethod
    def over(
        cls,
        size: IntOrPair,
        kernel_size: IntOrPair,
        stride: IntOrPair,
        padding: IntOrPair,
        *,
        window: str | None = None,
        image: str | None = None,
    ) -> Windows:
        """Return the windows for these arguments, checked.

        Raises ValueError for a stride or kernel below 1 and for a window that does not fit; `window` and `image` are
        the caller's words for its arguments in that message.
        """
        if all(_is_plain(value) for value in (size, kernel_size, stride, padding)):
            known = _checked(size, kernel_size, stride, padding)
            if known is not None:
                return known
        windows = cls(
            pair("size", size), pair("kernel_size", kernel_size, 1), pair("stride", stride, 1), pair("padding", padding)
        )
        padded = tuple(s + 2 * p for s, p in zip(windows.size, windows.padding, strict=True))
        if any(k > s for k, s in zip(windows.kernel_size, padded, strict=True)):
            window = window or f"kernel_size is {windows.kernel_size}"
            image = image or f"size {windows.size}"
            raise ValueError(f"{window}: the window is larger than {image} with padding {windows.padding}")
        return windows

    @cached_property
    def output_size(self) -> tuple[int, int]:
        """(OH, OW), how many places there are: (size + 2 * padding - kernel_size) // stride + 1."""
        axes = zip(self.size, self.kernel_size, self.stride, self.padding, strict=True)
        oh, ow = ((size + 2 * padding - kernel) // stride + 1 for size, kernel, stride, padding in axes)
        return oh, ow

    def constants(self, channels: int = 1, ones: bool = False) -> kernels.Constants:
        """Return all sizes by the names that kernels use: c, h, w, kh, kw, sh, sw, ph, pw, oh, ow, ones.

        ones: whether columns have a last row of ones. The same arguments give the same object.
        """
        found = self._constants.get((channels, ones))
        if found is None:
            pairs = {"": self.size, "k": self.kernel_size, "s": self.stride, "p": self.padding, "o": self.output_size}
            sizes = {name + axis: pair[at] for name, pair in pairs.items() for at, axis in enumerate("hw")}
            found = self._constants[channels, ones] = kernels.constants(c=channels, **sizes, ones=ones)
        return found

    @cached_property
    def _constants(self) -> dict[tuple[int, bool], kernels.Constants]:
        return {}

    def offsets(self) -> Iterator[tuple[int, int, Index, Index]]:
        """Yield (i, j, outputs, inputs) for every place (i, j) inside the window, in row-major order.

        `image[inputs]` are the pixels that place (i, j) meets as the window moves, and `result[outputs]` are the window
        positions at which it meets them. Positions where (i, j) lies in the padding are left out, so nobody has to pad.
        """
        columns = [self._meet(1, j) for j in range(self.kernel_size[1])]
        for i in range(self.kernel_size[0]):
            out_rows, in_rows = self._meet(0, i)
            for j, (out_columns, in_columns) in enumerate(columns):
                yield i, j, (..., out_rows, out_columns), (..., in_rows, in_columns)

    def slides(self) -> tuple[list[slice], list[slice]]:
        """Return, for each row of the window, the rows of the padded image it meets as it moves; so for columns."""
        axes = zip(self.kernel_size, self.stride, self.output_size, strict=True)
        rows, columns = (
            [slice(place, place + stride * (outputs - 1) + 1, stride) for place in range(kernel)]
            for kernel, stride, outputs in axes
        )
        return rows, columns

    def pad(self, x: Array, value: Any = 0) -> Array:
        """Return x (..., H, W) with a border of `value`; x itself where there is no padding."""
        (h, w), (ph, pw) = self.size, self.padding
        if not ph and not pw:
            return x
        padded = array_module(x).full((*x.shape[:-2], h + 2 * ph, w + 2 * pw), value, dtype=x.dtype)
        padded[..., ph : ph + h, pw : pw + w] = x
        return padded

    def _meet(self, axis: int, offset: int) -> tuple[slice, slice]:
        """The output indices for which output * stride + offset - padding is a pixel, and those pixels."""
        return meet(self.size[axis], self.output_size[axis], self.stride[axis], offset - self.padding[axis])


def _is_plain(value: Any) -> bool:
    """An int, or a pair of them: a key for the cache that nothing else equals."""
    if type(value) is tuple:
        return len(value) == 2 and type(value[0]) is int is type(value[1])
    return type(value) is int


@lru_cache(maxsize=1024)
def _checked(size: Any, kernel_size: Any, stride: Any, padding: Any) -> Windows | None:
    """The windows, found once for a geometry: a layer asks for the same in every step. None if something is wrong."""
    try:
        return Windows.over(list(size) if isinstance(size, tuple) else [size, size], kernel_size, stride, padding)  # type: ignore[arg-type]
    except ValueError:
        return None
