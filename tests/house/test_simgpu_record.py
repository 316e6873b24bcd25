"""The simulated GPU's model of time keeps to what was measured on an H200, operation by operation and step by step."""

from dataclasses import replace

import pytest

from unrolled import simgpu


@pytest.fixture
def module(program):
    """benchmarks/simgpu.py as a module."""
    profile = simgpu.profile().name
    yield program("simgpu")
    simgpu.use(profile)


@pytest.fixture
def ops(module):
    return module.operations(module.record("gpu_ops"), module.record("gpu"))


def test_operations_modelled_anew_are_within_2x_and_as_the_record_says(module, ops):
    rows = module.groups(ops, "operations")
    assert not module.faults(rows)
    recorded = module.record("simgpu")["rows"]
    known = {op["name"]: op for row in recorded for op in row.get("operations", ())}
    assert len(ops) > 100
    assert {op["name"]: op["modelled_us"] for op in ops} == pytest.approx(
        {name: op["modelled_us"] for name, op in known.items()}
    ), "the model has changed: run `python benchmarks/simgpu.py --json lib/unrolled/records/simgpu.json`"


def test_steps_modelled_anew_are_within_1_5x_and_as_the_record_says(module):
    cases = [case for case in module.CASES if case.name in module.JUDGED]
    rows = module.steps(cases, module.record("gpu"))
    assert [row["name"] for row in rows] == list(module.JUDGED)
    assert not module.faults(rows)
    recorded = {row["name"]: row for row in module.record("simgpu")["rows"] if row["section"].startswith("steps")}
    assert set(recorded) == {case.name for case in module.CASES}
    for row in rows:
        assert row["modelled_us"] == pytest.approx(recorded[row["name"]]["modelled_us"]), "the model has changed"


def test_a_model_that_is_off_is_found(module, ops, monkeypatch):
    far = [{**op, "ratio": 2.1} for op in ops[: len(ops) // 8]] + ops[len(ops) // 8 :]
    assert module.faults(module.groups(far, "operations"))
    assert module.faults([{"name": module.JUDGED[0], "ratio": 0.6}])
    slow = replace(module.H200, shortest_kernel=5e-6)
    monkeypatch.setattr(module, "H200", slow)
    again = module.operations(module.record("gpu_ops"), module.record("gpu"))
    assert module.faults(module.groups(again, "operations"))
