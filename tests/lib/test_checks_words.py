"""What a check says beside an error: what it means, in which line it is, and how the function was called."""

import linecache

import numpy as np
import pytest
from test_checks_run import report

from unrolled.checks import words


def test_a_call_names_no_object_by_its_place_in_memory():
    inputs = {"layers": (object(), object()), "trace": [{"line": 1}], "clock": max, "kernels": [(1.0, 2)], "peak": 1.0}
    assert words.call(inputs) == (
        "layers=a tuple of 2, trace=a list of 1, clock=a function, kernels=[(1.0, 2)], peak=1.0"
    )


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda x: x.sum - x.sum, "brackets call it"),
        (lambda x: {"line": 1}.line, "is read with brackets"),
        (lambda x: 1 / 0, "what you divide by is 0"),
        (lambda x: x @ np.ones((2, 2)), "as many columns in a as b has rows"),
        (lambda x: np.dot(np.ones((2, 3)), np.ones((2, 3))), "as many columns in a as b has rows"),
        (lambda x: x + np.ones(2), "shapes must be equal or 1"),
        (lambda x: x[np.arange(2), np.arange(3)], "[:, None]"),
        (lambda x: x.__setitem__([0, 1], np.ones(3)), "another shape than the places"),
        (lambda x: np.zeros(2).__setitem__(slice(None), x), "has another shape than its place"),
        (lambda x: x[3], "the last index is the size - 1"),
        (lambda x: [][1], "the last index is the size - 1"),
        (lambda x: x.sum(axis=1), "axes are counted from 0"),
        (lambda x: x[0, 0], "fewer axes than you index"),
        (lambda x: x.__setitem__(0, x), "several numbers meet one place"),
        (lambda x: np.zeros(3).__setitem__(0, [1, 2]), "several numbers meet one place"),
        (lambda x: float(x), "several numbers meet one place"),
        (lambda x: np.concatenate(x, x), "the arrays belong into one list"),
        (lambda x: [1, 2][x], "the arrays belong into one list"),
        (lambda x: np.zeros(3 / 1), "whole numbers: / gives a float"),
        (lambda x: range(3 / 1), "whole numbers: / gives a float"),
        (lambda x: x[1.0], "whole numbers: / gives a float"),
        (lambda x: x.reshape(2, 2), "a reshape keeps all values"),
        (lambda x: 1 if x > 0 else 2, "an array is not one truth"),
        (lambda x: np.zeros(2, 3), "a shape is one argument"),
        (lambda x: np.arange(3).__iadd__(0.5), "keep the dtype of the left side"),
        (lambda x: np.stack([x, x[:2]]), "arrays that are joined"),
        (lambda x: np.concatenate([x, x[None]]), "arrays that are joined"),
        (lambda x: np.concatenate([np.ones((2, 3)), np.ones((2, 2))]), "arrays that are joined"),
        (lambda x: x.transpose(0, 1), "transpose names each axis"),
        (lambda x: np.broadcast_to(x, (2, 3)).__setitem__(0, 1), "work on a copy"),
        (lambda x: x + None, "something here is None"),
        (lambda x: (x > 0) - (x > 1), "True and False have no minus"),
        (lambda x: -(x > 0), "True and False have no minus"),
        (lambda x: np.pad(np.ones((2, 2)), ((1, 1), (1, 1), (1, 1))), "a pair (before, after) for each axis"),
        (lambda x: np.ones((1, 1, 3, 3)) + np.ones((1, 1, 2, 2)), "two arrays of four axes differ in size"),
        (lambda x: x[:0].max(), "a window without a pixel"),
        (lambda x: np.ones((2, 2)).max(0, 1), "one pair of brackets"),
        (lambda x: np.ones((2, 2)).__setitem__(np.ones((2, 2), bool), np.ones((2, 2))), "v[mask]"),
        (lambda x: x[np.ones(2, bool)], "take the slice first"),
        (lambda x: x[:1].__iadd__(x), "must fit the left side"),
        (lambda x: 1 + (x, x), "one side is a tuple"),
        (lambda x: (x, x).reverse(), "reversed(layers)"),
        (lambda x: x(1), "this is no function"),
    ],
)
def test_usual_errors_of_numpy_get_a_sentence(wrong, sentence):
    (finding, *_) = report(wrong).findings
    assert finding.verdict == "crashed"
    assert any(sentence in line for line in finding.lines[1:]), finding.lines


def test_the_last_line_of_the_notebooks_own_code_is_shown():
    """Not the library's line that raised, and not the caller's of a helper that stands in another cell."""
    cells = {
        "helper": "def halves(x):\n    return np.split(x, 2)\n",
        "answer": "def answer(x):\n    return halves(x)\n",
    }
    space = {"np": np, "__name__": "__main__"}
    for name, source in cells.items():
        file = f"<cell {name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), space)
    assert "in line 2 of halves: return np.split(x, 2)" in report(space["answer"]).findings[0].lines
