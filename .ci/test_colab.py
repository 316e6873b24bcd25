"""The notebooks as Colab runs them: the first cell installs the course, and each solution passes all its checks.

Run by .ci/colab, in an environment with Colab's versions; `make test` has the four facts instead. What a notebook
measures for showing takes one call here, as when it is graded: how often a call is repeated depends on no version, and
tests/lib has the repeating. The checks measure in full.
"""

from __future__ import annotations

import shutil
import site
import venv
from importlib import metadata
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

import unrolled
from unrolled.notebook import run
from unrolled_grader.authoring import wheelhouse
from unrolled_grader.authoring.notebooks import Address

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted(ROOT.glob("solutions/*/*.ipynb"))


def test_the_widgets_are_those_of_colab():
    assert metadata.version("ipywidgets").startswith("7.")


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_runs_and_every_check_passes(path, tmp_path):
    env = {"UNROLLED_GRADING": "1", "UNROLLED_SEED": "0"}  # so that each run is the same
    executed = run.execute(path, cwd=tmp_path, env=env, cell_timeout=600)
    assert executed.errors == ()
    assert executed.reports
    assert [str(report) for found in executed.reports.values() if not (report := found.report()).passed] == []


STARTS = f'from unrolled import check\ncheck.start("00_start_here", "{unrolled.__version__}")'
ADDRESS = Address("https://github.com/someone/unrolled", "v1.2.3")
DRIVE = """\
from pathlib import Path

def mount(path):
    assert path == "/content/drive"
    Path("drive").symlink_to(Path("my drive").absolute())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheelhouse.build_wheel(ROOT, tmp_path_factory.mktemp("wheel"), isolated=False)


@pytest.fixture
def colab(tmp_path):
    """A machine of Colab's: its packages, without the course's, and its own, which is there before any cell runs."""
    venv.create(tmp_path / "env", symlinks=True)
    ours, theirs = Path(site.getsitepackages()[0]), next((tmp_path / "env").glob("lib/*/site-packages"))
    for there in ours.iterdir():
        if "unrolled" not in there.name:
            (theirs / there.name).symlink_to(there)
    (theirs / "google" / "colab").mkdir(parents=True)
    (theirs / "google" / "colab" / "drive.py").write_text(DRIVE)
    (theirs / "colab.pth").write_text("import google.colab")
    (tmp_path / "content").mkdir()
    return tmp_path


@pytest.mark.parametrize("place", [".", "wheels", "my drive/MyDrive/unrolled", "my drive/MyDrive/unrolled/wheels", ""])
def test_one_cell_installs_the_course_and_a_restart_finds_it_in_place(colab, wheel, place, monkeypatch):
    """Wherever the wheel lies; `` stands for a release on GitHub. After the restart it is gone, and not missed."""
    content = colab / "content"
    (content / place).mkdir(parents=True, exist_ok=True)
    lies = Path(shutil.copy(wheel, content / place if place else colab))
    install = (Address() if place else ADDRESS).install().replace(ADDRESS.wheel(), lies.as_uri())
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"):
        monkeypatch.setenv(name, {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}.get(name, ""))
    kernel = KernelManager()
    kernel.kernel_spec.argv[0] = str(colab / "env" / "bin" / "python")
    kernel.start_kernel(cwd=str(content))
    try:
        assert f"Unrolled {unrolled.__version__}" in said(kernel, f"{install}\n{STARTS}")
        assert (content / "drive").exists() == place.startswith("my drive")
        lies.unlink()
        kernel.restart_kernel()
        assert said(kernel, f"{install}\n{STARTS}").startswith(f"Unrolled {unrolled.__version__}")
    finally:
        kernel.shutdown_kernel(now=True)


def said(kernel, cell):
    """What a cell prints."""
    client, lines = kernel.blocking_client(), []
    client.start_channels()
    client.wait_for_ready(timeout=300)
    reply = client.execute_interactive(cell, timeout=300, output_hook=lambda message: lines.append(message["content"]))
    client.stop_channels()
    text = "".join(line.get("text", "") for line in lines)
    assert reply["content"]["status"] == "ok", f"{text}{reply['content']}"
    return text
