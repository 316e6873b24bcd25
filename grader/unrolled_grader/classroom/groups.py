"""The members of groups that hand in together: a CSV with the columns group and id, a line for each member."""

from __future__ import annotations

import csv

from unrolled_grader.classroom import columns, roster
from unrolled_grader.classroom.roster import Roster

FILE = "groups.csv"


class GroupsError(ValueError):
    """groups.csv cannot be used: which line, what it says, what was expected."""


def read(data: bytes, people: Roster) -> dict[str, tuple[str, ...]]:
    """Return the ids of each group's members, by its name squeezed. Raises GroupsError, also for an unknown id."""
    text, _ = roster.decoded(data)
    lines = text.removeprefix("\ufeff").splitlines()
    delimiter = columns.delimiter(lines[0] if lines else "", roster.DELIMITERS, roster.squeezed)
    found: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    rows = list(csv.reader(lines, delimiter=delimiter))
    head = [roster.squeezed(cell) for cell in rows[0]] if rows else []
    if not {"group", "id"} <= {*head}:
        raise GroupsError(f"{FILE} begins with {text[:60]!r}; expected the columns group,id")
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        fields = dict(zip(head, row, strict=False))
        member = next(iter(people.with_id(fields.get("id", ""))), None)
        if member is None or not roster.squeezed(fields["group"]):
            raise GroupsError(f"{FILE}, line {number}: {fields.get('id', '')!r:.60} is no id of the roster")
        name = roster.squeezed(fields["group"])
        if roster.folded(names.setdefault(name, fields["group"])) != roster.folded(fields["group"]):
            raise GroupsError(f"{FILE}, line {number}: {fields['group']!r:.60} is {names[name]!r:.60} to a platform")
        found.setdefault(name, []).append(member.id)
    return {name: tuple(dict.fromkeys(ids)) for name, ids in found.items()}
