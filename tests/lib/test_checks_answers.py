"""The library is withheld from a learner's function, but what its exercise allows, by whatever path it is reached."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import subprocess
import sys
import threading
from types import FunctionType

import numpy as np
import pytest

from unrolled import checks, device, journal, nn, ops, parallel, profile
from unrolled.checks import answers
from unrolled.checks.answers import AnswerUsedError, known_as, library, withheld
from unrolled.checks.run import HERE, run
from unrolled.checks.spec import Spec, Speed, case, normal

X, WEIGHT = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
layers = nn.Sequential(nn.Conv2d(1, 2)).build((1, 3, 3))
step = layers.forward
batches = functools.partial(checks.all_specs()["minibatches_balanced"].reference, X, np.zeros(1, int), 1, 0)
LOOPS = ops.conv2d_loops
copied = FunctionType(LOOPS.__code__, LOOPS.__globals__, closure=LOOPS.__closure__)


def in_a_thread():
    raised = []

    def work():
        try:
            ops.conv2d(X, WEIGHT)
        except AnswerUsedError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise raised[0]


def module(name):
    return importlib.import_module(f"unrolled.{name}")


WAYS = {
    "by name": lambda: ops.conv2d(X, WEIGHT),
    "arguments that do not fit": lambda: ops.conv2d(),
    "a partial": functools.partial(ops.conv2d, X, WEIGHT),
    "a layer made before": lambda: layers.forward(X),
    "a bound method": lambda: step(X),
    "a class": lambda: nn.Linear(3),
    "a generator": lambda: next(batches()),
    "a thread": in_a_thread,
    "a private module": lambda: module("ops.blocks").forward(X, WEIGHT, None, None),
    "a kernel's module": lambda: module("kernels").matmul(X, X),
    "the journal": lambda: journal.mine("conv2d_gemm")(X, WEIGHT),
    "a copy, by what it calls": lambda: copied(X, WEIGHT, None, 1, 0),
    "a reference": lambda: checks.all_specs()["im2col_nhwc"].reference(X, 2),
    "a usual mistake": lambda: checks.all_specs()["conv2d_gemm"].mistakes[0].of(ops.conv2d)(X, WEIGHT),
    "the inverse of what is allowed": lambda: ops.col2im(ops.im2col(X, 2), X.shape, 2),
    "an emulated rank": lambda: parallel.emulate(ops.conv2d, 1),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_is_not_allowed_refuses_and_is_itself_again(way):
    codes = [function.__code__ for function in library()]
    with withheld([ops.im2col]), pytest.raises(AnswerUsedError, match=r"; you may use ops\.im2col"):
        way()
    assert [function.__code__ for function in library()] == codes


def test_what_is_allowed_calls_what_it_needs_and_so_do_inputs():
    def made(x):
        return lambda: ops.relu(x)

    with withheld([ops.im2col, nn], needed=answers.functions_in([layers, made])):
        assert ops.im2col(X, 2).shape == (4, 4)
        assert made(X)().shape == X.shape
        assert step(X).shape == (1, 1, 2, 2)
        assert nn.Sequential(nn.Linear(3)).build((2,)).forward(X[0, 0, :, :2]).shape == (3, 3)
        with pytest.raises(AnswerUsedError):
            ops.conv2d(X, WEIGHT)
    assert ops.conv2d(X, WEIGHT).shape == (1, 1, 2, 2)


def test_all_that_is_public_refuses():
    """But names for what belongs together. What carries messages between ranks is not withheld."""
    public = [getattr(module, name) for module in (nn, ops, parallel, profile) for name in module.__all__]
    with withheld(()):
        left = [known_as(each) for each in public if callable(each) and not refuses(each)]
    held = [name for name in left if not name.startswith("parallel.")]
    assert held == ["nn.Evaluation", "ops.LSTMGates", "ops.LSTMWeights"]


def refuses(function):
    try:
        function()
    except Exception as error:
        return isinstance(error, AnswerUsedError)
    return False


def test_a_generator_made_in_a_block_refuses_after_it():
    with withheld(()):
        made = batches()
    with pytest.raises(AnswerUsedError):
        next(made)


IMPORTED = """
import sys
from pathlib import Path
from unrolled.checks import answers
answers.library()
root = Path(answers.__file__).parents[2]
files = (file.relative_to(root).with_suffix("") for file in root.rglob("*.py"))
names = {".".join(file.parts).removesuffix(".__init__") for file in files}
print(sorted(name for name in names - sys.modules.keys() if answers.computes(name)))
"""


def test_no_module_is_left_to_be_imported_by_an_answer():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_interrupt_while_entering_leaves_nothing_withheld(monkeypatch):
    given = answers._give

    def interrupted(functions, codes):
        given(functions, codes)
        monkeypatch.setattr(answers, "_give", given)
        raise KeyboardInterrupt

    monkeypatch.setattr(answers, "_give", interrupted)
    with pytest.raises(KeyboardInterrupt), withheld(()):
        pytest.fail("entered all the same")
    assert ops.merge([1], [2]) == [1, 2]


def test_blocks_may_nest_and_each_may_be_left_by_an_error():
    with withheld([ops.merge]):
        with contextlib.suppress(SystemExit), withheld(()):
            assert refuses(ops.merge)
            raise SystemExit
        assert ops.merge([1], [2]) == [1, 2]
        assert refuses(ops.merge_sort)
    assert ops.merge_sort([2, 1]) == [1, 2]


# In a run

SPEC = Spec(
    reference=ops.relu,
    allows=(ops.step,),
    cases=[case("three numbers", x=normal(3)), case("four numbers", x=normal(4))],
    points=2,
    hints=("a", "b", "c"),
    speed=Speed(baseline=ops.softplus, inputs={"x": normal(5)}, at_least=0.001, points=1, against="another"),
)


def by_step(x):
    return x * ops.step(x)


@pytest.mark.parametrize("used", [ops.relu, lambda x: ops.relu(x), functools.partial(ops.leaky_relu, slope=0)])
@pytest.mark.parametrize("call", [None, lambda function, inputs: function(**inputs)])
def test_what_is_allowed_earns_and_what_is_not_fails_and_says_so(used, call):
    spec = dataclasses.replace(SPEC, call=call)
    found = run("relu", spec, used)
    assert (found.points, found.findings[0].verdict) == (0, "fail")
    assert "relu, which this exercise does not allow: write it yourself; you may use ops.step" in found.parts[0].detail
    assert run("relu", spec, by_step).points == 3


def test_what_is_used_where_it_is_timed_earns_no_speed():
    """Also if it is used from the second call on, when values have been compared."""
    calls = []

    def later(x):
        calls.append(len(x))
        return by_step(x) if calls.count(5) < 2 else ops.relu(x)

    found = run("relu", SPEC, later)
    assert [part.points for part in found.parts] == [2, 0]
    assert "which this exercise does not allow" in found.parts[1].detail


def test_a_function_that_lives_elsewhere_is_not_withheld_from_here():
    """What calls the answers in this process is then not the learner's function."""
    elsewhere = dataclasses.replace(HERE, withhold=False, race=None)
    assert run("relu", SPEC, lambda x: ops.relu(x), place=elsewhere).points == 2

    def stand_in(x):
        raise AnswerUsedError("this calls something")

    found = run("relu", SPEC, stand_in, place=elsewhere)
    assert (found.findings[0].verdict, found.findings[0].lines) == ("fail", ("this calls something",))


# In every spec


def gates_one_by_one(x, weight_ih, weight_hh, bias):
    xp, y = device.array_module(x), []
    h = c = xp.zeros((x.shape[1], weight_hh.shape[1]), x.dtype)
    for t in range(len(x)):
        h, c = ops.lstm_step(x[t], h, c, weight_ih, weight_hh, bias)
        y.append(h)
    return xp.stack(y)


def whole_layer(x, weight_ih, weight_hh, bias):
    return ops.lstm(x, [ops.LSTMWeights(weight_ih, weight_hh, bias)])[0]


def one_step(x, h, c, weight_ih, weight_hh, bias):
    _, (h, c) = ops.lstm(x[None], [ops.LSTMWeights(weight_ih, weight_hh, bias)], (h[None], c[None]))
    return h[0], c[0]


def tiles(x, weight, bias=None, padding=0):
    x, weight, bias, windows = module("ops.conv_arguments").forward_arguments(x, weight, bias, 1, padding)
    return module("ops.winograd").forward(x, weight, bias, windows)


FOUND = {
    "combined_gates": (gates_one_by_one, whole_layer),
    "inputs_at_once": (whole_layer,),
    "lstm_step": (one_step,),
    "winograd_conv2d": (tiles,),
}
"""Answers by way of parts that nobody thought of, which trials found."""


@pytest.mark.parametrize(("name", "used"), [(name, used) for name, ways in FOUND.items() for used in ways])
def test_what_trials_found_earns_nothing(name, used):
    spec = dataclasses.replace(checks.all_specs()[name], speed=None)
    found = run(name, spec, lambda *given, **named: used(*given, **named))
    assert found.points == 0
    assert "which this exercise does not allow" in found.parts[0].detail


@pytest.mark.parametrize(("name", "spec"), checks.all_specs().items())
def test_no_function_of_the_library_is_the_answer(name, spec, monkeypatch):
    """Neither those that a spec is made of, nor what it allows."""
    monkeypatch.setattr("unrolled.checks.exercises.l13_capstone.own.TURNS", 1)  # whose digits take long to draw
    monkeypatch.setattr("unrolled.checks.exercises.l13_capstone.against_the_clock.RUNS", 1)
    tried = [spec.reference, *([spec.speed.baseline] if spec.speed else [])]
    for allowed in spec.allows:
        tried += map(vars(allowed).get, allowed.__all__) if inspect.ismodule(allowed) else [allowed]
    for function in tried:
        assert run(name, dataclasses.replace(spec, speed=None, rung=None), function).points == 0, function
