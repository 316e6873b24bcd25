"""The ladder of lesson 02: seconds for one convolution over 60,000 digits, by the way it is written.

    python benchmarks/ladder.py [--json benchmarks/results/ladder.json] [--picture docs/ladder.png]

Runs the lesson's solution as a learner would and reads the rungs from its journal. `speedup` is over the plain loops.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
from unrolled import show
from unrolled.notebook import run

LESSON = "02_convolution"


def measured_rungs() -> list[dict[str, Any]]:
    """Return the rungs that the solution notebook puts into a new journal, slowest first."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.json"
        notebook = common.ROOT / "solutions" / LESSON / f"{LESSON}.ipynb"
        executed = run.execute(notebook, cwd=folder, env={"UNROLLED_JOURNAL": str(journal)})
        if executed.errors:
            sys.exit(f"{LESSON} does not run: {executed.errors[0]}")
        rungs = json.loads(journal.read_text(encoding="utf-8"))["rungs"]
    return sorted(rungs.values(), key=lambda rung: -rung["seconds"])


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = common.parser(__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ladder there, as PNG")
    chosen = parser.parse_args()
    chosen.threads = 1  # as a notebook
    rungs = measured_rungs()
    keys, slowest = {"name": "label", "what": "what", "epoch_s": "seconds", "batch": "batch"}, rungs[0]["seconds"]
    rows = [{key: rung[of] for key, of in keys.items()} | {"speedup": slowest / rung["seconds"]} for rung in rungs]
    common.finish(chosen, rows)
    if chosen.picture:
        chosen.picture.write_bytes(show.ladder(rungs).png())


if __name__ == "__main__":
    main()
