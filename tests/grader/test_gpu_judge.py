"""The judge on the simulated GPU: a worker, a machine in a process of its own, and the learner's own words."""

from __future__ import annotations

import os
import signal
from itertools import repeat
from typing import Any

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import gpu_specs
import graph_specs
import kernel_specs
from unrolled import checks
from unrolled.checks import Spec
from unrolled.checks.spec import gpu_case, normal
from unrolled.simgpu import cuda
from unrolled_grader.box import gpu, sandbox
from unrolled_grader.judge import checking
from unrolled_grader.judge import verdicts as judging
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts, judge

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())
UNTIMED = Options(timing=False)


def judged(spec: Spec, answers: dict[str, str], options: Options = UNTIMED) -> Verdicts:
    """Judge a notebook with these answers, all to one exercise."""
    cells = []
    for name, source in answers.items():
        for text, grade_id in ((f"{source}\n{name} = answer", name), (f"check.{name}({name})", f"check_{name}")):
            cell = new_code_cell(text)
            cell.metadata["nbgrader"] = {"grade_id": grade_id, "grade": True, "solution": False}
            cells.append(cell)
    submission = Submission("ann", "07_doubling", new_notebook(cells=cells), dict.fromkeys(answers, spec))
    return judge(submission, options)


def points(verdicts: Verdicts) -> dict[str, float]:
    return {score.part: score.points for score in verdicts.scores}


def findings_under(verdicts: Verdicts, name: str) -> list[str]:
    """What stands under a check, but for its points and the lines of code, which only the learner's check knows."""
    for cell in verdicts.notebook.cells:
        if cell.metadata["nbgrader"]["grade_id"] == f"check_{name}":
            return without_places(cell.outputs[-1]["data"]["text/plain"].split(f"\n{name}: ")[0])
    raise AssertionError(name)


def without_places(report: str) -> list[str]:
    return [line for line in report.splitlines() if not line.strip().startswith("in line")]


def answer(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "<cell>", "exec"), names)
    return names["answer"]


@pytest.mark.parametrize("boxed", [True, False])
def test_honest_work_earns(boxed: bool) -> None:
    options = Options(timing=False, sandbox=boxed)
    assert points(judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT, "b": gpu_specs.RIGHT}, options)) == {"a": 2, "b": 2}
    assert points(judged(gpu_specs.GPU_TIME, {"a": gpu_specs.HONEST_TIME}, options)) == {"a": 1}


def test_the_judge_finds_what_the_learner_finds_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "derived", lambda seed, *what: checks.VISIBLE_SEED)
    layers = {"right": gpu_specs.RIGHT, "always": gpu_specs.ALWAYS_GPU}
    layers |= {name.replace(" ", "_"): source for name, (source, *_) in gpu_specs.WRONG.items()}
    clocks = {"clock": gpu_specs.HONEST_TIME, "lies": gpu_specs.TIMED["the clock that lies"][0]}
    for spec, answers in ((gpu_specs.LAYER, layers), (gpu_specs.GPU_TIME, clocks)):
        verdicts = judged(spec, answers)
        for name, source in answers.items():
            report = checks.run(name, spec, answer(source))
            assert findings_under(verdicts, name) == without_places(str(report))
            assert points(verdicts)[name] == report.points


def test_a_real_gpu_gets_the_cases_whose_inputs_can_go_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the judge keeps, such as the work to be timed, takes no arrays of a GPU that only the worker reaches."""
    monkeypatch.setattr(checking.Checking, "wants_gpu", True)  # the worker's own simulated GPU stands for a real one
    assert points(judged(gpu_specs.GPU_TIME, {"a": gpu_specs.HONEST_TIME})) == {"a": 1}
    assert points(judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT})) == {"a": 2}
    wrong = judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT + MEETS_ITS_OWN})
    assert "right on the simulated GPU, but on this machine's own:" in wrong.scores[0].detail


MEETS_ITS_OWN = """

_answer = answer

def answer(x, weight):
    machine = getattr(getattr(x, "_memory", None), "machine", None)
    return _answer(x, weight) * (2 if type(machine).__name__ == "LocalMachine" else 1)
"""
"""A layer that is right in NumPy and on the judge's simulated GPU, and wrong on the worker's own."""


def test_the_real_clock_is_no_clock_of_the_gpu() -> None:
    assert points(judged(gpu_specs.GPU_TIME, {"a": gpu_specs.TIMED["the real clock"][0]})) == {"a": 0}


def test_a_machine_that_is_killed_once_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[gpu.SimulatedGPU] = []

    class Mortal(gpu.SimulatedGPU):
        def fresh(self, seed: int = 0) -> gpu.Guarded:
            guarded = super().fresh(seed)
            if len(started) == 1:
                os.kill(self.pid, signal.SIGKILL)
            return guarded

        def __init__(self, *, boxed: bool) -> None:
            started.append(self)
            super().__init__(boxed=boxed)

    monkeypatch.setattr(checking, "SimulatedGPU", Mortal)
    assert points(judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT})) == {"a": 2}
    assert len(started) == 2


def test_a_machine_that_always_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mortal(gpu.SimulatedGPU):
        def fresh(self, seed: int = 0) -> gpu.Guarded:
            guarded = super().fresh(seed)
            os.kill(self.pid, signal.SIGKILL)
            return guarded

    monkeypatch.setattr(checking, "SimulatedGPU", Mortal)
    (score,) = judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT}).scores
    assert (score.verdict, score.points) == ("crashed", 0)
    assert "the simulated GPU ended" in score.detail


class Scale:
    """A layer that stays with the judge; its weight comes to the GPU when it is first called there."""

    def __init__(self, by: float) -> None:
        self.by = by

    def forward(self, x: Any) -> Any:
        return x * self.by

    def secret(self) -> float:
        return self.by


LAYERS = Spec(
    reference=lambda layers, x: layers[1].forward(layers[0].forward(x)),
    cases=[gpu_case("two layers", checks.Budget(), layers=(Scale(2.0), Scale(5.0)), x=normal(4, 3))],
    points=1,
    hints=("a", "b", "c"),
)


def test_layers_that_stay_with_the_judge_take_and_give_arrays_on_the_gpu() -> None:
    forward = "def answer(layers, x):\n    for layer in layers:\n        x = layer.forward(x)\n    return x"
    reads = "def answer(layers, x):\n    return x * layers[0].secret() * 5"
    stays = "import numpy as np\ndef answer(layers, x):\n    return layers[1].forward(layers[0].forward(x + 0)) * 1"
    assert points(judged(LAYERS, {"a": forward, "b": reads, "c": stays})) == {"a": 1, "b": 0, "c": 1}


@pytest.mark.usefixtures("_without_gpu")
def test_streams_events_traces_and_memory_work_from_afar() -> None:
    source = """
from unrolled import simgpu as cp
import numpy as np
def answer(x):
    before = cp.get_default_memory_pool().used_bytes()
    with cp.cuda.Stream() as stream:
        y = x + 1
        stream.synchronize()
    first, last = cp.cuda.Event(), cp.cuda.Event()
    first.record()
    y = y @ y
    last.record()
    last.synchronize()
    assert cp.cuda.get_elapsed_time(first, last) > 0
    assert cp.get_default_memory_pool().used_bytes() > before
    assert cp.clock() > 0
    assert np.array_equal(cp.asnumpy(cp.asarray(np.arange(5)) * 2), [0, 2, 4, 6, 8])
    assert np.array_equal(cp.random.default_rng(0).random(3).get().shape, (3,))
    try:
        cp.empty(2**40)
    except MemoryError as error:
        assert "limit set to" in str(error) or "Out of memory" in str(error)
    return y
"""
    spec = Spec(
        reference=lambda x: (x + 1) @ (x + 1), cases=[gpu_case("one", x=normal(8, 8))], points=1, hints=("a", "b", "c")
    )
    verdicts = judged(spec, {"a": source})
    assert points(verdicts) == {"a": 1}, verdicts.scores
    assert checks.run("a", spec, answer(source)).points == 1


def test_a_notebooks_own_simulated_gpu_works_in_its_cells() -> None:
    source = f"from unrolled import simgpu as cp\nassert float(cp.ones(3).sum()) == 3\n{gpu_specs.RIGHT}"
    after = f"{gpu_specs.RIGHT}\nassert float(cp.ones(4).sum()) == 4"
    assert points(judged(gpu_specs.LAYER, {"a": source, "b": after})) == {"a": 2, "b": 2}


def test_what_ran_is_freed_with_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case begins on a fresh machine: forty calls that hold 16 MB each fit into 256 MB."""
    monkeypatch.setattr(gpu, "MEMORY", 2**27)
    source = gpu_specs.HEAD + (
        "kept = []\ndef answer(x):\n    xp = array_module(x)\n    y = xp.zeros(2**22, 'f4')\n    kept.append(y)\n"
        "    return x + y[0]"
    )
    cases = [gpu_case(f"case {n}", x=np.ones(3, np.float32)) for n in range(40)]
    spec = Spec(reference=lambda x: x, cases=cases, points=1, hints=("a", "b", "c"))
    assert points(judged(spec, {"a": source})) == {"a": 1}


# Graphs and kernels


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
            assert findings_under(verdicts, name) == without_places(str(checks.run(name, spec, answer(source))))


ANSWERS = (
    (kernel_specs.ADD, {"right": (kernel_specs.GUARDED, ()), **kernel_specs.WRONG}),
    (kernel_specs.TRANSPOSE, {"right": (kernel_specs.TILED, ()), **kernel_specs.SCATTERED}),
)


@pytest.mark.parametrize(("spec", "answers"), ANSWERS, ids=["the kernel", "a function"])
def test_of_kernels_the_judge_finds_what_the_learner_finds_in_the_same_words(
    spec: checks.Spec, answers: dict[str, tuple[str, tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "derived", lambda seed, *what: checks.VISIBLE_SEED)
    sources = {f"n{place}": source for place, (source, _) in enumerate(answers.values())}
    found = judged(spec, sources)
    for (name, source), (_, says) in zip(sources.items(), answers.values(), strict=True):
        report = checks.run(name, spec, kernel_specs.answer(source))
        assert findings_under(found, name) == without_places(str(report))
        assert points(found)[name] == report.points == (0 if says else spec.points)


def test_each_case_has_blocks_in_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report tells the seed of its launch, so one that were used again would be known."""
    seeds: list[int] = []

    class Noted(gpu.SimulatedGPU):
        def fresh(self, seed: int = 0) -> gpu.Guarded:
            seeds.append(seed)
            return super().fresh(seed)

    monkeypatch.setattr(checking, "SimulatedGPU", Noted)
    monkeypatch.setattr(judging.secrets, "randbits", lambda bits: 7)
    for _ in range(2):
        judged(kernel_specs.ADD, {"a": kernel_specs.GUARDED})
    assert len(set(seeds)) == len(kernel_specs.ADD.cases) == len(seeds) / 2
    assert seeds[:2] == seeds[2:]  # a regrade meets the same
