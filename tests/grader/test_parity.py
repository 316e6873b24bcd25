"""What the learner's own check says is what the judge says, whatever a function returns and whatever a notebook set."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from unrolled import checks
from unrolled.checks.spec import case
from unrolled_grader.judge.verdicts import Options, Submission, judge

SET_UP = """\
import array, collections, dataclasses, datetime, decimal, enum, fractions
import numpy as np
import scipy.sparse

class Subclass(np.ndarray): pass
class Flag(enum.IntEnum):
    two = 2
class Asked:
    def __init__(self, value): self.value = value
    def __array__(self, dtype=None, copy=None): return np.array(self.value, dtype)
class Whole(int): pass
class Agrees:
    def __eq__(self, other): return True
    __hash__ = None
class Rude:
    def __repr__(self): raise ValueError("no")
Pair = collections.namedtuple("Pair", "a b")
@dataclasses.dataclass
class Record: value: object

def deep(levels):
    value = []
    for _ in range(levels): value = [value]
    return value

def cyclic():
    value = []
    value.append(value)
    return value

def boxed(value):
    box = np.empty((), object)
    box[()] = value
    return box

def generator(values):
    yield from values
"""
KINDS = {
    "right": "y",
    "a wrong value": "y + 1",
    "one wrong value": "np.where(y == y[-1], 0, y).astype(y.dtype)",
    "the argument": "x",
    "a view of it": "x[::-1]",
    "a number": "2.5",
    "the first value as a number": "float(y[0])",
    "the first value as NumPy's number": "y[0]",
    "an int": "2",
    "an int, too long to send": "10**2000",
    "a bool": "True",
    "NumPy's bool": "np.True_",
    "a complex number": "2 + 0j",
    "a fraction": "fractions.Fraction(2)",
    "a decimal": "decimal.Decimal(2)",
    "a member of an enum": "Flag.two",
    "an own kind of int": "Whole(2)",
    "nan": "float('nan')",
    "None": "None",
    "a text": "'2'",
    "a text with signs": r"'\x1b[31m\n\ud800'",
    "bytes": "b'2'",
    "a list": "y.tolist()",
    "a list of one list": "[y.tolist()]",
    "a list of arrays": "[y, y]",
    "an uneven list": "[[1.0], [2.0, 3.0]]",
    "an empty list": "[]",
    "a list with itself in it": "cyclic()",
    "a deep list": "deep(3000)",
    "a list with an object": "[object()]",
    "a tuple": "tuple(y.tolist())",
    "a pair": "(y, y[0])",
    "a pair with a name": "Pair(y, y[0])",
    "a tuple of one": "(y,)",
    "an empty tuple": "()",
    "a dictionary": "{'y': y}",
    "a dictionary by tuples": "{(1, 2): y}",
    "a set": "set(y.tolist())",
    "a range": "range(4)",
    "a generator": "generator(y.tolist())",
    "an iterator of pairs": "iter([(y, y[0])])",
    "a generator that raises": "(1 / 0 for _ in y)",
    "a deque": "collections.deque(y)",
    "a dataclass": "Record(y)",
    "an array of arrays": "array.array('f', y)",
    "0-d": "np.array(y[0])",
    "0-d, object": "boxed(2.0)",
    "0-d, object, an array": "boxed(y)",
    "objects": "y.astype(object)",
    "one value": "y[:1]",
    "empty": "y[:0]",
    "another shape": "y.reshape(2, 2)",
    "64 dimensions": "y[0].reshape((1,) * 64)",
    "float64": "y.astype(np.float64)",
    "long double": "y.astype(np.longdouble)",
    "int32": "y.astype(np.int32)",
    "bools": "y > 1",
    "complex": "y.astype(np.complex64)",
    "big-endian": "y.astype('>f4')",
    "texts": "y.astype(str)",
    "dates": "y.astype('datetime64[s]')",
    "NumPy's date": "np.datetime64('2026-01-01')",
    "structured": "np.zeros(4, [('a', 'f4'), ('b', 'i4')])",
    "Fortran order": "np.asfortranarray(np.stack([y, y]))",
    "every second": "np.repeat(y, 2)[::2]",
    "read-only": "np.frombuffer(y.tobytes(), y.dtype)",
    "not aligned": "np.frombuffer(b'0' + y.tobytes(), np.uint8)[1:].view(y.dtype)",
    "masked": "np.ma.masked_array(y, [False] * 4)",
    "masked values": "np.ma.masked_array(y, y > 2)",
    "a matrix": "np.matrix(y)",
    "own kind of array": "y.view(Subclass)",
    "nan in it": "np.where(y > 2, np.nan, y).astype(y.dtype)",
    "-0.0": "y * np.float32(-0.0)",
    "too large": "np.zeros((100, 1000))",
    "huge": "np.zeros(4 * 10**7)",
    "sparse": "scipy.sparse.csr_matrix(y)",
    "asks for itself as an array": "Asked(y)",
    "its input": "x",
    "a view of its input": "x[:]",
    "the function": "generator",
    "a dtype": "y.dtype",
    "an error": "ValueError('no')",
    "an object equal to all": "Agrees()",
    "an object that cannot be shown": "Rude()",
}
"""Expressions of what a function returns: x is its input, y twice that."""
EXPECTED = {
    "an array": lambda x: 2 * x,
    "a copy": lambda x: x.copy(),
    "a number": lambda x: float(2 * x[0]),
    "a list": lambda x: (2 * x).tolist(),
    "a pair": lambda x: (2 * x, float(2 * x[0])),
}
LESS_DETAILED = {
    "objects, which the judge knows by the names of their types alone": (
        *("a decimal", "bytes", "a set", "a range", "a deque", "a dataclass", "an array of arrays", "a dtype"),
        "an error",
        *("an object that cannot be shown", "a complex number", "a dictionary by tuples", "a list with an object"),
        *("asks for itself as an array", "a list with itself in it", "a deep list"),
    ),
    "kinds of numbers, texts, lists and iterators, which arrive as the plain kind": (
        *("a fraction", "a member of an enum", "an own kind of int", "a pair with a name", "an iterator of pairs"),
    ),
    "arrays of anything but numbers, of which nothing but that arrives": (
        *("0-d, object", "0-d, object, an array", "objects", "texts", "dates", "NumPy's date", "structured"),
    ),
    "numbers of more than a thousand digits": ("an int, too long to send",),
    "signs that could not be shown in a page": ("a text with signs",),
}
"""Kinds that the learner's check tells more about. The verdict is the same."""
LOST_EITHER_WAY = {
    "a generator that raises": ("fail", "crashed"),  # the judge's side alone asks it for values
    "huge": ("fail", "crashed"),  # more than the file holds in which arrays travel
}
"""Kinds whose verdicts differ in the word alone: no points on either side."""
X = np.array([1, 2, 3, 4], np.float32)
CASES = [case("four numbers", x=X)]


def spec_of(reference: Any) -> checks.Spec:
    return checks.Spec(reference=reference, cases=CASES, points=1, hints=("a", "b", "c"), new=True)


def both(functions: dict[str, str], specs: dict[str, checks.Spec], before: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(name, what the learner's check finds, what the judge finds) of each function; one worker for all."""
    source = SET_UP + before + "\n" + "\n".join(functions.values())
    marks = {name: {"grade_id": f"check_{name}", "grade": True, "solution": False} for name in functions}
    checked = [new_code_cell(f"check.{name}({name})", metadata={"nbgrader": mark}) for name, mark in marks.items()]
    notebook = new_notebook(cells=[new_code_cell(source), *checked])
    verdicts = judge(Submission("ann", "07_doubling", notebook, specs), Options(timing=False))
    found = {score.part: (score.verdict, score.points, score.detail) for score in verdicts.scores}
    space: dict[str, Any] = {}
    with warnings.catch_warnings(), np.errstate(), np.printoptions():
        exec(source, space)
        for name in functions:
            part = checks.run(name, specs[name], space[name], climb=False).parts[0]
            yield name, (part.verdict, part.points, part.detail), found.get(name)


def test_of_every_kind_of_result_both_sides_say_the_same() -> None:
    functions, specs, labels = {}, {}, {}
    for number, (kind, expression) in enumerate(KINDS.items()):
        for place, (expected, reference) in enumerate(EXPECTED.items()):
            name = f"f{number}_{place}"
            functions[name] = f"def {name}(x):\n    y = 2 * x\n    return {expression}"
            specs[name] = spec_of(reference)
            labels[name] = kind, expected
    less = {kind for kinds in LESS_DETAILED.values() for kind in kinds}
    assert less | LOST_EITHER_WAY.keys() <= KINDS.keys()
    differ, apart = [], set()
    for name, ours, theirs in both(functions, specs):
        kind, _ = labels[name]
        if kind in LOST_EITHER_WAY:
            assert (ours[:2], theirs[:2]) == tuple((verdict, 0) for verdict in LOST_EITHER_WAY[kind])
        elif ours[:2] != theirs[:2] or (ours != theirs and kind not in less):
            differ.append((labels[name], ours, theirs))
        elif ours != theirs:
            apart.add(kind)
    assert differ == []
    assert apart == less, "these are told alike by now"


AMBIENT = {
    "warnings are errors": "import warnings\nwarnings.simplefilter('error')",
    "NumPy raises": "np.seterr(all='raise')",
    "NumPy calls": "np.seterrcall(lambda *given: 1 / 0)\nnp.seterr(all='call')",
    "a block left open": "import warnings\nwarnings.catch_warnings().__enter__()\nwarnings.simplefilter('error')",
    "warnings are shown by code that fails": "import warnings\nwarnings.simplefilter('always')\n"
    "warnings.showwarning = lambda *given, **named: 1 / 0",
    "numbers print otherwise": "np.set_printoptions(precision=1, legacy='1.13')",
    "seeds are set": "import random\nrandom.seed(0)\nnp.random.seed(0)",
}
"""What a notebook may set for all of its process."""
WARNS = """\
def {name}(x):
    import warnings
    warnings.warn("this will go", DeprecationWarning)
    np.float32(3e38) * x, x / np.float32(0), np.log(-x)
    return 2 * x"""


@pytest.mark.parametrize("ambient", AMBIENT)
def test_what_the_notebook_set_for_its_process_makes_no_difference(ambient: str) -> None:
    specs = {"warns": spec_of(EXPECTED["an array"]), "wrong": spec_of(lambda x: 1 / (0 * x))}
    functions = {name: WARNS.format(name=name) for name in specs}
    found = list(both(functions, specs, AMBIENT[ambient]))
    assert all(ours == theirs for _, ours, theirs in found), found
    assert [ours[0] for _, ours, _ in found] == ["pass", "fail"]
