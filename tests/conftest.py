from __future__ import annotations

import importlib.util

import pytest
from hypothesis import HealthCheck, settings

BOXED = {
    *("exploits", "test_cgroup", "test_formgrader", "test_gpu_deferred", "test_gpu_judge", "test_jobs", "test_judge"),
    *(
        "test_nbgrader",
        "test_parity",
        "test_race",
        "test_restart",
        "test_sandbox",
        "test_shell",
        "test_teaching",
        "test_transport",
    ),
    "test_zygote",
}
"""Folders and modules of tests that run student code in bubblewrap."""
# A pause of a busy machine is no error, and the same commit draws the same examples. For other examples:
# pytest --hypothesis-profile=default
settings.register_profile("any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

ALONE = {"test_timed", "test_race", "test_sample"}
"""Those that measure speeds in a sandbox."""


@pytest.fixture
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has no GPU, even where it has one."""
    from unrolled import device

    monkeypatch.setattr(device, "_describe_cupy", lambda: {"why": "hidden for this test"})
    monkeypatch.setattr(device, "_has_cuda", lambda: False)


@pytest.hookimpl(tryfirst=True)  # before -m chooses among the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser last: Playwright leaves its event loop running in this thread, where no other loop can then run.

    Where bubblewrap does not work, what needs it is skipped, with the reason and the line that helps.
    """
    items.sort(key=lambda item: "browser" in item.path.parts)
    for item in items:
        if ALONE & {item.path.stem, item.path.parent.name}:
            item.add_marker(pytest.mark.timed)
    boxed = [item for item in items if BOXED & {item.path.stem, item.path.parent.name}]
    if boxed and importlib.util.find_spec("unrolled_grader") and (reason := _problem()):
        for item in boxed:
            item.add_marker(pytest.mark.skip(reason=reason))


def _problem() -> str:
    from unrolled_grader import sandbox

    return sandbox.problem()
