"""`unrolled doctor` and `unrolled data`: what the machine offers, and the data sets."""

from __future__ import annotations

import argparse
import json

from .common import DATA_SETS, CommandError, Subparsers


def add(subparsers: Subparsers) -> None:
    doctor = subparsers.add_parser(
        "doctor", help="show what this machine offers: packages, BLAS, GPU, sandbox, data sets"
    )
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.set_defaults(run=_doctor)
    data = subparsers.add_parser("data", help="list data sets, or fetch one into the cache")
    actions = data.add_subparsers(dest="action", metavar="action", required=True)
    actions.add_parser("list", help="list the data sets there are").set_defaults(run=_list)
    fetch = actions.add_parser("fetch", help="make a data set ready to use")
    fetch.add_argument("name", metavar="NAME", help="such as mnist")
    fetch.set_defaults(run=_fetch)


def _doctor(arguments: argparse.Namespace) -> int:
    from unrolled import doctor

    facts = doctor.examine()
    print(json.dumps(facts, indent=2) if arguments.json else doctor.table(facts))
    return 1 if facts["problems"] else 0


def _list(arguments: argparse.Namespace) -> int:
    from unrolled import data

    for entry in data.available():
        state = "ready" if entry.ready() else f"{entry.size / 1e6:.0f} MB to download"
        print(f"{entry.name:<13}  {entry.about}, from {entry.source}; {state}")
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    known = ("digits", *DATA_SETS)
    if arguments.name not in known:
        raise CommandError(f"name is {arguments.name!r}; expected one of: {', '.join(known)}")
    from unrolled import data

    try:
        train, test = data.load(arguments.name)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error
    shape = " x ".join(map(str, train.images.shape[1:]))
    count = f"{len(train) + len(test):,} images of {shape} ({len(train):,} to train, {len(test):,} to test)"
    print(f"{arguments.name}: {count}, ready to use")
    return 0
