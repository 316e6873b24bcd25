from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exercise", metavar="NAME", help="only the tests of one exercise, as `unrolled prove` runs them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the exercise that was named."""
    if name := config.getoption("--exercise", None):
        left_out = [item for item in items if name not in _parameters(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if name in _parameters(item)]


def _parameters(item: pytest.Item) -> list[str]:
    call = getattr(item, "callspec", None)
    return [str(value) for value in call.params.values()] if call else []
