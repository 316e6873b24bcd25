"""What the facts about checks are judged with, for exercises and their variants."""

import dataclasses

import pytest
from nbformat.v4 import new_code_cell

from unrolled import checks, timing
from unrolled.checks import gpu, ranked
from unrolled.checks.run import HERE
from unrolled_grader.judge import walk
from unrolled_grader.judge.race import RANKS_LIMIT

MARGIN = 1.5
WITH_ANSWERS = dataclasses.replace(HERE, withhold=False)
"""Where the library's answers may be called: the mutants here are made of them, for brevity."""
CASE_LIMIT = 120.0
"""Seconds of a case: many times what the slowest takes, so that a busy machine ends none."""
QUICKLY = {"UNROLLED_GRADING": "1", "UNROLLED_SEED": "0"}
"""The environment in which a notebook's own measurements take one call each, as when it is graded, and checks draw the
same inputs each time."""
SMALL = new_code_cell("""
import gc
import unrolled.nn
gc.set_threshold(20_000, 20, 50)  # as in tests/conftest.py
unrolled.nn.Sequential.fit = lambda network, train, *, whole=unrolled.nn.Sequential.fit, epochs=5, **options: whole(
    network, type(train)(train.images[:64], train.labels[:64]), epochs=min(epochs, 2), **options
)
""")
"""The first cell of a notebook under test: trainings see 64 images, at most twice. The site's run trains with all."""
ATTEMPTS = 4  # as when graded: an inconclusive verdict is measured again, up to three times


def counts(spec: checks.Spec) -> bool:
    """Whether a budget asks for what slow answers need not keep: own kernels, graphs, few products, small arrays."""
    budgets = [case.budget for case in spec.cases if case.budget is not None]
    return any(budget.own or budget.products or budget.flops or budget.graphs or budget.largest for budget in budgets)


def without_speed(spec: checks.Spec) -> checks.Spec:
    return dataclasses.replace(spec, speed=None, rung=None)


def has_kernels(spec: checks.Spec) -> bool:
    """Whether an answer launches kernels of its own, or graphs: its speed is that of a real GPU."""
    return any(case.budget is not None and (case.budget.own or case.budget.graphs) for case in spec.cases)


def by_values(spec: checks.Spec) -> checks.Spec:
    """The spec without speed, and without budgets if they count what a reference or a slow answer need not keep."""
    spec = without_speed(spec)
    if not counts(spec):
        return spec
    cases = [dataclasses.replace(case, budget=None) for case in spec.cases]
    return dataclasses.replace(spec, cases=cases, domain=spec.domain and dataclasses.replace(spec.domain, budget=None))


def settled(spec: checks.Spec, function, at_least: float, attempts: int = ATTEMPTS) -> str:
    """The outcome of the speed rule, measured again while it is inconclusive; a fail needs a second one, as graded."""
    outcomes, real = [], gpu.real() if has_kernels(spec) else None
    if has_kernels(spec) and real is None:
        pytest.skip("kernels are timed on a GPU")
    for seed in range(attempts):
        outcomes.append(measured(spec, function, at_least, seed, real).outcome)
        if outcomes[-1] == "pass" or outcomes.count("fail") == 2:
            break
    return "pass" if "pass" in outcomes else "fail" if outcomes.count("fail") == 2 else "inconclusive"


def measured(spec: checks.Spec, function, at_least: float, seed: int, real) -> timing.Verdict:
    """One measurement: of ranks in processes, on the GPU `real`, or here."""
    if spec.speed.ranks > 1:
        speed = dataclasses.replace(spec.speed, at_least=at_least)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ranked, "COMPARE_LIMIT", RANKS_LIMIT)  # as when graded, too
            return ranked.race(function, dataclasses.replace(spec, speed=speed), seed, None)
    inputs = spec.speed.draw_inputs(seed)
    inputs = inputs if real is None else gpu.placed(inputs, real)
    return timing.compare(function, spec.speed.baseline, inputs=inputs, at_least=at_least)


def assert_rejected(name: str, spec: checks.Spec, mutant) -> None:
    """Fact 3: the mutant earns nothing, and the check says why in the words that help."""
    report = checks.run(name, spec, mutant.function, seed=0, climb=False, place=WITH_ANSWERS, case_limit=CASE_LIMIT)
    assert not report.passed
    assert report.points == 0
    assert mutant.says in str(report)


def assert_right(name: str, spec: checks.Spec, function, place=HERE) -> None:
    """What is timed is correct."""
    assert checks.run(name, without_speed(spec), function, place=place, case_limit=CASE_LIMIT).passed


def cells_that_run(notebook, handed_out):
    """The code cells that run when a notebook is graded: answers, checks, and what these need of the others."""
    idle = walk.idle(notebook, handed_out)
    return [cell for place, cell in enumerate(notebook.cells) if cell.cell_type == "code" and place not in idle]
