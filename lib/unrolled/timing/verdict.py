"""What a comparison found: the outcome, and every raw number it came from."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from unrolled.timing import rule
from unrolled.timing.rule import Outcome

Witness = Literal["wall clock", "cpu time"]
UNCONTROLLED = "threads uncontrolled"
BY_CPU = "the machine is busy, so CPU time decided"


@dataclass(frozen=True)
class TimedBlock:
    """Some calls in a row, timed as a whole. `wall` and `cpu` are seconds for all of them; `cpu` is NaN if unknown."""

    calls: int
    wall: float
    cpu: float = math.nan


@dataclass(frozen=True)
class Pair:
    """One block of each side, run one right after the other."""

    baseline: TimedBlock
    candidate: TimedBlock
    first: Literal["baseline", "candidate"] = "baseline"

    @property
    def ratio(self) -> float:
        """Baseline seconds per call / candidate seconds per call."""
        return _ratio(self.baseline.wall, self.baseline.calls, self.candidate.wall, self.candidate.calls)

    @property
    def cpu_ratio(self) -> float:
        """Baseline CPU seconds per call / candidate CPU seconds per call; NaN if a block has none."""
        return _ratio(self.baseline.cpu, self.baseline.calls, self.candidate.cpu, self.candidate.calls)


@dataclass(frozen=True)
class Verdict:
    """Outcome of `compare`.

    `ratio` is the median of the paired ratios (baseline / candidate: 4 means four times as fast) with its 95 % interval
    `low` to `high`, in the time of `witness`; all three are NaN if not one pair was measured. `control` is the baseline
    against itself (empty for a clear pass), `seconds` what the whole comparison took, `threads` how many BLAS threads
    ran, `seed` what decided order and inputs. `device` is "modelled, T4" where a simulated GPU gave the times.
    `unable`: whether this machine cannot show such a speed at all (`where_able`).
    """

    outcome: Outcome
    ratio: float
    low: float
    high: float
    at_least: float
    reason: str
    witness: Witness
    noisy: bool
    pairs: tuple[Pair, ...]
    control: tuple[Pair, ...]
    threads: str
    seconds: float
    seed: int
    device: str = ""
    unable: bool = False

    @property
    def excused(self) -> bool:
        """Whether the outcome is open because of the machine: its control was off, or there was too little time.

        The control is the baseline against itself, so nothing that the candidate does has a part in it. It is off, too,
        where the baseline had less than a core: others may then slow one side more than the other, and evenly, as when
        they fill the caches. Time is too little where it ended the control, or did not allow for the pairs of a first
        look; whoever must not trust the candidate has to ask besides whether it was the one to lose that time.

        Whatever the machine did, it is no excuse for a fair pair below half of what was asked, nor for no pair at all.
        """
        seen = fair(self.pairs)
        if self.outcome != "inconclusive" or not seen or min(pair.ratio for pair in seen) < self.at_least / rule.FAR:
            return False
        cut_short = 0 < len(self.control) < rule.CONTROL_PAIRS or len(self.pairs) < rule.LOOKS[0]
        blocks = [block for pair in self.control for block in (pair.baseline, pair.candidate)]
        return self.unable or self.noisy or cut_short or _share(blocks) < rule.CONTROL_SHARE

    def __str__(self) -> str:
        """One to three plain sentences."""
        faster = " faster" if self.ratio <= 1 else ""
        asked = f"at least {self.at_least:,g}x{faster}"
        if self.unable and self.pairs:  # in the words of `where_able`, so that three numbers can be compared
            asked = f"at least {self.at_least:,g} times"
        text = f"{_speed(self)}; {asked} was asked: {self.outcome}."
        few = self.outcome == "fail" and len(self.pairs) < rule.LOOKS[0]
        if self.outcome == "inconclusive" or self.witness == "cpu time" or few:
            text += f" {self.reason[:1].upper()}{self.reason[1:]}."
        if self.threads == UNCONTROLLED:
            text += " Threads uncontrolled: the BLAS library here cannot be held to one thread."
        if self.device:
            text += f" Times: {self.device}."
        return text

    def draw(self, ax: Any) -> None:
        """Draw each pair's ratio, the interval of the median and what was asked on a matplotlib Axes."""
        cpu = self.witness == "cpu time"
        ratios = [pair.cpu_ratio if cpu else pair.ratio for pair in self.pairs]
        ax.set_yscale("log")
        if ratios:
            few = len(ratios) < rule.LOOKS[0]
            ax.axhspan(self.low, self.high, alpha=0.2, label="all pairs" if few else "95 % interval of the median")
            ax.plot(range(1, len(ratios) + 1), ratios, "o", label="measured pairs")
        ax.axhline(self.at_least, linestyle="--", color="black", label=f"asked: {self.at_least:,g}x")
        how = ", CPU time" if cpu else f", {self.device}" * bool(self.device)
        ax.set(xlabel="pair", ylabel=f"times faster than the baseline{how}")
        ax.set_title(f"{_factor(self.ratio)}: {self.outcome}" if ratios else self.outcome)
        ax.legend()

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold; numbers that are not finite become None."""
        data = asdict(self, dict_factory=_finite)
        return data | {name: list(data.pop(name)) for name in ("pairs", "control")}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `to_dict` wrote. Raises ValueError if something is missing."""
        missing = [name for name in (*_SCALARS, "pairs", "control") if name not in data]
        if missing:
            raise ValueError(f"data is no verdict: {', '.join(missing)} missing")
        scalars: dict[str, Any] = {name: math.nan if data[name] is None else data[name] for name in _SCALARS}
        pairs, control = (tuple(map(_pair, data[name])) for name in ("pairs", "control"))
        later = {name: data[name] for name in ("device", "unable") if name in data}  # older records have none
        return cls(**scalars, pairs=pairs, control=control, **later)


_SCALARS = ("outcome", "ratio", "low", "high", "at_least", "reason", "witness", "noisy", "threads", "seconds", "seed")


def fair(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs in which the baseline took what it takes in the others, their median, to within SLACK."""
    if not pairs:
        return []
    calls = [pair.baseline.wall / pair.baseline.calls for pair in pairs]
    usual = statistics.median_low(calls)
    near = [usual / rule.SLACK <= call <= usual * rule.SLACK for call in calls]
    return list(itertools.compress(pairs, near))


def conclude(
    pairs: Sequence[Pair],
    control: Sequence[Pair],
    at_least: float,
    *,
    threads: str = "",
    seconds: float = math.nan,
    seed: int = 0,
    cpu_witness: Sequence[Outcome] = ("pass",),
) -> Verdict:
    """Return the verdict on pairs and control: a pure function of what was measured.

    `cpu_witness`: the outcomes that CPU time may decide where the machine is noisy.
    """
    ratios = [pair.ratio for pair in pairs]
    outcome, reason = _by_wall_clock(ratios, at_least)
    controlled = len(control) == rule.CONTROL_PAIRS
    noisy = controlled and rule.is_noisy([pair.ratio for pair in control])
    witness: Witness = "wall clock"
    if outcome == "fail" and not controlled:
        outcome, reason = "inconclusive", "time ran out before a control could show that the machine is quiet"
    elif outcome != "pass" and noisy and not (outcome == "fail" and rule.is_beyond_noise(ratios, at_least)):
        far = rule.is_slow(ratios, at_least, rule.FAR)
        helps = "a quieter one will hardly change this, faster code will" if far else "try again when it is quieter"
        outcome, reason = "inconclusive", f"the machine is too busy for a fair measurement: {helps}"
        if (decided := _by_cpu_time(pairs, at_least)) in cpu_witness:
            outcome, witness, reason = decided, "cpu time", BY_CPU
    spread = _spread(pairs, witness)
    pairs, control = tuple(pairs), tuple(control)
    return Verdict(outcome, *spread, at_least, reason, witness, noisy, pairs, control, threads, seconds, seed)


def _spread(pairs: Sequence[Pair], witness: Witness) -> tuple[float, float, float]:
    """The median of the ratios in the time of this witness, and its interval."""
    ratios = [pair.cpu_ratio if witness == "cpu time" else pair.ratio for pair in pairs]
    return statistics.median(ratios) if ratios else math.nan, *rule.median_interval(ratios)


def untimed(why: str, at_least: float, seed: int = 0) -> Verdict:
    """Return the verdict where a machine cannot time a candidate at all: open, with the reason."""
    verdict = conclude([], [], at_least, seed=seed, seconds=0.0)
    return replace(verdict, outcome="inconclusive", reason=why, unable=True)


def where_able(verdict: Verdict, model: Verdict) -> Verdict:
    """Return the verdict on a candidate, open if that on a right and fast `model`, in its place, is no better.

    For what needs more of a machine than its baseline: two cores that share memory, one unit or other work may be no
    faster than one. Where the model does not pass, CPU time decides, if by that it does. Else a candidate that is
    clearly slower than the model is slow by itself: by more than SLACK where the model passes, by more than FAR
    anywhere. By more than HOPELESS it fails, also where there was time for few pairs: else whoever sleeps could have
    too few.
    """
    if verdict.outcome == "pass":
        return verdict
    asked, beside = verdict.at_least, [pair.candidate for pair in model.pairs]
    if model.outcome != "pass" and _spread(model.pairs, "cpu time")[0] >= asked:
        decided = _by_cpu_time(verdict.pairs, asked, beside)
        if decided != "inconclusive":
            ratio, low, high = _spread(verdict.pairs, "cpu time")
            by_cpu = replace(verdict, outcome=decided, witness="cpu time", reason=BY_CPU)
            return replace(by_cpu, ratio=ratio, low=low, high=high)
    model_is = f"the course's own answer is {_number(model.ratio)} times as fast here"
    if verdict.outcome == "inconclusive" and verdict.high < model.low / rule.HOPELESS:
        return replace(verdict, outcome="fail", reason=model_is)
    if verdict.high < model.low / (rule.SLACK if model.outcome == "pass" else rule.FAR):
        return verdict
    why = f"{model_is}, {'hardly more' if model.outcome == 'pass' else 'so this machine cannot show it'}"
    return replace(verdict, outcome="inconclusive", reason=why, unable=True)


def _by_wall_clock(ratios: Sequence[float], at_least: float) -> tuple[Outcome, str]:
    outcome = rule.decide(ratios, at_least)
    if rule.is_clear(ratios, at_least):
        return outcome, f"each of {len(ratios)} pairs reaches {rule.CLEAR[len(ratios)]:g} times what was asked"
    if outcome == "pass":
        return outcome, "even the low end of the interval reaches what was asked"
    if outcome == "fail":
        return outcome, f"even the high end of the interval is below {_times(at_least / rule.SLACK)}"
    if len(ratios) in rule.LOOKS:
        return outcome, f"too close to call after {len(ratios)} pairs"
    if rule.is_hopeless(ratios, at_least):
        pairs = "one pair" if len(ratios) == 1 else f"{len(ratios)} pairs"
        return "fail", f"stopped after {pairs}, far below what was asked"
    if rule.is_slow(ratios, at_least):
        return "fail", f"time ran out after {len(ratios)} pairs, and their interval is below what was asked"
    most = len(ratios) if len(ratios) > rule.LOOKS[0] else f"{len(ratios)} of at least {rule.LOOKS[0]}"
    return outcome, f"time ran out after {most} pairs"


def _by_cpu_time(pairs: Sequence[Pair], at_least: float, beside: Sequence[TimedBlock] = ()) -> Outcome:
    """What CPU time says of these pairs. To pass, it must be able to stand for the candidate's work.

    A candidate that sleeps, or lets others work, has little CPU time for the wall time it takes, while load takes the
    same share from what is `beside` it: the baseline's blocks, if nothing else. So it must show at least half of the
    CPU seconds per second of wall time that those have.
    """
    if not all(pair.baseline.cpu > 0 and pair.candidate.cpu > 0 for pair in pairs):
        return "inconclusive"  # no CPU time, or a clock too coarse for the blocks
    ratios = [pair.cpu_ratio for pair in pairs]
    if rule.is_slow(ratios, at_least):
        return "fail"
    if rule.decide(ratios, at_least) != "pass":
        return "inconclusive"
    usual = _share(beside or [pair.baseline for pair in pairs])
    return "pass" if _share([pair.candidate for pair in pairs]) >= 0.5 * usual else "inconclusive"


def _share(blocks: Sequence[TimedBlock]) -> float:
    """CPU seconds per second of wall time; NaN without blocks, or where CPU time is unknown."""
    return sum(block.cpu for block in blocks) / sum(block.wall for block in blocks) if blocks else math.nan


def _speed(verdict: Verdict) -> str:
    ratio, low, high = verdict.ratio, verdict.low, verdict.high
    if math.isnan(ratio):
        return "Not one pair could be measured"
    if verdict.unable:
        return f"{_number(ratio)} times as fast as the baseline ({_number(low)} to {_number(high)})"
    in_time = " in CPU time" if verdict.witness == "cpu time" else ""
    if low < 1 < high or _is_even(ratio):
        middle = "About as fast as" if _is_even(ratio) else f"{_factor(ratio)} than"
        ends = "" if _is_even(low) and _is_even(high) else f" (from {_factor(low)} to {_factor(high)})"
        return f"{middle} the baseline{in_time}{ends}"
    if ratio > 1:
        return f"{_times(ratio)} faster than the baseline{in_time} ({_number(low)} to {_number(high)})"
    return f"{_times(1 / ratio)} slower than the baseline{in_time} ({_number(1 / high)} to {_number(1 / low)})"


def _factor(ratio: float) -> str:
    """A ratio in words, on either side of 1: "2.3x slower", "as fast", "3x faster"."""
    if _is_even(ratio):
        return "as fast"
    return f"{_times(ratio)} faster" if ratio >= 1 else f"{_times(1 / ratio)} slower"


def _is_even(ratio: float) -> bool:
    return 1 / 1.05 < ratio < 1.05


def _times(value: float) -> str:
    return f"{_number(value)}x"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _ratio(baseline: float, baseline_calls: int, candidate: float, candidate_calls: int) -> float:
    if not candidate > 0:  # a clock that did not move, or no CPU time at all
        return math.nan if math.isnan(candidate) or math.isnan(baseline) else math.inf
    return (baseline / baseline_calls) / (candidate / candidate_calls)


def _finite(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in fields}


def _pair(data: Mapping[str, Any]) -> Pair:
    baseline, candidate = (
        TimedBlock(side["calls"], side["wall"], math.nan if side["cpu"] is None else side["cpu"])
        for side in (data["baseline"], data["candidate"])
    )
    return Pair(baseline, candidate, data["first"])
