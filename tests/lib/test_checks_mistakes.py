"""A usual mistake: the reference with another argument or another result, whatever the reference is."""

from dataclasses import replace

import numpy as np
import pytest
from test_checks_run import SPEC

from unrolled.checks.mistakes import given, result
from unrolled.checks.run import run
from unrolled.checks.spec import Mistake, case


def scaled(x, factor=2, shift=0):
    return factor * x + shift


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (given("another value", factor=1), 4),
        (given("made of the case's", x=lambda x: -x), -5),
        (given("made of two, one of them a default", x=lambda x, factor: x * factor), 13),
        (result("another result", lambda y: 10 * y), 70),
        (result("with an argument", lambda y, shift: y - shift), 6),
        (result("with what it has no argument for", lambda y, other=5: y + other), 12),
        (result("of another function", lambda y: y + 1, lambda x, shift: x), 4),
        (Mistake("a function of its own", lambda x, shift: x - shift), 2),
        (Mistake("both", given={"factor": 1}, result=lambda y: -y), -4),
    ],
    ids=lambda value: value.says if isinstance(value, Mistake) else "",
)
def test_it_is_made_of_the_reference(mistake, expected):
    assert mistake.of(scaled)(x=3, shift=1) == expected
    assert mistake.of(scaled)(3, shift=1) == expected


def test_inputs_stay_as_they_are_and_a_name_that_nobody_has_is_an_error_of_the_spec():
    inputs = {"x": np.ones(2)}
    given("more", x=lambda x: x + 1).of(scaled)(**inputs)
    assert inputs["x"].tolist() == [1, 1]
    with pytest.raises(KeyError, match="bias"):
        result("no such argument", lambda y, bias: y).of(scaled)(x=1)


@pytest.mark.parametrize(("dtype", "tried"), [(np.float64, [np.float32]), (np.float32, [])])
def test_that_of_float32_is_looked_for_only_where_float64_came_in(dtype, tried):
    """Elsewhere the reference, which may take seconds, would only give its own result once more."""
    calls = []

    def reference(x):
        calls.append(x.dtype)
        return x + x

    spec = replace(SPEC, reference=reference, cases=[case("ones", x=np.ones(3, dtype))])
    assert "you squared it" in str(run("double", spec, lambda x: x * x))
    assert calls == [dtype, *tried]
