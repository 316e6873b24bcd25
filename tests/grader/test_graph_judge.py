"""The judge captures what a worker does: graphs live on the judge's side, and the findings are the learner's own."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest
from test_gpu_judge import answer, judged, points, said, without_places

import graph_specs
from unrolled import checks
from unrolled.checks.gpu import connected
from unrolled.simgpu import cuda
from unrolled.simgpu.command import InvalidCommandError, View
from unrolled.simgpu.machine import LocalMachine
from unrolled_grader.box import gpu, sandbox
from unrolled_grader.box.gpu import Facade
from unrolled_grader.judge import checking

boxed = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())
PLUS_ONE = {
    "source": "def add(x):\n    i = jit.grid(1)\n    if i < 4:\n        x[i] += 1\n",
    "first_line": 1,
    "constants": {"jit": {"name": "jit"}},
}


@boxed
def test_the_judge_captures_a_step_and_a_worker_captures_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "derived", lambda seed, *what: checks.VISIBLE_SEED)
    monkeypatch.setattr(cuda, "_numbers", repeat(1))  # as that of a worker's second stream, which is another one
    steps = {name.replace(" ", "_"): source for name, (source, *_) in graph_specs.WRONG.items()}
    for spec, answers in (
        (graph_specs.STEP, {"right": graph_specs.RIGHT, **steps}),
        (graph_specs.EPOCH, {"replayed": graph_specs.REPLAYED, "eager": graph_specs.EAGER}),
    ):
        verdicts = judged(spec, answers)
        earned = points(verdicts)
        assert [name for name in answers if earned[name]] == [next(iter(answers))]
        for name, source in answers.items():
            assert said(verdicts, name) == without_places(str(checks.run(name, spec, answer(source))))


@pytest.fixture
def facade() -> Facade:
    return Facade(LocalMachine("T4"))  # type: ignore[arg-type]


def captured(facade: Facade, *command: Any) -> int:
    facade.do("begin_capture", 130, None)
    facade.do(*command)
    return int(facade.do("end_capture", 130))


def test_a_worker_launches_its_own_graphs_alone(facade: Facade) -> None:
    x = View(facade.do("allocate", 16), 0, (4,), (4,), "float32")
    judges = facade.machine
    judges.begin_capture(140)
    hidden = judges.end_capture(140)
    own = captured(facade, "launch", "fill", [3], [x], {}, 130)
    facade.do("launch_graph", own, 0)
    assert facade.do("download", x, 0).view("f4").tolist() == [3, 3, 3, 3]
    for graph in (hidden, own - 1, True, None, "x"):
        for command in ("launch_graph", "upload_graph"):
            with pytest.raises(InvalidCommandError, match="does not exist"):
                facade.do(command, graph, 0)
    facade.do("clock", freed=[own, hidden])
    with pytest.raises(InvalidCommandError, match="does not exist"):
        facade.do("launch_graph", own, 0)
    judges.launch_graph(hidden)


def test_a_worker_cannot_leave_the_capture_of_the_judge(facade: Facade) -> None:
    with connected(facade.machine) as cp:  # type: ignore[arg-type]
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            for command in (("end_capture", 0), ("end_capture", stream.number), ("begin_capture", 0, None)):
                with pytest.raises(InvalidCommandError, match="which is the judge's"):
                    facade.do(*command)
            x = View(facade.do("allocate", 0), 0, (0,), (4,), "float32")
            facade.do("launch", "fill", [1], [x], {}, 0)
            assert facade.do("is_capturing", 0)
            stream.end_capture().launch()


def test_lines_of_reports_are_counted_at_each_launch(facade: Facade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "LINES", 5)
    x = View(facade.do("allocate", 16), 0, (4,), (4,), "float32")
    facade.do("launch", "fill", [0], [x], {}, 0)
    own = captured(facade, "run_kernel", PLUS_ONE, [x], [1, 1, 1], [32, 1, 1], 0, 130)
    for _ in range(2):
        facade.do("launch_graph", own, 0)
    with pytest.raises(InvalidCommandError, match="lines of kernels"):
        facade.do("launch_graph", own, 0)
    assert facade.do("download", x, 0).view("f4").tolist() == [2, 2, 2, 2]


def test_a_fault_comes_as_plain_data(facade: Facade) -> None:
    x = View(facade.do("allocate", 8), 0, (2,), (4,), "float32")
    facade.do("launch", "fill", [0], [x], {}, 0)
    own = captured(facade, "run_kernel", PLUS_ONE, [x], [1, 1, 1], [32, 1, 1], 0, 130)
    assert '"kind": "out of bounds"' in facade.do("launch_graph", own, 0)
