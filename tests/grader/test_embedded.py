"""Data inside a notebook's code is flagged, whatever form it takes; what people write is not."""

import base64
import random
import re
import tracemalloc
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from unrolled_grader.judge.embedded import LIMIT, data_in, flags

ROOT = Path(__file__).resolve().parents[2]
RELEASED = [*sorted((ROOT / "notebooks").glob("*/*.ipynb")), *sorted((ROOT / "solutions").glob("*/*.ipynb"))]

_draw = random.Random(0)
NUMBERS = [round(_draw.gauss(0, 1), 4) for _ in range(4_000)]
BYTES = bytes(_draw.randrange(256) for _ in range(20_000))
BASE64 = base64.b64encode(BYTES).decode()


def in_lines(text: str, width: int, before: str = "", after: str = "\n") -> str:
    return "".join(f"{before}{text[start : start + width]}{after}" for start in range(0, len(text), width))


DATA = {
    "a list": f"weights = {NUMBERS}",
    "nested tuples": f"weights = np.array({[tuple(NUMBERS[at : at + 10]) for at in range(0, 4000, 10)]})",
    "assignments": "\n".join(f"w{at} = {number}" for at, number in enumerate(NUMBERS)),
    "a string": f"weights = {BASE64!r}",
    "raw bytes with escapes": "weights = b'" + "".join(f"\\x{byte:02x}" for byte in BYTES) + "'",
    "a long string in short lines": f'weights = """\n{in_lines(BASE64, 60)}"""',
    "a triple string of quotes": "weights = '''" + in_lines(BASE64, 30, '"', "'\n") + "'''",
    "strings side by side": "weights = (\n" + in_lines(BASE64, 40, "    '", "'\n") + ")",
    "strings that go on below": "weights = 'hello \\\n" + "to be or not to be \\\n" * 1500 + "'",
    "a string behind a backslash": 'weights = \'\\\\\' + """\n' + "to be or not to be\n" * 1500 + '"""',
    "many short strings": "\n".join(f"a.append({BASE64[at : at + 6]!r})" for at in range(0, 20_000, 6)),
    "a string behind a quote in a comment": f"# don't\nweights = {BASE64!r}",
    "a string behind a comment that ends in a backslash": "# \\\nweights = ('" + "to be or not to be\\\n" * 1500 + "')",
    "a file": f"%%writefile weights.txt\n{in_lines('to be or not to be ' * 1500, 60)}",
    "a shell line": f"!echo {BASE64} | base64 -d > weights.npy",
    "base64 in comments": in_lines(BASE64, 76, "# "),
    "numbers in comments": "".join(f"# {number}\n" for number in NUMBERS * 2),
    "names": in_lines(re.sub("[+/=]", "_", BASE64[:26_000]), 60, "w_", " = 0\n"),
    "no Python, in lines": in_lines(BASE64, 60),
    "a string that never ends": f"weights = '{BASE64}",
    "below a magic whose body is code": f"%%time\nweights = {NUMBERS}",
}


@pytest.mark.parametrize("source", DATA.values(), ids=list(DATA))
def test_data_is_flagged_in_any_form(source):
    (flag,) = flags(new_notebook(cells=[new_markdown_cell("Hello"), new_code_cell(source)]))
    assert flag.startswith("cell 2 embeds ")
    assert flag.endswith(" KB of data: was something trained or computed elsewhere?")
    assert LIMIT < data_in(source) <= len(source)


PROSE = "# It is a truth universally acknowledged, that 1 learner in 10 writes at length, and why not? \n"
FUNCTION = """
def step(x, weight, rate=0.1):
    for i in range(len(x)):
        x[i] -= rate * weight[i + 1]
    return x

"""
INNOCENT = {
    "comments": PROSE * 400,
    "comments with apostrophes": "# it's what one's friend's code doesn't do\n" * 800,
    "functions": FUNCTION * 250,
    "functions below a magic": "%%time\n" + FUNCTION * 250,
    "lines to separate": ("#" * 15 + "\n") * 2000,
    "empty lines": "\n" * 50_000,
    "just not enough": f"{'a' * (LIMIT - 2)!r}",
}


@pytest.mark.parametrize("source", INNOCENT.values(), ids=list(INNOCENT))
def test_what_people_write_is_no_data(source):
    assert flags(new_notebook(cells=[new_code_cell(source)])) == ()


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.parent.name + "/" + path.parent.parent.name)
def test_our_own_notebooks_stay_far_below_the_limit(path):
    notebook = nbformat.read(path, as_version=4)
    assert flags(notebook) == ()
    assert sum(data_in(cell.source) for cell in notebook.cells if cell.cell_type == "code") < 0.62 * LIMIT


def test_pictures_and_words_in_markdown_are_no_data():
    picture = {"picture.png": {"image/png": BASE64}}
    words = new_markdown_cell(f"![](attachment:picture.png) {BASE64}", attachments=picture)
    assert flags(new_notebook(cells=[words, new_raw_cell(BASE64), new_code_cell("x = 1")])) == ()


def test_each_cell_has_a_line_with_its_size():
    cells = [new_code_cell(f"w = '{'a' * size}'") for size in (31_000, 5, 1_200_000)]
    found = [flag.partition(":")[0] for flag in flags(new_notebook(cells=cells))]
    assert found == ["cell 1 embeds 31 KB of data", "cell 3 embeds 1,200 KB of data"]


def test_data_cut_into_small_cells_is_flagged_once():
    cells = [new_code_cell(f"w{at} = '{'a' * 9_990}'") for at in range(4)]
    (flag,) = flags(new_notebook(cells=cells))
    assert flag.startswith("many cells together embed 40 KB of data")
    assert flags(new_notebook(cells=cells[:2])) == ()


@settings(deadline=None)  # the machine may pause within any example
@given(st.text(alphabet=st.sampled_from("\"'\\#\n\r\0 %1a.f([{=é"), max_size=300))
def test_no_source_has_more_data_than_characters(source):
    assert 0 <= data_in(source) <= len(source)


SIZE = 300_000
HOSTILE = {
    "deep nesting": "[" * SIZE,
    "one number": "1" * SIZE,
    "escapes": '"' + '\\"' * (SIZE // 2),
    "quotes": '"' * SIZE,
    "quotes in turn": "\"'" * (SIZE // 2),
    "triple quotes that never end": "'''\"\"\"" + "x" * SIZE,
    "long lines, not quite too long": ("# " + "ab " * 300 + "\n") * (SIZE // 903),
    "long words, not quite too long": ("a" * 19 + " ") * (SIZE // 20),
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_notebook_costs_little(source):
    """Linear in time (a quadratic scan would not end here) and in memory: a few copies of the source."""
    tracemalloc.start()
    try:
        assert 0 <= data_in(source) <= len(source)
        assert tracemalloc.get_traced_memory()[1] < 6 * SIZE
    finally:
        tracemalloc.stop()
