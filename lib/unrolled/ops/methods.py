"""Which way a convolution is computed: the methods of `conv2d`, and where each of them is the fastest.

The crossovers below were measured with `benchmarks/cpu_convolutions.py`: float32, a stride of 1, padding that keeps the
size of the images (32, 64 and 128 pixels wide for FFT, 7 to 56 for Winograd), forward and backward, one BLAS thread,
each method against "gemm" in turns. An edge is the first size measured from which on a method won both ways for all
widths of image. With more threads "gemm" gains more than the others, and another processor has other edges: measure
yours with the same program.

Those of a GPU were measured with `benchmarks/convolutions.py`, whose record (`unrolled.records.convolutions`) says on
which one. The time of FFT hardly grows there until the GPU is full, so what decides is how much there is to multiply.
Winograd's filtering lost everywhere: it is 58 or 134 launches in place of 3, and on the device alone it loses, too.
"""

from __future__ import annotations

from math import prod
from types import ModuleType

import numpy as np

from unrolled.device import Array, array_module
from unrolled.ops import cudnn, fft, winograd
from unrolled.ops.blocks import BLOCK_IMAGES
from unrolled.ops.windows import Windows

METHODS = ("gemm", "fft", "winograd", "cudnn", "auto")

FFT_KERNELS = {1: 15, 3: 11, 8: 9}
"""From so many channels and filters on (the fewer of the two), FFT wins with kernels of at least so many rows and
columns. It needs a transform for each channel and each filter, which pay off in each pair of them."""
FFT_IMAGES = 8
"""Fewer images at once do not repay the transforms of all weights."""
WINOGRAD_CHANNELS = 64
"""From so many channels and filters on, Winograd's F(2x2, 3x3) wins with 3 x 3 kernels: with few of them its transforms
cost what its products save."""
WINOGRAD_PLACES = 28 * 28
"""It needs so many results of a filter in the images that are computed at a time: else its products are too narrow."""

GPU_FFT_KERNEL = 7
"""On a GPU, FFT wins with kernels of at least so many rows and columns,"""
GPU_FFT_PRODUCTS = 3e9
"""and so many multiplications in the plain way of all images."""


def module_for(method: str, x: Array, weight: Array, windows: Windows) -> ModuleType | None:
    """Return what computes `conv2d` and its gradients by this method, for checked arguments; None for "gemm".

    Raises ValueError for an unknown method, for "winograd" with kernels or strides that it does not take, for "cudnn"
    with arrays that are not float32 on a GPU; ImportError for "cudnn" where it is not installed.
    """
    check(method, windows)
    if method == "auto":
        choose = fastest if array_module(x) is np else fastest_on_gpu
        (n, c), o = x.shape[:2], len(weight)
        method = choose(windows, n, c, o) if x.dtype.name in fft.COMPLEX else "gemm"
    if method == "cudnn":
        cudnn.check(x)
    return {"fft": fft, "winograd": winograd, "cudnn": cudnn}.get(method)


def check(method: str, windows: Windows) -> None:
    """Raise ValueError for an unknown method, and for "winograd" with kernels or strides that it does not take."""
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    if method == "winograd":
        winograd.check(windows)


def fastest(windows: Windows, n: int, c: int, o: int) -> str:
    """Return the method that was measured to be the fastest on a CPU for n images of c channels and o filters."""
    channels = min(c, o)
    if windows.stride != (1, 1) or not channels:
        return "gemm"
    if windows.kernel_size == (3, 3):
        places = min(n, BLOCK_IMAGES) * prod(windows.output_size)
        return "winograd" if channels >= WINOGRAD_CHANNELS and places >= WINOGRAD_PLACES else "gemm"
    least = min(kernel for few, kernel in FFT_KERNELS.items() if channels >= few)
    return "fft" if n >= FFT_IMAGES and prod(windows.kernel_size) >= least**2 else "gemm"


def fastest_on_gpu(windows: Windows, n: int, c: int, o: int) -> str:
    """Return the method that was measured to be the fastest on a GPU, of those that are the library's own."""
    products = n * c * o * prod(windows.output_size) * prod(windows.kernel_size)
    large = prod(windows.kernel_size) >= GPU_FFT_KERNEL**2 and products >= GPU_FFT_PRODUCTS
    return "fft" if large and windows.stride == (1, 1) else "gemm"
