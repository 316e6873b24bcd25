"""No callable of the library earns an exercise's points, however it is called, while that is withheld."""

import json
import os
import subprocess
import sys
from pathlib import Path

from unrolled import checks

PROGRAM = Path(__file__).with_name("library_search.py")


def test_no_callable_of_the_library_earns_an_exercise(tmp_path, capsys):
    environment = {**os.environ, "HOME": str(tmp_path), "MPLBACKEND": "agg", "UNROLLED_GRADING": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(done.stdout[done.stdout.index("{") :])
    with capsys.disabled():
        print(f" {found['callables']:,} callables, {found['exercises']} exercises, {found['tried']:,} ways ", end="")
    assert found["earns"] == {}
    assert found["exercises"] == len(checks.all_specs())
    assert found["tried"] > 50_000
    assert "checks.exercises.l04_backprop.window_gradients.put_back" in found["answers"], "were it not withheld"
