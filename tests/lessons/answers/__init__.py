"""Wrong and imperfect answers to every exercise, one file a lesson: what facts 3 and 4 are tested with.

MUTANTS: wrong functions a learner might write, each with a phrase that the check must say.
HONEST:  two correct, imperfect but fast enough functions for each check with a speed part (1.5 T or more).
LOOP:    a correct function that the speed part must not pass (0.67 T or less).
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A wrong answer, and a phrase of the report that would help its author."""

    function: Callable[..., Any]
    says: str
