"""The specs of the exercises: a folder a lesson, such as `l02_convolution`.

In it, `exercises.py` declares the lesson's specs and `variants.py`, where there is one, what an instructor can choose
in their place. A spec's name is the name of its variable. A folder imports from those before it and the framework.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def declared(name: str) -> dict[str, ModuleType]:
    """Import the module `name` of each folder that has one, by lesson and in order: {"02_convolution": …, …}."""
    found = {}
    for folder in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        package = importlib.import_module(f"{__name__}.{folder}")
        if name in {info.name for info in pkgutil.iter_modules(package.__path__)}:
            found[folder.removeprefix("l")] = importlib.import_module(f"{package.__name__}.{name}")
    return found
