"""The stage for exploits: a notebook with one attack per exercise, honest work beside it, and the judge.

An exercise may stand here many times, under the names of the attacks on it. Each attack is the source of one cell,
which defines `answer`. Honest controls are judged in the same submission, last: what an attack breaks, they would miss.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from small_course import slow_total

from unrolled import checks
from unrolled.checks import Spec
from unrolled.checks.exercises.l02_convolution import exercises as lesson02
from unrolled.checks.spec import case, normal
from unrolled_grader.box.transport import Worker
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts, judge

ENDS = 120.0
"""Seconds in which every attack ends: far less than any of them would go on, and far more than a busy machine takes."""
UNTIMED = Options(timing=False)
CONTROL = "honest"
IMPORTS = "import numpy as np\nfrom unrolled import ops"
TOTAL = "def answer(x):\n    return x.sum()"
LOOP = """\
def answer(x):
    total = 0.0
    for number in x:
        total += float(number)
    return np.float32(total)
"""
GEMM = """\
def answer(x, weight, bias=None, stride=1, padding=0):
    (n, _, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = ops.conv2d_output_size((h, w), (kh, kw), stride, padding)
    y = weight.reshape(o, -1) @ ops.im2col(x, (kh, kw), stride, padding)
    if bias is not None:
        y = y + bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)
"""

RAW = """\
import gc, json, os, socket, struct, threading, time
line = next(thing for thing in gc.get_objects() if type(thing).__name__ == "_Worker").channel.socket.fileno()

def say(message, size=None):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    data = struct.pack("!I", len(data) if size is None else size) + data
    while data:
        data = data[os.write(line, data):]

def answer(x):
    SAY
    return np.float32(0)
"""
"""An answer that says anything to the judge, in place of its worker."""
SUM = Spec(
    reference=lambda x: x.sum(),
    cases=[case("four numbers", x=normal(4)), case("a hundred", x=normal(100))],
    points=1,
    hints=("idea", "shape", "code"),
    tolerance=1e-3,
)
CONVOLUTION = replace(lesson02.conv2d_gemm, speed=None, rung=None)
SPEED = replace(
    SUM, speed=checks.Speed(slow_total, inputs={"x": normal(100_000)}, at_least=20, points=1, against="a loop")
)
"""A loop is as fast as the baseline, a twentieth of what is asked: no noise explains that."""


@dataclass(frozen=True)
class Attack:
    """The source of a cell, `says` what its finding has to mention, and what it tries, as its name in the notebook.

    One that does not say so may not end in an exception: it would have tried nothing.
    """

    name: str
    source: str
    says: str = ""


def notebook(answers: Mapping[str, str], before: Sequence[str] = ()) -> NotebookNode:
    """A notebook with an answer and a check for each name, below cells of the student's."""
    cells = [_cell(source, f"before{place}") for place, source in enumerate((IMPORTS, *before))]
    for name, source in answers.items():
        cells.append(_cell(f"{source}\n{name} = answer", name))
        cells.append(_cell(f"check.{name}({name})", f"check_{name}"))
    return new_notebook(cells=cells)


def _cell(source: str, name: str) -> NotebookNode:
    """A code cell with this grade_id."""
    cell: NotebookNode = new_code_cell(source)
    cell.metadata["nbgrader"] = {"grade_id": name, "grade": name.startswith("check_"), "solution": True}
    return cell


def judged(
    spec: Spec, answers: Mapping[str, str], *, before: Sequence[str] = (), options: Options = UNTIMED
) -> Verdicts:
    """Judge a notebook whose exercises all ask the same. It ends in time, whatever they do."""
    started, specs = time.monotonic(), dict.fromkeys(answers, spec)
    verdicts = judge(Submission("eve", "07_doubling", notebook(answers, before), specs), options)
    assert time.monotonic() - started < ENDS * len(answers)
    return verdicts


def controlled(attempts: Mapping[str, str], honest: str) -> dict[str, str]:
    """The attempts, and below each of them an honest control."""
    return {
        name: source
        for attempt, hostile in attempts.items()
        for name, source in ((attempt, hostile), (f"{CONTROL}_after_{attempt}", honest))
    }


def is_control(name: str) -> bool:
    return name.startswith(CONTROL)


def hurried(seconds: float) -> Callable[..., checks.Report]:
    """`checks.run` with so many seconds for each case of an attack. Honest work has as many as it always has."""
    run = checks.run

    def within(name: str, *arguments: Any, **options: Any) -> checks.Report:
        return run(name, *arguments, **options, **({} if is_control(name) else {"case_limit": seconds}))

    return within


def points(verdicts: Verdicts) -> dict[str, float]:
    """What each part earned."""
    return {score.part: score.points for score in verdicts.scores}


def contest(
    spec: Spec,
    attacks: Sequence[Attack],
    honest: str,
    *,
    before: Sequence[str] = (),
    between: bool = False,
    apart: bool = False,
) -> Verdicts:
    """Judge attacks and an honest control in one submission: no attack earns a point, the control earns all.

    With `between`, a control stands below each attack. Attacks that break what is below them are judged `apart` from
    the control, which is a submission of its own.
    """
    attempts = {attack.name: attack.source for attack in attacks}
    answers = (controlled(attempts, honest) if between else attempts) | ({} if apart else {CONTROL: honest})
    verdicts = judged(spec, answers, before=before)
    earned = points(verdicts)
    assert earned == {name: spec.points if is_control(name) else 0 for name in answers}, verdicts.scores
    details = SimpleNamespace(**{score.part: score.detail for score in verdicts.scores})
    for attack in attacks:
        detail = getattr(details, attack.name)
        assert attack.says in detail, detail
        assert attack.says or "raised" not in detail, detail
    if apart:
        assert points(judged(spec, {CONTROL: honest}, before=before)) == {CONTROL: spec.points}
    return verdicts


def alone(source: str) -> Verdicts:
    """Judge this attack on SUM, which may break what is below it, apart from the honest control."""
    verdicts = judged(SUM, {"attack": source})
    assert points(verdicts) == {"attack": 0}
    assert points(judged(SUM, {CONTROL: TOTAL})) == {CONTROL: 1}
    return verdicts


def printed_in(worker: Worker, source: str) -> str:
    """What a cell of this source prints."""
    texts: list[str] = []
    worker.on_print = lambda name, text: texts.append(text)
    assert worker.run_cell(source, 60.0) is None
    return "".join(texts)


def printed(verdicts: Verdicts, cell: int) -> str:
    """What the notebook's cell number `cell` printed; negative numbers count from the end."""
    outputs = verdicts.notebook.cells[cell].outputs
    return "".join(output.get("text", "") for output in outputs if output.output_type == "stream")
