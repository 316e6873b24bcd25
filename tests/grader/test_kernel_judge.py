"""The judge on kernels: a worker that sends their source, a machine that compiles and counts."""

from __future__ import annotations

import pytest
from test_gpu_judge import judged, points, said, without_places

import kernel_specs
from unrolled import checks
from unrolled_grader.box import gpu, sandbox
from unrolled_grader.judge import checking, verdicts

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())
ANSWERS = (
    (kernel_specs.ADD, {"right": (kernel_specs.GUARDED, ()), **kernel_specs.WRONG}),
    (kernel_specs.TRANSPOSE, {"right": (kernel_specs.TILED, ()), **kernel_specs.SCATTERED}),
)


@pytest.mark.parametrize(("spec", "answers"), ANSWERS, ids=["the kernel", "a function"])
def test_the_judge_finds_what_the_learner_finds_in_the_same_words(
    spec: checks.Spec, answers: dict[str, tuple[str, tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "derived", lambda seed, *what: checks.VISIBLE_SEED)
    sources = {f"n{place}": source for place, (source, _) in enumerate(answers.values())}
    found = judged(spec, sources)
    for (name, source), (_, says) in zip(sources.items(), answers.values(), strict=True):
        report = checks.run(name, spec, kernel_specs.answer(source))
        assert said(found, name) == without_places(str(report))
        assert points(found)[name] == report.points == (0 if says else spec.points)


def test_each_case_has_blocks_in_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report tells the seed of its launch, so one that were used again would be known."""
    seeds: list[int] = []

    class Noted(gpu.SimulatedGPU):
        def fresh(self, seed: int = 0) -> gpu.Guarded:
            seeds.append(seed)
            return super().fresh(seed)

    monkeypatch.setattr(checking, "SimulatedGPU", Noted)
    monkeypatch.setattr(verdicts.secrets, "randbits", lambda bits: 7)
    for _ in range(2):
        judged(kernel_specs.ADD, {"a": kernel_specs.GUARDED})
    assert len(set(seeds)) == len(kernel_specs.ADD.cases) == len(seeds) / 2
    assert seeds[:2] == seeds[2:]  # a regrade meets the same
