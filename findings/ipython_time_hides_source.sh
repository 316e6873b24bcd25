#!/bin/sh
# IPython 9.9.0: a function that is defined under %%time or %%prun has no source; under %%capture it has.
#
# `inspect.getsource` finds functions of a cell, which libraries that compile a function from its source rely on. These
# two magics compile the cell's body themselves, under a name that `linecache` does not know. Seen:
#
#     plain cell: source
#     %%capture: source
#     %%time: OSError: could not get source code
#     %%prun -q: OSError: could not get source code
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install -q --target "$folder" ipython==9.9.0
IPYTHONDIR=$folder PYTHONPATH=$folder python3 - <<'PYTHON'
import contextlib
import inspect
import io

from IPython.core.interactiveshell import InteractiveShell

shell, found = InteractiveShell.instance(), {}
for magic in ("", "%%capture", "%%time", "%%prun -q"):
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(f"{magic}\ndef double(x):\n    return 2 * x\n")
    try:
        found[magic] = inspect.getsource(shell.user_ns["double"]) and "source"
    except OSError as error:
        found[magic] = f"{type(error).__name__}: {error}"
    print(f"{magic or 'plain cell'}: {found[magic]}")
assert found[""] == found["%%capture"] == "source"
assert found["%%time"] == found["%%prun -q"] == "OSError: could not get source code"
PYTHON
