"""The library's own answers are withheld from a learner's function, and from nothing else."""

import asyncio
import contextlib
import dataclasses
import functools
import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled import checks, nn, ops
from unrolled.checks.answers import AnswerUsedError, answers_of, known_as, withheld
from unrolled.checks.run import HERE, run
from unrolled.checks.spec import Mistake, Spec, Speed, case, normal

X, WEIGHT = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
partial = functools.partial(ops.conv2d, X)


class Tool:
    def method(self, a, b=2):
        return a + b

    @classmethod
    def of_class(cls, a):
        return cls, a

    @staticmethod
    def static(a):
        return a


def closure(n):
    def add(a, *, b=1):
        return a + b + n

    return add


def generator(a):
    yield a


async def coroutine(a):
    return a


add_5 = closure(5)
CALLS = {
    "ops.conv2d": (ops.conv2d, lambda: ops.conv2d(X, WEIGHT)),
    "a layer that calls it": (ops.conv2d, lambda: nn.Sequential(nn.Conv2d(1, 2)).build((1, 3, 3)).forward(X)),
    "a partial is withheld": (partial, lambda: ops.conv2d(X, WEIGHT)),
    "a method": (Tool.method, lambda: Tool().method(1)),
    "a class method": (Tool.of_class, lambda: Tool.of_class(1)),
    "a static method": (Tool.static, lambda: Tool.static(1)),
    "a closure": (add_5, lambda: add_5(1)),
    "a coroutine": (coroutine, lambda: asyncio.run(coroutine(1))),
    "arguments that do not fit": (ops.conv2d, lambda: ops.conv2d()),
}


@pytest.mark.parametrize(("function", "call"), CALLS.values(), ids=list(CALLS))
def test_a_withheld_function_refuses_by_every_name_and_is_itself_again(function, call):
    code = answers_plain(function).__code__
    with withheld([function]), pytest.raises(AnswerUsedError):
        call()
    assert answers_plain(function).__code__ is code
    with contextlib.suppress(TypeError):  # of arguments that do not fit
        call()


def answers_plain(function):
    function = getattr(function, "func", function)
    return getattr(function, "__func__", function)


def test_an_interrupt_while_entering_leaves_nothing_withheld(monkeypatch):
    held = withheld([ops.merge])
    given = withheld._give

    def interrupted(self, codes):
        given(self, codes)
        monkeypatch.setattr(withheld, "_give", given)
        raise KeyboardInterrupt

    monkeypatch.setattr(withheld, "_give", interrupted)
    with pytest.raises(KeyboardInterrupt), held:
        pytest.fail("entered all the same")
    assert ops.merge([1], [2]) == [1, 2]


FUNCTIONS = (ops.merge, ops.merge_sort, ops.bubble_sort, ops.amdahl_speedup, generator)


ERRORS = ValueError, KeyboardInterrupt, SystemExit, GeneratorExit


@given(st.lists(st.sets(st.sampled_from(FUNCTIONS)), max_size=6), st.integers(0, 6), st.sampled_from(ERRORS))
def test_blocks_may_nest_in_any_way(blocks, error_at, error):
    """After any nesting, left by any error at any depth, every function has its own code."""
    codes = [function.__code__ for function in FUNCTIONS]

    def enter(rest):
        if len(rest) == error_at:
            raise error
        if not rest:
            return
        with withheld(rest[0]):
            enter(rest[1:])
            assert all(refuses(function) for function in rest[0])

    with contextlib.suppress(error):
        enter(blocks)
    assert [function.__code__ for function in FUNCTIONS] == codes


def refuses(function):
    try:
        next(function()) if function is generator else function()
    except AnswerUsedError:
        return True
    except TypeError:
        return False


# In a run


def learners(x):
    return x + x


def answer(x):
    return 2 * x


def another_answer(x):
    return 3 * x - x


def baseline(x):
    return np.array([2 * value for value in x], x.dtype)


SPEC = Spec(
    reference=answer,
    cases=[case("three numbers", x=normal(3)), case("four numbers", x=normal(4))],
    points=2,
    hints=("a", "b", "c"),
    mistakes=[Mistake("the sign is turned", lambda x: -answer(x))],
    speed=Speed(baseline=baseline, inputs={"x": normal(5)}, at_least=0.001, points=1, against="a loop"),
    answers=(another_answer,),
)


def test_reference_baseline_and_answers_count_each_once():
    assert answers_of(SPEC) == (answer, baseline, another_answer)
    assert answers_of(dataclasses.replace(SPEC, answers=(answer,), speed=None)) == (answer,)


@pytest.mark.parametrize("used", [answer, baseline, another_answer])
def test_calling_an_answer_fails_and_says_so(used):
    found = run("double", SPEC, lambda x: used(x))
    assert [part.points for part in found.parts] == [0, 0]
    assert found.findings[0].verdict == "fail"
    assert found.findings[0].lines == (
        f"this calls {__name__}.{used.__name__}, the library's own answer to this exercise: write it yourself",
    )
    assert run("double", SPEC, used).parts[0].verdict == "fail"


def test_an_answer_that_is_used_on_the_timed_inputs_only_fails():
    found = run("double", SPEC, lambda x: learners(x) if len(x) < 5 else answer(x))
    assert [part.verdict for part in found.parts] == ["pass", "fail"]


def test_a_function_that_lives_elsewhere_is_not_withheld_from_here():
    """What calls the answers in this process is then not the learner's function."""
    elsewhere = dataclasses.replace(HERE, withhold=False)
    assert run("double", SPEC, lambda x: answer(x), place=elsewhere).passed

    def stand_in(x):
        raise AnswerUsedError("this calls something")

    found = run("double", SPEC, stand_in, place=elsewhere)
    assert (found.findings[0].verdict, found.findings[0].lines) == ("fail", ("this calls something",))


# In every spec

LAUNCHED = {"add_kernel", "add_kernel_backwards"}  # kernels that the spec launches: they can call no Python at all
ALL = [
    pytest.param(name, answer, id=f"{name}-{getattr(answer, '__qualname__', 'partial')}")
    for name, spec in checks.all_specs().items()
    for answer in answers_of(spec)
    if name not in LAUNCHED
]


@pytest.mark.parametrize(("name", "used"), ALL)
def test_each_answer_of_each_spec_is_refused_by_name(name, used):
    """Whatever the arguments: they are not even bound."""
    spec = checks.all_specs()[name]
    found = run(name, spec, with_parameters_of(spec.reference, lambda **given: used(**given)))
    plain = answers_plain(used)
    assert plain.__code__.co_name != known_as(plain)  # it has its own code again
    assert (found.parts[0].verdict, found.points) == ("fail", 0)
    assert f"this calls {known_as(plain)}, the library's own answer" in found.parts[0].detail


def with_parameters_of(reference, function):
    """The function, called with names for all arguments."""
    signature = inspect.signature(reference)

    def learners_function(*positional, **named):
        return function(**signature.bind(*positional, **named).arguments)

    return learners_function
