"""What the comparison says about a wrong result."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from characters import CHARACTERS
from unrolled.checks.compare import agree, as_numbers, mismatch, shortened

TOLERANCE = 1e-4


def said(got, expected, tolerance=TOLERANCE):
    found = mismatch(got, expected, tolerance)
    assert found is not None
    return "\n".join(found.lines)


def values(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_equal_arrays_pass_and_rounding_is_forgiven():
    expected = values(2, 3)
    assert mismatch(expected.copy(), expected, TOLERANCE) is None
    assert mismatch(expected + np.float32(1e-6), expected, TOLERANCE) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**16), st.floats(0.01, 10))
def test_a_single_wrong_value_is_found_where_it_is(shape, seed, by):
    expected = values(*shape, seed=seed)
    index = tuple(int(i) for i in np.random.default_rng(seed).integers(0, shape))
    got = expected.copy()
    got[index] += np.float32(by * (1 + np.abs(expected).max()))
    assert f"first at {list(index)}" in said(got, expected)


def test_the_first_difference_is_counted_and_shown():
    expected = np.zeros((2, 3), np.float32)
    got = expected.copy()
    got[1, 2] = 5
    assert "1 of 6 values differ" in said(got, expected)
    assert "first at [1, 2]: got 5, expected 0" in said(got, expected)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(4)).filter(lambda axes: list(axes) != [0, 1, 2, 3]))
def test_permuted_axes_are_recognized(axes):
    expected = values(2, 3, 4, 5)
    wrong_shape = np.ascontiguousarray(expected.transpose(axes))
    back = ", ".join(map(str, np.argsort(axes)))
    assert f"in another order of the axes: y.transpose({back}) puts them right" in said(wrong_shape, expected)
    misread = wrong_shape.reshape(expected.shape)
    assert "right in another order of the axes: y.reshape(" in said(misread, expected)


def test_a_reversed_axis_a_factor_and_an_offset_are_recognized():
    expected = values(3, 4)
    assert "reversed along axis 1" in said(expected[:, ::-1], expected)
    assert "-1 times the expected" in said(-expected, expected)
    assert "off by 3" in said(expected + np.float32(3), expected)


def test_shuffled_values_are_recognized():
    expected = values(7)
    assert "in another order" in said(np.roll(expected, 2), expected)


def test_an_array_of_one_value_is_not_called_another_order():
    assert "order" not in said(np.zeros((3, 2)), np.zeros((2, 3)))


def test_dtype_is_named_when_only_the_dtype_is_wrong():
    expected = values(3, 4)
    words = said(expected.astype(np.float64), expected)
    assert words.startswith("the values are right, but dtype is float64, expected float32\nnp.zeros, np.empty")


def test_half_precision_inside_is_not_rounding():
    expected = values(4, 50) @ values(50, 4, seed=1)
    got = (values(4, 50).astype(np.float16) @ values(50, 4, seed=1).astype(np.float16)).astype(np.float32)
    assert mismatch(got, expected, TOLERANCE) is not None


def test_nan_is_no_wildcard():
    expected = values(3, 3)
    got = expected.copy()
    got[0, 1] = np.nan
    assert "1 of your values are NaN" in said(got, expected)
    assert mismatch(np.full((3, 3), np.nan, np.float32), expected, TOLERANCE) is not None
    assert mismatch(got, got.copy(), TOLERANCE) is None


def test_an_infinite_number_is_right_only_if_it_is_infinite():
    assert mismatch(float("inf"), float("inf"), 1e-4) is None
    assert said(1e300, float("inf")) == "got 1e+300, expected inf"
    assert said(float("-inf"), float("inf")) == "got -inf, expected inf"


def test_infinities_must_agree_in_sign():
    expected = np.array([np.inf, 1.0], np.float32)
    assert mismatch(expected.copy(), expected, TOLERANCE) is None
    assert mismatch(-expected, expected, TOLERANCE) is not None


@pytest.mark.parametrize(
    ("got", "phrase"),
    [
        (None, "is the return statement missing?"),
        ([1.0, 2.0], "expected an array of shape (2,), got list"),
        (np.array([object(), 1]), "expected dtype float32, got object"),
        (np.float32(1), "expected an array"),
    ],
)
def test_other_kinds_than_arrays_are_named(got, phrase):
    assert phrase in said(got, np.array([1, 2], np.float32))


def test_numbers():
    assert mismatch(np.float64(2.00001), 2.0, TOLERANCE) is None
    assert mismatch(2, 2.0, TOLERANCE) is None
    assert mismatch(np.array(2.0), 2.0, TOLERANCE) is None
    assert "got 3, expected 2" in said(3, 2.0)
    assert said(4.0, 4).startswith("expected the whole number 4, got 4.0, a float")
    assert "expected a number" in said(True, 1)
    assert "expected a number" in said("2", 2.0)


def test_sequences():
    assert mismatch((26, 24), (26, 24), TOLERANCE) is None
    assert mismatch([1, 2], [1, 2], TOLERANCE) is None
    assert "expected a tuple of 2, got list" in said([26, 24], (26, 24))
    assert "expected 2 items, got 3" in said((1, 2, 3), (1, 2))
    assert "item 1 of 3: got 3, expected 2" in said([1, 3, 2], [1, 2, 3])
    assert "the items are right, in another order" in said([1, 3, 2], [1, 2, 3])
    assert "in another order" not in said((2.0, 2.0), (2, 2))
    grads = (values(2), values(3))
    assert "item 1 of 2" in said((grads[0], grads[1] * 2), grads)


def test_right_values_of_another_kind_are_called_right():
    assert "return them as a tuple" in said([26, 24], (26, 24))
    assert "return them as a list" in said(np.array([1, 2]), [1, 2])
    assert "// gives whole numbers" in said((26.0, 24.0), (26, 24))
    assert "are right" not in said([26, 25], (26, 24))
    assert "expected a tuple of 2" in said(np.array(3), (26, 24))


@pytest.mark.parametrize("shape", [(6,), (1, 2, 3), (6, 1)])
def test_the_right_order_in_another_shape_is_not_called_another_order(shape):
    expected = values(2, 3)
    assert "right and in order, only the shape is not" in said(expected.reshape(shape), expected)


def test_a_subclass_cannot_compare_in_a_way_of_its_own():
    expected = values(3)
    assert "3 of 3 values differ" in said(np.ma.masked_array(expected + 1, mask=True), expected)


def test_imaginary_parts_count():
    expected = values(3)
    assert "the real part is in .real" in said(expected.astype(np.complex64), expected)
    assert "3 of 3 values differ" in said(expected + np.complex64(1j), expected)


def test_booleans_may_be_expected():
    expected = np.array([True, False])
    assert mismatch(expected.copy(), expected, TOLERANCE) is None
    assert "1 of 2 values differ" in said(np.array([True, True]), expected)


def test_a_wrong_dtype_is_named_beside_wrong_values():
    assert "besides, dtype is int64, expected float32" in said(values(3).astype(np.int64), values(3))


def test_numbers_that_differ_late_are_shown_differing():
    assert said(4.99999, 5.0, 1e-9) == "got 4.99999, expected 5"
    assert said(np.float32([1.00011]), np.float32([1.0]), 1e-5).endswith("got 1.0001, expected 1")


def test_numbers_of_every_size_and_precision_are_compared():
    assert said(10**400, 2.0) == "got inf, expected 2"
    assert mismatch(np.float16(1 / 3), 1 / 3, 1e-6) is not None
    assert mismatch(np.float32(1 / 3), 1 / 3, 1e-6) is None


def test_iterators_are_told_to_be_collected():
    assert "items are not computed yet" in said((n for n in [1, 2]), [1, 2])
    assert "items are not computed yet" in said(map(abs, [1, 2]), np.array([1, 2]))


def test_none_agrees_with_none():
    assert agree(None, None, 0.0)


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
    assert "expected an array of shape (2,), got list [" in said(got, np.array([1, 2], np.float32))
    assert not agree(got, np.array([1.0, 2.0]), 1.0)


def test_a_list_in_itself_is_no_array():
    itself = []
    itself.append(itself)
    assert as_numbers(itself) is None
    assert shortened(itself, 10) == "[[[[[[[..."


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 1, 1, 1), (2, 0), (2, 3, 4)])
def test_nested_lists_of_the_expected_shape_are_numbers(shape):
    expected = values(*shape) if shape else np.float32(1.5)
    for got in (expected.tolist(), np.asarray(expected), list(expected) if shape else 1.5):
        assert agree(got, np.asarray(expected), 1e-6)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS),
        lambda inner: (
            st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(CHARACTERS) | st.integers(), inner)
        ),
    ),
    st.integers(4, 80),
)
def test_a_shortened_value_begins_as_it_is_written(value, length):
    written = " ".join(str(value).split())
    assert shortened(value, length) == (written if len(written) <= length else written[: length - 3] + "...")


def test_a_shortened_list_costs_what_is_shown_of_it():
    assert shortened([np.zeros((6,) * 12, bool)], 60).startswith("[array of shape (6, 6, 6,")
    assert shortened([np.arange(1000)] * 100_000, 30) == "[array([ 0, 1, 2, 3, 4, 5, ..."


def test_advice_on_a_dtype_names_an_argument_of_the_exercise():
    def lines(inputs):
        return " ".join(mismatch(values(3).astype(np.float64), values(3), TOLERANCE, inputs).lines)

    assert "as in dtype=grad.dtype" in lines({"labels": np.arange(3), "grad": values(3), "x": values(3)})
    assert "as in dtype=np.float32" in lines({"n": 3})
    (_, helps) = mismatch(values(3), values(3).astype(np.float64), TOLERANCE, {"x": values(3)}).lines
    assert helps.endswith("make it with dtype=np.float64")
