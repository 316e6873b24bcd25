"""Running a spec: what a learner's function can do, and what the report says."""

import functools
import json
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from unrolled import checks, timing
from unrolled.checks.compare import Mismatch
from unrolled.checks.exercises.l04_backprop import gradients
from unrolled.checks.run import run
from unrolled.checks.spec import Mistake, Rung, Spec, Speed, case, normal, random_case
from unrolled.timing.verdict import Pair, TimedBlock, conclude


def double(x):
    """What a learner writes."""
    return 2 * x


def looping(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = 2 * x[i]
    return y


def twice(x):
    """The library's answer."""
    return x + x


def square(x):
    return x * x


HINTS = ("Add.", "Same shape.", "x + x")
SPEC = Spec(
    reference=twice,
    cases=[
        case("three numbers", x=np.array([1, 2, 3], np.float32)),
        case("a matrix", x=normal(3, 4)),
        random_case("any length", lambda rng: {"x": rng.standard_normal(rng.integers(1, 9)).astype(np.float32)}),
    ],
    points=2,
    hints=HINTS,
    mistakes=[Mistake("cannot be computed", lambda x: 1 / 0), Mistake("you squared it", square)],
)
RUNG = Rung("doubling", "doubling x 60,000 images", {"x": normal(100)}, images=100)


def report(function, spec=SPEC, **options):
    return run("double", spec, function, **options)


@pytest.mark.parametrize(
    ("function", "verdicts", "named"),
    [
        (double, ["pass"] * 3, False),
        (square, ["fail", "not run", "not run"], True),
        (lambda x: 2 * x if x.ndim == 1 else x * x, ["pass", "fail", "not run"], False),
    ],
)
def test_the_first_failure_ends_the_run_and_a_mistake_that_all_cases_allow_is_named(function, verdicts, named):
    """A right result for three numbers shows that nothing is squared in general."""
    found = report(function)
    assert [finding.verdict for finding in found.findings] == verdicts
    assert (found.points, found.max_points, found.passed) == (2, 2, True) if function is double else (0, 2, False)
    assert ("you squared it" in str(found)) == named


class Stubborn:
    """Neither shows itself nor becomes an array."""

    def __str__(self):
        raise ValueError

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError


class Nameless(BaseException):
    def __str__(self):
        raise ValueError


def raises(error):
    def function(x):
        raise error

    return function


def greedy(x):
    x *= 2
    return x


@pytest.mark.parametrize(
    ("function", "verdict", "phrase"),
    [
        (3, "crashed", "expected a function, got int"),
        (lambda: 1, "crashed", "cannot be called as f(x=…)"),
        (lambda y: y, "crashed", "cannot be called as f(x=…)"),
        (lambda x: None, "fail", "is the return statement missing?"),
        (lambda x: (2 * x).astype(np.float64), "fail", "dtype is float64"),
        (lambda x: Stubborn(), "fail", ""),
        (greedy, "fail", "changed its input x"),
        (lambda x: x[5], "crashed", "IndexError"),
        (lambda x: x @ np.ones(99), "crashed", "x @ np.ones(99)"),  # the line that raised
        (raises(NotImplementedError), "missing", "not written yet"),
        (raises(SystemExit(0)), "crashed", "SystemExit"),
        (raises(Nameless), "crashed", "Nameless"),
    ],
)
def test_whatever_a_function_does_is_a_finding(function, verdict, phrase):
    found = report(function)
    assert found.parts[0].verdict == verdict
    assert phrase in str(found)
    assert phrase in found.parts[0].detail


@pytest.mark.parametrize("function", [lambda x: x, lambda x: [x[::-1][::-1]]])
def test_an_argument_is_no_result_where_a_new_array_is_asked(function):
    spec = replace(SPEC, reference=lambda x: x.copy(), compare=lambda got, expected, inputs: None)
    assert report(function, spec).passed
    assert "it is an array that came in (x)" in str(report(function, replace(spec, new=True)))
    assert report(lambda x: x.copy(), replace(spec, new=True)).passed


def test_a_long_error_and_what_is_printed_without_an_end_are_cut(capsys):
    (line, *_) = report(raises(ValueError(np.zeros((40, 40))))).findings[0].lines
    assert len(line) < 350
    assert "\n" not in line
    report(lambda x: print("x" * 100_000, end="") or 2 * x)
    assert len(capsys.readouterr().out) < 5000


def test_a_guess_from_the_result_alone_gives_way_to_a_mistake_that_is_known():
    times_three = Mistake("three times", lambda x: 3 * x)
    for mistakes, guessed in (((), True), ((times_three,), False)):
        text = str(report(lambda x: 3 * x, replace(SPEC, mistakes=mistakes)))
        assert ("every value is 1.5 times the expected one" in text) is guessed
        assert ("three times" in text) is not guessed


def test_a_mistake_is_not_named_for_right_values():
    """With 2 for an input, doubling and squaring are the same."""
    spec = replace(SPEC, cases=[case("twos", x=np.full(3, 2, np.float32))])
    assert "you squared it" not in str(report(lambda x: (2 * x).astype(int), spec))


class Spy:
    """Doubles, and remembers how much it was given."""

    def __init__(self):
        self.largest = 0

    def __call__(self, x):
        self.largest = max(self.largest, len(x))
        return 2 * x


def two_at_once(double, x):
    return float(sum(double(x[i : i + 2]).sum() for i in range(0, len(x), 2)))


def test_a_spec_may_compare_in_its_own_way_and_read_what_its_inputs_recorded():
    def at_most_two_at_once(got, expected, inputs):
        largest = inputs["double"].largest
        return None if got == expected and largest <= 2 else Mismatch((f"{largest} at once",))

    spec = Spec(
        reference=lambda double, x: two_at_once(double, x),
        cases=[case("six numbers", double=Spy(), x=np.arange(6))],
        points=1,
        hints=HINTS,
        compare=at_most_two_at_once,
    )
    assert report(two_at_once, spec).passed
    assert "6 at once" in str(report(lambda double, x: float(double(x).sum()), spec))
    for wrong in (0.0, Stubborn()):
        assert report(lambda double, x, wrong=wrong: wrong, spec).parts[0].verdict == "fail"


def test_a_spec_may_call_more_than_once_and_keep_inputs_to_itself():
    seen = []

    def shuffled(n, seed):
        seen.append((n, seed))
        return np.random.default_rng(seed).permutation(n)

    spec = Spec(
        reference=lambda n, seed: np.random.default_rng(seed).permutation(n),
        cases=[case("ten", n=10, secret=3)],
        points=1,
        hints=HINTS,
        mistakes=[Mistake("in order", lambda n, seed: np.arange(n))],
        call=lambda function, inputs: [function(inputs["n"], seed) for seed in range(inputs["secret"])],
    )
    assert report(shuffled, spec).passed
    assert seen == [(10, 0), (10, 1), (10, 2)]
    assert "in order" in str(report(lambda n, seed: np.arange(n), spec))
    assert "cannot be called as f(n=…, seed=…)" in str(report(lambda n: np.arange(n), spec))


def test_a_spec_may_give_a_case_more_time_and_says_so():
    announced = []

    def slow(x):
        time.sleep(0.1)
        return 2 * x

    assert report(slow, replace(SPEC, limit=60.0), case_limit=0.05, announce=announced.append).passed
    assert "up to 60 s" in announced[0]
    assert report(slow, case_limit=0.05).parts[0].verdict == "timeout"


def test_functions_objects_texts_and_none_among_the_inputs_are_not_called_changed():
    inputs = {"x": [np.ones(2), np.ones(3)], "f": abs, "layers": [Spy(), Spy()], "name": "relu", "y": None}
    spec = replace(SPEC, reference=lambda **given: 1.0, cases=[case("mixed", **inputs)], mistakes=[])
    assert report(lambda x, **others: 1.0, spec).passed
    assert "changed its input x" in str(report(lambda x, **others: float(x[1].__iadd__(1)[0]) / 2, spec))


def test_seeds_draw_fresh_inputs_and_the_same_seed_the_same():
    first, again, other = (SPEC.cases[1].inputs(seed)["x"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    SPEC.cases[0].inputs(0)["x"][:] = 99
    assert SPEC.cases[0].inputs(0)["x"][0] == 1, "inputs of one run cannot spoil the next"


def no_comparison(*args, **options):
    pytest.fail("timed a wrong function")


A_VERDICT = conclude([Pair(TimedBlock(1, 1.0), TimedBlock(1, 1.0))] * 8, [], 0.9).to_dict()


@pytest.fixture
def timed(monkeypatch):
    """A function to a spec with a speed part whose measurement is replaced: what is tested here is not the clock."""

    def made(outcome="pass", noisy=False, compare=None, **speed):
        given = {"ratio": 1.0, "low": 0.9, "high": 1.1, "outcome": outcome, "noisy": noisy}
        found = timing.Verdict.from_dict(A_VERDICT | given)
        monkeypatch.setattr(timing, "compare", compare or (lambda *args, **options: found))
        part = Speed(twice, **{"inputs": {"x": normal(4)}, "at_least": 3, "points": 1, "against": "a loop"} | speed)
        return replace(SPEC, mistakes=(), speed=part)

    return made


@pytest.mark.parametrize(
    ("outcome", "noisy", "points"),
    [("pass", False, 1), ("fail", False, 0), ("fail", True, 0), ("inconclusive", False, 0), ("inconclusive", True, 0)],
)
def test_the_speed_is_a_part_of_its_own_and_a_report_survives_json(outcome, noisy, points, timed):
    """What stays open earns nothing until it is settled, whoever was the cause."""
    found = report(double, timed(outcome, noisy))
    assert [part.name for part in found.parts] == ["double", "double/speed"]
    assert (found.parts[1].verdict, found.parts[1].points, found.parts[1].max_points) == (outcome, points, 1)
    assert found.passed == (outcome != "fail")
    assert "against a loop" in str(found)
    assert found.settled == (outcome != "inconclusive")
    assert ("not settled: " in str(found)) == (outcome == "inconclusive")
    assert ("the machine is too busy to tell" in str(found)) == (outcome == "inconclusive" and noisy)
    again = checks.Report.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (str(again), again.parts, repr(again.timing)) == (str(found), found.parts, repr(found.timing))  # with NaN


@pytest.mark.parametrize(
    ("function", "loop"),
    [
        (double, None),
        (lambda x: np.concatenate([2 * x[i : i + 1] for i in range(len(x))]), "np.concatenate([2 * x[i : i + 1] for i"),
        (looping, "for i in range(len(x))"),
        (functools.partial(double), None),
    ],
)
def test_who_is_too_slow_and_nobody_else_reads_why_and_where_it_loops(function, loop, timed):
    advice = {"advice": "one call is enough"}
    shown = str(report(function, timed("fail", **advice, loops=False)))
    assert shown.endswith("one call is enough")
    assert ("loops: " in shown) == (loop is not None)
    assert (loop or "") in shown
    assert "loops: " not in str(report(function, timed("fail", **advice)))
    assert "one call" not in str(report(function, timed("pass", **advice, loops=False)))


@pytest.mark.parametrize("always", [True, False])
def test_a_wrong_function_is_never_timed(always, timed):
    """Nor one that is wrong on the timed shape only."""
    found = report(lambda x: x if always or x.shape == (4,) else 2 * x, timed(compare=no_comparison), seed=5)
    assert not always or [part.verdict for part in found.parts] == ["fail", "missing"]
    assert found.parts[1].verdict in ("fail", "missing")
    assert ("measured once all cases are right" in str(found)) == (found.parts[1].verdict == "missing")


def test_an_exit_while_timed_stays_a_finding(timed):
    assert report(double, timed(compare=raises(SystemExit))).parts[1].verdict == "crashed"


def test_a_rung_is_projected_to_an_epoch_and_only_for_code_that_passed_its_speed_too(timed, monkeypatch):
    monkeypatch.setattr(timing, "measure", lambda function, inputs: type("M", (), {"seconds": 0.5})())
    spec = replace(SPEC, rung=RUNG)
    assert report(double, spec).rung["seconds"] == 0.5 / 100 * 60_000
    assert report(double, spec, climb=False).rung is None
    for outcome, noisy, written in (("pass", 0, 1), ("fail", 0, 0), ("inconclusive", 0, 0), ("inconclusive", 1, 0)):
        assert bool(report(double, replace(timed(outcome, bool(noisy)), rung=RUNG)).rung) == bool(written), outcome


def test_a_gradient_to_judge_is_never_zero_everywhere() -> None:
    """A relative distance to it would be a division by zero, and a right answer would fail once in 270 draws."""
    for seed in range(600):
        inputs = gradients.relu_let_through(np.random.default_rng(seed))
        assert inputs["function"].gradient(inputs["x"]).any()


def test_neither_errors_of_numpy_nor_warnings_reach_the_function_from_the_notebook():
    """In no case, while it is timed, or where the rung is measured; nor the baseline."""

    def warns(x):
        warnings.warn("this will go", DeprecationWarning, stacklevel=1)
        return x / np.float32(0)

    spec = replace(
        SPEC,
        reference=lambda x: warns(x),
        speed=Speed(lambda x: warns(x), {"x": normal(5)}, at_least=0.001, points=1, against="itself"),
        rung=RUNG,
        mistakes=(),
    )
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = report(warns, spec)
        with pytest.raises(FloatingPointError), pytest.deprecated_call():
            warns(np.ones(1, np.float32))
        with pytest.raises(DeprecationWarning):
            warns(np.ones(1, np.float32))
    assert found.passed, str(found)
    assert found.rung is not None


def loud(x):
    for i in range(2000):
        print("row", i)
    return 2 * x


def test_twenty_lines_of_a_functions_prints_are_shown_and_none_while_it_is_timed(capsys, timed):
    assert report(loud, timed()).passed
    lines = capsys.readouterr().out.splitlines()
    assert lines[:20] == [f"row {i}" for i in range(20)]
    assert lines[20:] == [f"… and {2000 * len(SPEC.cases) - 20:,} more lines that your function printed"]


def test_a_drawn_case_that_fails_tells_the_call():
    drawn = {"x": np.zeros((3, 2), np.float32), "weight": [np.zeros(2)], "stride": 2}
    spec = replace(SPEC, reference=lambda x, weight, stride: x, cases=[random_case("any", lambda rng: drawn)])
    for wrong in (lambda x, weight, stride: x + 1, lambda x, weight, stride: 1 / 0):
        assert "the call: x (3,2), weight=[(2,) float64], stride=2" in report(wrong, spec).findings[0].lines
    assert "the call" not in str(report(square)), "a case that is known by its name"


def test_foreign_libraries_are_named_as_the_library_is_and_earn_nothing():
    import scipy.signal as signal
    from scipy.fft import next_fast_len
    from scipy.special import softmax

    def helper(x):
        return signal.convolve(x, [2], mode="same")

    def imported(x):
        from scipy import ndimage

        return ndimage.zoom(x, 1) * 2

    def length_imported(x):
        from scipy.fft import next_fast_len

        return 2 * x + 0 * next_fast_len(7)

    cases = {
        "scipy.signal.convolve": [helper, lambda x: helper(x), functools.partial(helper), signal.convolve],
        "scipy.ndimage": [imported],
        "scipy.special.softmax": [lambda x: 2 * x + 0 * softmax(x)],
    }
    for name, functions in cases.items():
        for function in functions:
            found = report(function, replace(SPEC, rung=RUNG))
            assert (found.points, found.rung) == (0, None)
            assert f"{name}, another library's answer" in str(found), str(found)
    for only_a_length in (lambda x: 2 * x + 0 * next_fast_len(7), length_imported):
        assert report(only_a_length).passed
