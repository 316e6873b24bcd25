"""Whose an upload is: what its path says (layouts), against the roster. Nobody is ever guessed.

nbgrader's FileNameCollectorPlugin takes the id in the name for the student's; here the roster decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unrolled_grader.classroom.roster import Person, Roster, squeezed
from unrolled_grader.receiving.layouts import Upload

Groups = Mapping[str, tuple[str, ...]]
"""The ids of a group's members, by its name, letters and digits alone."""
GROUP = re.compile(r"(?i)[^\W\d_].*\d|group|gruppe|team")  # what a group's name has, and a person's has not


class UnmatchedError(ValueError):
    """It is not certain whose a file is: the reason."""


def uploader(found: Upload, roster: Roster) -> Person:
    """Return who uploaded a file. Raises UnmatchedError if that is nobody in the roster, or not surely one person."""
    if found.platform == "canvas":
        fitting = _by_canvas(found, roster)
    elif found.platform in ("moodle", "brightspace"):
        fitting = _by_name(found, roster)
    elif found.platform in ("blackboard", "gradescope"):
        fitting = _by_first(found.who, roster)
    else:
        fitting = named(found, roster)
    return certain(fitting, roster, found)


def together(found: Upload, roster: Roster, groups: Groups) -> tuple[list[Person], str]:
    """Return all who handed a file in together, and their group's name; nobody where it is not a group's.

    Raises UnmatchedError for a member who is not in the roster.
    """
    if found.others:
        people = [certain(_by_first(who, roster), roster, found) for who in (found.who, *found.others)]
        return people, " and ".join(one.id for one in people)
    for who in found.who if found.platform else ():
        ends = [at for at, letter in enumerate(who) if letter == "-" and not roster.with_name([who])]
        # "project_group_1", and "Group 3-Ada Lovelace", which is no person's as "Anna-Lena Noether" is
        for name in (who, f"{who}_{found.number}", *(who[:at] for at in reversed(ends))):
            if ids := groups.get(squeezed(name)):
                people = [one for member in ids for one in roster.with_id(member)]
                if missing := {*ids} - {one.id for one in people}:
                    raise UnmatchedError(f"the group {name} has {min(missing)}, who is not in the roster")
                return people, name
    return [], ""


def named(found: Upload, roster: Roster) -> set[Person]:
    """Return everyone whom a plain path or a pattern names by id, email, number or name.

    An id decides between people of one name.
    """
    by_id = roster.with_lms_id(found.number).union(*map(roster.with_id, found.who))
    by_name = roster.with_name(word for word in found.who if not roster.with_id(word))
    return by_id if by_id and by_id <= by_name else by_id | by_name


def certain(fitting: set[Person], roster: Roster, called: Upload | str) -> Person:
    """Return the one person who fits. Raises UnmatchedError, with what to do, if there is none or more than one."""
    if not fitting:
        may_be_group = isinstance(called, Upload) and called.platform and GROUP.search(str(called))
        hint = "; if that is a group, write its members into groups.csv" if may_be_group else ""
        raise UnmatchedError(f"nobody in the roster is {called}{hint}")
    ids = " or ".join(sorted({person.id for person in fitting}))
    if any(not roster.is_sure(person) for person in fitting):
        raise UnmatchedError(f"{called} could be {ids}, and two people in the roster have one id")
    if len(fitting) > 1:
        by_number = isinstance(called, Upload) and called.platform == "canvas"
        advice = "give them their lms_id in the roster" if by_number else "put each file into a folder called by the id"
        raise UnmatchedError(f"{called} could be {ids}: {advice}{'' if by_number else ', and collect those'}")
    return next(iter(fitting))


def _by_first(words: tuple[str, ...], roster: Roster) -> set[Person]:
    """By the first of several words that is anybody's."""
    return next((people for word in words if (people := roster.with_id(word) or roster.with_name([word]))), set())


def _by_name(found: Upload, roster: Roster) -> set[Person]:
    """By name, and by the number between people of one name; where marking is blind, by the number alone."""
    numbered = roster.with_lms_id(found.number) if roster.has_participants else set()
    people = roster.with_name(found.who) or roster.with_name(who.partition("-")[2] for who in found.who)
    return numbered if found.anonymous else people & numbered or people


def _by_canvas(found: Upload, roster: Roster) -> set[Person]:
    """By Canvas's id, which is a person's for ever; else by the name of those whose id is not known."""
    numbered, named = roster.with_lms_id(found.number), roster.with_name(found.who)
    if numbered and named and not numbered & named:
        ids = [next(iter(people)).id for people in (numbered, named)]
        raise UnmatchedError(f"the number {found.number} is {ids[0]}'s, but the name {found} is {ids[1]}'s")
    if numbered:
        return numbered & named or numbered
    strangers = {person for person in named if person.lms_id}
    if strangers == named and named:
        other = next(iter(strangers))
        raise UnmatchedError(f"the name {found} is {other.id}'s, but the number {found.number} is not")
    return named - strangers
