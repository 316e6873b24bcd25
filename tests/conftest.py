from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import unrolled.notebook  # noqa: F401 - before nbformat: it then loads in a tenth of the time

if TYPE_CHECKING:
    from playwright.sync_api import Browser  # in CI's run with Colab's versions there is none

# Set before NumPy is imported, here and in every kernel: several processes share the cores, and BLAS threads that wait
# for one spin. On a busy machine lesson 04's notebook took 62 s of CPU time with two threads, 17 s with one.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# What is timed runs alone among the gradings that share a temporary folder (unrolled_grader.box.lease). A process with
# others beside it has one of its own: it would wait for what they measure, and none of its tests measures.
if "PYTEST_XDIST_WORKER" in os.environ:
    tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="unrolled-tests-")

HERE = Path(__file__).parent
BOXED = {
    *("exploits", "test_cgroup", "test_formgrader", "test_gpu_deferred", "test_gpu_judge", "test_jobs", "test_judge"),
    *("test_judged_lessons", "test_nbgrader", "test_parity", "test_race", "test_restart", "test_sandbox", "test_shell"),
    *("test_teaching", "test_transport", "test_zygote"),
}
"""Folders and modules of tests that run student code in bubblewrap."""
TIMED = ("lessons/test_four_facts.py", "grader/exploits/")
"""Where tests measure speeds."""
# A pause of a busy machine is no error, and the same commit draws the same examples. For other examples:
# pytest --hypothesis-profile=default
settings.register_profile(
    "any machine", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has no GPU, even where it has one."""
    from unrolled import device

    monkeypatch.setattr(device, "_describe_cupy", lambda: {"why": "hidden for this test"})
    monkeypatch.setattr(device, "_has_cuda", lambda: False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's Chromium. It ends with the module: its event loop runs in this thread, where no other then can."""
    import chromium

    with chromium.launched() as browser:
        yield browser


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before -m chooses among the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where bubblewrap does not work, skip what needs it, and say what helps."""
    for item in items:
        if item.get_closest_marker("timed") and not str(item.path.relative_to(HERE)).startswith(TIMED):
            raise pytest.UsageError(f"{item.nodeid} measures speeds; `make test` looks for that in {TIMED} only")
    boxed = [item for item in items if BOXED & {item.path.stem, item.path.parent.name}]
    if boxed and importlib.util.find_spec("unrolled_grader") and (reason := _problem()):
        for item in boxed:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Keep what has been loaded out of later searches for garbage: tests that ask for one waited a second each time.

    And search less often than by default: that took a tenth of the tests' time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _problem() -> str:
    from unrolled_grader.box import sandbox

    return sandbox.problem()
