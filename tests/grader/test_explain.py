"""An explanation shows what was measured."""

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from unrolled.timing import Pair, TimedBlock
from unrolled.timing.verdict import conclude
from unrolled_grader.jobs import explain, record
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge.evidence import Score


def pairs(count: int, ratio: float) -> list[Pair]:
    baselines = [TimedBlock(1, ratio * (1 + 0.01 * (n % 3)), 1.0) for n in range(count)]
    sides = itertools.cycle(("baseline", "candidate"))
    return [Pair(one, TimedBlock(4, 4.0, 4.0), side) for one, side in zip(baselines, sides, strict=False)]  # type: ignore[arg-type]


def timing(ratio: float, count: int = 8, control: float = 1.0) -> dict[str, Any]:
    """What is kept of a measurement, through JSON as in a record."""
    measured = conclude(pairs(count, ratio), pairs(8, control), 2.5, threads="1 thread", seconds=1.5, seed=7)
    return json.loads(json.dumps(measured.to_dict()))  # type: ignore[no-any-return]


def kept(verdict: str, points: float, *timings: dict[str, Any]) -> Record:
    scores = (
        Score("conv2d_gemm", "pass", 2.0, 2.0, "11 cases right"),
        Score("conv2d_gemm/speed", verdict, points, 1.0, "a detail", "", timings),
        Score("im2col", "fail", 0.0, 2.0, "another detail"),
    )
    return Record("ann", "02_convolution", "abc", scores, seeds=(4711,), sandbox="a box", key=Key("a", "b", "Python 3"))


def test_everything_of_the_check_is_shown_and_nothing_of_others() -> None:
    text = explain.explained(kept("fail", 0.0, timing(1.0, 16), timing(1.1)), "conv2d_gemm")
    assert max(map(len, text.splitlines())) <= 100
    for shown in ("11 cases right", "a detail", "4711", "a box", "Python 3", "measurement 2 of 2", "seed 7"):
        assert shown in text
    assert "another detail" not in text
    assert text.count("after 8 pairs: median") == 2
    assert "after 16 pairs: median 1.01, interval 1 to 1.02, asked 2.5: fail" in text
    assert "the machine was quiet" in text
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+  (baseline|candidate)", line)]
    assert len(rows) == 16 + 8 + 8 + 8
    assert rows[1] == ["2", "candidate", "1", "1.0100", "1010.0000", "4", "4.0000", "1000.0000", "1.01"]


Change = Callable[[dict[str, Any]], None]
DAMAGED: dict[str, tuple[Change, str]] = {
    "text": (lambda data: data["pairs"][0]["baseline"].update(wall="1"), "damaged: TypeError"),
    "no calls": (lambda data: data["pairs"][0]["baseline"].update(calls=0), "damaged: ZeroDivisionError"),
    "no pairs": (lambda data: data.pop("pairs"), "damaged: ValueError: data is no verdict: pairs missing"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_measurement_is_named(change: Change, message: str) -> None:
    damaged = timing(1.0)
    change(damaged)
    assert message in explain.explained(kept("fail", 0.0, damaged, timing(1.1)), "conv2d_gemm")


def test_text_of_students_stays_text() -> None:
    record_ = kept("missing", 0.0)
    evil = replace(record_.scores[1], detail="\x1b[2J\u202eevil\nline " + "x" * 300)
    text = explain.explained(replace(record_, scores=(evil,)), "conv2d_gemm")
    assert not any(record.CONTROLS.search(line.replace(" ", "")) for line in text.splitlines())


def test_an_unknown_check_is_named_with_those_there_are() -> None:
    with pytest.raises(explain.UnknownCheckError, match="has conv2d_gemm, im2col, not gemm"):
        explain.explained(kept("missing", 0.0), "gemm")
