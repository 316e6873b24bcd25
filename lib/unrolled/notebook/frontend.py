"""What the front end knows of the notebook that is running: Colab, JupyterLab, VS Code. Everything may be unknown."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

STARTED = re.compile(r"""check\.start\(\s*["'](\w+)["']""")
COLAB_SECONDS = 60  # Colab's page sends the whole notebook, with its outputs, to the kernel
DRIVE = Path("/content/drive/MyDrive")  # where `drive.mount("/content/drive")` puts a person's Drive


def on_colab() -> bool:
    """Return whether this kernel is Colab's, which imports its own package before anything else."""
    return "google.colab" in sys.modules


def colab_notebook() -> dict[str, Any] | None:
    """Return the notebook as it stands in Colab's page, saved or not; None if the page does not send it."""
    try:
        from google.colab import _message  # type: ignore[import-not-found]  # there is no public way

        reply = _message.blocking_request("get_ipynb", request="", timeout_sec=COLAB_SECONDS)
        notebook: dict[str, Any] = reply["ipynb"]
        return notebook if isinstance(notebook["cells"], list) else None
    except Exception:  # it is Colab's own affair, and may change or be gone
        return None


def notebook_file() -> Path | None:
    """Return the file of the running notebook, or None if it is not found.

    VS Code and Jupyter's server name it; if they do not, it is the started lesson's, in this folder. Jupyter's name is
    from the moment when the kernel started, so a notebook that was renamed since is not found by it.
    """
    here = Path.cwd()
    names = [(getattr(shell(), "user_ns", None) or {}).get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME")]
    started = STARTED.findall("\n".join(inputs()))
    for name in [*names, *(f"{lesson}.ipynb" for lesson in started[-1:])]:
        if isinstance(name, str) and name.endswith(".ipynb"):
            for file in (here / name, here / Path(name).name):
                if file.is_file():
                    return file
    return None


def inputs() -> list[str]:
    """Return the cells that this kernel has run, in order; the last is the one that is running."""
    history = getattr(shell(), "history_manager", None)
    return [str(text) for text in getattr(history, "input_hist_raw", [])]


def offer(file: Path) -> None:
    """Let the browser download a file, where the front end is Colab."""
    if on_colab():
        from google.colab import files

        try:
            files.download(str(file))
        except Exception as error:  # the file is made already
            print(f"The browser could not download it ({error}); find it in the folder on the left.")


def shell() -> Any:
    """Return IPython's shell that this code runs in; None outside of IPython."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return None
    return get_ipython()
