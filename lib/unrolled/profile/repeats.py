"""Ready recordings, repeated: a training step by layer, a function statement by statement."""

from __future__ import annotations

import ast
import copy
import inspect
import statistics
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from unrolled import device
from unrolled.device import Array, Module, array_module
from unrolled.nn import Adam, Compiled, Sequential
from unrolled.nn.optim import Optimizer
from unrolled.nn.watch import Snapshot
from unrolled.profile.profiles import Profile
from unrolled.profile.recording import quiet, recording, span
from unrolled.timing.blocks import device_module, warm_up_on
from unrolled.timing.measuring import is_graded

MEASURED, MODELLED = 20, 3  # repeats: modelled times do not waver
BARE = "without spans inside"
SPAN = "__unrolled_span__"
LONGEST = 36  # characters of a statement
UNTIMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass, ast.Import)
Run = Callable[[], Any]
Named = tuple[Any, str, str]  # an object, its method, the name of the span


def step(
    network: Sequential,
    images: Array,
    labels: Array,
    optimizer: Optimizer | None = None,
    *,
    repeats: int | None = None,
) -> Profile:
    """Measure a training step on one batch: forward, loss, backward and update, by layer.

    The step is the one that `fit` takes for a batch. Steps with and without spans inside take turns, so that the
    profile can say what the spans cost. Reported is the middle half of the repeats (20; 3 on the simulated GPU) after a
    warm-up. Afterwards the network has its parameters and state back; `optimizer` (Adam by default) stays as it is: a
    copy is used. TypeError for what `nn.compiled` returns, ValueError for fewer than 1 repeat.
    """
    if isinstance(network, Compiled):
        text = "network is nn.compiled(...), which has no layers to time"
        raise TypeError(f"{text}: time steps.epoch as a whole, or profile the network that it trains")
    mine = copy.copy(Adam() if optimizer is None else optimizer)
    mine.reset()
    network.build(images.shape[1:], array_module(images))
    before = Snapshot(network)

    def run() -> None:
        network.loss_and_scores(images, labels)
        mine.step(network.parameters, network.gradients)

    try:
        module = array_module(network.parameters)
        return _repeated("step", run, lambda: by_layer(network, mine), module, repeats)
    finally:
        before.restore()
        for layer in network.layers:
            layer.forget()


def statements(
    function: Callable[..., Any],
    *args: Any,
    repeats: int | None = None,
    **kwargs: Any,
) -> Profile:
    """Measure a call of `function` with these arguments, by statement; those of loops and branches lie inside them.

    The call runs on a copy of the function's globals, and what it calls in turn is not divided. The device of the first
    device array among the arguments does the work. ValueError unless `function` is written in Python with `def`.
    """
    timed, current = spanned(function, span), [function]

    @contextmanager
    def spans() -> Iterator[None]:
        current.append(timed)
        yield
        current.pop()

    module = device_module(args, kwargs) or np
    return _repeated(timed.__name__, lambda: current[-1](*args, **kwargs), spans, module, repeats)


def by_layer(network: Sequential, optimizer: Optimizer | None = None) -> AbstractContextManager[None]:
    """Record each pass and layer of `network` inside the block as a span of the recording that runs, whoever calls it.

    If `optimizer` is given, each of its steps is a span `update`.
    """
    names: list[Named] = [(network, way, way) for way in ("forward", "loss", "backward")]
    update: list[Named] = [] if optimizer is None else [(optimizer, "step", "update")]
    return _renamed([*names, *_layers(network, "forward", "backward"), *update])


def _layers(network: Sequential, *ways: str) -> list[Named]:
    return [(layer, way, f"{number}: {layer!r}") for number, layer in enumerate(network.layers) for way in ways]


@contextmanager
def _renamed(names: Sequence[Named]) -> Iterator[None]:
    """Let each (object, method) be a span of that name inside the block; afterwards all is as it was."""
    before = [(owner, method, vars(owner).get(method)) for owner, method, _ in names]
    try:
        for owner, method, name in names:
            setattr(owner, method, _inside(name, getattr(owner, method)))
        yield
    finally:
        for owner, method, value in before:
            if value is None:
                owner.__dict__.pop(method, None)
            else:
                setattr(owner, method, value)


def _inside(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        with span(name):
            return function(*args, **kwargs)

    return timed


def _repeated(name: str, run: Run, spans: Callable[[], Any], module: Module, repeats: int | None) -> Profile:
    """Runs with and without spans inside, in pairs, after a warm-up; the middle half of those with."""
    if repeats is None:
        repeats = MODELLED if module is not np and device.is_simulated(module) else MEASURED
        repeats = 1 if is_graded() else repeats  # nobody reads the figures
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; expected at least 1")
    with quiet():
        _warm_up(run, module)
    with recording(module) as recorder:
        for number in range(repeats):
            for bare in (True, False) if number % 2 else (False, True):
                with recorder.span(BARE if bare else name), quiet() if bare else spans():
                    run()
    with_spans, without = ([part for part in recorder.spans[0].parts if part.name == kind] for kind in (name, BARE))
    ratio = statistics.median(pair[0].seconds / pair[1].seconds for pair in zip(with_spans, without, strict=True))
    host_parts = None
    if getattr(module, "__name__", "") == "unrolled.simgpu":
        with module.trace() as trace:
            run()
        host_parts = trace.host_parts
    ordered, quarter = sorted(with_spans, key=lambda span: span.seconds), repeats // 4
    kept = ordered[quarter : repeats - quarter]  # as steady as a median, but the parts still add up
    bare_seconds = sum(span.seconds for span in kept) / len(kept) / ratio
    return Profile(recorder.where, recorder.on_device, kept, bare=bare_seconds, host_parts=host_parts)


def _warm_up(run: Run, module: Module) -> None:
    warm, calls, start = warm_up_on(module), 0, time.perf_counter()
    while calls < warm.calls or time.perf_counter() - start < warm.seconds:
        run()
        calls += 1


def spanned(function: Callable[..., Any], span: Callable[[str], Any]) -> Callable[..., Any]:
    """Return `function` with `with span("LINE: statement"):` around its statements, also in loops and branches.

    Definitions, `import NAME`, `global`, `nonlocal`, `pass` and docstrings stay without one. Its `def` is line 1.
    Decorators are left out. ValueError for what is no plain `def` in Python, and where the source cannot be found.
    """
    if isinstance(function, MethodType):
        return MethodType(spanned(function.__func__, span), function.__self__)
    if not isinstance(function, FunctionType):
        raise ValueError(f"function is {function!r}; expected one that is written in Python, with def")
    try:
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
    except (OSError, SyntaxError, IndexError) as error:
        raise ValueError(f"the source of {function.__name__} cannot be read: {error}") from None
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        raise ValueError(f"{function.__name__} is not written with a plain def")
    definition.decorator_list = []
    timed = _Timed(definition.lineno - 1)
    definition.body = [timed.visit(statement) for statement in definition.body]
    return _compiled(definition, function, span)


class _Timed(ast.NodeTransformer):
    """Puts each statement into a span, also those inside loops and branches. `above`: lines before the `def`."""

    def __init__(self, above: int) -> None:
        self.above = above

    def visit(self, node: ast.AST) -> Any:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (*UNTIMED, ast.expr)) or is_docstring:
            return node
        if not isinstance(node, ast.stmt):  # an `except` or a `case`, with statements inside
            return self.generic_visit(node)
        text = ast.unparse(node).split("\n")[0]
        text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        call = ast.Call(ast.Name(SPAN, ast.Load()), [ast.Constant(f"{node.lineno - self.above}: {text}")], [])
        self.generic_visit(node)
        return ast.With([ast.withitem(call, None)], [node])


def _compiled(definition: ast.FunctionDef, function: FunctionType, span: Callable[[str], Any]) -> Callable[..., Any]:
    """The new function with the defaults, the globals and the outer variables of the old one, as they are now."""
    outer = function.__code__.co_freevars
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    arguments = definition.args
    arguments.defaults, arguments.kw_defaults, definition.returns = [], [None] * len(arguments.kwonlyargs), None
    maker = ast.parse(f"def maker({', '.join(outer)}):\n    return {function.__name__}").body[0]
    assert isinstance(maker, ast.FunctionDef)
    maker.body.insert(0, definition)
    module = ast.fix_missing_locations(ast.Module([maker], []))
    space = {**function.__globals__, SPAN: span}
    exec(compile(module, f"<{function.__name__}, by statement>", "exec"), space)
    made: FunctionType = space["maker"](*cells)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made
