"""Convolution by the fast Fourier transform: the larger the kernel, the more it saves.

The transform turns a convolution into a product, frequency by frequency. With H x W pixels and KH x KW weights that is
some log2(H * W) operations a pixel instead of KH * KW. Four things make it fit:

1. What deep learning calls convolution is cross-correlation. So the weight is flipped on the way there, and stands as
   it is on the way back.
2. The transform is a circular one: what leaves at one end comes in at the other. An image that fits into one tile meets
   that only in places that no window has; a tile of a larger image is padded by a kernel less one.
3. A large image is cut into tiles, and the results of neighbours overlap by a kernel less one. Where they do, they are
   added: overlap-add (T. G. Stockham, "High-speed convolution and correlation", 1966).
4. Frequencies first, (H, W, C, N) instead of (N, C, H, W): then the sum over channels is one small matrix product for
   each frequency, and nothing has to be transposed between transform and product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log2, prod

import numpy as np

from unrolled.device import Array, array_module
from unrolled.ops.arguments import IntOrPair, check_float
from unrolled.ops.blocks import parts_of
from unrolled.ops.conv_arguments import backward_arguments, forward_arguments
from unrolled.ops.windows import Windows

TRANSFORMS = (16, 32, 64, 128, 256)  # lengths of transforms that are tried for an image larger than that
TRANSFORMS_ON_GPU = (1024,)  # each tile is some launches, so a GPU gets few of them
FACTORS = (2, 3, 5, 7)  # lengths without other prime factors are those that an FFT is fast for
FIRST_TWO = (0, 1)
IMAGES_FIRST = (3, 2, 0, 1)  # from (H, W, C, N) to (N, C, H, W)
PIXELS_FIRST = (2, 3, 1, 0)  # and back
COMPLEX = {"float32": "complex64", "float64": "complex128"}
Pair = tuple[int, int]


def fft_conv2d(
    x: Array, weight: Array, bias: Array | None = None, stride: IntOrPair = 1, padding: IntOrPair = 0
) -> Array:
    """Convolve as `conv2d` does, by real fast Fourier transforms: (N, O, OH, OW).

    The time hardly depends on the size of the kernel. A stride saves nothing: all places are computed, and some taken.
    float32 in, float32 out, in between complex64. A NaN or an infinity reaches all results of its tile.
    Raises ValueError as `conv2d` does, and for float16.
    """
    return forward(*forward_arguments(x, weight, bias, stride, padding))


def fft_conv2d_backward(
    grad: Array,
    x: Array,
    weight: Array,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    *,
    input_gradient: bool = True,
) -> tuple[Array | None, Array, Array]:
    """Return (grad_x, grad_weight, grad_bias) as `conv2d_backward` does, by real fast Fourier transforms.

    grad_x is the full convolution of grad with the weight, grad_weight the correlation of x with grad.
    Raises ValueError for shapes that do not fit, and for float16.
    """
    return backward(*backward_arguments(grad, x, weight, stride, padding), input_gradient)


@dataclass(frozen=True)
class Tiling:
    """How images are cut: `length` of each transform, and `step` from one tile to the next, (vertical, horizontal)."""

    length: Pair
    step: Pair

    def count(self, size: Pair) -> int:
        """Return the number of tiles of an image (H, W)."""
        return prod(-(-pixels // step) for pixels, step in zip(size, self.step, strict=True))


def forward(x: Array, weight: Array, bias: Array | None, windows: Windows) -> Array:
    """Return the result of `fft_conv2d` for arguments that are checked and share one dtype."""
    check_float("x", x.dtype)
    module = array_module(x)
    tiling = tiling_for(windows, len(x), x.shape[1], len(weight), module is not np)
    spectrum = module.fft.rfft2(weight[:, :, ::-1, ::-1].transpose(2, 3, 0, 1), tiling.length, FIRST_TWO)
    (kh, kw), (oh, ow), (sh, sw) = windows.kernel_size, windows.output_size, windows.stride
    valid = slice(kh - 1, kh + sh * (oh - 1), sh), slice(kw - 1, kw + sw * (ow - 1), sw)
    y = module.empty((len(x), len(weight), oh, ow), dtype=x.dtype)
    for part in parts_of(module, len(x)):
        whole: Array = None
        for row, column, pixels in _spectra(_padded(x[part], windows), tiling):
            whole = _overlap_add(whole, module.matmul(spectrum, pixels), row, column, windows, tiling)
        y[part] = whole[valid].transpose(IMAGES_FIRST)
    if bias is not None:
        y += bias[:, None, None]
    return y


def backward(
    grad: Array, x: Array, weight: Array, windows: Windows, input_gradient: bool
) -> tuple[Array | None, Array, Array]:
    """Return the result of `fft_conv2d_backward` for arguments that are checked and share one dtype.

    Both gradients need the spectrum of grad. Its conjugate is that of grad flipped, so the product with it is a
    correlation.
    """
    check_float("x", x.dtype)
    module = array_module(x)
    tiling = tiling_for(windows, len(x), x.shape[1], len(weight), module is not np)
    spectrum = module.fft.rfft2(weight.transpose(2, 3, 1, 0), tiling.length, FIRST_TWO) if input_gradient else None
    frequencies = tiling.length[0], tiling.length[1] // 2 + 1
    products = module.zeros((*frequencies, *weight.shape[1::-1]), dtype=COMPLEX[x.dtype.name])
    (h, w), (kh, kw), (ph, pw) = windows.size, windows.kernel_size, windows.padding
    grad_x = module.empty(x.shape, dtype=x.dtype) if input_gradient else None
    for part in parts_of(module, len(x)):
        images, spread = _padded(x[part], windows), _spread(grad[part], windows)
        whole: Array = None
        for row, column, grads in _spectra(spread, tiling):
            pixels = images[row : row + tiling.length[0], column : column + tiling.length[1]]
            pixels = module.fft.rfft2(pixels, tiling.length, FIRST_TWO)
            products += module.matmul(pixels, module.conjugate(grads).transpose(0, 1, 3, 2))
            if input_gradient:
                whole = _overlap_add(whole, module.matmul(spectrum, grads), row, column, windows, tiling)
        if grad_x is not None:
            grad_x[part] = whole[ph : ph + h, pw : pw + w].transpose(IMAGES_FIRST)
    shifts = module.fft.irfft2(products, tiling.length, FIRST_TWO)
    return grad_x, shifts[:kh, :kw].transpose(IMAGES_FIRST).copy(), grad.sum(axis=(0, 2, 3))


@lru_cache(maxsize=1024)
def tiling_for(windows: Windows, n: int, c: int, o: int, on_gpu: bool = False) -> Tiling:
    """Return how to cut n images of c channels for o filters: the way that takes the fewest operations.

    On a GPU only what is larger than 1024 pixels is cut at all.

    A transform of P pixels counts 2.5 P log2 P (M. Frigo and S. G. Johnson, fftw.org/speed/method.html); a product of
    two spectra 4 P, which is 8 for each of P / 2 frequencies.
    """
    size = _padded_size(windows)

    def operations(tiling: Tiling) -> float:
        tiles, pixels = n * tiling.count(size), prod(tiling.length)
        return pixels * (2.5 * log2(max(2, pixels)) * (tiles * (c + o) + c * o) + 4 * tiles * c * o)

    tried = TRANSFORMS_ON_GPU if on_gpu else (*TRANSFORMS, max(size))
    lengths = {  # of the whole image, or about one of these, so that a tile is no less than a kernel
        tuple(fast_length(min(side, max(most, 2 * kernel - 1))) for side, kernel in _axes(windows)) for most in tried
    }
    return min((_tiling(windows, *both) for both in sorted(lengths)), key=operations)


def _axes(windows: Windows) -> Iterator[tuple[int, int]]:
    """Size of the padded image and of the kernel, vertically and horizontally."""
    return zip(_padded_size(windows), windows.kernel_size, strict=True)


def _tiling(windows: Windows, *length: int) -> Tiling:
    rows, columns = (
        size if reach >= size else reach - kernel + 1
        for reach, (size, kernel) in zip(length, _axes(windows), strict=True)
    )
    return Tiling((length[0], length[1]), (rows, columns))


def fast_length(least: int) -> int:
    """Return the smallest whole number from `least` on that has no prime factors but 2, 3, 5 and 7."""
    rest = least
    for factor in FACTORS:
        while rest % factor == 0:
            rest //= factor
    return least if rest == 1 else fast_length(least + 1)


def _spectra(images: Array, tiling: Tiling) -> Iterator[tuple[int, int, Array]]:
    """Yield the first row and column of each tile of images (H, W, C, N), and its spectrum."""
    for row in range(0, images.shape[0], tiling.step[0]):
        for column in range(0, images.shape[1], tiling.step[1]):
            tile = images[row : row + tiling.step[0], column : column + tiling.step[1]]
            yield row, column, array_module(images).fft.rfft2(tile, tiling.length, FIRST_TWO)


def _overlap_add(
    whole: Array | None, spectrum: Array, row: int, column: int, windows: Windows, tiling: Tiling
) -> Array:
    """Add what has this spectrum to `whole` (H, W, O, N), from this row and column on; with None, to zeros."""
    module, size = array_module(spectrum), _padded_size(windows)
    part = module.fft.irfft2(spectrum, tiling.length, FIRST_TWO)
    if tiling.step == size:
        return part
    if whole is None:
        whole = module.zeros((*size, *part.shape[2:]), dtype=part.dtype)
    there = whole[row : row + tiling.length[0], column : column + tiling.length[1]]
    there += part[: there.shape[0], : there.shape[1]]
    return whole


def _padded(x: Array, windows: Windows) -> Array:
    """Images (N, C, H, W) with their padding, as (H, W, C, N)."""
    (h, w), (ph, pw) = windows.size, windows.padding
    n, c = x.shape[:2]
    padded = array_module(x).zeros((*_padded_size(windows), c, n), dtype=x.dtype)
    padded[ph : ph + h, pw : pw + w] = x.transpose(PIXELS_FIRST)
    return padded


def _spread(grad: Array, windows: Windows) -> Array:
    """Gradients (N, O, OH, OW) where they stand with a stride of 1, zeros between, as (H, W, O, N)."""
    n, o, oh, ow = grad.shape
    sh, sw = windows.stride
    spread = array_module(grad).zeros((sh * (oh - 1) + 1, sw * (ow - 1) + 1, o, n), dtype=grad.dtype)
    spread[::sh, ::sw] = grad.transpose(PIXELS_FIRST)
    return spread


def _padded_size(windows: Windows) -> Pair:
    h, w = (size + 2 * padding for size, padding in zip(windows.size, windows.padding, strict=True))
    return h, w
