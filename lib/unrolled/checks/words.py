"""What a check says beside an error: what a message of NumPy or Python means, and how the function was called."""

from __future__ import annotations

import dis
import linecache
import re
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

import numpy as np

from .compare import shortened
from .spec import Inputs

VALUE_LIMIT = 60  # characters of an argument that are shown

PRODUCT = "a @ b needs as many columns in a as b has rows: print both shapes; a .T or a reshape may be missing"
FRACTION = "sizes and indices are whole numbers: / gives a float, // a whole number"
ONE_PLACE = (
    "several numbers meet one place: an index, or a .sum(), is missing on one side; math.exp and its kin take one "
    "number, np.exp an array"
)
BRACKETS = (
    "the arrays belong into one list: np.concatenate([a, b]); the larger of each pair is np.maximum(a, b); an index "
    "must be a whole number, not an array"
)
IMAGES = (
    "two arrays of four axes differ in size: print both shapes. Slices i : i + OH * step : step have OH rows for every "
    "i; swapaxes exchanges two axes"
)
MIXED = "a NumPy array met a GPU array: bring it to the GPU before, once, with asarray"
CONVERTED = "a function of NumPy got a GPU array: call the same function of the array's own module, array_module(x)"
OTHERS = "the check gives arrays of the simulated GPU: take the module from the array, array_module(x)"
MEANINGS = {  # a sentence by what an error says
    r"unrolled\.simgpu": OTHERS,  # CuPy met one
    r"Unsupported type": MIXED,
    r"Implicit conversion|__array_ufunc__": CONVERTED,
    r"indexing arrays could not be broadcast": "several indices name numbers in pairs, so they must have one shape, "
    "or 1 in an axis to be repeated there: np.arange(n)[:, None], a column (n, 1), goes with indices (n, m)",
    r"mismatch in its core dimension|not aligned": PRODUCT,
    r"value array of shape .* indexing result": "the value has another shape than the places that the index names: "
    "print the shape of both sides",
    r"could not (be )?broadcast.* \((\d+,){3}\d+\) (into shape )?\((\d+,){3}\d+\)": IMAGES,
    r"could not broadcast input array": "what is written has another shape than its place: the first shape is what you "
    "write, the second is the place",
    r"non-broadcastable output operand": "what += adds must fit the left side, whose shape stays: print both shapes; "
    "does a slice end elsewhere, or are two axes exchanged (swapaxes)?",
    r"indices run from .* expected": "indices count the pixels of an image of x, so size is x.shape[2:]",
    r"newaxis": "@ with more than two axes needs the same sizes along those before the last two, or 1: print both "
    "shapes; were both made with the same lengths?",
    r"remapped shapes": "np.pad takes a pair (before, after) for each axis of the array: four for images (N, C, H, W)",
    r"could not be broadcast": "element by element, shapes must be equal or 1 along each axis, counted from the last: "
    "an axis of size 1 comes from [:, None] or keepdims=True",
    r"index -?\d+ is out of bounds|index out of range": "the last index is the size - 1: "
    "does a loop, or a place that you computed, go too far, or is the array smaller than you think (not padded)?",
    r"zero-size array to reduction": "a window without a pixel: its slice ends before it begins, or begins outside the "
    "array",
    r"return arrays must be of ArrayType": "several axes belong into one pair of brackets: axis=(2, 3)",
    r"boolean array indexing assignment": "y[mask] = v takes a value for each True of the mask: v[mask], with "
    "the mask on both sides",
    r"boolean index did not match": "a mask needs the shape of what it is laid on: take the slice first, then the mask",
    r"axis -?\d+ is out of bounds": "axes are counted from 0, so the last of an array is x.ndim - 1",
    r"too many indices": "the array has fewer axes than you index: print its shape",
    r"setting an array element with a sequence|only (length-1|0-dimensional|size-1) arrays": ONE_PLACE,
    r"only integer scalar arrays": BRACKETS,
    r"only integers, slices|cannot be interpreted as an integer|indices must be integers": FRACTION,
    r"cannot reshape array": "a reshape keeps all values: the sizes of the new shape, multiplied, must give the old "
    "number of them",
    r"truth value of an array": "an array is not one truth: use np.where, np.maximum, & and | with brackets, .any() or "
    ".all(); to ask whether it was given, write `is not None`",
    r"Cannot interpret .* as a data type": "a shape is one argument, in brackets of its own: np.zeros((2, 3))",
    r"boolean (subtract|negative)": "True and False have no minus: a & ~b is true where a is and b is not, "
    "~a where a is not",
    r"indices has shape .* to fit values": "these indices belong to another pooling: take those of x, and pass "
    "stride and padding on",
    r"columns has shape .* to fit x_shape": "these columns belong to other windows: pass stride and padding on, and "
    "count N, C, OH and OW again",
    r"Cannot cast ufunc": "+= and its kin keep the dtype of the left side: write y = y + ..., or give y the dtype",
    r"must have (the )?same (number of dimensions|shape)|dimensions .* must match exactly": "arrays that are joined "
    "agree along all axes but the one that joins them: print their shapes",
    r"axes don't match array": "transpose names each axis of the array once: it has x.ndim of them",
    r"read-only": "this array is a view that must not be written to: work on a copy",
    r"unsupported operand type.*'tuple'": "one side is a tuple, as of a function that returns several values: take "
    "one of them, [0], or name them, loss, grad = …",
    r"has no attribute 'reverse'": "a tuple stays as it is: reversed(layers) goes through it backwards",
    r"object is not callable": "this is no function: call a method of it, such as layer.forward(x), or index with [ ]",
    r"labels has shape .* to fit scores": "scores are those of one batch, so take the labels of this batch alone",
    r"for [-+*/@]+: .*'(method|function|builtin_function_or_method)'": "a function stands where its result is meant: "
    "brackets call it",
    r"'dict' object has no attribute": "what stands under a key of a dictionary is read with brackets: event['start']",
    r"cuBLAS API during stream capture": "CuPy does not capture products of matrices: compute them in a kernel of "
    "your own",
    r"stream is capturing, so": "a graph is made of kernels alone: nothing may be copied to the host or from it, as "
    "float(), .item(), asnumpy, an `if` on a value and asarray do",
    r"StreamCaptureUnsupported": "while a stream is capturing nothing waits for the GPU, and no array is made: make "
    "arrays before, and write into them with out=...",
    r"Output shape mismatch": "out= takes an array of the result's shape, and take puts the shape of the indices in "
    "place of the axis: where rows has shape (1, N), the batch is rows[0]",
    r"ZeroDivisionError": "what you divide by is 0 in this case: which of the arguments is, and is that allowed?",
    r"'function' object is not subscriptable": "@jit.rawkernel() above its def makes a kernel of a function: "
    "kernel[blocks, threads](...) launches that",
    r"Cannot cast from '?float\d+'? to '?u?int": "a variable of a kernel keeps the type of its first value: / makes a "
    "float, // a whole number",
    r"'NoneType'": "something here is None: an argument that was left out, a function without return, or a name that "
    "was never filled",
}

BUSY = "not settled: the machine is too busy to tell"
SLOW = "not settled: the machine alone was not the cause, so faster code may help"
FOREIGN = "another library's answer to this exercise: write it yourself"
NARROWED = "computed in float32, which has fewer digits and ends at 3e38: float64 came in, so keep that"
ON_REAL = "right on the simulated GPU, but on this machine's own:"


def advice(lines: Sequence[str]) -> tuple[str, ...]:
    """Return what the error in these lines means, if it is a usual one."""
    return next(((means,) for says, means in MEANINGS.items() if re.search(says, lines[0])), ())


def loop_in(function: Any) -> tuple[str, ...]:
    """Return where a function's own code loops, as in "line 7 loops: for image in x:"; nothing if it does not."""
    code = getattr(function, "__code__", None)
    for part, offset in _loops(code) if isinstance(code, CodeType) else ():
        number = next(line for start, end, line in part.co_lines() if start <= offset < end)
        if number:
            return (f"line {number} loops: {linecache.getline(part.co_filename, number).strip()}".rstrip(": "),)
    return ()


def _loops(code: CodeType) -> Iterator[tuple[CodeType, int]]:
    """Where each loop stands, those of comprehensions after the others."""
    yield from ((code, step.offset) for step in dis.get_instructions(code) if step.opname == "FOR_ITER")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loops(constant)


def call(inputs: Inputs) -> str:
    """Return how a function was called, as in "x (3,3,3,2), weight (3,3,2,3), stride=2"."""
    return ", ".join(f"{name} {_size(v)}" if _is_array(v) else f"{name}={_text(v)}" for name, v in inputs.items())


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _size(array: Any) -> str:
    kind = "" if array.dtype == np.float32 else f" {array.dtype}"
    return str(array.shape).replace(" ", "") + kind


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)) and not all(map(_is_plain, value)):
        arrays = any(map(_is_array, value))
        items = ", ".join(_size(v) if _is_array(v) else type(v).__name__ for v in value)
        return f"[{items}]" if arrays else f"a {type(value).__name__} of {len(value)}"
    if not _is_plain(value):
        return "a function" if callable(value) else type(value).__name__
    return shortened(repr(value) if isinstance(value, str) else value, VALUE_LIMIT)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, list, tuple, np.generic))
