"""Repair: a submitted notebook gets back the cells and grade_ids that Colab, copying and deleting took from it.

Colab drops nbgrader's metadata from a cell that is copied, split or made again; Jupyter copies it, so that two cells
carry one grade_id. The notebook that was handed out says what must be there; each repair leaves a note. Nothing else is
moved or changed: what learners wrote in cells of their own stays where it is.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from unrolled.notebook.cells import grade_id
from unrolled_grader.judge.evidence import CELL
from unrolled_grader.judge.opening import bound, is_words, new_cell

BESIDE = 500  # characters of what stands beside an answer's cell that are shown


@dataclass(frozen=True)
class Note:
    """One repair: the grade_id it concerns (empty for the whole notebook), and what was done.

    Where a person is `to_look`, nothing was done.
    """

    cell: str
    text: str
    to_look: bool = False

    def concerns(self, check: str) -> bool:
        """Return whether this is about the exercise or the cell of `check`."""
        return self.cell in (check, CELL + check)

    def __str__(self) -> str:
        return f"{self.cell}: {self.text}" if self.cell else self.text


def repaired(handed: NotebookNode, released: NotebookNode) -> tuple[NotebookNode, tuple[Note, ...]]:
    """Return a copy of `handed`, once opened, with each check and answer of `released` once; and what was done."""
    nb = copy.deepcopy(handed)
    work = _Repair(nb.cells, released.cells)
    work.restore_types()
    work.release_answers_in_checks()
    for cell in work.marked(_is_exercise):
        work.find_exercise(cell)
    for cell in work.marked(lambda cell: not _is_exercise(cell)):
        (work.find_answer if cell.metadata.nbgrader["solution"] else work.find_locked)(cell)
    nb.cells = work.finished()
    asked = nb.metadata.get("kernelspec", {})
    if asked.get("language", "python") not in ("python", "ipython"):
        work.note("", f"it asks for the kernel {asked['name']} ({asked['language']}); it is graded with Python")
    claimed = nb.metadata.get("unrolled", {})
    nb.metadata = copy.deepcopy(released.metadata)
    nb.metadata.unrolled = {**nb.metadata.get("unrolled", {}), **claimed}
    return nb, tuple(work.notes)


@dataclass
class _Repair:
    """A notebook under repair. Cells are told apart by identity, as learners can make any two of them equal."""

    cells: list[NotebookNode]
    released: list[NotebookNode]
    notes: list[Note] = field(default_factory=list)
    chosen: dict[str, NotebookNode] = field(default_factory=dict)  # by grade_id, the cell that has it in the end

    def note(self, cell: str, text: str) -> None:
        self.notes.append(Note(cell, text))

    def marked(self, which: Callable[[NotebookNode], bool] = lambda cell: True) -> list[NotebookNode]:
        """The handed out cells that have a grade_id."""
        return [cell for cell in self.released if grade_id(cell) and which(cell)]

    def carriers(self, name: str) -> list[NotebookNode]:
        return [cell for cell in self.cells if grade_id(cell) == name]

    def restore_types(self) -> None:
        """Turn cells back that a learner made text, or code, by one key."""
        for original in self.marked():
            name = _name(original)
            for cell in self.carriers(name):
                if cell.cell_type != original.cell_type:
                    self.note(name, f"its cell was of type {cell.cell_type}; it is {original.cell_type} again")
                    again = new_cell(original.cell_type, cell.source)
                    again.id, again.metadata = cell.id, cell.metadata
                    self.cells[_index(self.cells, cell)] = again

    def release_answers_in_checks(self) -> None:
        """Let a check's cell into which an exercise was written be a plain cell: its text would be overwritten."""
        exercises = {_name(cell) for cell in self.marked(_is_exercise)}
        for original in self.marked(lambda cell: cell.cell_type == "code" and not _is_exercise(cell)):
            for cell in self.carriers(_name(original)):
                if any(_defines(cell, exercise) for exercise in exercises):
                    self.note(_name(original), "an answer was written into the check's cell; it has one of its own now")
                    cell.metadata = NotebookNode()

    def find_exercise(self, original: NotebookNode) -> None:
        """Choose the exercise's cell.

        A changed cell goes before an untouched one, then one that defines the function, then one that carries the
        grade_id; of those left the last, because the learner's own kernel ended with it.
        """
        name = _name(original)
        carriers = self.carriers(name)
        ranks: dict[int, tuple[bool, int, bool, int]] = {}
        for index, cell in enumerate(self.cells):
            defines = _defines(cell, name)
            if defines or _in(cell, carriers):
                ranks[index] = (not _same(cell, original), defines, _in(cell, carriers), index)
        if not ranks:
            return
        highest = max(ranks.values())
        best = self.chosen[name] = self.cells[highest[-1]]
        if not carriers:
            count = sum(rank[:2] == highest[:2] for rank in ranks.values())
            which = "the cell" if count == 1 else f"the last of {count} cells"
            self.note(name, f"its cell had lost its grade_id; taken is {which} that defines {name}")
        elif not _in(best, carriers):
            self.note(name, f"the cell with its grade_id does not answer it; taken is the one that defines {name}")
        elif len(carriers) > 1:
            self.note(name, f"{len(carriers)} cells had its grade_id; one keeps it")

    def find_locked(self, original: NotebookNode) -> None:
        """Choose a check's cell, or another locked one: the last that carries the grade_id, else one with its text.

        Copies of it go, so that nothing is checked (and timed) twice. It is put back where it is missing, and moved
        where it stands above its exercise.
        """
        name = _name(original)
        carriers = self.carriers(name)
        others = (*carriers, *self.chosen.values())
        twins = [cell for cell in self.cells if _same(cell, original) and not _in(cell, others)]
        found = (carriers or twins)[-1:]
        if len(carriers) > 1:
            self.note(name, f"{len(carriers)} cells had its grade_id; the last keeps it")
        for copied in (*carriers, *twins):
            if _same(copied, original) and not _in(copied, found):
                del self.cells[_index(self.cells, copied)]
        if not found:
            self.put_back(original)
            return
        self.chosen[name] = found[0]
        if not carriers:
            self.note(name, "its cell had lost its grade_id; it was found by its text")
        if not _same(found[0], original):
            self.note(name, "its text was changed; it is as handed out again")
            found[0].source = original.source
        self.move_below_exercise(original)

    def find_answer(self, original: NotebookNode) -> None:
        """Choose the cell of an answer in words: by grade_id, else by its place, else by the text handed out."""
        name = _name(original)
        carriers = self.carriers(name)
        text = original.source.strip()
        found = carriers or [cell for cell in self.cells_at(original) if self.is_own_text(cell)]
        found = found or [cell for cell in self.cells if self.is_own_text(cell) and text in cell.source]
        changed = [cell for cell in found if cell.source.strip() not in ("", text)]
        if not found:
            self.put_back(original)
        else:
            self.chosen[name] = (changed or found)[-1 if carriers else 0]
        if found and not carriers:
            self.note(name, "its cell had lost its grade_id; it was found by its place")
        elif len(carriers) > 1:
            self.note(name, f"{len(carriers)} cells had its grade_id; one keeps it")
        if not changed and (words := "\n".join(filter(None, map(self.own_words, self.cells_at(original))))):
            how = "as it was handed out" if _same(self.chosen[name], original) else "empty"
            message = f"its cell is {how}, but beside it stands: {words[:BESIDE]}"
            self.notes.append(Note(name, message, to_look=True))

    def own_words(self, cell: NotebookNode) -> str:
        """What a learner wrote into a cell in words: a text without what was handed out of it, or no code."""
        lines = [line for line in cell.source.splitlines() if line.strip()]
        if cell.cell_type == "code":
            return "\n".join(line.lstrip("# ") for line in lines) if is_words(cell.source) else ""
        known = {line for original in self.released for line in original.source.splitlines()}
        is_own = cell.cell_type == "raw" or self.is_own_text(cell)
        return "\n".join(line for line in lines if line not in known) if is_own else ""

    def cells_at(self, original: NotebookNode) -> list[NotebookNode]:
        """The cells that stand where the answer was: between the handed out cells around it."""
        place = _index(self.released, original)
        above = self.located(reversed(self.released[:place])) if place else None
        below = self.located(self.released[place + 1 :])
        if above is None and below is None:
            return []
        start = _index(self.cells, above) + 1 if above is not None else 0
        end = _index(self.cells, below) if below is not None else len(self.cells)
        return self.cells[start:end]

    def is_own_text(self, cell: NotebookNode) -> bool:
        known = any(_same(cell, original) for original in self.released if not grade_id(original))
        assigned = _in(cell, self.chosen.values()) or _name(cell) in {_name(one) for one in self.marked()}
        return cell.cell_type == "markdown" and not known and not assigned

    def put_back(self, original: NotebookNode) -> None:
        """Insert a missing cell below its exercise, or else below the nearest cell that stood above it."""
        name, place = _name(original), _index(self.released, original)
        above = self.located(reversed(self.released[:place]))
        at = len(self.cells) if above is None else _index(self.cells, above) + 1
        self.chosen[name] = copy.deepcopy(original)
        self.cells.insert(at, self.chosen[name])
        self.note(name, "its cell was missing; it was put back")

    def move_below_exercise(self, original: NotebookNode) -> None:
        """Move a check that stands above everything that answers its exercise."""
        name = _name(original)
        exercise = name.removeprefix(CELL)
        cell, answer = self.chosen[name], self.chosen.get(exercise)
        untouched = next((one for one in self.released if grade_id(one) == exercise), original)
        at = _index(self.cells, cell)
        above = (other for other in self.cells[:at] if not _same(other, untouched))
        if answer is None or _index(self.cells, answer) < at or any(_defines(other, exercise) for other in above):
            return
        del self.cells[at]
        self.cells.insert(_index(self.cells, answer) + 1, cell)
        self.note(name, f"it stood above {exercise}; it was moved below")

    def located(self, originals: Iterable[NotebookNode]) -> NotebookNode | None:
        """Where the first of these handed out cells that can be found now is."""
        for original in originals:
            name = grade_id(original)
            if name is not None and name in self.chosen:
                return self.chosen[name]
            for cell in self.cells:
                if (grade_id(cell) == name) if name else _same(cell, original):
                    return cell
        return None

    def finished(self) -> list[NotebookNode]:
        """The cells, with nbgrader's metadata as handed out on those that have a grade_id, and none on the others."""
        marks = {_name(cell): cell.metadata.nbgrader for cell in self.marked()}
        for cell in self.cells:
            cell.metadata = NotebookNode()
        for name, cell in self.chosen.items():
            if "nbgrader" not in cell.metadata:  # two exercises in one cell: it can have the grade_id of one
                cell.metadata.nbgrader = copy.deepcopy(marks[name])
        ids: set[str] = set()
        for cell in self.cells:
            cell.id = cell.id if cell.id not in ids else new_code_cell().id
            ids.add(cell.id)
        return self.cells


def _name(cell: NotebookNode) -> str:
    return grade_id(cell) or ""


def _is_exercise(cell: NotebookNode) -> bool:
    """Whether a handed out cell is one to write code in."""
    return cell.cell_type == "code" and bool(cell.metadata.nbgrader["solution"])


def _defines(cell: NotebookNode, name: str) -> int:
    """2 if a cell binds the name, 1 if it means to but is no valid Python, else 0."""
    if cell.cell_type != "code" or name not in cell.source:
        return 0
    names = bound(cell.source)
    return 2 if name in names else int(not names and bool(re.search(rf"^def {re.escape(name)}\b", cell.source, re.M)))


def _same(cell: NotebookNode, other: NotebookNode) -> bool:
    """Whether two cells hold the same text."""
    return bool(cell.cell_type == other.cell_type and cell.source.strip() == other.source.strip())


def _in(cell: NotebookNode, cells: Iterable[NotebookNode]) -> bool:
    return any(cell is other for other in cells)


def _index(cells: list[NotebookNode], cell: NotebookNode) -> int:
    return next(index for index, other in enumerate(cells) if other is cell)
