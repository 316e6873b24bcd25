"""The judge on kernels: a worker that sends their source, a machine that compiles and counts."""

from __future__ import annotations

import pytest
from test_gpu_judge import judged, points, said, without_places

import kernel_specs
from unrolled import checks
from unrolled_grader.box import sandbox
from unrolled_grader.judge import checking

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
    verdicts = judged(spec, sources)
    for (name, source), (_, says) in zip(sources.items(), answers.values(), strict=True):
        report = checks.run(name, spec, kernel_specs.answer(source))
        assert said(verdicts, name) == without_places(str(report))
        assert points(verdicts)[name] == report.points == (0 if says else spec.points)
