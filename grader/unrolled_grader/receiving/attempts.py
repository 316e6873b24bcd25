"""Which of a student's notebooks of a lesson counts: by the class's policy, or as a person chose, which nothing undoes.

    grader/received/students/STUDENT/LESSON/counts.json    what was placed for grading, and what a person chose

A person chooses by `unrolled attempts`, or by copying a notebook from grader/received into grader/submitted. What lies
there and was not placed by `settle` was put there by hand. So `settle` notes what it is about to place before it does:
killed in between, it goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from unrolled_grader.classroom import late
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.judge import intake
from unrolled_grader.receiving import placing
from unrolled_grader.receiving.received import COUNTS, STUDENTS, Received, ReceivedEntry, put


@dataclass(frozen=True)
class Counts:
    """What is kept of a student's lesson; entries by their ids."""

    by_hand: str = ""
    placed: tuple[str, ...] = ()  # what may lie in grader/submitted because it was placed there; the last one does
    points: Mapping[str, float] = field(default_factory=dict)  # of what was graded, without lateness
    scale: str = ""  # by which checks they were graded
    stamp: str = ""  # what timestamp.txt said, for what was placed last


@dataclass(frozen=True)
class Settled:
    """What counts, and how that came about."""

    entry: ReceivedEntry
    number: int  # among the attempts, from 1
    of: int
    by_hand: bool
    noticed: bool = False  # whether it was put there by hand since the last time
    changed: bool = False  # whether another was placed

    def __str__(self) -> str:
        why = "put there by hand" if self.noticed else "chosen by hand" if self.by_hand else "by the class's policy"
        return f"{self.entry.student}, {self.entry.lesson}: attempt {self.number} of {self.of} counts, {why}"


def settle(
    received: Received, submitted: Path, student: str, lesson: str, chosen: Settings, new: Collection[str] = ()
) -> Settled | None:
    """Place what counts in `submitted`; return what that is, None if nothing was received.

    `new` are the entries that this run brought: without a note of what was placed, that was the newest of the others.
    Raises OSError where something lies in the way.
    """
    attempts, kept = listed(received, submitted, student, lesson), read(received, student, lesson)
    if not attempts:
        return None
    placing.refuse_unknown(received, submitted, student, lesson)
    was = kept or Counts(placed=tuple(entry.id for entry in attempts if entry.id not in new)[-1:])
    by_id = {entry.id: entry for entry in attempts}
    by_policy = pick(attempts, was.points, chosen)
    lying = placing.lying(submitted, student, lesson)
    ours = {by_id[one].notebook for one in was.placed if one in by_id}
    ours |= {by_policy.notebook} if kept is None else set()
    put_there = [entry.id for entry in attempts if entry.notebook == lying and lying not in ours]
    by_hand = next(iter(put_there[-1:]), was.by_hand if was.by_hand in by_id else "")
    wanted = by_id.get(by_hand, by_policy)
    folder = submitted / student / lesson
    # a time that nobody touched, beside whatever notebook, is what was placed last's
    before = by_id.get(was.placed[-1]) if was.placed else None
    untouched = intake.time_stamp(folder) == was.stamp or bool(before and before.notebook == lying)
    stale = before is not None and before.id != wanted.id and untouched
    if before and before.id != wanted.id and not untouched:
        placing.keep_stamp(received, before, was.stamp)
    now = replace(was, by_hand=by_hand, placed=(wanted.id,))
    if now != kept or stale:
        last = was.placed[-1:] if stale or not put_there else ()
        _write(received, student, lesson, replace(now, placed=(*was.placed[-1:], wanted.id)))
        placing.place(received, submitted, wanted, *last, stale=stale)
    else:
        placing.place(received, submitted, wanted)
    if (seen := replace(now, stamp=intake.time_stamp(folder))) != kept:
        _write(received, student, lesson, seen)
    changed = lying != wanted.notebook
    return Settled(wanted, attempts.index(wanted) + 1, len(attempts), bool(by_hand), bool(put_there), changed)


def settle_class(
    received: Received, submitted: Path, lessons: Collection[str], student: str | None, chosen: Settings
) -> Iterator[Settled]:
    """Settle what lies in `submitted` of these lessons, where it was received; yield what changed."""
    pairs = {(entry.student, entry.lesson) for entry in received.entries.values() if not entry.problem}
    for one, lesson in sorted(pair for pair in pairs if pair[1] in lessons and student in (None, pair[0])):
        digest = placing.lying(submitted, one, lesson)
        if any(entry.notebook == digest for entry in received.attempts(one, lesson)):
            settled = settle(received, submitted, one, lesson, chosen)
            if settled and (settled.changed or settled.noticed):
                yield settled


def listed(received: Received, submitted: Path, student: str, lesson: str) -> list[ReceivedEntry]:
    """Return a student's attempts at a lesson, oldest first, with the times that a person corrected."""
    kept, lying = read(received, student, lesson), placing.lying(submitted, student, lesson)
    placed = kept.placed[-1] if kept and kept.placed else ""
    return [
        placing.timed(received, submitted, entry, lies=entry.id == placed and entry.notebook == lying)
        for entry in received.attempts(student, lesson)
    ]


def choose(received: Received, student: str, lesson: str, number: int | None) -> None:
    """Let the attempt of this number count, from 1, whatever comes; None: what the class's policy says."""
    by_hand = received.attempts(student, lesson)[number - 1].id if number else ""
    _write(received, student, lesson, replace(read(received, student, lesson) or Counts(), by_hand=by_hand))


def pick(attempts: Sequence[ReceivedEntry], points: Mapping[str, float], chosen: Settings) -> ReceivedEntry:
    """Return the attempt that counts by the class's policy; for "best" those come first that were not graded yet."""
    if chosen.count == "best" and len(attempts) > 1:
        left = [entry for entry in attempts if entry.id not in points]
        return left[-1] if left else max(reversed(attempts), key=lambda entry: earned(entry, points[entry.id], chosen))
    in_time = [entry for entry in attempts if chosen.count == "latest in time" and is_in_time(entry, chosen)]
    return (in_time or attempts)[-1]


def is_in_time(entry: ReceivedEntry, chosen: Settings) -> bool:
    """Return whether a notebook came in time, the grace included; by the platform's word where nothing else tells."""
    due = chosen.due_for(entry.student, entry.lesson)
    if due is None or not entry.when:
        return not entry.late
    return late.passed(due, datetime.fromisoformat(entry.when)) <= timedelta(minutes=chosen.late.grace_minutes)


def earned(entry: ReceivedEntry, points: float, chosen: Settings) -> float:
    """Return an attempt's points, less what lateness takes."""
    due = chosen.due_for(entry.student, entry.lesson)
    return points * (1 - late.share(due, datetime.fromisoformat(entry.when), chosen)) if due and entry.when else points


def note_points(received: Received, entry: ReceivedEntry, points: float, scale: str) -> None:
    """Note what an attempt was given by these checks. The first grading by them stands."""
    counts = read(received, entry.student, entry.lesson) or Counts()
    given = dict(counts.points) if counts.scale == scale else {}
    if entry.id not in given:
        given[entry.id] = points
        _write(received, entry.student, entry.lesson, replace(counts, points=given, scale=scale))


def read(received: Received, student: str, lesson: str) -> Counts | None:
    """Return what is kept of a student's lesson; None if nothing is, or if it cannot be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        kept = json.loads(_file(received, student, lesson).read_text(encoding="utf-8"))
        return Counts(
            str(kept["by_hand"]), tuple(kept["placed"]), dict(kept["points"]), str(kept["scale"]), str(kept["stamp"])
        )
    return None


def _write(received: Received, student: str, lesson: str, counts: Counts) -> None:
    file = _file(received, student, lesson)
    file.parent.mkdir(parents=True, exist_ok=True)
    put(file, json.dumps(asdict(counts), indent=1).encode(), replacing=True)


def _file(received: Received, student: str, lesson: str) -> Path:
    return received.root / STUDENTS / student / lesson / COUNTS
