"""The judge on the simulated GPU: a worker, a machine in a process of its own, and the learner's own words."""

import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import pytest
from stage import UNTIMED, judged, points

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
from unrolled_grader.judge.verdicts import Verdicts

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())


def findings_under(verdicts: Verdicts, name: str) -> list[str]:
    """What stands under a check, but for its points and the lines of code, which only the learner's check knows."""
    for cell in verdicts.notebook.cells:
        if cell.metadata["nbgrader"]["grade_id"] == f"check_{name}":
            return without_places(cell.outputs[-1]["data"]["text/plain"].split(f"\n{name}: ")[0])
    raise AssertionError(name)


def without_places(report: str) -> list[str]:
    lines = re.sub(r"stream \d+", "stream N", report).splitlines()  # each process counts its own
    return [line for line in lines if not line.strip().startswith("in line")]


def test_honest_work_earns_without_a_box_too() -> None:
    options = replace(UNTIMED, sandbox=False)
    assert points(judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT}, options=options)) == {"a": 2}
    assert points(judged(gpu_specs.GPU_TIME, {"a": gpu_specs.HONEST_TIME}, options=options)) == {"a": 1}


def sources(answers: Mapping[str, Sequence[Any]]) -> list[str]:
    """The sources in a table whose entries begin with one."""
    return [source for source, *_ in answers.values()]


ANSWERS = {
    "layers": (gpu_specs.LAYER, gpu_specs.RIGHT, [gpu_specs.ALWAYS_GPU, *sources(gpu_specs.WRONG)]),
    "clocks": (gpu_specs.GPU_TIME, gpu_specs.HONEST_TIME, gpu_specs.TIMED["the clock that lies"][:1]),
    "the judge's graphs": (graph_specs.STEP, graph_specs.RIGHT, sources(graph_specs.WRONG)),
    "a worker's graphs": (
        *(graph_specs.EPOCH, graph_specs.REPLAYED),
        [graph_specs.EAGER, *sources(graph_specs.RACES)],
    ),
    "kernels": (kernel_specs.ADD, kernel_specs.GUARDED, sources(kernel_specs.WRONG)),
    "functions with kernels": (kernel_specs.TRANSPOSE, kernel_specs.TILED, sources(kernel_specs.SCATTERED)),
}
"""By name: what is asked, a right answer and wrong ones."""


@pytest.mark.parametrize(("spec", "right", "wrong"), ANSWERS.values(), ids=ANSWERS)
def test_the_judge_finds_what_the_learner_finds_in_the_same_words(
    spec: Spec, right: str, wrong: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "derived", lambda seed, *what: 0)
    monkeypatch.setattr(cuda, "_numbers", repeat(1))  # as that of a worker's second stream, which is another one
    answers = {f"n{place}": source for place, source in enumerate([right, *wrong])}
    found = judged(spec, answers)
    assert [name for name, earned in points(found).items() if earned] == ["n0"]
    for name, source in answers.items():
        report = checks.run(name, spec, kernel_specs.answer(source))
        assert findings_under(found, name) == without_places(str(report))
        assert points(found)[name] == report.points


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


@pytest.mark.parametrize(("killed", "verdict", "earned"), [(1, "pass", 2), (99, "crashed", 0)])
def test_a_machine_that_is_killed_once_costs_nothing_and_one_that_always_ends_is_told(
    killed: int, verdict: str, earned: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: set[int] = set()

    class Mortal(gpu.SimulatedGPU):
        def fresh(self, seed: int = 0) -> gpu.Guarded:
            guarded = super().fresh(seed)
            started.add(self.pid)
            if len(started) <= killed:
                os.kill(self.pid, signal.SIGKILL)
            return guarded

    monkeypatch.setattr(checking, "SimulatedGPU", Mortal)
    (score,) = judged(gpu_specs.LAYER, {"a": gpu_specs.RIGHT}).scores
    assert (score.verdict, score.points) == (verdict, earned)
    assert len(started) == 2
    assert ("the simulated GPU ended" in score.detail) == (killed > 1)


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
    assert cp.random.default_rng(0).random(3).get().shape == (3,)
    return y
"""
    spec = Spec(
        reference=lambda x: (x + 1) @ (x + 1), cases=[gpu_case("one", x=normal(8, 8))], points=1, hints=("a", "b", "c")
    )
    verdicts = judged(spec, {"a": source})
    assert points(verdicts) == {"a": 1}, verdicts.scores
    assert checks.run("a", spec, kernel_specs.answer(source)).points == 1


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
