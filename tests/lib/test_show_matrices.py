"""unrolled.show: the pictures of lessons 00 and 01 say what their data say."""

import itertools

import numpy as np
import pytest

from unrolled import show
from unrolled.show import words
from unrolled.show.charts import spread
from unrolled.show.images import first_difference
from unrolled.show.memory import walk
from unrolled.show.parallel import shares, speedup
from unrolled.show.race import Contestant, moments, mosaic
from unrolled.show.scaling import slope

IMAGES = np.random.default_rng(1).random((10, 28, 28))
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


def test_race_counts_the_digits_done() -> None:
    race = show.race(IMAGES, LABELS, {"loop": (0.1, LABELS), "network": (0.001, LABELS[::-1])})
    times = race.sliders["elapsed"].values
    assert times[0] == 0
    assert times[-1] == pytest.approx(1.0)
    assert list(times) == sorted(times)
    assert "loop: 3 of 10 digits done, 0 of them wrong" in race.at(elapsed=0.35).alt
    assert "network: all 10 digits done after 10 ms, 10 of them wrong" in race.at(elapsed=0.35).alt
    assert "One digit of loop takes as long as 100 digits of network." in race.alt
    assert "loop: 0 of 10 digits done and network: 0 of 10" in race.at(elapsed=0.0).alt
    assert "loop: all 10 digits done after 1 s" in race.at(elapsed=times[-1]).alt


def test_race_counts_exactly_at_the_finish() -> None:
    runners = [Contestant("a", 0.1, LABELS), Contestant("b", 1e-4, LABELS)]
    at, start = moments(runners)
    assert runners[1].done(at[start]) == 10
    assert runners[1].done(at[start - 1]) < 10
    assert runners[0].done(at[-1]) == 10
    assert [runners[0].done(i / 10) for i in range(12)] == [*range(11), 10]  # 0.3 / 0.1 is a little less than 3


def test_race_shows_only_finished_digits_in_full_ink() -> None:
    tiles = np.stack([np.full((2, 3, 4), i) for i in range(1, 6)]).astype(float)
    picture = mosaic(tiles, columns=3, below=0.5)
    assert picture.shape == (2 * 3, 3 * 3, 4)
    np.testing.assert_array_equal(picture[0, :, 0], [1, 1, 1, 2, 2, 2, 3, 3, 3])
    np.testing.assert_array_equal(picture[3, :, 0], [4, 4, 4, 5, 5, 5, 0, 0, 0])
    assert not picture[[2, 5]].any()


@pytest.mark.parametrize(
    ("contestants", "message"),
    [
        ({"a": (1.0, LABELS)}, "contestants must be two"),
        ({"a": (1.0, LABELS), "b": (1.0, LABELS[:3])}, "predictions of 'b' must hold one value an image: got 3 for 10"),
        ({"a": (0.0, LABELS), "b": (1.0, LABELS)}, "seconds of 'a' must be above 0"),
    ],
)
def test_race_names_what_does_not_fit(contestants: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.race(IMAGES, LABELS, contestants)


@pytest.mark.parametrize("workers", range(1, 9))
def test_workers_share_every_cell_as_equally_as_can_be(workers: int) -> None:
    share = shares(5, 7, workers)
    counts = np.bincount(share.ravel(), minlength=workers)
    assert counts.sum() == 35
    assert counts.max() - counts.min() <= 1
    assert speedup(5, 7, workers) == (counts.max(), 35 / counts.max())


def test_workers_say_who_computes_the_cell() -> None:
    alt = show.matmul_workers(6, 5, 8, 4).at(workers=4, cell=28).alt
    assert "48 cells of the product C are shared by 4 workers, at most 12 cells each" in alt
    assert "Worker 3 computes cell [3, 4] from row 3 of A and column 4 of B with 5 multiplications" in alt
    with pytest.raises(ValueError, match="workers must be from 1 to 8, got 9"):
        show.matmul_workers(workers=9)


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


def test_memory_walk_compares_the_orders() -> None:
    alt = show.memory_walk().at(step=20).alt
    assert "row by row, step 21 of 64 visits [2, 4] at address 20 and 3 cache lines were loaded so far, 8 by the" in alt
    assert "column by column, step 21 of 64 visits [4, 2] at address 34 and 21 cache lines" in alt
    assert "the same 64 visits, 8 times the loads" in alt
    assert "column by column" not in show.memory_walk(order="row").alt
    with pytest.raises(ValueError, match="order must be 'row', 'column' or None"):
        show.memory_walk(order="diagonal")  # type: ignore[arg-type]


def test_growth_fits_the_exponent() -> None:
    sizes = [100, 200, 400, 800]
    assert slope(sizes, [3e-9 * n**2 for n in sizes]) == pytest.approx(2)
    alt = show.growth(sizes, {"bubble sort": [3e-9 * n**2 for n in sizes], "flat": [1e-3] * 4}).alt
    assert "bubble sort: from 30 µs to 1.92 ms; twice the size: 4 × the time (slope 2.00)" in alt
    assert "flat: from 1 ms to 1 ms; twice the size: 1 × the time (slope 0.00)" in alt.replace("-0.00", "0.00")
    with pytest.raises(ValueError, match="times of 'bubble' must be 4 seconds above 0"):
        show.growth(sizes, {"bubble": [1.0]})


def test_amdahl_states_the_law() -> None:
    explorer = show.amdahl(0.9)
    assert explorer.start == {"fraction": 0.9}
    assert "90 % of the time is made faster, 10 % stays" in explorer.alt
    assert "16 times gives 6.4" in explorer.alt
    assert "never more than 10 times" in explorer.alt
    assert "1024 times gives 1,024; without a limit" in explorer.at(fraction=1.0).alt
    assert show.amdahl(0.37).start == {"fraction": 0.37}
    with pytest.raises(ValueError, match="fraction must be from 0 to 1, got 90"):
        show.amdahl(90)


def test_bars_read_in_their_unit() -> None:
    assert show.bars({"loops": 0.21, "one call": 6.2e-5}, "s", log=True).alt == "loops: 210 ms; one call: 62 µs."
    assert show.bars({"before": 1e5, "after": 9e5}, "B", title="Memory").alt == "Memory. before: 100 kB; after: 900 kB."
    assert show.bars({"GPU": 4.8e12}, "B/s").alt == "GPU: 4.8 TB/s."
    with pytest.raises(ValueError, match="above 0"):
        show.bars({"a": 0.0}, "s", log=True)


def test_roofline_names_the_limit() -> None:
    alt = show.roofline(5e10, 1e10, {"add": (0.1, 7e8), "matmul": (80, 4e10)}).alt
    assert "below 5 flops a byte memory is the limit" in alt
    assert "add: 700 Mflop/s at 0.1 flops a byte, 70 % of what memory allows" in alt
    assert "matmul: 40 Gflop/s at 80 flops a byte, 80 % of what arithmetic allows" in alt


def test_labels_are_moved_apart_in_their_order() -> None:
    placed = spread([0.5, 0.5, 0.1, 0.52], 0.1)
    assert all(b - a >= 0.0999 for a, b in itertools.pairwise(sorted(placed)))
    assert placed[2] == min(placed)
    assert spread([0.1, 0.9], 0.1) == [0.1, 0.9]


def test_images_mark_wrong_predictions() -> None:
    guesses = LABELS.copy()
    guesses[3] = 8
    assert show.images(IMAGES, LABELS, guesses).alt.endswith("; 1 wrong: 8 for a 3.")
    assert show.images(IMAGES, LABELS, LABELS).alt.endswith("; 0 wrong.")
    assert show.images(IMAGES[0]).alt == "1 image of 28 by 28 pixels."
    with pytest.raises(ValueError, match="labels must hold one value an image: got 9 for 10 images"):
        show.images(IMAGES, LABELS[:9])
    with pytest.raises(ValueError, match=r"images must be \(N, H, W\) or \(N, 1, H, W\), got shape \(2, 3, 4, 5\)"):
        show.images(np.ones((2, 3, 4, 5)))


def test_difference_says_where() -> None:
    expected = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    got = expected.copy()
    got[1, 2, 1:3, 4] = [-1, np.nan]
    alt = show.difference(got, expected).alt
    assert alt.startswith(
        "2 of 120 values differ from the expected ones. In image [1, 2] 2 of 20 differ in rows 1 to 2"
    )
    assert alt.endswith("and column 4; first at [1, 2, 1, 4]: got -1, expected 109.")
    assert show.difference(expected, expected).alt.endswith("no value differs.")
    assert show.difference(got, expected, differs=np.zeros(got.shape, dtype=bool)).alt.endswith("no value differs.")
    with pytest.raises(ValueError, match=r"images of one shape, got \(2, 2\) and \(2, 3\)"):
        show.difference(np.ones((2, 2)), np.ones((2, 3)))


def test_first_difference_finds_the_image() -> None:
    mask = np.zeros((2, 3, 4, 5), dtype=bool)
    assert first_difference(mask) == (0, 0)
    mask[1, 0, 3, 3] = mask[1, 2] = True
    assert first_difference(mask) == (1, 0)
    assert first_difference(mask[1, 0]) == ()


def test_ladder_groups_and_credits() -> None:
    rungs = [
        {"label": "loops", "seconds": 5400, "what": "convolution forward only", "batch": 32, "precision": "float32"},
        {"label": "network", "seconds": 41.0, "what": "an epoch", "hardware": "2 cores", "accuracy": 0.9803},
        {"label": "gemm", "seconds": 2.0, "what": "convolution forward only"},
    ]
    alt = show.ladder(rungs).alt
    assert "Convolution forward only: loops 90 min (batch 32, float32); gemm 2 s." in alt
    assert "An epoch: network 41 s (2 cores, 98.03 % right)." in alt
    assert "NumPy, hosted notebook 30 min" in alt
    assert "From the slowest of your 2 rungs to the fastest: 2,700 times." in alt
    assert "Qiita, 2020" in alt
    alone = show.ladder(rungs, references=()).alt
    assert "Qiita" not in alone
    assert "30 min" not in alone
    with pytest.raises(ValueError, match="nothing to draw"):
        show.ladder([], references=())
    with pytest.raises(ValueError, match="seconds of rung 'x' must be above 0, got 0"):
        show.ladder([{"label": "x", "seconds": 0}])


def test_guesses_say_how_far_off() -> None:
    alt = show.guesses(
        [
            {"name": "gemm", "guess": 40, "measured": 9},
            {"name": "rows", "guess": 10, "measured": 412.3},
            {"name": "threads", "guess": 2, "measured": 2.1},
        ]
    ).alt
    assert "gemm: guessed 40, measured 9: 4.4 times too high" in alt
    assert "rows: guessed 10, measured 412: 41.2 times too low" in alt
    assert "threads: guessed 2, measured 2.1: just right" in alt
    assert alt.endswith("1 within a factor of 2.")
    with pytest.raises(ValueError, match="at least one guess"):
        show.guesses([])
