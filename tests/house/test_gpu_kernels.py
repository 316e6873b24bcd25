"""benchmarks/gpu_kernels.py runs to its end without a GPU, and its model prices more blocks than it counts."""

from dataclasses import replace

import pytest

from unrolled import simgpu


@pytest.fixture
def benchmark(program, monkeypatch):
    """benchmarks/gpu_kernels.py as a module, on the simulated GPU."""
    profile = simgpu.profile().name
    monkeypatch.setattr("unrolled.device._has_cuda", lambda: False)
    yield program("gpu_kernels")
    simgpu.use(profile)


def test_a_quick_look_runs_to_its_end_on_the_simulated_gpu(benchmark, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu_kernels.py", "--quick"])
    monkeypatch.setattr("gpu_common.WARM_UP", 0)
    assert benchmark.main() == 0
    lines = capsys.readouterr().out.splitlines()
    rungs = ["add", "transpose, tiled", "row sum, warp shuffles", "bias, relu, pool: fused", "matmul, tiled"]
    for name in ["copy", *rungs, "library: relu", "library: col2im"]:
        assert any(line.startswith(name) for line in lines), name


@pytest.mark.parametrize("words", [[], ["--quick", "--json", "gpu_kernels.json"]])
def test_without_a_gpu_there_is_no_record(benchmark, monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["gpu_kernels.py", *words])
    assert benchmark.main() == 1
    assert "no GPU works here" in capsys.readouterr().err


def test_every_rung_has_a_result_of_its_own(benchmark):
    work = benchmark.transposing(simgpu, (40, 72))["transpose, tiled"]
    steps = benchmark.steps_of(work, simgpu.jit, simgpu)
    benchmark.check("transpose", work, steps, simgpu)
    with pytest.raises(ArithmeticError, match="transpose: off by up to"):
        benchmark.check("transpose", replace(work, peer=lambda: (work.outputs[0] + 1,)), steps, simgpu)
    with pytest.raises(ArithmeticError, match="transpose: off by up to"):
        benchmark.check("transpose", work, [], simgpu)  # what was there before is no result


@pytest.mark.parametrize(
    ("make", "small", "large"),
    [
        ("transposing", (64, 64), (128, 192)),
        ("summing", (256, 96), (1024, 96)),
        ("pooling", (1, 2, 64, 64), (2, 4, 64, 64)),
        ("multiplying", (64, 40, 32), (128, 40, 96)),
    ],
)
def test_counting_a_few_blocks_prices_many(benchmark, make, small, large):
    few, many = (getattr(benchmark, make)(simgpu, size) for size in (small, large))
    for name, work in many.items():
        assert benchmark.modelled(few[name], work) == pytest.approx(benchmark.modelled(work, work), rel=0.02), name


def test_missed_aims_are_named(benchmark):
    rows = [
        {"name": "transpose, tiled", "of_copy": 0.79, "of_peer": 3.0, "modelled_ratio": 2.1},
        {"name": "row sum, tree", "of_copy": 0.5, "of_peer": 0.92, "modelled_ratio": 0.49},
        {"name": "bias, relu, pool: fused", "of_copy": 0.9, "of_peer": 1.9, "modelled_ratio": 1.0},
    ]
    others = [{"name": str(i), "modelled_ratio": 1.9} for i in range(17)]
    assert benchmark.faults(rows + others) == [
        "transpose, tiled: 0.79 of the copy's bandwidth, expected 0.80",
        "bias, relu, pool: fused: 1.90 times the speed of the separate steps, expected 2.00",
    ]
    (*_, last) = benchmark.faults(rows + others[1:])
    assert last == "modelled times more than 2 times off: transpose, tiled, row sum, tree; expected 1 in 10 at most"
    assert benchmark.faults([{"name": "copy", "us": 1.0}]) == []
