"""Fast Fourier transforms of images: `fft.rfft2`, `fft.fft2` and their inverses, as in NumPy and CuPy.

Each is one launch here. cuFFT makes several of a long transform, and CuPy copies first where the axes are not the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from unrolled.simgpu.array import check, launch, ndarray

_SPECTRA = {"float32": "complex64", "float64": "complex128"}
_IMAGES = {spectrum: image for image, spectrum in _SPECTRA.items()}
_COMPLEX = _SPECTRA | {spectrum: spectrum for spectrum in _IMAGES}


def rfft2(a: ndarray, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> ndarray:
    """Return the spectrum of real images: the last of the two axes keeps s // 2 + 1 frequencies.

    s: lengths of both axes; longer than those of a, it adds zeros, shorter, it cuts. Integers count as float64.
    Raises TypeError for complex numbers and float16, ValueError for axes or lengths that do not fit.
    """
    return _transform("rfft2", _floats(a), s, axes, _SPECTRA)


def irfft2(a: ndarray, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> ndarray:
    """Return the real images of these spectra; without s, their last axis has an even length.

    Raises TypeError for what is not complex, ValueError for axes or lengths that do not fit.
    """
    return _transform("irfft2", check(a), s, axes, _IMAGES)


def fft2(a: ndarray, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> ndarray:
    """Return all frequencies of images, real or complex. Raises as `rfft2` does."""
    return _transform("fft2", _floats(a), s, axes, _COMPLEX)


def ifft2(a: ndarray, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> ndarray:
    """Return the complex images of spectra with all frequencies. Raises as `rfft2` does."""
    return _transform("ifft2", _floats(a), s, axes, _COMPLEX)


def _floats(a: ndarray) -> ndarray:
    return a.astype(np.float64) if check(a).dtype.kind in "iub" else a


def __getattr__(name: str) -> Any:
    raise AttributeError(f"fft.{name} is not simulated: write rfft2, fft2 or their inverses, with lengths and axes")


def _transform(op: str, a: ndarray, s: Sequence[int] | None, axes: Sequence[int], dtypes: dict[str, str]) -> ndarray:
    if a.dtype.name not in dtypes:
        raise TypeError(f"{op} of {a.dtype} is not simulated; expected {' or '.join(dtypes)}")
    both = normalize_axis_tuple(axes, a.ndim)
    if len(both) != 2 or (s is not None and len(s) != 2):
        raise ValueError(f"{op} takes two axes and two lengths, got axes {axes} and s {s}")
    lengths = [a.shape[axis] for axis in both]
    if s is not None:
        lengths = list(map(int, s))
    elif op == "irfft2":
        lengths[1] = 2 * (lengths[1] - 1)
    if min(lengths) < 1:
        raise ValueError(f"Invalid number of FFT data points ({min(lengths)}) specified.")
    shape = list(a.shape)
    shape[both[0]], shape[both[1]] = (lengths[0], lengths[1] // 2 + 1) if op == "rfft2" else lengths
    result = ndarray(tuple(shape), dtypes[a.dtype.name])
    launch(op, [a], [result], {"lengths": lengths, "axes": list(both)})
    return result
