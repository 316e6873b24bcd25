"""Pipelines: a network cut into stages, one a rank, that micro-batches pass through one behind the other.

A schedule is plain data: for each stage a list of slots, each ("F", i) for the forward pass of micro-batch i, ("B", i)
for its backward pass, or None for a bubble, in which the stage waits. `gpipe` is that of Huang et al., "GPipe", 2019;
`one_forward_one_backward` that of Narayanan et al., "PipeDream", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from unrolled.ops.arguments import check_whole

Slot: TypeAlias = "tuple[str, int] | None"
Schedule: TypeAlias = "Sequence[Sequence[Slot]]"
Work: TypeAlias = "list[tuple[str, int]]"  # of one stage, in order


def gpipe(stages: int, micro_batches: int) -> list[list[Slot]]:
    """Return the schedule that runs all forward passes, then all backward passes, the last micro-batch first.

    It takes 2 (m + p - 1) slots; a stage holds the activations of all m micro-batches.
    """
    _check(stages, micro_batches)
    forward: Work = [("F", i) for i in range(micro_batches)]
    return placed([forward + [("B", i) for i in reversed(range(micro_batches))] for _ in range(stages)])


def one_forward_one_backward(stages: int, micro_batches: int) -> list[list[Slot]]:
    """Return the schedule in which each stage, once p - s forward passes are under way, alternates (1F1B).

    It takes as many slots as `gpipe`; stage s holds the activations of at most p - s micro-batches.
    """
    _check(stages, micro_batches)
    return placed([alternating(min(stages - stage, micro_batches), micro_batches) for stage in range(stages)])


def alternating(ahead: int, micro_batches: int) -> Work:
    """Return a stage's work: `ahead` forward passes, then backward and forward passes in turn."""
    work: Work = [("F", i) for i in range(ahead)]
    for i in range(micro_batches):
        work.append(("B", i))
        if ahead + i < micro_batches:
            work.append(("F", ahead + i))
    return work


def placed(work: Sequence[Work]) -> list[list[Slot]]:
    """Return the schedule of stages that do their work in this order, each piece as early as it can.

    Raises ValueError where an order waits for itself.
    """
    done: list[dict[tuple[str, int], int]] = [{} for _ in work]  # the slot of each piece
    schedule: list[list[Slot]] = [[] for _ in work]
    slot = 0
    while any(len(there) < len(pieces) for there, pieces in zip(done, work, strict=True)):
        ready = [stage for stage in range(len(work)) if _can_begin(work, done, stage)]
        if not ready:
            raise ValueError(f"no stage can go on in slot {slot}: each waits for another one")
        for stage, row in enumerate(schedule):
            row.append(work[stage][len(done[stage])] if stage in ready else None)
        for stage in ready:
            done[stage][work[stage][len(done[stage])]] = slot
        slot += 1
    return schedule


def needs(stage: int, piece: tuple[str, int], stages: int) -> list[tuple[int, tuple[str, int]]]:
    """Return what a pass waits for, as (stage, pass): forward, the stage before; back, this one's way and the next."""
    kind, i = piece
    if kind == "F":
        return [(stage - 1, piece)] if stage > 0 else []
    return [(stage, ("F", i)), *([(stage + 1, piece)] if stage + 1 < stages else [])]


def faults(schedule: Schedule, stages: int, micro_batches: int) -> list[str]:
    """Return what is wrong with a schedule, in words: nothing if it is one of this many stages and micro-batches."""
    if len(schedule) != stages:
        return [f"the schedule has {len(schedule)} stages; expected {stages}"]
    wanted = {(kind, i) for kind in "FB" for i in range(micro_batches)}
    found: list[str] = []
    times: list[dict[tuple[str, int], int]] = []
    for stage, row in enumerate(schedule):
        pieces = [(slot, piece) for slot, piece in enumerate(row) if piece is not None]
        times.append({piece: slot for slot, piece in pieces})
        if twice := len(pieces) - len(times[-1]):
            found.append(f"stage {stage} does {twice} passes twice")
        found += [f"stage {stage} does {piece}, which there is not" for piece in times[-1].keys() - wanted]
        found += [f"stage {stage} never does {_name(piece)}" for piece in sorted(wanted - times[-1].keys())]
    return found or [
        f"stage {stage} begins {_name(piece)} in slot {slot}, before {why}"
        for stage in range(stages)
        for piece, slot in sorted(times[stage].items(), key=lambda item: item[1])
        if (why := _too_early(times, stage, piece, slot))
    ]


def activations(schedule: Schedule) -> list[int]:
    """Return for each stage how many micro-batches are at most between their forward and their backward pass there."""
    change = {"F": 1, "B": -1}
    return [max(accumulate((change[piece[0]] for piece in row if piece), initial=0)) for row in schedule]


def bubble(schedule: Schedule) -> float:
    """Return the share of all slots in which a stage waits: (p - 1) / (m + p - 1) at the least."""
    slots = len(schedule) * max(map(len, schedule))
    return 1 - sum(piece is not None for row in schedule for piece in row) / slots


def _check(stages: int, micro_batches: int) -> None:
    check_whole("stages", stages)
    check_whole("micro_batches", micro_batches)


def _can_begin(work: Sequence[Work], done: Sequence[dict[tuple[str, int], int]], stage: int) -> bool:
    if len(done[stage]) == len(work[stage]):
        return False
    return all(piece in done[where] for where, piece in needs(stage, work[stage][len(done[stage])], len(work)))


def _too_early(times: Sequence[dict[tuple[str, int], int]], stage: int, piece: tuple[str, int], slot: int) -> str:
    """What a pass ought to wait for, in words; nothing if it does."""
    for where, other in needs(stage, piece, len(times)):
        if times[where][other] >= slot:
            return f"stage {where} has ended {_name(other)}"
    return ""


def _name(piece: tuple[str, int]) -> str:
    return f"{'forward' if piece[0] == 'F' else 'backward'} {piece[1]}"
