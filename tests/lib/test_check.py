"""The learner's check: what it shows, when it raises, how it helps."""

import itertools
from contextlib import nullcontext

import numpy as np
import pytest

from unrolled import check, checks, journal
from unrolled.checks.compare import Mismatch
from unrolled.checks.report import Finding, Part, Report
from unrolled.checks.spec import Spec, case, normal
from verdicts import report

SPEC = Spec(
    reference=lambda x: 2 * x,
    cases=[case("a matrix", x=normal(3, 4))],
    points=2,
    hints=("Add.", "Same shape.", "x + x"),
)


@pytest.fixture(autouse=True)
def doubling(monkeypatch, home):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("UNROLLED_SEED", raising=False)
    return check.Check("double", SPEC)


def test_a_report_is_shown_and_noted_but_never_raised(doubling, capsys):
    assert doubling(lambda x: x + x) is None
    assert capsys.readouterr().out == "double\n  ✓ a matrix\n  2 of 2 points\n"
    doubling(lambda x: x)
    assert "every value is 0.5 times" in capsys.readouterr().out
    assert journal.read()["checks"]["double"]["passed"] is False


@pytest.mark.parametrize("execution", ["autograde", "validate"])
def test_under_nbgrader_a_failing_check_raises_and_notes_nothing(doubling, execution, monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", execution)
    with pytest.raises(check.CheckFailedError, match="a matrix"):
        doubling(lambda x: x)
    doubling(lambda x: 2 * x)
    assert capsys.readouterr().out.count("double\n") == 2
    assert journal.read()["checks"] == {}


@pytest.mark.parametrize(("execution", "raises"), [("autograde", True), ("validate", False)])
@pytest.mark.parametrize("verdict", ["deferred", "inconclusive"])
def test_points_that_wait_are_not_given_by_nbgrader_alone(doubling, verdict, execution, raises, monkeypatch):
    waiting = half_settled(verdict)
    monkeypatch.setenv("NBGRADER_EXECUTION", execution)
    monkeypatch.setattr(check.checks, "run", lambda *given, **named: waiting)
    with pytest.raises(check.CheckFailedError) if raises else nullcontext():
        doubling(lambda x: 2 * x)


def half_settled(verdict):
    parts = Part("double", "pass", 2, 2, ""), Part("double/speed", verdict, 0, 1, "")
    return Report("double", "0", (Finding("speed", verdict, ("needs a GPU",)),), parts)


def test_a_speed_that_is_not_settled_says_the_points_so_far(doubling, monkeypatch, capsys):
    monkeypatch.setattr(check.checks, "run", lambda *given, **named: half_settled("inconclusive"))
    doubling(None)
    assert "\n  not settled: 2 of 3 for now; call the check again" in capsys.readouterr().out


def test_a_seed_of_the_environment_is_that_of_each_call(doubling, monkeypatch, capsys):
    seen = []
    for seed in (None, "1", "2"):
        if seed:
            monkeypatch.setenv("UNROLLED_SEED", seed)
        doubling(lambda x: seen.append(x) or 2 * x)
    assert not any(np.array_equal(a, b) for a, b in itertools.pairwise(seen))


def test_the_report_says_time_points_and_where_help_is(doubling, monkeypatch, capsys):
    doubling(lambda x: x, seed=7)
    again = "check.double(…, seed=7) draws the same inputs again"
    assert capsys.readouterr().out.endswith(f"0 of 2 points; check.double.hint() gives hint 1 of 3; {again}\n")
    doubling.hint()
    doubling(lambda x: x)
    assert "check.double.hint() gives hint 2 of 3; " in capsys.readouterr().out
    rung = {"label": "plain loops", "what": "", "seconds": 5040.0, "batch": 4, "precision": "float32"}
    climbed = report("double", points=2, rung=rung)
    monkeypatch.setattr(check.checks, "run", lambda *given, **named: climbed)
    doubling(None)
    assert capsys.readouterr().out.endswith("plain loops: 84 min for 60,000 images, on your ladder; 2 of 2 points\n")


def test_a_failing_try_after_a_pass_says_what_becomes_of_the_pass(doubling, monkeypatch, capsys):
    doubling(lambda x: x)
    assert check.ONCE_PASSED not in capsys.readouterr().out
    doubling(lambda x: 2 * x)
    assert check.ONCE_PASSED not in capsys.readouterr().out
    for _ in range(2):
        doubling(lambda x: x)
        assert capsys.readouterr().out.endswith(f"inputs again; {check.ONCE_PASSED}\n")
    monkeypatch.setattr(journal.own, "_passed", {})
    monkeypatch.setattr(checks, "all_specs", lambda: {"double": SPEC})
    assert journal.mine("double") is SPEC.reference
    assert capsys.readouterr().out == "double: library, since your last version failed\n"
    doubling(lambda x: x + x)
    assert check.ONCE_PASSED not in capsys.readouterr().out
    assert journal.read()["checks"]["double"]["passed"] is True


def test_the_start_of_a_lesson_lists_what_passed_and_warns_of_another_version(capsys):
    check.start("01_matrix_parallelism", check.unrolled.__version__)
    output = capsys.readouterr().out
    assert "Passed" not in output
    assert "Note" not in output
    for name, verdict in (("merge", "pass"), ("matmul_rows", "fail"), ("conv2d_loops", "pass")):
        journal.note(report(name, verdict))
    check.start("01_matrix_parallelism", "0.0.1")
    output = capsys.readouterr().out
    assert "Passed so far: merge.\n" in output
    assert "belongs to version 0.0.1" in output


def test_hints_come_in_three_steps(doubling, capsys):
    for step in ((), (), (), (), (1,), (9,)):
        doubling.hint(*step)
    lines = capsys.readouterr().out.splitlines()
    hints = "Hint 1 of 3. Add.", "Hint 2 of 3. Same shape.", "Hint 3 of 3. x + x"
    assert lines[:5] == [*hints, hints[2], hints[0]]
    assert "step must be 1 to 3, got 9" in lines[5]


def test_an_unknown_check_names_the_nearest(monkeypatch):
    monkeypatch.setattr(checks, "all_specs", lambda: {"conv2d_gemm": SPEC})
    with pytest.raises(AttributeError, match=r"did you mean check\.conv2d_gemm"):
        check.conv2d_gem  # noqa: B018
    assert "conv2d_gemm" in dir(check)


def test_html_escapes_what_came_from_the_learner_and_shows_where_an_image_differs():
    expected, got = np.zeros((2, 4, 5), np.float32)
    got[1, 2] = 1
    raised = Finding("a case", "crashed", ("raised ValueError: <script>alert(1)</script>",))
    differs = Finding("an image", "fail", ("1 of 20 values differ",), Mismatch((), got, expected))
    text = check.to_html(Report("x", "0", (raised, differs), (Part("x", "crashed", 0, 1, ""),)))
    assert "<script>" not in text
    for words in ("&lt;script&gt;", "crashed", "<img", 'alt="'):
        assert words in text
