"""Where terms cancel, each right answer has other last digits: none of them is wrong."""

import numpy as np
import pytest

from unrolled.checks.run import run
from unrolled.checks.spec import Spec, random_case


@pytest.mark.parametrize(
    ("function", "right"),
    [
        (lambda x, y: np.float32([x.sum() - y.sum()]), True),
        (lambda x, y: np.float32([np.sum(x[::-1].astype(float) - y[::-1])]), True),
        (lambda x, y: np.float32([(x - y).sum() * 1.01]), False),
        (lambda x, y: np.float32([(x.astype(np.float16) - y.astype(np.float16)).sum()]), False),
    ],
    ids=["one after the other", "in float64", "off by a hundredth", "in float16"],
)
def test_where_all_of_a_result_cancels_its_rounding_is_no_error(function, right):
    def nearly_nothing(rng):
        x = rng.standard_normal(64).astype(np.float32)
        return {"x": x, "y": rng.permutation(x) + np.float32(2e-4)}

    spec = Spec(
        lambda x, y: np.float32([(x - y).sum()]), [random_case("terms that cancel", nearly_nothing)], 1, ("",) * 3
    )
    assert [run("sum", spec, function, seed=seed).passed for seed in range(20)] == [right] * 20
