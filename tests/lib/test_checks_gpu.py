"""Cases on the simulated GPU in the learner's own check: values, budgets, kernels, captured graphs, each mistake."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import gpu_specs
import graph_specs
import kernel_specs
from unrolled import simgpu
from unrolled.checks import Budget, Speed, gpu, graphs, run
from unrolled.checks.run import HERE
from unrolled.checks.spec import Spec, gpu_case, normal, random_gpu_case


def answer(source, file="<cell>"):
    """The function that a cell defines; its lines can be shown if they are in a file."""
    names = {}
    if file != "<cell>":
        file.write_text(source, encoding="utf-8")
    exec(compile(source, str(file), "exec"), names)
    return names["answer"]


def cell(*lines):
    return f"{gpu_specs.HEAD}def answer(x, weight):\n" + "".join(f"    {line}\n" for line in lines)


def checked(source, spec=gpu_specs.LAYER, file="<cell>", **options):
    return run("layer", spec, answer(source, file), **options)


RIGHT = {
    "one function serves both": (gpu_specs.LAYER, gpu_specs.RIGHT),
    "a step that can be captured": (graph_specs.STEP, graph_specs.RIGHT),
    "a loop of launches": (graph_specs.EPOCH, graph_specs.REPLAYED),
    "a kernel with a guard": (kernel_specs.ADD, kernel_specs.GUARDED),
    "a kernel with a tile": (kernel_specs.TRANSPOSE, kernel_specs.TILED),
}


@pytest.mark.parametrize(("spec", "source"), RIGHT.values(), ids=RIGHT)
def test_what_is_right_passes(spec, source):
    found = run("it", spec, kernel_specs.answer(source))
    assert found.passed, str(found)


AS_ARRAYS = "fail", ("the result is a GPU array, but NumPy arrays came in",)
NO_LAUNCH = "fail", ("no launch of a graph, at least 5 expected",)
WRONG = {  # the case that shows it, of None any one; its verdict, what is said
    **{name: (gpu_specs.LAYER, source, 1, *says) for name, (source, *says) in gpu_specs.WRONG.items()},
    **{name: (graph_specs.STEP, source, 0, *says) for name, (source, *says) in graph_specs.WRONG.items()},
    **{name: (gpu_specs.GPU_TIME, source, None, "", (says,)) for name, (source, says) in gpu_specs.TIMED.items()},
    **{name: (kernel_specs.ADD, source, None, "", says) for name, (source, says) in kernel_specs.WRONG.items()},
    **{name: (kernel_specs.TRANSPOSE, source, None, "", x) for name, (source, x) in kernel_specs.SCATTERED.items()},
    "a GPU array for NumPy arrays": (gpu_specs.LAYER, gpu_specs.ALWAYS_GPU, 0, *AS_ARRAYS),
    **{
        name: (graph_specs.EPOCH, source, None, "", ("two streams race", x))
        for name, (source, x) in graph_specs.RACES.items()
    },
    "an eager loop": (graph_specs.EPOCH, graph_specs.EAGER, 0, *NO_LAUNCH),
}


@pytest.mark.parametrize(("spec", "source", "case", "verdict", "says"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(spec, source, case, verdict, says):
    found = run("it", spec, kernel_specs.answer(source))
    assert not found.points
    if case is not None:
        assert found.findings[case].verdict == verdict
    shown = str(found) if case is None else " ".join(found.findings[case].lines)
    assert all(words in shown for words in says), shown


def flops(most):
    return lambda inputs: 2 * inputs["x"].size * 2 + most


@pytest.mark.parametrize(
    ("enough", "too_little"),
    [
        (None, Budget()),
        (Budget(transfers=2), Budget(transfers=1)),
        (Budget(transfers=None, launches=2), Budget(transfers=None, launches=1)),
        (Budget(transfers=None, products=1), Budget(transfers=None, products=0)),
        (Budget(transfers=None, flops=flops(6)), Budget(transfers=None, flops=flops(5))),
        (Budget(transfers=None, largest=lambda inputs: 24), Budget(transfers=None, largest=lambda inputs: 23)),
        (Budget(transfers=None, held=lambda inputs: 48), Budget(transfers=None, held=lambda inputs: 47)),
    ],
)
def test_a_budget_counts_what_it_names(enough, too_little):
    there_and_back = cell("return device.to_device(device.to_host(x @ weight), simgpu) + 0")
    source = there_and_back.replace("def answer", "from unrolled import simgpu\ndef answer")
    for budget in (enough, too_little):
        arguments = {"x": normal(3, 4), "weight": normal(4, 2)}
        cases = [gpu_case("one", budget, **arguments)]
        spec = dataclasses.replace(gpu_specs.LAYER, reference=lambda x, weight: x @ weight, cases=cases)
        found = checked(source, spec)
        assert found.passed is (budget is enough), str(found)


TWICE, THERE = "y = array_module(x).asarray(device.to_host(x @ weight))", "y = device.to_host(x)"
MASK = cell("y = x @ weight", "y[y < 0] = 0", "return y")
SHOWN = {
    "an if": (gpu_specs.WRONG["an if"][0], "in line 6: if (y < 0).any():"),
    "twice in a line": (cell(TWICE, "return array_module(x).maximum(y, 0)"), f"in line 5 (2 times): {TWICE}"),
    "a mask": (MASK, "in line 6: y[y < 0] = 0"),
    "what masks cost": (MASK, gpu.MASKED),
    "a transfer": (cell(THERE, "return array_module(x).maximum(x @ weight, 0)"), f"in line 5: {THERE}"),
}


@pytest.mark.parametrize(("source", "line"), SHOWN.values(), ids=SHOWN.keys())
def test_the_line_that_copies_is_shown(source, line, tmp_path):
    assert line in checked(source, file=tmp_path / "cell.py").findings[1].lines


def test_the_notebooks_own_gpu_is_left_alone():
    mine = simgpu.ones(3)
    profile = simgpu.profile()
    assert checked(gpu_specs.RIGHT).passed
    assert not checked("def answer(x, weight):\n    raise KeyboardInterrupt").passed
    assert simgpu.profile() is profile
    assert simgpu.asnumpy(mine + 1).tolist() == [2, 2, 2]


def test_where_there_is_a_gpu_the_values_are_checked_there_too():
    """NumPy stands for CuPy."""
    place = dataclasses.replace(HERE, ported=lambda function: gpu.ported(function, np))
    assert checked(gpu_specs.RIGHT, place=place).passed
    broken = dataclasses.replace(HERE, ported=lambda function: lambda x, weight: 2 * function(x, weight))
    finding = checked(gpu_specs.RIGHT, place=broken).findings[1]
    assert finding.verdict == "fail"
    assert finding.lines[0] == "right on the simulated GPU, but on this machine's own:"
    assert any("every value is 2 times" in line for line in finding.lines)


def slowly(x, weight):
    """A baseline: the same many times."""
    for _ in range(20):
        y = gpu_specs.layer(x, weight)
    return y


FAST = dataclasses.replace(
    gpu_specs.LAYER,
    speed=Speed(slowly, {"x": normal(8, 8), "weight": normal(8, 8)}, at_least=2, points=3, against="itself", gpu=True),
)


@pytest.mark.usefixtures("_without_gpu")
def test_the_speed_of_a_gpu_is_deferred_without_one():
    found = checked(gpu_specs.RIGHT, FAST)
    assert [(part.verdict, part.points, part.max_points) for part in found.parts] == [
        ("pass", 2, 2),
        ("deferred", 0, 3),
    ]
    assert "needs a GPU, and this machine has none" in str(found)
    assert found.passed, "nothing that the learner could do"
    assert checked(gpu_specs.WRONG["an if"][0], FAST).parts[1].verdict == "missing"


def test_the_speed_of_a_gpu_is_measured_where_there_is_one(monkeypatch):
    monkeypatch.setattr(gpu, "real", lambda: simgpu)
    found = checked(gpu_specs.RIGHT, FAST)
    assert [part.verdict for part in found.parts] == ["pass", "pass"], str(found)
    assert found.timing.device == f"modelled, {simgpu.profile().name}"
    unbound = dataclasses.replace(FAST, cases=[dataclasses.replace(case, budget=None) for case in FAST.cases])
    loop = answer(gpu_specs.RIGHT.replace("    return", "    for _ in range(80):\n        x @ weight\n    return"))
    assert run("layer", unbound, loop).parts[1].verdict == "fail"


def test_library_and_checks_load_no_simulated_gpu():
    code = "import unrolled.check, sys; sys.exit('unrolled.simgpu' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_machine_that_is_gone_is_a_finding():
    class Gone:
        profile = simgpu.profile()

        def __getattr__(self, name):
            raise ConnectionError("gone")

        def free(self, buffer):
            pass

    place = dataclasses.replace(HERE, simulated=lambda: gpu.connected(Gone()))
    finding = checked(gpu_specs.RIGHT, place=place).findings[1]
    assert finding.verdict == "crashed"
    assert simgpu.asnumpy(simgpu.ones(1)) == 1


def test_what_is_not_simulated_is_no_answer_that_is_not_written():
    padded = """
def answer(x, weight):
    array_module(x).pad(x, 1, mode="edge")
    return x @ weight"""
    spec = dataclasses.replace(gpu_specs.LAYER, cases=[gpu_case("one", x=normal(3, 4), weight=normal(4, 2))])
    found = checked(gpu_specs.HEAD + padded, spec)
    assert found.parts[0].verdict == "crashed"
    assert "is simulated for a border of one number only" in str(found)
    assert "not written yet" not in str(found)


def test_buffers_are_copied_and_numpy_is_called_for_each_of_the_contents() -> None:
    for module in (np, simgpu):
        x, total, count = module.ones(2, "f4"), module.zeros(2, "f4"), module.zeros(1, "f4")
        contents = [{"x": module.full(2, value, "f4")} for value in (3, 5)]
        buffers = {"x": x, "total": total, "count": count}
        found = graphs.replayed(graph_specs.step, buffers, contents, ["total", "count"])
        assert [[part.tolist() for part in parts] for parts in found] == [[[6, 6], [1]], [[11, 11], [2]]]
        assert (x.tolist(), total.tolist(), count.tolist()) == ([1, 1], [0, 0], [0])


def test_what_a_function_raises_under_capture_is_raised_and_ends_it() -> None:
    x = simgpu.ones(2, "f4")
    with pytest.raises(RuntimeError, match="D2H"):
        graphs.replayed(lambda x: x.get(), {"x": x}, [], [])
    simgpu.cuda.Device().synchronize()  # nothing is captured any more


@pytest.mark.parametrize("needs_gpu", [False, True])
def test_what_may_run_anywhere_goes_to_the_gpu_once_and_where_it_has_to(needs_gpu):
    def doubled(x):
        on_host.append(isinstance(x, np.ndarray))
        return None if needs_gpu and on_host[-1] else 2 * x

    domain = random_gpu_case("any", lambda rng: {"x": rng.normal(size=int(rng.integers(1, 9)))}, anywhere=True)
    spec = Spec(lambda x: 2 * x, [gpu_case("four", x=normal(4))], points=1, hints=("", "", ""), domain=domain)
    on_host = []
    assert run("doubled", spec, doubled).passed
    tries = [True, False] if needs_gpu else [True]  # of each input that is drawn, but the first
    assert on_host == [False, False, *tries * ((len(on_host) - 2) // len(tries))]
    assert len(on_host) > 4
