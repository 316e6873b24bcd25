"""Every check against wrong answers made by machine: what is refused, in words for the cause, and what passes.

    python benchmarks/proofs.py [--quick] [--json benchmarks/results/proofs.json] [--only EXERCISE ...]
                                [--shares 2 --seconds 25]

Two processes share the mutants of each exercise, `--seconds` of CPU time each. A row's seconds are CPU time, its seeds
those at which all of its mutants were tried. Trainings need more than 25 s for 20 seeds: say `--shares` for a machine
with as many cores. It keeps a hash of what its exercise was proved with: `unrolled prove --changed` tries what has
another one by now.
With --only, rows of a record that is there are replaced, and the others stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import common
from unrolled_grader.authoring import proofs, prove, variants

QUICK = ["ink", "prune"]
SEEDS, DRAWS = 20, 2000


def rows(names: list[str], chosen: Any) -> Iterator[dict[str, Any]]:
    """Yield what became of each exercise's mutants."""
    for proof in prove.proved(common.ROOT, names, chosen.seeds, chosen.draws, chosen.shares, seconds=chosen.seconds):
        content = prove.content(common.ROOT, proof.exercise)
        counts = {**proof.to_dict(), "draws": chosen.draws, "cores": os.cpu_count()}
        yield {"name": proof.exercise, **counts, "content": content}


def main() -> None:
    """Prove, print and record."""
    names = list(variants.checks(common.ROOT))
    reader = common.parser(__doc__)
    reader.add_argument("--only", nargs="+", choices=names, default=[], metavar="EXERCISE")
    reader.add_argument("--seeds", type=int, default=SEEDS)
    reader.add_argument("--draws", type=int, default=DRAWS)
    reader.add_argument("--shares", type=int, default=prove.SHARES)
    reader.add_argument("--seconds", type=float, default=proofs.SECONDS)
    chosen = reader.parse_args()
    known = {}
    if chosen.json and chosen.only and chosen.json.exists():
        known = {row["name"]: row for row in json.loads(chosen.json.read_text(encoding="utf-8"))["rows"]}
    for row in rows(chosen.only or (QUICK if chosen.quick else names), chosen):
        known[row["name"]] = row
    common.finish(chosen, [known[name] for name in names if name in known])


if __name__ == "__main__":
    main()
