"""benchmarks/gpu_kernels.py runs to its end without a GPU, and its model prices more blocks than it counts."""

from dataclasses import replace

import pytest

from unrolled import simgpu


@pytest.fixture
def module(program, monkeypatch):
    """benchmarks/gpu_kernels.py as a module, on the simulated GPU."""
    profile = simgpu.profile().name
    monkeypatch.setattr("unrolled.device._has_cuda", lambda: False)
    yield program("gpu_kernels")
    simgpu.use(profile)


def test_a_quick_look_runs_to_its_end_on_the_simulated_gpu(module, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu_kernels.py", "--quick"])
    monkeypatch.setattr("gpu_common.WARM_UP", 0)
    assert module.main() == 0
    lines = capsys.readouterr().out.splitlines()
    rungs = ["add", "transpose, tiled", "row sum, warp shuffles", "bias, relu, pool: fused", "matmul, tiled"]
    for name in ["copy", *rungs, "library: relu", "library: col2im"]:
        assert any(line.startswith(name) for line in lines), name


@pytest.mark.parametrize("words", [[], ["--quick", "--json", "gpu_kernels.json"]])
def test_without_a_gpu_there_is_no_record(module, monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["gpu_kernels.py", *words])
    assert module.main() == 1
    assert "no GPU works here" in capsys.readouterr().err


def test_every_rung_has_a_result_of_its_own(module):
    work = module.transposing(simgpu, (40, 72))["transpose, tiled"]
    steps = module.steps_of(work, simgpu.jit, simgpu)
    module.check("transpose", work, steps, simgpu)
    with pytest.raises(ArithmeticError, match="transpose: off by up to"):
        module.check("transpose", replace(work, peer=lambda: (work.outputs[0] + 1,)), steps, simgpu)
    with pytest.raises(ArithmeticError, match="transpose: off by up to"):
        module.check("transpose", work, [], simgpu)  # what was there before is no result


@pytest.mark.parametrize(
    ("make", "small", "large"),
    [
        ("transposing", (64, 64), (128, 192)),
        ("summing", (256, 96), (1024, 96)),
        ("pooling", (1, 2, 64, 64), (2, 4, 64, 64)),
        ("multiplying", (64, 40, 32), (128, 40, 96)),
    ],
)
def test_counting_a_few_blocks_prices_many(module, make, small, large):
    few, many = (getattr(module, make)(simgpu, size) for size in (small, large))
    for name, work in many.items():
        assert module.modelled(few[name], work) == pytest.approx(module.modelled(work, work), rel=0.02), name
