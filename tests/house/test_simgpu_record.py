"""The simulated GPU's model of time keeps to what was measured on an H200, operation by operation and step by step."""

from dataclasses import replace

import pytest

from unrolled import simgpu


@pytest.fixture
def benchmark(program):
    """benchmarks/simgpu.py as a module."""
    profile = simgpu.profile().name
    yield program("simgpu")
    simgpu.use(profile)


@pytest.fixture
def ops(benchmark):
    return benchmark.operations(benchmark.record("gpu_ops"), benchmark.record("gpu"))


def test_operations_modelled_anew_are_within_2x_and_as_the_record_says(benchmark, ops):
    rows = benchmark.groups(ops, "operations")
    assert not benchmark.faults(rows)
    recorded = benchmark.record("simgpu")["rows"]
    known = {op["name"]: op for row in recorded for op in row.get("operations", ())}
    assert len(ops) > 100
    assert {op["name"]: op["modelled_us"] for op in ops} == pytest.approx(
        {name: op["modelled_us"] for name, op in known.items()}
    ), "the model has changed: run `python benchmarks/simgpu.py --json lib/unrolled/records/simgpu.json`"


def test_steps_modelled_anew_are_within_1_5x_and_as_the_record_says(benchmark):
    cases = [case for case in benchmark.CASES if case.name in benchmark.JUDGED]
    rows = benchmark.steps(cases, benchmark.record("gpu"))
    assert [row["name"] for row in rows] == list(benchmark.JUDGED)
    assert not benchmark.faults(rows)
    recorded = {row["name"]: row for row in benchmark.record("simgpu")["rows"] if row["section"].startswith("steps")}
    assert set(recorded) == {case.name for case in benchmark.CASES}
    for row in rows:
        assert row["modelled_us"] == pytest.approx(recorded[row["name"]]["modelled_us"]), "the model has changed"


def test_a_model_that_is_off_is_found(benchmark, ops, monkeypatch):
    far = [{**op, "ratio": 2.1} for op in ops[: len(ops) // 8]] + ops[len(ops) // 8 :]
    assert benchmark.faults(benchmark.groups(far, "operations"))
    assert benchmark.faults([{"name": benchmark.JUDGED[0], "ratio": 0.6}])
    slow = replace(benchmark.H200, shortest_kernel=5e-6)
    monkeypatch.setattr(benchmark, "H200", slow)
    again = benchmark.operations(benchmark.record("gpu_ops"), benchmark.record("gpu"))
    assert benchmark.faults(benchmark.groups(again, "operations"))
