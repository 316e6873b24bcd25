from collections.abc import Iterator

import pytest

from unrolled.checks.exercises.l13_capstone import against_the_clock, own

ALONE = "test_fact_1_the_solution_of_an_exercise_is_right"
OF_THE_COURSE = "test_there_are_five_right_answers"  # a class may add an exercise with fewer


@pytest.fixture(scope="module", autouse=True)  # a process runs other modules, too
def _short_capstone() -> Iterator[None]:
    """The two exercises of lesson 13 that train for seconds do so less often: they take a fifth of all these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(against_the_clock, "RUNS", 2)
        patch.setattr(own, "TURNS", 3)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exercise", metavar="NAME", help="only the tests of one exercise, as `unrolled prove` runs them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the exercise that was named; where none was, what whole notebooks say."""
    name = config.getoption("--exercise", None)
    unwanted = OF_THE_COURSE if name else ALONE
    left_out = [each for each in items if each.name.startswith(unwanted) or (name and name not in _parameters(each))]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [each for each in items if each not in gone]


def _parameters(item: pytest.Item) -> list[str]:
    call = getattr(item, "callspec", None)
    return [str(value) for value in call.params.values()] if call else []
