"""unrolled.show: the pictures of lessons 00 and 01 say what their data say."""

import numpy as np
import pytest

from unrolled.show import words
from unrolled.show.images import Contestant, moments
from unrolled.show.matrices import shares, speedup, walk

LABELS = np.arange(10)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1797, "1,797"), (0.5, "0.5"), (3.14159, "3.14"), (-0.5, "-0.5"), (1e-7, "1.00e-07"), (1234.5, "1,234"),
     (float("inf"), "infinity"), (float("nan"), "not a number")],
)  # fmt: skip
def test_numbers_read_as_people_say_them(value: float, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (2e-15, "0 s"), (2e-9, "2 ns"), (3.2e-6, "3.2 µs"), (0.9999e-3, "1 ms"), (0.024, "24 ms"), (1, "1 s"),
     (100, "100 s"), (1800, "30 min"), (9000, "2.5 h")],
)  # fmt: skip
def test_durations_choose_their_unit(value: float, text: str) -> None:
    assert words.seconds(value) == text


def test_other_words() -> None:
    assert words.amount(2.5e9, "flop/s") == "2.5 Gflop/s"
    assert words.amount(999.9e3, "B") == "1 MB"
    assert words.times(412.4) == "412 times"
    assert words.percent(0.999) == "99.9 %"
    assert words.count_of(1, "cell") == "1 cell"
    assert words.count_of(1200, "cell") == "1,200 cells"
    assert words.listing(["a", "b", "c"]) == "a, b and c"
    assert words.span("row", 3, 1) == "row 3"
    assert words.span("row", 3, 2) == "rows 3 to 4"


def test_race_counts_exactly_at_the_finish() -> None:
    runners = [Contestant("a", 0.1, LABELS), Contestant("b", 1e-4, LABELS)]
    at, start = moments(runners)
    assert runners[1].done(at[start]) == 10
    assert runners[1].done(at[start - 1]) < 10
    assert runners[0].done(at[-1]) == 10
    assert [runners[0].done(i / 10) for i in range(12)] == [*range(11), 10]  # 0.3 / 0.1 is a little less than 3


@pytest.mark.parametrize("workers", range(1, 9))
def test_workers_share_every_cell_as_equally_as_can_be(workers: int) -> None:
    share = shares(5, 7, workers)
    counts = np.bincount(share.ravel(), minlength=workers)
    assert counts.sum() == 35
    assert counts.max() - counts.min() <= 1
    assert speedup(5, 7, workers) == (counts.max(), 35 / counts.max())


def brute_force_loads(visits: list[int], line: int, lines: int) -> int:
    """Lines loaded by a cache that keeps the most recently used ones, found by looking back at every visit."""
    wanted = [address // line for address in visits]
    loads = 0
    for i, one in enumerate(wanted):
        recent = dict.fromkeys(reversed(wanted[:i]))
        loads += one not in list(recent)[:lines]
    return loads


@pytest.mark.parametrize(
    ("shape", "line", "lines"), [((8, 8), 8, 4), ((4, 6), 4, 2), ((5, 3), 8, 1), ((3, 2), 4, 2), ((3, 16), 8, 9)]
)
def test_walk_counts_cache_lines(shape: tuple[int, int], line: int, lines: int) -> None:
    for order in ("row", "column"):
        one = walk(shape, order, line, lines)
        assert sorted(one.visits) == list(range(shape[0] * shape[1]))
        for step in range(len(one.visits)):
            assert one.loads[step] == brute_force_loads(one.visits[: step + 1], line, lines)
            assert one.visits[step] // line in one.cached[step]
            assert len(one.cached[step]) <= lines
    assert walk(shape, "row", line, lines).loads[-1] == -(-shape[0] * shape[1] // line)
