"""What is kept of what cells show: like Jupyter for honest cells, bounded and valid for all others."""

import copy
import json
from typing import Any

import nbformat
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from characters import CHARACTERS, JSON
from unrolled_grader.judge import outputs
from unrolled_grader.judge.outputs import Outputs

TYPES = st.sampled_from(["text/plain", "image/png", "application/json", "application/x+json", "x/yjson", "text", "/"])
BUNDLES = st.dictionaries(TYPES | st.text(CHARACTERS, max_size=5), JSON, max_size=3)
EVENTS = st.dictionaries(
    st.sampled_from(["display", "result", "error", "clear", "id", "update", "value", "traceback"]),
    JSON | BUNDLES | st.sampled_from(["a", "b", True]),
    max_size=5,
)
STREAMS = st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(CHARACTERS, max_size=9))


@pytest.fixture
def cell() -> NotebookNode:
    return new_code_cell("")


@pytest.fixture
def shown(cell: NotebookNode) -> Outputs:
    shown = Outputs()
    shown.begin(cell)
    return shown


def plain(text: str, **others: Any) -> dict[str, Any]:
    return {"display": {"text/plain": text}, **others}


def texts(cell: NotebookNode) -> list[str]:
    return [output.get("text") or output.data["text/plain"] for output in cell.outputs]


@given(st.lists(EVENTS | STREAMS, max_size=15))
@example([{"display": {"x/yjson": {"a": 1}}}])
@example([{"error": [1], "value": {}, "traceback": [[1], None, "line"]}])
@example([{"display": {"text/plain": "x"}, "id": ["no name"], "update": True}])
def test_whatever_a_worker_sends_the_notebook_is_valid(events: list[Any]) -> None:
    shown, cells = Outputs(), [new_code_cell(""), new_code_cell("")]
    for cell, part in zip(cells, (events[::2], events[1::2]), strict=True):
        shown.begin(cell)
        for event in part:
            if isinstance(event, dict):
                shown.take(event)
            else:
                shown.stream(*event)
    notebook = new_notebook(cells=cells)
    nbformat.validate(notebook)
    nbformat.writes(notebook)
    assert all(output.get("metadata", {}) == {} for cell in cells for output in cell.outputs)


def test_texts_alone_are_kept_and_no_output_of_very_many_forms(cell: NotebookNode, shown: Outputs) -> None:
    shown.take({"display": {"text/plain": "a widget", "application/vnd.x+json": {"model": 1}, "image/png": 3, "t": ""}})
    for nothing in ({"image/png": [1], "application/json": {}}, {}, {f"{n}/": "" for n in range(1000)}):
        shown.take({"display": nothing})
    assert [output.data for output in cell.outputs] == [{"text/plain": "a widget"}]


def test_what_is_nested_deeply_breaks_nothing(cell: NotebookNode, shown: Outputs) -> None:
    deep = json.loads("[" * 900 + "]" * 900)
    shown.take({"display": {"application/json": deep, "text/plain": "x"}, "id": deep})
    shown.take({"error": deep, "value": deep, "traceback": deep})
    nbformat.writes(new_notebook(cells=[copy.deepcopy(cell)]))
    assert cell.outputs[0].data == {"text/plain": "x"}


def test_a_traceback_counts_its_lines_and_keeps_the_last(cell: NotebookNode, shown: Outputs) -> None:
    before = shown._left
    shown.take({"error": "E", "traceback": [""] * 1_000_000 + ["the end"]})
    assert len(cell.outputs[0].traceback) == outputs.LINES_LIMIT
    assert cell.outputs[0].traceback[-1] == "the end"
    assert before - shown._left == outputs.LINES_LIMIT + len("the end") + len("E")


def test_every_sign_of_a_text_shows_in_one_line() -> None:
    assert outputs.in_sight("a\nb\r\x1b\x85\u2028\u202ec\u200b\ufeff\ud800\x00") == "a�b�����c����"
    kept = "a tab\tand spaces\xa0\u3000, é ü 日本 ✗ \U0001f600"
    assert outputs.in_sight(kept) == kept


def test_updates_change_what_stands_also_in_cells_above(cell: NotebookNode, shown: Outputs) -> None:
    shown.take(plain("one", id="a"))
    shown.take(plain("two", id="a"))
    shown.take(plain("other", id="b"))
    below = new_code_cell("")
    shown.begin(below)
    shown.take(plain("new", id="a", update=True))
    shown.take(plain("nowhere", id="c", update=True))
    assert texts(cell) == ["new", "new", "other"]
    assert below.outputs == []


def test_clearing_empties_the_cell_now_or_before_the_next_output_of_the_same(
    cell: NotebookNode, shown: Outputs
) -> None:
    for wait, left in ((False, []), (True, ["old"])):
        shown.take({"clear": False})
        shown.take(plain("old"))
        shown.take({"clear": wait})
        assert texts(cell) == left
        shown.stream("stdout", "new")
        assert texts(cell) == ["new"]
    shown.take({"clear": True})
    below = new_code_cell("")
    shown.begin(below)
    shown.stream("stdout", "a")
    shown.stream("stdout", "b")
    assert texts(below) == ["ab"]


# What is limited


def size(cell: NotebookNode) -> int:
    return len(json.dumps(cell.outputs))


@pytest.mark.parametrize("streams", [False, True])
def test_very_many_displays_or_alternating_streams_leave_a_few_and_a_note(
    streams: bool, cell: NotebookNode, shown: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "COUNT_LIMIT", 100)
    for number in range(1000):
        shown.stream(("stdout", "stderr")[number % 2], "x") if streams else shown.take(plain(""))
    assert outputs.COUNT_LIMIT <= len(cell.outputs) <= outputs.COUNT_LIMIT + 1
    assert sum("output left out" in output.get("text", "") for output in cell.outputs) == 1


def test_printed_text_is_cut_and_says_so_once(cell: NotebookNode, shown: Outputs) -> None:
    for _ in range(5):
        shown.stream("stderr", "x" * (outputs.STREAM_LIMIT // 2 - 1))
    (output,) = cell.outputs
    assert output.text == "x" * outputs.STREAM_LIMIT + outputs.CUT


@pytest.mark.parametrize(
    "event",
    [
        plain("x" * 3_000_000),
        {"display": {"x/" + "y" * 3_000_000: ""}},
        {"result": {"text/plain": "x" * 3_000_000}},
        {"error": "E", "value": "", "traceback": ["x" * 3_000_000]},
    ],
)
def test_what_is_shown_is_bounded_whatever_it_is(event: dict[str, Any], cell: NotebookNode, shown: Outputs) -> None:
    for _ in range(4):
        shown.take(event)
    assert len(cell.outputs) == 3
    assert size(cell) < outputs.RICH_LIMIT
    assert "output left out" in cell.outputs[-1].text


def test_what_does_not_fit_costs_nothing(cell: NotebookNode, shown: Outputs) -> None:
    for _ in range(100):
        shown.take(plain("x" * (outputs.RICH_LIMIT + 1)))
    shown.take(plain("fits"))
    below = new_code_cell("")
    shown.begin(below)
    shown.take(plain("x" * (outputs.RICH_LIMIT - 10)))
    assert cell.outputs[-1].data == {"text/plain": "fits"}
    assert len(below.outputs[0].data["text/plain"]) == outputs.RICH_LIMIT - 10


def test_a_notebook_is_bounded_over_all_its_cells(shown: Outputs) -> None:
    cells = [new_code_cell("") for _ in range(8)]
    for cell in cells:
        shown.begin(cell)
        shown.stream("stdout", "x" * 900_000)
        shown.take(plain("x" * 7_000_000))
    assert outputs.NOTEBOOK_LIMIT - 8_000_000 < sum(map(size, cells)) < outputs.NOTEBOOK_LIMIT + 10_000
    assert "output left out" in cells[-1].outputs[-1].text


def test_what_is_cleared_or_updated_counts_no_more(cell: NotebookNode, shown: Outputs) -> None:
    """A picture that is drawn anew after every step is one picture."""
    shown.take(plain("", id="live"))
    for step in range(100):
        shown.take(plain(f"{step}" + "x" * 1_000_000, id="live", update=True))
    assert texts(cell)[0].startswith("99")
    for step in range(100):
        shown.take({"clear": True})
        shown.stream("stdout", "x" * 900_000)
        shown.take(plain(f"{step}" + "x" * 1_000_000, id="again"))
    assert [len(text) for text in texts(cell)] == [900_000, 1_000_002]


def test_an_update_of_many_displays_is_paid_for_each(cell: NotebookNode, shown: Outputs) -> None:
    """They share their data in memory, but not in the file."""
    for _ in range(100):
        shown.take(plain("", id="all"))
    shown.take(plain("x" * 1_000_000, id="all", update=True))
    assert size(cell) < outputs.NOTEBOOK_LIMIT + 100_000
    assert "output left out" in cell.outputs[-1].text


def test_names_of_displays_that_are_gone_are_forgotten(shown: Outputs) -> None:
    for number in range(1000):
        shown.take(plain("", id=f"{number}" * 100))
        shown.take({"clear": False})
    assert shown._displays == {}
    assert shown._left == outputs.NOTEBOOK_LIMIT
