"""What the comparison says about a wrong result."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from characters import CHARACTERS
from unrolled.checks.compare import agree, as_numbers, mismatch, shortened

TOLERANCE = 1e-4


def words_of(got, expected, tolerance=TOLERANCE):
    found = mismatch(got, expected, tolerance)
    assert found is not None
    return "\n".join(found.lines)


def values(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**16), st.floats(0.01, 10))
def test_a_single_wrong_value_is_found_where_it_is(shape, seed, by):
    expected = values(*shape, seed=seed)
    index = tuple(int(i) for i in np.random.default_rng(seed).integers(0, shape))
    got = expected.copy()
    got[index] += np.float32(by * (1 + np.abs(expected).max()))
    assert f"first at {list(index)}" in words_of(got, expected)


@given(st.permutations(range(4)).filter(lambda axes: list(axes) != [0, 1, 2, 3]))
def test_permuted_axes_are_recognized(axes):
    expected = values(2, 3, 4, 5)
    wrong_shape = np.ascontiguousarray(expected.transpose(axes))
    back = ", ".join(map(str, np.argsort(axes)))
    assert f"in another order of the axes: y.transpose({back}) puts them right" in words_of(wrong_shape, expected)
    misread = wrong_shape.reshape(expected.shape)
    assert "right in another order of the axes: y.reshape(" in words_of(misread, expected)


E = values(2, 3)
FLIPPED = E.copy()
FLIPPED[0, 1] = np.nan
OFF = np.zeros((2, 3), np.float32)
OFF[1, 2] = 5
RIGHT = {
    "the same": (E.copy(), E),
    "rounding": (E + np.float32(1e-6), E),
    "NaN for NaN": (FLIPPED, FLIPPED.copy()),
    "infinite numbers": (float("inf"), float("inf")),
    "an array for a float": (np.array(2.0), 2.0),
    "tuples": ((26, 24), (26, 24)),
    "a list for a tuple, floats for ints": ([26.0, np.float64(24)], (26, 24)),
    "a tuple for a list": ((1, 2), [1, 2]),
    "an array for a pair": (np.array([0.5, 2]), (0.5, 2)),
    "float32 for a float": (np.float32(1 / 3), 1 / 3),
}


@pytest.mark.parametrize(("got", "expected"), RIGHT.values(), ids=RIGHT.keys())
def test_what_is_right(got, expected):
    assert mismatch(got, expected, 1e-5) is None


RIGHT_BUT_DTYPE = "the values are right, but dtype is float64, expected float32\nnp.zeros, np.empty"
CUT_OFF = "expected the whole number 4, got 4.5, a float\n// gives whole numbers"
TWO = np.array([1, 2], np.float32)
WRONG = {
    "one of six": (OFF, OFF * 0, "1 of 6 values differ"),
    "reversed": (E[:, ::-1], E, "reversed along axis 1"),
    "a factor": (-E, E, "-1 times the expected"),
    "an offset": (E + np.float32(3), E, "off by 3"),
    "shuffled": (np.roll(values(7), 2), values(7), "in another order"),
    "another shape in order": (E.reshape(6), E, "right and in order, only the shape is not"),
    "a dtype": (E.astype(np.float64), E, RIGHT_BUT_DTYPE),
    "a wider factor": (E * np.sqrt(1.0), E, "or end with .astype(np.float32)"),
    "a dtype besides": (values(3).astype(np.int64), values(3), "besides, dtype is int64, expected float32"),
    "NaN": (FLIPPED, E, "1 of your values are NaN"),
    "minus infinity": (float("-inf"), float("inf"), "got -inf, expected inf"),
    "infinities of the other sign": (np.float32([-np.inf, 1]), np.float32([np.inf, 1]), "1 of 2 values differ"),
    "nothing": (None, TWO, "is the return statement missing?"),
    "a list": ([1.0, 2.5], TWO, "expected an array of shape (2,), got list"),
    "objects": (np.array([object(), 1]), TWO, "expected dtype float32, got object"),
    "a number for an array": (np.float32(1), TWO, "expected an array"),
    "a fraction for an int": (4.5, 4, CUT_OFF),
    "infinity for an int": (float("inf"), 4, "expected the whole number 4, got inf"),
    "a boolean for a number": (True, 1, "expected a number"),
    "a text for a number": ("2", 2.0, "expected a number"),
    "a huge whole number": (10**400, 2.0, "got inf, expected 2"),
    "float16 for a float": (np.float16(1 / 3), 1 / 3, "got 0.333"),
    "an array of one axis too many for a list": (np.array([[1], [2]]), [1, 2], "item 0 of 2: expected a number"),
    "an item too many": ((1, 2, 3), (1, 2), "expected 2 items, got 3"),
    "an array too long for a list": (E[0], [1, 2], f"expected a list of 2, got an array of shape {E[0].shape}"),
    "another item": ([1, 3, 4], [1, 2, 3], "item 1 of 3: got 3, expected 2"),
    "items in another order": ([1, 3, 2], [1, 2, 3], "the items are right, in another order"),
    "a masked array": (np.ma.masked_array(values(3) + 1, mask=True), values(3), "3 of 3 values differ"),
    "imaginary parts": (values(3) + np.complex64(1j), values(3), "3 of 3 values differ"),
    "a generator": ((n for n in [1, 2]), [1, 2], "items are not computed yet"),
}


@pytest.mark.parametrize(("got", "expected", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_words_of(got, expected, words):
    assert words in words_of(got, expected, 1e-6)


def test_no_more_is_said_than_is_known():
    assert "order" not in words_of(np.zeros((3, 2)), np.zeros((2, 3))), "of one value, there is none"
    assert "in another order" not in words_of((True, 2), (1, 2))
    assert "are right" not in words_of([26, 25], (26, 24))


def test_agree_ignores_dtype_only():
    assert agree(np.array([1.0]), np.array([1], np.float32), 0.0)
    assert not agree(np.array([1.0]), np.array([[1.0]]), 0.0)
    assert agree((np.ones(2), 3), (np.ones(2), 3), 0.0)
    assert not agree(3, (3,), 0.0)
    assert agree([[1, 2], [3, 4]], np.array([[1.0, 2], [3, 4]]), 0.0)


@pytest.mark.parametrize("got", [None, "1.0", [[1], [1, 2]], {"a": 1}, np.array([None]), np.array(["x"]), 1j])
def test_what_is_not_made_of_numbers_agrees_with_nothing(got):
    assert not agree(got, 1.0, 1.0)
    assert not agree(got, np.array([1.0]), 1.0)
    assert not agree(1.0, got, 1.0)


@pytest.mark.parametrize(
    "got",
    [
        ["a" * 500_000, *[""] * 100_000],
        ["1", "2"],
        [1.0, None],
        [np.zeros(10_000_000, np.uint8)] * 1000,
        [[0.0] * 1000] * 1000,
        [np.array(["x"])],
        [1j, 2],
    ],
)
def test_lists_of_anything_but_few_numbers_are_made_no_array(got):
    """Of these texts NumPy would make 200 GB."""
    assert as_numbers(got, 1000) is None
    assert "expected an array of shape (2,), got list [" in words_of(got, np.array([1, 2], np.float32))
    assert not agree(got, np.array([1.0, 2.0]), 1.0)


TEXTS = st.text(CHARACTERS)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(TEXTS | st.integers(), inner),
)


@given(ANYTHING, st.integers(4, 80))
def test_a_shortened_value_begins_as_it_is_written(value, length):
    written = " ".join(str(value).split())
    assert shortened(value, length) == (written if len(written) <= length else written[: length - 3] + "...")


def test_advice_on_a_dtype_names_an_argument_of_the_exercise():
    def lines(inputs):
        return " ".join(mismatch(values(3).astype(np.float64), values(3), TOLERANCE, inputs).lines)

    assert "as in dtype=grad.dtype" in lines({"labels": np.arange(3), "grad": values(3), "x": values(3)})
    assert "as in dtype=np.float32" in lines({"n": 3})
    (_, helps) = mismatch(values(3), values(3).astype(np.float64), TOLERANCE, {"x": values(3)}).lines
    assert helps.endswith("make it with dtype=np.float64")
