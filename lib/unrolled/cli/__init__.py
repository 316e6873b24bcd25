"""The `unrolled` command. Each module here adds its own commands; the grader's come in through an entry point.

Every entry of the group "unrolled.commands" is a function `add(subparsers)` that adds parsers whose default `run` takes
the parsed arguments and returns an exit code. It is called before the arguments are parsed: what is heavy is
imported where it is used, after what is wrong was refused. Where a package is missing that an extra would have brought,
`main` says which, in one line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata

import unrolled

from . import handing_in, lab, machine, progress, upgrade
from .common import DATA_SETS, CommandError, Subparsers, count, folder, present, present_file, present_folder, why

__all__ = ["DATA_SETS", "CommandError", "Subparsers", "count", "folder", "main", "present", "present_file"]
__all__ += ["present_folder"]

GROUP = "unrolled.commands"
HELP = {
    "to learn": ("doctor", "data", "lab", "check", "submit", "progress", "upgrade"),
    "to teach": (
        "class",
        "roster",
        "collect",
        "attempts",
        "grade",
        "demo",
        "similar",
        "pseudonymous",
        "forget",
        "version",
    ),
    "to make the course": ("build", "prove", "site", "wheel", "wheelhouse"),
}
"""In which order `unrolled --help` lists the commands, as far as they are there; others come last."""
EXTRAS = {
    **dict.fromkeys(("ipykernel", "jupyter_client", "jupyterlab", "nbclient", "nbformat"), "lab"),
    **dict.fromkeys(
        ("copydetect", "jupytext", "nbconvert", "nbgrader", "sqlalchemy", "tomli", "traitlets", "yaml"), "grading"
    ),
}
"""The extra that brings a package, for the packages that are not always there."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What follows `--` is handed on (to JupyterLab, by `unrolled lab`)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        from unrolled import doctor

        print(f"unrolled {doctor.release()}")
        return 0
    cut = words.index("--") if "--" in words else len(words)
    command = next((word for word in words[:cut] if not word.startswith("-")), None)
    parser, absent = _parser(command)
    if command in absent:
        return _say(f"unrolled {command} {absent[command]}")
    try:
        arguments = parser.parse_args(words[:cut])
        arguments.rest = words[cut + 1 :]
        if arguments.rest and not arguments.hands_on:
            parser.error("only `unrolled lab` hands on arguments after --")
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except CommandError as error:
        return _say(f"unrolled {command}: {error}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        return _say(f"unrolled {command} {_needs(error)}")
    except BrokenPipeError:  # whoever read the output has had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if not error.filename:
            raise
        return _say(f"unrolled {command}: {error.filename} cannot be used: {why(error)}")
    except KeyboardInterrupt:
        return 130


def _parser(command: str | None = None) -> tuple[argparse.ArgumentParser, dict[str, str]]:
    """The parser, and the grader's commands that this installation lacks with the reason.

    Of the grader, what the command needs is loaded; all of it, to be listed, if there is none of that name.
    """
    parser = argparse.ArgumentParser(
        prog="unrolled",
        usage="unrolled [-h] [--version] command ...",
        description=(unrolled.__doc__ or "").partition("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"unrolled {unrolled.__version__}")
    parser.set_defaults(hands_on=False)
    subparsers = parser.add_subparsers(
        dest="command", metavar="command", required=True, prog="unrolled", help=argparse.SUPPRESS
    )
    for module in (machine, lab, handing_in, progress, upgrade):
        module.add(subparsers)
    entries = [] if command in subparsers.choices else list(metadata.entry_points(group=GROUP))
    adders, absent = [], dict[str, str]()
    for entry in [entry for entry in entries if entry.name == command] or entries:
        try:
            adders.append(entry.load())
        except ModuleNotFoundError as error:
            absent[entry.name] = _needs(error)
    for add in dict.fromkeys(adders):  # a module of the grader may stand there for several commands
        add(subparsers)
    parser.epilog = _listed(subparsers)
    return parser, absent


def _listed(subparsers: Subparsers) -> str:
    """All commands by what they are for, as argparse knows no groups of them. A command without a description of its
    own says of itself what the list says."""
    helps = {action.dest: action.help or "" for action in subparsers._get_subactions()}
    for name, help_text in helps.items():
        parser = subparsers.choices[name]
        parser.description = parser.description or f"{help_text[:1].upper()}{help_text[1:]}."
    grouped = [name for names in HELP.values() for name in names]
    groups = {**HELP, "more": tuple(name for name in helps if name not in grouped)}
    width = max(map(len, helps))
    blocks = []
    for title, names in groups.items():
        lines = [f"  {name:<{width}}  {helps[name]}" for name in names if name in helps]
        blocks += ["\n".join([f"{title}:", *lines])] if lines else []
    return "\n\n".join([*blocks, "unrolled COMMAND --help says more about each."])


def _needs(error: ModuleNotFoundError) -> str:
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return f"cannot be loaded: {error}"
    extra = EXTRAS[package]
    return f'needs {package}, which the extra "{extra}" brings: {_install(extra)}'


def _install(extra: str) -> str:
    """How this very installation gets an extra: from its checkout, from the wheel that it came as, or by name."""
    origin = json.loads(metadata.distribution("unrolled").read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return f'python -m pip install -e ".[{extra}]" in the course\'s folder'
    wheel = f" @ {origin['url']}" if "archive_info" in origin else ""
    return f'python -m pip install "unrolled[{extra}]{wheel}"'


def _say(message: str) -> int:
    print(message, file=sys.stderr)
    return 1
