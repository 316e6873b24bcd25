"""Products of matrices, and norms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from unrolled.simgpu.array import broadcast_shape, check, check_cast, launch, ndarray
from unrolled.simgpu.functions import UFUNCS
from unrolled.simgpu.reductions import REDUCTIONS
from unrolled.simgpu.views import reshape, transpose


def matmul(x1: ndarray, x2: ndarray, out: ndarray | None = None) -> ndarray:
    """Return x1 @ x2: matrix products over the last two axes, the others broadcast.

    Raises ValueError for shapes that do not fit.
    """
    a, b = check(x1), check(x2)
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, requires 1)")
    inner = b.shape[-2 if b.ndim > 1 else -1]
    if a.shape[-1] != inner:
        found = f"the last axis of {a.shape} has length {a.shape[-1]}"
        raise ValueError(f"matmul: {found}, which is not {inner} as {b.shape} asks")
    batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    return _multiply(a, b, (*batch, *rows, *columns), out)


def dot(a: Any, b: Any, out: ndarray | None = None) -> Any:
    """Return the sums of products over a's last axis and b's last but one, or its only one; of no axes, a * b."""
    check(a), check(b)
    if out is not None and (np.result_type(a.dtype, b.dtype) != out.dtype or not out.flags.c_contiguous):
        raise ValueError("dot: out is in C order, and of the dtype of the products")
    if not a.ndim or not b.ndim:
        return UFUNCS["multiply"](a, b, out=out)
    inner = b.shape[-2 if b.ndim > 1 else -1]
    if a.shape[-1] != inner:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} (dim {a.ndim - 1}) != {inner}")
    if b.ndim <= 2:
        return _multiply(a, b, (*a.shape[:-1], *(b.shape[-1:] if b.ndim > 1 else ())), out)
    flat = transpose(b, (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1)).reshape(inner, prod(b.shape[:-2]) * b.shape[-1])
    shape = (*a.shape[:-1], *b.shape[:-2], b.shape[-1])
    if out is not None and out.shape != shape:
        raise ValueError(f"dot: out has shape {out.shape}; expected {shape}")
    found = dot(a.reshape(prod(a.shape[:-1]), inner), flat).reshape(shape)
    return found if out is None else UFUNCS["positive"](found, out=out)


def tensordot(a: ndarray, b: ndarray, axes: Any = 2) -> ndarray:
    """Return sums of products over axes of both: the last `axes` of a and the first of b, or a pair of lists."""
    if not check(a).ndim or not check(b).ndim:
        if axes not in (0, ((), ())):
            raise ValueError("An input is zero-dim while axes has dimensions")
        return UFUNCS["multiply"](a, b)  # type: ignore[no-any-return]
    if isinstance(axes, (int, np.integer)):
        pair: Any = (list(range(a.ndim - int(axes), a.ndim)), list(range(int(axes))))
    else:
        pair = [list(part) if isinstance(part, Sequence) else [part] for part in axes]
    if any(a.shape[i] != b.shape[j] for i, j in zip(*pair, strict=True)):  # IndexError for an axis that is not there
        raise ValueError("Axis dimension mismatch")
    left, right = (list(normalize_axis_tuple(part, x.ndim)) for part, x in zip(pair, (a, b), strict=True))
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [i for i in range(b.ndim) if i not in right]
    inner = prod(a.shape[i] for i in left)
    shape_a, shape_b = [a.shape[i] for i in rest_a], [b.shape[i] for i in rest_b]
    first = reshape(transpose(a, rest_a + left), (prod(shape_a), inner))
    second = reshape(transpose(b, right + rest_b), (inner, prod(shape_b)))
    return reshape(dot(first, second), (*shape_a, *shape_b))


def inner(a: ndarray, b: ndarray) -> Any:
    """Return the sums of products over the last axis of both. Raises ZeroDivisionError, as CuPy, where it is empty."""
    if 0 in (a.ndim, b.ndim):
        return UFUNCS["multiply"](a, b)
    if a.shape[-1:] == b.shape[-1:] == (0,):
        raise ZeroDivisionError("inner: the last axis has length 0")
    return tensordot(a, b, ([-1], [-1]))


def outer(a: ndarray, b: ndarray) -> Any:
    """Return every value of a times every value of b: (a.size, b.size)."""
    return UFUNCS["multiply"](reshape(a, (-1, 1)), reshape(b, (1, -1)))


def vdot(a: ndarray, b: ndarray) -> Any:
    """Return the sum of the products of all values of both; a's complex numbers are conjugated."""
    first = UFUNCS["conjugate"](a) if a.dtype.kind == "c" else a
    return dot(reshape(first, -1), reshape(b, -1))


def trace(a: ndarray, offset: int = 0) -> Any:
    """Return the sum along a diagonal."""
    return REDUCTIONS["sum"](a.diagonal(offset), axis=-1)


def einsum(subscripts: str, *operands: ndarray, optimize: Any = True) -> ndarray:
    """Return sums of products by Einstein's convention: einsum("ij,jk->ik", a, b). An ellipsis (...) is not simulated.

    Two arrays are multiplied by a matrix product where that is possible, whatever `optimize` says, as in CuPy.
    Raises ValueError for subscripts that do not fit.
    """
    if not isinstance(subscripts, str) or "." in subscripts:
        raise ValueError("einsum takes subscripts as text without ...; the rest is not simulated")
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    words = left.split(",")
    sizes = _sizes(words, operands)
    if not arrow:
        letters = left.replace(",", "")
        right = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if set(right) - set(sizes) or len(set(right)) != len(right):
        raise ValueError(f"einstein sum subscripts string {subscripts!r}: the output {right!r} does not fit the inputs")
    shape, dtype = tuple(sizes[letter] for letter in right), np.result_type(*(x.dtype for x in operands))
    lengths = [dict(zip(word, x.shape, strict=True)) for word, x in zip(words, operands, strict=True)]
    summed = [sum(part.get(letter, 1) > 1 for part in lengths) for letter in set(sizes) - set(right)]
    library = _library(dtype, max(summed, default=0) > 1 and all(x.size for x in operands))
    result = ndarray.made_for(library, shape, dtype)
    launch("einsum", operands, [result], {"subscripts": f"{left}->{right}", "library": library})
    return result


def norm(x: ndarray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the root of the sum of squares, of all values or along axes.

    For vectors also ord 1 and inf: the sum and the maximum of the absolute values. Raises ValueError for other norms.
    """
    floats = UFUNCS["absolute"](x) if x.dtype.kind == "c" else x if x.dtype.kind == "f" else x.astype(np.float64)
    if ord in (None, 2) and axis is None and (ord is None or x.ndim == 1):
        flat = reshape(floats, -1)
        found = UFUNCS["sqrt"](dot(flat, flat))
        return reshape(found, (1,) * x.ndim) if keepdims else found
    if ord in (None, "fro") or (ord == 2 and (x.ndim == 1 or isinstance(axis, int))):
        squares = UFUNCS["multiply"](floats, floats)
        return UFUNCS["sqrt"](REDUCTIONS["sum"](squares, axis=axis, keepdims=keepdims))
    if ord in (1, np.inf) and (x.ndim == 1 or isinstance(axis, int)):
        return REDUCTIONS["sum" if ord == 1 else "max"](abs(floats), axis=axis, keepdims=keepdims)
    raise ValueError(f"norm(ord={ord!r}, axis={axis!r}) is not simulated")


def __getattr__(name: str) -> Any:
    raise AttributeError(f"linalg.{name} is not simulated")


def _sizes(words: list[str], operands: Sequence[ndarray]) -> dict[str, int]:
    """The length of each letter's axis."""
    if len(words) != len(operands):
        raise ValueError(f"einsum got {len(operands)} arrays for the subscripts of {len(words)}")
    sizes: dict[str, int] = {}
    for word, x in zip(words, operands, strict=True):
        if len(word) != check(x).ndim:
            raise ValueError(f"einsum: subscripts {word!r} name {len(word)} axes of an array of shape {x.shape}")
        for letter, size in zip(word, x.shape, strict=True):
            if sizes.setdefault(letter, size) == 1:
                sizes[letter] = size
            if size not in (1, sizes[letter]):
                raise ValueError(f"einsum: {letter!r} has length {sizes[letter]} in one array and {size} in another")
    return sizes


def _library(dtype: Any, matrices: bool) -> str:
    """What CuPy takes for products: its own kernels where numbers are whole, or two vectors are all there is."""
    return "cuBLAS" if matrices and dtype.kind in "fc" else ""


def _multiply(a: ndarray, b: ndarray, shape: tuple[int, ...], out: ndarray | None) -> ndarray:
    dtype = np.matmul.resolve_dtypes((a.dtype, b.dtype, None))[-1]
    library = _library(dtype, bool(a.size and b.size) and (max(a.ndim, b.ndim) > 2 or prod(shape) > 1))
    if out is None:
        out = ndarray.made_for(library, shape, dtype)
    elif out.shape != shape:
        # an IndexError, too, which CuPy raises for too few axes
        raise np.exceptions.AxisError(f"matmul: out has shape {out.shape}; expected {shape}")
    check_cast("ufunc 'matmul' output", dtype, out.dtype)
    launch("matmul", [a, b], [out], {"library": library})
    return out
