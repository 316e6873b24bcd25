"""A real JupyterLab, started for a test, with settings of its own."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from chromium import PATIENCE
from unrolled.notebook import cells

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "artifacts" / "browser"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks the server itself, whatever proxy the environment names."""


def hand_out(kind: str, lesson: str, folder: Path, until: str, answer: tuple[str, str, str] = ("", "", "")) -> None:
    """A lesson's notebook, of "notebooks" or "solutions", in a folder of its own, with a spoilt solution in one cell.

    It ends with the first cell that contains `until`: what comes after is run in the second of the four facts.
    """
    notebook, solved = (cells.read(ROOT / each / lesson / f"{lesson}.ipynb") for each in (kind, "solutions"))
    last = next(index for index, cell in enumerate(notebook.cells) if until in cell.source)
    exercise, old, new = answer
    for cell, solution in zip(notebook.cells, solved.cells, strict=True):
        if exercise and cells.grade_id(cell) == exercise:
            assert old in solution.source, old
            cell.source = solution.source.replace(old, new)
        cell.source = cell.source.replace("LEARNER = ...  #", "LEARNER = 'bob'  #")
    del notebook.cells[last + 1 :]
    (folder / lesson).mkdir()
    nbformat.write(notebook, folder / lesson / f"{lesson}.ipynb")


@dataclass(frozen=True)
class Server:
    """A running Jupyter server over `folder`."""

    url: str
    token: str
    folder: Path

    def page(self, path: str) -> str:
        return f"{self.url}{path}{'&' if '?' in path else '?'}token={self.token}"

    def end_kernels(self) -> None:
        """End what runs for notebooks that are open."""
        with DIRECT.open(self.page("/api/sessions")) as answer:
            sessions = [session["id"] for session in json.load(answer)]
        for session in sessions:
            DIRECT.open(urllib.request.Request(self.page(f"/api/sessions/{session}"), method="DELETE")).close()


@contextlib.contextmanager
def jupyter_lab(folder: Path, home: Path) -> Iterator[Server]:
    """JupyterLab over `folder`, with settings and runtime files of its own in `home`."""
    token = secrets.token_hex(16)
    environment = {
        **os.environ,
        "PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",  # nbgrader calls alembic by name
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    options = [
        "--no-browser",
        "--allow-root",
        f"--IdentityProvider.token={token}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    notification = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    notification.parent.mkdir(parents=True)
    notification.write_text('{"fetchNews": "false"}')  # or a question about it covers what the screenshots should show
    with (home / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            yield Server(_url_once_up(process, home, token), token, folder)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _url_once_up(process: subprocess.Popen[bytes], home: Path, token: str) -> str:
    """Where the server listens. It chooses the port: one that is free now may be taken until it has started."""
    written = home / "runtime" / f"jpserver-{process.pid}.json"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):  # no file yet, half of it, or nobody listens yet
            url = f"http://127.0.0.1:{json.loads(written.read_text())['port']}"
            with DIRECT.open(f"{url}/api/status?token={token}", timeout=5):
                return url
        time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{(home / 'server.log').read_text()}")
