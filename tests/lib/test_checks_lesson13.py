"""Training against the clock, factors and an own network: what their comparisons say of given figures."""

import time
from typing import Any

import numpy as np
import pytest

from unrolled.checks.compare import Mismatch, Remark
from unrolled.checks.exercises.l13_capstone import against_the_clock, factors, own
from unrolled.checks.exercises.l13_capstone.against_the_clock import compare, cosine, least

RUNS = [{"seed": seed} for seed in (1, 2, 3)]
PARAMETERS = [against_the_clock.network(run["seed"]).parameters for run in RUNS]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function from accuracies and seconds to what the comparison says; accuracies are given, not measured."""

    def judge(own: Any, recipes: float, seconds: Any = 1.0, theirs: Any = 1.0) -> Mismatch | Remark | None:
        shares = iter([np.broadcast_to(own, 3).tolist(), [recipes] * 3])
        monkeypatch.setattr(against_the_clock, "accuracies", lambda parameters, inputs: next(shares))
        monkeypatch.setattr(against_the_clock, "_shares", lambda parameters, inputs, test: [0.1] * 3)
        timed = (list(zip(PARAMETERS, np.broadcast_to(each, 3).tolist(), strict=True)) for each in (seconds, theirs))
        return compare(*timed, {"runs": RUNS})

    return judge


NOT_FAR_ENOUGH = ["not far enough", "images shifted by a pixel, a new shift for each batch"]


@pytest.mark.parametrize(
    ("own", "recipes", "seconds", "says"),
    [
        (0.9725, 0.99, 1, []),
        (0.9675, 0.99, 1, ["about 98% are asked of each, on these images at least 97.00%", *NOT_FAR_ENOUGH]),
        (0.9625, 0.98, 1, []),  # where the recipe has less, so much less is asked
        (0.9625, 0.985, 1, NOT_FAR_ENOUGH),
        ([0.99, 0.99, 0.96], 0.99, 1, NOT_FAR_ENOUGH),  # each run has to reach it
        ([0.99, 0.1, 0.99], 0.99, [6, 0, 6], [against_the_clock.LEFT_OUT]),  # one left out, 200 epochs for the others
        (0.99, 0.99, 4.2, ["4.2 times the recipe's seconds; at most 4 times are asked"]),
        (0.99, 0.99, [0.1, 0.1, 4.2], ["4.2 times the recipe's seconds"]),
    ],
)
def test_how_much_is_asked(judged: Any, own: Any, recipes: float, seconds: Any, says: list[str]) -> None:
    assert least(1.0) == least(against_the_clock.USUAL) == pytest.approx(0.97)
    found = judged(own, recipes, seconds)
    assert isinstance(found, Mismatch if says else Remark)
    assert all(words in "\n".join(found.lines) for words in says)


@pytest.mark.parametrize(
    ("seconds", "theirs", "tier", "times"),
    [
        (0.33, 1, "gold", "3.03"),
        (0.9, 1, "silver", "1.11"),
        (1.1, 1, "bronze", "0.91"),
        (4, 1, "bronze", "0.25"),
        ([2.0, 0.001, 0.001], 1, "bronze", "0.50"),  # the slowest run counts, so no run gains by another
        (1, [1.0, 1.5, 1.0], "silver", "1.50"),
    ],
)
def test_a_right_answer_reads_its_tier(judged: Any, seconds: Any, theirs: Any, tier: str, times: str) -> None:
    found = judged(0.99, 0.99, seconds, theirs)
    assert isinstance(found, Remark)
    assert found.ratio == pytest.approx(np.max(theirs) / np.max(seconds))
    assert found.lines[1].startswith(f"{tier}: {times} times as fast as the recipe")
    assert found.lines[1].endswith("Bronze from 0.25, silver from 1, gold from 3")


def test_each_run_has_digits_labels_and_a_test_of_its_own() -> None:
    runs = against_the_clock.small_digits(np.random.default_rng(0))["runs"]
    assert len(runs) == 3
    for name in ("images", "labels", "test_images", "test_labels"):
        assert not np.array_equal(runs[0][name], runs[1][name])
        assert not np.array_equal(runs[1][name], runs[2][name])
    assert runs[0]["images"].shape == (against_the_clock.TRAIN, 1, 14, 14)


@pytest.mark.parametrize(("own", "says"), [(0.99, against_the_clock.FAR), (0.89, against_the_clock.TOO_FAST)])
def test_other_seeds_are_refused(judged: Any, monkeypatch: pytest.MonkeyPatch, own: float, says: str) -> None:
    """Who is mostly wrong is told of accuracy and rate, and not of where training began."""
    for run in RUNS[2 if own == 0.99 else 0 :]:
        monkeypatch.setitem(run, "seed", run["seed"] + 3)
    found = judged(own, recipes=0.99)
    assert isinstance(found, Mismatch)
    assert found.lines[-1] == says
    assert len(found.lines) == 1 or "89.00%" in found.lines[0]
    assert cosine(PARAMETERS[0], -2 * PARAMETERS[0]) == pytest.approx(-1)
    assert cosine(PARAMETERS[0], 0 * PARAMETERS[0]) == 0
    assert abs(cosine(PARAMETERS[0], PARAMETERS[1])) < against_the_clock.ALIKE / 3


def test_weights_that_a_high_rate_moved_are_not_refused(judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, starts = np.random.default_rng(0), list(PARAMETERS)
    ways = [rng.standard_normal(len(start)).astype(np.float32) for start in starts]
    norm = np.linalg.norm
    moved = [start + 10 * way * norm(start) / norm(way) for start, way in zip(starts, ways, strict=True)]
    assert cosine(moved[0], starts[0]) == pytest.approx(0.1, abs=0.01)
    monkeypatch.setitem(globals(), "PARAMETERS", moved)
    assert isinstance(judged(0.99, recipes=0.99), Remark)


def test_the_recipe_is_timed_only_beside_what_may_be_right(judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = {"images": np.zeros((2, 1, 14, 14), np.float32), "labels": np.array([0, 1])}
    inputs = {"runs": [run | digits for run in RUNS]}
    later = against_the_clock.timed(against_the_clock.recipe, inputs)
    assert [parameters.shape for parameters, _ in later()] == [PARAMETERS[0].shape] * 3
    monkeypatch.setattr(against_the_clock, "accuracies", lambda parameters, inputs: [0.89] * 3)
    monkeypatch.setattr(against_the_clock, "_shares", lambda parameters, inputs, test: [0.1] * 3)
    found = compare([(each, 1.0) for each in PARAMETERS], None, inputs)
    assert isinstance(found, Mismatch)
    assert found.lines[0].endswith("89.00%, 89.00%, 89.00%; about 98% are asked of each")


def in_rounds(run: Any, causes: list[str]) -> dict[str, float]:
    """Medians of all settings in turns, without pairs: each setting sees the same drift."""
    rounds = [[run(), *(run(**{cause: False}) for cause in causes)] for _ in range(9)]
    everything, *without = np.median(rounds, axis=0)
    return {cause: float(each / everything) for cause, each in zip(causes, without, strict=True)}


def setting_by_setting(run: Any, causes: list[str]) -> dict[str, float]:
    everything = np.median([run() for _ in range(5)])
    return {cause: float(np.median([run(**{cause: False}) for _ in range(5)]) / everything) for cause in causes}


@pytest.mark.parametrize(
    ("answer", "right"), [(factors.turned_off_alone, True), (in_rounds, True), (setting_by_setting, False)]
)
def test_the_drift_tells_settings_in_turns_from_one_after_the_other(answer: Any, right: bool) -> None:
    for seed in range(40):
        inputs = factors.any_machine(np.random.default_rng(seed))
        assert (factors.compare(factors.handed_out(answer, inputs), None, inputs) is None) == right


def by_pairs(of: Any, off: bool = False) -> Any:
    """An answer that makes this of pairs of runs, and takes medians."""

    def answer(run: Any, causes: list[str]) -> dict[str, float]:
        found = {cause: [of(run(), run(**{cause: off})) for _ in range(9)] for cause in causes}
        return {cause: float(np.median(each)) for cause, each in found.items()}

    return answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (by_pairs(lambda on, without: without / on, off=True), "run(cause=True) turns nothing off"),
        (by_pairs(lambda on, without: 100 * without / on), "these are percent"),
        (by_pairs(lambda on, without: 100 * (without / on - 1)), factors.DIFFERENCES),
        (by_pairs(lambda on, without: without / on - 1), factors.DIFFERENCES),
    ],
)
def test_no_factors_are_named(answer: Any, says: str) -> None:
    """They read that the machine gets slower all the time."""
    for seed in range(10):
        inputs = factors.any_machine(np.random.default_rng(seed))
        found = factors.compare(factors.handed_out(answer, inputs), None, inputs)
        assert isinstance(found, Mismatch)
        assert says in found.lines[0]


class Known(factors.Work):
    """Work whose times are given: 1 s, and these factors of it, one after the other, where a cause is off."""

    def __init__(self, *batch: float) -> None:
        super().__init__(np.zeros(1, np.float32))
        self.batch = list(batch)

    def measured(self) -> dict[str, float]:
        return {"batch": self.batch.pop(0), "code": 3.0}


@pytest.mark.parametrize(
    ("claimed", "batch", "kind", "says"),
    [
        (5.0, (6.0, 6.1), Remark, "measured again: batch 6.0, code 3.0"),
        (1.0, (6.0, 6.1), Mismatch, "the factors are batch 6.0, code 3.0; yours of batch is 1.00, more than 50% away"),
        (12.0, (6.0, 9.0), Remark, ""),  # a machine that measures two things: near the second
        (1.0, (6.0, 9.0), Remark, "too busy"),
    ],
)
def test_claims_about_real_work_are_measured_again(claimed: float, batch: Any, kind: Any, says: str) -> None:
    found = factors.compare({"batch": claimed, "code": 3.0}, None, {"machine": Known(*batch)})
    assert isinstance(found, kind)
    assert says in found.lines[0]


def test_a_machine_that_was_busy_while_the_answer_measured_refutes_no_claim() -> None:
    work = Known(6.0, 6.1)
    work.measured_runs = [(frozenset([cause] * off), 1.0 + off) for cause in ("batch", "code") for off in (0, 1)] * 3
    found = factors.compare({"batch": 2.0, "code": 2.0}, None, {"machine": work})
    assert isinstance(found, Remark)
    assert "too busy" in found.lines[0]
    work.batch = [6.0, 6.1]
    assert isinstance(factors.compare({"batch": 0.5, "code": 2.0}, None, {"machine": work}), Mismatch), "no run said so"


def test_what_a_run_is_made_of_stays_out_of_reach() -> None:
    inputs = factors.machine(np.random.default_rng(0), ["code", "batch"])
    run = factors.handed_out(lambda run, causes: run, inputs)
    assert run() > 0
    assert not [name for name in dir(run) if name in dir(inputs["machine"]) and name not in dir(in_rounds)]
    with pytest.raises(ValueError, match="there is no cause 'graph'; there are code, batch"):
        run(graph=False)


RIGHT = np.eye(10, dtype=np.float32)[np.arange(own.TEST) % 10]
TURNS = {"turns": [{"test_labels": RIGHT.argmax(axis=1)}] * (1 + own.TURNS)}


def runs(before: float, after: float, scores: Any = None) -> list[own.Run]:
    """Runs of both versions with these seconds, all right, the repaired ones with these scores."""
    scores = RIGHT if scores is None else scores
    untimed = [own.Run("after", 0, given, 1.0) for given in (scores, scores, scores + 1)]
    both = [own.Run("after", 1, scores, after), own.Run("before", 1, RIGHT, before)]
    return untimed + both * own.TURNS


@pytest.mark.parametrize(
    ("before", "after", "kind", "says"),
    [
        (
            0.7,
            0.35,
            Remark,
            "CPU time, medians: before 0.7000 s, after 0.3500 s, 2 times as fast; 100% of the test images",
        ),
        (0.2, 0.181, Remark, "1.1 times as fast"),
        (0.2, 0.19, Mismatch, "1.1 times as fast; at least 1.1 times are asked, in every turn but one"),
        (0.2, 0.25, Mismatch, "0.8 times as fast; at least 1.1 times are asked"),
        (0.002, 0.001, Mismatch, "train for 5 ms or longer"),
    ],
)
def test_what_is_said_of_a_repair(before: float, after: float, kind: Any, says: str) -> None:
    found = own.compare(runs(before, after), None, TURNS)
    assert isinstance(found, kind)
    assert says in found.lines[0]


@pytest.mark.parametrize(("disturbed", "kind"), [(1, Remark), (2, Mismatch)])
def test_one_turn_may_be_disturbed(disturbed: int, kind: Any) -> None:
    given = runs(0.7, 0.35)
    for place in range(disturbed):
        given[3 + 2 * place] = given[3 + 2 * place]._replace(seconds=0.7)
    assert isinstance(own.compare(given, None, TURNS), kind)


@pytest.mark.parametrize(("turns", "factor", "kind"), [(2, 1.02, Remark), (4, 1.02, Mismatch), (1, 1.2, Mismatch)])
def test_rounding_may_tell_in_some_turns(turns: int, factor: float, kind: Any) -> None:
    given = runs(0.7, 0.35)
    for place in range(3, 3 + 2 * turns, 2):
        given[place] = given[place]._replace(scores=RIGHT * factor)
    assert isinstance(own.compare(given, None, TURNS), kind)


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (RIGHT * 1.02, "a different order of sums, or another precision? Rounding grows: train fewer steps"),
        (RIGHT[::-1].copy(), "a repair changes the time, and nothing else: the same batches, in the same order"),
        (RIGHT[:, :5], "return the scores of test_images, an array (200, 10) of floats"),
        (RIGHT * np.nan, "gives NaN or infinity"),
    ],
)
def test_scores_that_differ_or_are_none_are_named(scores: Any, says: str) -> None:
    found = own.compare(runs(1.0, 0.5, scores), None, TURNS)
    assert isinstance(found, Mismatch)
    assert says in found.lines[-1]


def test_the_repaired_version_goes_first_and_never_sees_digits_again() -> None:
    """So what one version keeps of the other's work is no help to the repaired one."""
    seen: list[tuple[str, bytes]] = []

    def function(version: str, images: Any, labels: Any, test_images: Any, seed: int) -> None:
        seen.append((version, images.tobytes()))

    own.in_turns(function, own.turns(np.random.default_rng(0)))
    timed = seen[3:]
    assert [version for version, _ in timed] == ["after", "before"] * own.TURNS
    assert len({images for _, images in seen}) == 1 + own.TURNS
    assert all(after[1] == before[1] for after, before in zip(timed[::2], timed[1::2], strict=True))


def test_whoever_runs_elsewhere_is_timed_by_the_clock_there() -> None:
    class Elsewhere:
        seconds = 0.0

        def __call__(self, *given: Any) -> None:
            self.seconds += 2.0

        def cpu_seconds(self) -> float:
            return self.seconds

    inputs = own.turns(np.random.default_rng(0))
    assert {run.seconds for run in own.in_turns(Elsewhere(), inputs)} == {2.0}
    three = {"runs": [{"images": 0, "labels": 0, "seed": 0}] * 3}
    assert [seconds for _, seconds in against_the_clock.runs_of(Elsewhere(), three)] == [2.0] * 3
    assert max(run.seconds for run in own.in_turns(lambda *given: time.sleep(0.05), inputs)) < 0.04
