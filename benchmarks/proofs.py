"""Every check against wrong answers made by machine: what is refused, in words for the cause, and what passes.

    python benchmarks/proofs.py [--quick] [--json benchmarks/results/proofs.json] [--only EXERCISE ...]

Two processes share the mutants of each exercise. A row's seconds are CPU time, its seeds those at which all of its
mutants were tried. It keeps a hash of what its exercise was proved with: `unrolled prove --changed` tries what has
another one by now.
With --only, rows of a record that is there are replaced, and the others stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import common
from unrolled_grader.authoring import prove, variants

QUICK = ["ink", "prune"]
SEEDS, DRAWS, PROCESSES = 20, 2000, 2


def rows(names: list[str], seeds: int, draws: int) -> Iterator[dict[str, Any]]:
    """Yield what became of each exercise's mutants."""
    for proof in prove.proved(common.ROOT, names, seeds, draws, PROCESSES):
        content = prove.content(common.ROOT, proof.exercise)
        yield {"name": proof.exercise, **proof.to_dict(), "draws": draws, "content": content}


def main() -> None:
    """Prove, print and record."""
    names = list(variants.checks(common.ROOT))
    reader = common.parser(__doc__)
    reader.add_argument("--only", nargs="+", choices=names, default=[], metavar="EXERCISE")
    reader.add_argument("--seeds", type=int, default=SEEDS)
    reader.add_argument("--draws", type=int, default=DRAWS)
    chosen = reader.parse_args()
    known = {}
    if chosen.json and chosen.only and chosen.json.exists():
        known = {row["name"]: row for row in json.loads(chosen.json.read_text(encoding="utf-8"))["rows"]}
    for row in rows(chosen.only or (QUICK if chosen.quick else names), chosen.seeds, chosen.draws):
        known[row["name"]] = row
    common.finish(chosen, [known[name] for name in names if name in known])


if __name__ == "__main__":
    main()
