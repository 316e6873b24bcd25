"""Two different notebooks of one lesson from one student, in one download or among the files of one run.

The newest counts only where something tells which it is, and then a remark names the others: the clock of hand-in
files, Canvas's number of a file, the own time of a file that no platform stamped, or an earlier download that did not
have it. Moodle tells nothing of its files, and neither do two notebooks in a student's own zip: those are set aside, as
a guess would cost somebody points without a word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from unrolled_grader.receiving.layouts import Upload
from unrolled_grader.receiving.received import ReceivedEntry
from unrolled_grader.receiving.uploads import UploadedFile, UploadedNotebook


class Looked(NamedTuple):
    """A notebook out of an upload, and what is known of it."""

    entry: ReceivedEntry
    piece: UploadedNotebook
    item: UploadedFile
    upload: Upload

    @property
    def name(self) -> str:
        """The file's name, as its student knows it."""
        return (self.piece.inner or self.item.name).rsplit("/", 1)[-1]


def settled(found: Sequence[Looked], known: Mapping[str, ReceivedEntry]) -> list[Looked]:
    """Return the same notebooks; those that rival each other are set aside, or the newest says so.

    What was placed from an earlier download (`known`, by id) keeps its place in time.
    """
    groups = defaultdict[tuple[str, ...], list[Looked]](list)
    for one in found:
        if not one.entry.problem:
            groups[one.entry.student, one.entry.lesson, one.entry.source * bool(one.upload.platform)].append(one)
    changed: dict[int, ReceivedEntry] = {}
    for group in groups.values():
        fresh = [one for one in group if (before := known.get(one.entry.id)) is None or before.problem]
        if not fresh or len(_notebooks(group)) < 2:
            continue
        if len(_notebooks(fresh)) > 1 and not _newest_is_sure(fresh):
            changed |= {id(one): replace(one.entry, problem=_unsettled(fresh)) for one in fresh}
        else:
            newest = max(group, key=lambda one: _order(one, known))
            if newest in fresh and not newest.item.note:
                changed[id(newest)] = _remarked(newest, group)
    return [one._replace(entry=changed.get(id(one), one.entry)) for one in found]


def _notebooks(group: Sequence[Looked]) -> set[str]:
    return {one.entry.notebook for one in group}


def _order(one: Looked, known: Mapping[str, ReceivedEntry]) -> tuple[float, ...]:
    before = known.get(one.entry.id)
    return one.entry.order if before is None or before.problem else before.order


def _newest_is_sure(group: Sequence[Looked]) -> bool:
    """Whether something other than the order in a zip tells which of these is the newest."""
    if all(one.item.note for one in group):
        return True  # one name twice in a zip: unpacking it leaves the last
    handed = all(one.piece.handed for one in group)
    if not handed and not all(one.upload.file or not (one.upload.platform or one.piece.inner) for one in group):
        return False
    ages = [one.entry.order[: 3 if handed else 2] for one in group]
    return len({one.entry.notebook for one, age in zip(group, ages, strict=True) if age == max(ages)}) == 1


def _unsettled(group: Sequence[Looked]) -> str:
    names, count = ", ".join(sorted({one.name for one in group})), len(_notebooks(group))
    return f"{count} different notebooks of {group[0].entry.lesson}, and nothing tells which is meant: {names}"


def _remarked(newest: Looked, group: Sequence[Looked]) -> ReceivedEntry:
    """The entry of what is graded, with the names of what is not, and how that is known."""
    why = "an earlier download did not have it"
    if all(one.piece.handed for one in group):
        why = "by the clock of the hand-in files"
    elif newest.upload.file:
        why = "by Canvas's number of the file" if newest.upload.platform == "canvas" else "by the platform's time of it"
    elif not newest.upload.platform:
        why = "by the files' own times"
    others = sorted({one.name for one in group if one.entry.notebook != newest.entry.notebook})
    note = f"the newest of {len(_notebooks(group))} different notebooks, {why}; not graded: {', '.join(others)}"
    return replace(newest.entry, note="; ".join(filter(None, (newest.entry.note, note))))
