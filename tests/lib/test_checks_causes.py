"""What a check says of a wrong result that is no usual mistake's; which inputs cover a domain; slips in code."""

import numpy as np
import pytest

from unrolled import checks
from unrolled.checks import domain
from unrolled.checks.mutants import mutants, plain
from unrolled.checks.spec import Spec, case, normal, random_case


def scaled(x, bias):
    """Return 3 * x + bias along the last axis."""
    return (3 * x + bias).astype(x.dtype)


CASES = [case("two rows", x=np.array([[1, 4, 2], [9, 3, 6]], np.float32), bias=np.array([5, 7, 12], np.float32))]
SPEC = Spec(scaled, CASES, points=1, hints=("", "", ""))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda x, bias: 3 * x, "for a bias of zeros: is bias used?"),
        (lambda x, bias: 3 * x - bias, "for -bias: a sign is wrong"),
        (lambda x, bias: 3 * x + bias[::-1], "for bias in reverse along axis 0"),
        (lambda x, bias: 3 * x + bias[0], "its first value: an index is missing"),
        (lambda x, bias: 2 * x + bias, "right code gives this if a number is another one"),
        (lambda x, bias: 3 / x + bias, "right code gives this if / stands for *"),
        (lambda x, bias: x.copy(), "this is x as it came in"),
        (lambda x, bias: 0 * x, "all your values are 0"),
        (lambda x, bias: np.where(x == 6, 0, 3 * x + bias).astype(np.float32), "only the last place, 1, is wrong"),
        (lambda x, bias: (3 * x + bias)[:, :2], "axis 1 is 1 too short"),
        (lambda x, bias: (3 * x + bias).sum(0), "yours has 1 axes, not 2"),
        (lambda x, bias: 3 * x + bias * [0, 1, 1], "for zeros in piece 0 of 3 along axis -1 of bias"),
        (lambda x, bias: 3 * x + bias[[0, 2, 2]], "for piece 2 in piece 1 of 3 along axis -1 of bias"),
        (lambda x, bias: (3 * x + bias) ** 6, "more than 1000 times too large"),
        (lambda x, bias: 7 * (3 * x + bias) - 2, "the right values, scaled and shifted: is a sum"),
        (lambda x, bias: (3 * x + bias).astype(np.float32) * np.float32(1.001) + x % 2 / 99, "nearly right"),
    ],
)
def test_a_wrong_result_is_traced_to_a_cause(wrong, says):
    assert says in str(checks.run("scaled", SPEC, wrong))


def test_where_nothing_is_recognized_nothing_is_guessed():
    noise = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    lines = checks.run("scaled", SPEC, lambda x, bias: noise).findings[0].lines
    assert len(lines) == 2


SOURCE = """
def f(x, n):
    'Say 1 + 1.'
    for i in range(n):
        if i < 2 and n > 4:
            x[i, n] += 1
    return x.argsort(), n
"""


def test_a_slip_changes_one_place_and_leaves_the_rest():
    found = {mutant.kind: mutant.source for mutant in mutants(SOURCE)}
    assert {
        "a guard is left out",
        "a loop's last turn is missing",
        "<= stands for <",
        "indices are exchanged",
        "a number is another one",
        "a value is put where it is to be added",
        "results are exchanged",
        "a statement is left out",
        "one condition, with another number, stands for all",
    } <= set(found)
    assert "x.round(4).argsort()" in found["nearly equal values count as equal"]
    assert "range(0, n - 1)" in found["a loop's last turn is missing"]
    assert all("Say 1 + 1." in changed and changed != plain(SOURCE) for changed in found.values())


def test_a_few_inputs_have_every_feature_that_many_have():
    def draw(rng):
        n = domain.edge_size(rng, 9)
        return {"x": rng.integers(0, 3, (n, 4)).astype(float), "parts": [1] * int(rng.integers(0, 4)), "keep": n > 2}

    texts = set()
    for seed in range(20):
        draws = domain.cover(draw, (seed,))
        chosen, again = ([each(np.random.default_rng()) for each in draws] for _ in range(2))
        np.testing.assert_equal(again, chosen)
        texts.add(repr(chosen))
        covered = {feature for inputs in chosen for feature in domain.features_of(inputs)}
        assert {
            "x.shape[0] == 1",
            "x.shape[0] > 6",
            "x.shape[0] < x.shape[1]",
            "len(parts) == 0",
            "keep is True",
        } <= covered
        assert len(chosen) <= domain.MOST
        assert len(domain.cover(draw, (seed,), shown=covered)) <= len(chosen)
    assert len(texts) == 20  # other inputs at every seed


def test_a_check_meets_the_edges_of_its_domain_at_every_seed():
    def wrong_alone(x):
        return x if len(x) == 1 else 2 * x

    def any_size(rng):
        return {"x": rng.normal(size=domain.edge_size(rng, 9))}

    spec = Spec(lambda x: 2 * x, [case("five", x=normal(5))], points=1, hints=("", "", ""))
    assert checks.run("doubled", spec, wrong_alone).passed
    wide = Spec(spec.reference, spec.cases, points=1, hints=spec.hints, domain=random_case("any size", any_size))
    for seed in range(10):
        report = checks.run("doubled", wide, wrong_alone, seed=seed)
        assert not report.passed
        assert report.findings[-1].case == "any size"


def test_what_is_kept_of_an_earlier_call_is_wrong_in_the_next():
    kept = {}

    def keeping(x):
        return kept.setdefault(x.shape, 2 * x)

    def any_size(rng):
        return {"x": rng.normal(size=int(rng.integers(5, 10**4)))}

    domain = random_case("any size", any_size)
    spec = Spec(lambda x: 2 * x, [case("five", x=normal(5))], points=1, hints=("", "", ""), domain=domain)
    assert checks.run("doubled", spec, keeping).findings[-1].case == "five, other values"
