"""Damaged notebooks, as Colab, copying and deleting leave them, get back what the lesson handed out."""

import copy
from pathlib import Path

import colab_saves
import nbformat
import pytest
from nbformat import NotebookNode
from small_course import GOOD, LESSON, SPECS, answered, released

from unrolled.notebook.cells import grade_id
from unrolled_grader.judge import opening, repair

IN_ORDER = ["double", "check_double", "total", "check_total", "explain_total"]
WORDS = "One call instead of many."


@pytest.fixture(scope="module")
def given(root: Path) -> NotebookNode:
    """What a learner gets."""
    return released(root)


@pytest.fixture
def solved(root: Path) -> NotebookNode:
    """What a learner hands in whose tool damaged nothing."""
    return answered(root, {**GOOD, "explain_total": WORDS})


def colab(notebook: NotebookNode, sample: str = "without marks", minor: int = 0) -> NotebookNode:
    """A notebook as Colab saves it after that damage, opened again."""
    data = colab_saves.saved(notebook, colab_saves.SAMPLES[sample], minor=minor)
    return opening.opened(data, LESSON, list(SPECS))


def at(notebook: NotebookNode, name: str) -> int:
    return next(index for index, cell in enumerate(notebook.cells) if grade_id(cell) == name)


def code(source: str, name: str | None = None) -> NotebookNode:
    mark = {"nbgrader": {"grade_id": name}} if name else {}
    return nbformat.v4.new_code_cell(source, metadata=mark)


def repaired(handed: NotebookNode, given: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """The repaired notebook, which is valid and has each cell of the lesson that stands in it once; and the notes."""
    before = copy.deepcopy(handed)
    nb, notes = repair.repaired(handed, given)
    assert handed == before
    nbformat.validate(nb)
    names = [name for cell in nb.cells if (name := grade_id(cell))]
    assert len(names) == len(set(names))
    assert {"check_double", "check_total", "explain_total"} <= set(names)
    for cell in nb.cells:
        original = next((one for one in given.cells if grade_id(one) and grade_id(one) == grade_id(cell)), None)
        assert cell.metadata == ({"nbgrader": original.metadata.nbgrader} if original else {})
        if original and original.metadata.nbgrader.locked:
            assert cell.source == original.source
    return nb, [str(note) for note in notes]


def names(notebook: NotebookNode) -> list[str]:
    return [name for cell in notebook.cells if (name := grade_id(cell))]


def test_a_sound_notebook_is_left_alone(solved: NotebookNode, given: NotebookNode) -> None:
    for handed in (solved, given):
        nb, notes = repaired(handed, given)
        before, after = ([(cell.cell_type, cell.source, cell.id) for cell in one.cells] for one in (handed, nb))
        assert (after, notes) == (before, [])


@pytest.mark.parametrize("minor", [0, 4, 5])
def test_every_grade_id_lost_on_colab_is_found_again(solved: NotebookNode, given: NotebookNode, minor: int) -> None:
    nb, notes = repaired(colab(solved, minor=minor), given)
    assert [cell.source for cell in nb.cells] == [cell.source for cell in solved.cells]
    assert names(nb) == IN_ORDER
    lost = "{0}: its cell had lost its grade_id; taken is the cell that defines {0}"
    assert notes[:2] == [lost.format("double"), lost.format("total")]
    assert len(notes) == 5
    assert nb.metadata.unrolled.lesson == LESSON


@pytest.mark.parametrize("sample", colab_saves.SAMPLES)
def test_whatever_colab_does_to_cells_each_answer_is_found(
    sample: str, solved: NotebookNode, given: NotebookNode
) -> None:
    nb, _ = repaired(colab(solved, sample), given)
    answers = {name: nb.cells[at(nb, name)].source for name in ("double", "total", "explain_total")}
    assert answers == {**GOOD, "explain_total": WORDS}
    for name in GOOD:
        assert at(nb, f"check_{name}") > at(nb, name)


def test_a_cell_made_again_elsewhere_is_found_by_its_function(solved: NotebookNode, given: NotebookNode) -> None:
    """And a helper in a cell of its own stays where it is, magics and all."""
    place = at(solved, "double")
    helper = code("def helper(n):\n    def double(m):\n        return m\n    return n")
    answer = code("%%time\n%matplotlib inline\ndef double(number):\n    return helper(2 * number)")
    solved.cells[place : place + 1] = [helper, code("print('double'\n"), answer]
    nb, notes = repaired(solved, given)
    assert nb.cells[place].source == helper.source
    assert nb.cells[at(nb, "double")].source == answer.source
    assert [cell.source for cell in nb.cells] == [cell.source for cell in solved.cells]
    assert notes == ["double: its cell had lost its grade_id; taken is the cell that defines double"]


ANSWER, OTHER = "def double(number):\n    return number * 2", "double = lambda number: 2 * number"


@pytest.mark.parametrize(
    ("cells", "chosen"),
    [
        ([(ANSWER, True), (OTHER, False)], 0),  # it carries the grade_id and defines the function
        ([("# see below", True), (OTHER, False)], 1),  # it carries the grade_id but defines nothing
        ([(OTHER, False), (ANSWER, False)], 1),  # none carries it: the last
        ([(ANSWER, True), (OTHER, True), ("x = 1", True)], 1),  # several carry it: the last that defines the function
        ([(ANSWER, True), (None, True)], 0),  # an untouched copy is no answer
        ([(None, True), (ANSWER, False)], 1),
        ([("def double(number:", False), ("x = 1", False)], 0),  # meant, though no Python
        ([("def double(number:", False), (ANSWER, False)], 1),
    ],
)
def test_which_of_several_cells_is_the_exercises(
    solved: NotebookNode, given: NotebookNode, cells: list[tuple[str | None, bool]], chosen: int
) -> None:
    place = at(solved, "double")
    stub = given.cells[at(given, "double")].source
    made = [code(stub if source is None else source, "double" if carries else None) for source, carries in cells]
    solved.cells[place : place + 1] = made
    nb, notes = repaired(solved, given)
    assert at(nb, "double") == place + chosen
    assert [cell.source for cell in nb.cells] == [cell.source for cell in solved.cells]
    assert any(note.startswith("double: ") for note in notes) != (cells[0] == (ANSWER, True) and not cells[1][1])


def test_a_doubled_check_runs_once(solved: NotebookNode, given: NotebookNode) -> None:
    place = at(solved, "check_double")
    check = solved.cells[place]
    plain = code(check.source)
    solved.cells[place + 1 : place + 1] = [copy.deepcopy(check), plain]
    solved.cells[place].source += "  # mine"
    nb, notes = repaired(solved, given)
    assert [cell.source for cell in nb.cells].count(check.source.removesuffix("  # mine")) == 1
    assert notes == ["check_double: 2 cells had its grade_id; the last keeps it"]
    assert solved.cells[place].source in [cell.source for cell in nb.cells]  # what is not a copy is the learner's


def test_a_check_with_other_text_is_as_handed_out_again(solved: NotebookNode, given: NotebookNode) -> None:
    solved.cells[at(solved, "check_double")].source = "check.double(lambda number: 2 * number)"
    solved.cells[at(solved, "check_total")].cell_type = "markdown"
    nb, notes = repaired(solved, given)
    assert names(nb) == IN_ORDER
    assert "check_double: its text was changed; it is as handed out again" in notes
    assert "check_total: its cell was of type markdown; it is code again" in notes


def test_an_answer_written_into_the_checks_cell_is_kept(solved: NotebookNode, given: NotebookNode) -> None:
    place = at(solved, "double")
    merged = f"{GOOD['double']}\n\ncheck.double(double)"
    solved.cells[place + 1].source = merged
    del solved.cells[place]
    nb, notes = repaired(solved, given)
    assert nb.cells[place].source == merged
    assert names(nb) == IN_ORDER
    assert [note.partition(":")[0] for note in notes] == ["check_double", "double", "check_double"]


def test_missing_cells_are_put_back_below_their_exercise(solved: NotebookNode, given: NotebookNode) -> None:
    """The learner moved one exercise to the end; with all checks and the answer deleted, each check follows its own."""
    double = solved.cells.pop(at(solved, "double"))
    solved.cells = [
        cell for cell in solved.cells if grade_id(cell) not in ("check_double", "check_total", "explain_total")
    ]
    solved.cells += [code("scratch = 1"), double, code("more = 2")]
    nb, notes = repaired(solved, given)
    assert at(nb, "check_double") == at(nb, "double") + 1
    assert at(nb, "check_total") == at(nb, "total") + 1
    assert nb.cells[at(nb, "explain_total") - 1].source == "Why is one faster?"
    assert nb.cells[at(nb, "explain_total")].source == "Your answer here."
    assert notes == [f"{name}: its cell was missing; it was put back" for name in IN_ORDER if "_" in name]


def test_two_exercises_in_one_cell_are_both_checked_below_it(solved: NotebookNode, given: NotebookNode) -> None:
    solved.cells[at(solved, "double")].source = f"{GOOD['double']}\n\n{GOOD['total']}"
    solved.cells = [cell for cell in solved.cells if grade_id(cell) not in ("check_double", "total", "check_total")]
    nb, _ = repaired(solved, given)
    place = at(nb, "double")
    assert {grade_id(cell) for cell in nb.cells[place + 1 : place + 3]} == {"check_double", "check_total"}


def test_a_check_above_its_exercise_is_moved_below(solved: NotebookNode, given: NotebookNode) -> None:
    place = at(solved, "double")
    solved.cells[place : place + 2] = reversed(solved.cells[place : place + 2])
    solved.cells.insert(0, solved.cells.pop(at(solved, "check_total")))
    nb, notes = repaired(solved, given)
    assert names(nb) == IN_ORDER
    assert notes[0] == "check_double: it stood above double; it was moved below"


def test_a_check_stays_where_an_answer_stands_above_it(solved: NotebookNode, given: NotebookNode) -> None:
    """A later cell that defines the function again is an experiment: the check is where the learner saw it pass."""
    solved.cells += [code(OTHER, "double")]
    nb, notes = repaired(solved, given)
    assert at(nb, "check_double") == at(solved, "check_double")
    assert notes == ["double: 2 cells had its grade_id; one keeps it"]


def test_an_answer_in_words_is_found_by_its_place(solved: NotebookNode, given: NotebookNode) -> None:
    place = at(solved, "explain_total")
    heading = nbformat.v4.new_markdown_cell("# My notes")
    solved.cells[place] = nbformat.v4.new_markdown_cell(WORDS)
    solved.cells.insert(0, heading)
    nb, notes = repaired(solved, given)
    assert nb.cells[at(nb, "explain_total")].source == WORDS
    assert notes == ["explain_total: its cell had lost its grade_id; it was found by its place"]


def test_an_answer_in_words_is_found_by_the_text_it_came_with(solved: NotebookNode, given: NotebookNode) -> None:
    moved = nbformat.v4.new_markdown_cell(f"Your answer here.\n\n{WORDS}")
    others = [cell for cell in solved.cells[:-1] if cell.source != "Why is one faster?"]
    solved.cells = [*others[:2], moved, *others[2:], code("last = 1")]
    nb, _ = repaired(solved, given)
    assert WORDS in nb.cells[at(nb, "explain_total")].source


def test_of_two_answers_in_words_the_written_one_counts(solved: NotebookNode, given: NotebookNode) -> None:
    solved.cells.append(copy.deepcopy(given.cells[at(given, "explain_total")]))
    nb, _ = repaired(solved, given)
    assert nb.cells[at(nb, "explain_total")].source == WORDS


def test_an_exercise_that_is_gone_stays_gone(solved: NotebookNode, given: NotebookNode) -> None:
    """Its stub could overwrite an answer that is defined in a way that cannot be seen."""
    solved.cells[at(solved, "double")] = code("exec('def double(n):\\n    return 2 * n')")
    nb, notes = repaired(solved, given)
    assert names(nb) == IN_ORDER[1:]
    assert notes == []


def test_metadata_of_the_learner_never_counts(solved: NotebookNode, given: NotebookNode) -> None:
    forged = {"grade": True, "solution": True, "grade_id": "check_double", "points": 99, "schema_version": 99}
    solved.cells[at(solved, "check_double")].metadata = NotebookNode(nbgrader=forged)
    solved.cells.append(code("x = 1", "of_another_course"))
    nb, _ = repaired(solved, given)
    assert names(nb) == IN_ORDER
    assert nb.cells[at(nb, "check_double")].metadata.nbgrader.points == 2


def test_a_foreign_kernel_is_noted_and_replaced(solved: NotebookNode, given: NotebookNode) -> None:
    solved.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "r"}
    nb, notes = repaired(solved, given)
    assert notes == ["it asks for the kernel ir (r); it is graded with Python"]
    assert nb.metadata.kernelspec.name == "python3"
