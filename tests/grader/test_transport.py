"""The judge's side of a worker: what is called, given, answered, and survived."""

import select
import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from waiting import eventually, gone

from unrolled.checks.crashes import ReportedError
from unrolled.checks.limits import TimeLimitError
from unrolled_grader.box import transport, wire
from unrolled_grader.box.transport import Worker, WorkerDiedError

LIMIT = 60.0
STUBBORN = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"
RAW = """\
import json, os, socket, stat, struct
def raw(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    for number in range(3, 20):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as one:
                    one.sendall(struct.pack("!I", len(data)) + data)
        except OSError: pass
"""
"""A way to say anything to the judge."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Worker]:
    with Worker(boxed=True) as worker:
        yield worker


@pytest.fixture
def fresh() -> Iterator[Worker]:
    with Worker(boxed=True) as worker:
        assert worker.run_cell("1", LIMIT) is None  # it listens: a short limit does not end before its cell begins
        yield worker


def bound(worker: Worker, source: str) -> Callable[..., Any]:
    """The function `f` of this source, called in the worker."""
    assert worker.run_cell(textwrap.dedent(source), LIMIT) is None
    worker.bind("f")
    return lambda *positional, **named: worker.call(positional, named, LIMIT)


# What a call gives


def test_results_are_plain_data(shared: Worker) -> None:
    f = bound(shared, "def f(x, *, k=2):\n    return {'list': [x * k, None, True, 1.5], 'tuple': (x.dtype.str, {3})}")
    got = f(np.arange(3, dtype="f4"), k=3)
    np.testing.assert_array_equal(got["list"][0], np.array([0, 3, 6], "f4"))
    assert got["list"][0].dtype == np.float32
    assert got["list"][1:] == [None, True, 1.5]
    assert got["tuple"][0] == "<f4"
    assert type(got["tuple"][1]).__name__ == "set"


def test_binding_describes_the_function(shared: Worker) -> None:
    shared.run_cell("def f(a, b=1, *c, d): pass\nx = 3\nclass Odd: g = property(lambda self: 1 / 0)", LIMIT)
    parameters = [["a", 1, False], ["b", 1, True], ["c", 2, False], ["d", 3, False]]
    described = {"bound": "function", "parameters": parameters, "callable": True, "borrowed": None}
    assert shared.bind("f") == described
    assert shared.bind("x") == {"bound": "int", "parameters": None, "callable": False, "borrowed": None}
    assert shared.bind("nosuch")["unbound"][0] == "NameError"
    assert shared.bind("Odd().g")["unbound"] == ["ZeroDivisionError", "division by zero"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise ValueError('x' * 1000)", f"ValueError: {'x' * 297}..."),
    ],
)
def test_what_a_function_raises_is_reported_with_its_line(body: str, message: str, shared: Worker) -> None:
    with pytest.raises(ReportedError) as raised:
        bound(shared, f"def f():\n    {body}")()
    assert raised.value.lines == (f"raised {message}", f"in line 2: {body}")
    assert bound(shared, "def f():\n    exit()")() is None


def test_changes_of_inputs_show_in_ours(shared: Worker) -> None:
    f = bound(shared, "def f(x, y, many, pair):\n    x[0] = 9\n    y.append(4)\n    many[1][:] = 7\n    pair[0].sort()")
    x, y, many, pair = np.zeros(2), [1, 2], [np.zeros(2), np.zeros(2)], ([3, 1], 2)
    f(x, y, many, pair=pair)
    assert x.tolist() == [9, 0]
    assert y == [1, 2, 4]
    assert [array.tolist() for array in many] == [[0, 0], [7, 7]]


def test_large_inputs_arrive_and_too_large_ones_are_named(shared: Worker) -> None:
    f = bound(shared, "def f(x):\n    return x[-1], x.nbytes")
    assert f(np.full(100 * 2**20, 3, np.uint8)) == (3, 100 * 2**20)
    with pytest.raises(MemoryError, match="bytes more than the 234,881,024 there is room for"):
        f(np.zeros(240 * 2**20, np.uint8))
    assert f(np.ones(1, np.uint8)) == (1, 1)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ("__import__('numpy').zeros(300 * 2**20, 'u1')", "raised MemoryError"),
        ("(lambda f: f(f))(lambda f: [f(f)])", "raised RecursionError"),
    ],
)
def test_results_that_cannot_be_sent_are_reported(result: str, says: str, shared: Worker) -> None:
    with pytest.raises(ReportedError, match=says):
        bound(shared, f"def f():\n    return {result}")()
    assert bound(shared, "def f():\n    return 10**100_000")() is not None
    assert shared.dead == ""


# Objects that the judge keeps


class Network:
    """What stays with the judge."""

    secret = "the labels"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(x)
        return x * 2

    def __call__(self, x: Any, *, add: float = 0.0) -> Any:
        return {"sum": x.sum() + add, "kept": self}

    def labels(self) -> str:
        return self.secret


def test_arrays_go_both_ways(shared: Worker) -> None:
    source = """\
    import numpy as np_
    def f(network):
        a = network.forward(np_.ones((2, 3), 'f4'))
        return a, network(a, add=0.5)['sum']"""
    network = Network()
    got, total = bound(shared, source)(network)
    np.testing.assert_array_equal(got, np.full((2, 3), 2, "f4"))
    assert got.dtype == np.float32
    assert total == 12.5
    np.testing.assert_array_equal(network.seen[0], np.ones((2, 3)))


def test_many_replies_do_not_fill_the_shared_file(shared: Worker) -> None:
    source = """\
    import numpy
    def f(network):
        x = numpy.ones(50_000)
        return sum(network.forward(x)[-1] for n in range(100))"""
    assert bound(shared, source)(Network()) == 200


def test_an_object_of_an_earlier_call_is_gone(shared: Worker) -> None:
    f = bound(shared, "def f(network=None, n=[]):\n    n.append(network)\n    return n[0].forward(1)")
    assert f(Network()) == 2
    with pytest.raises(ReportedError, match="there is no 'forward' to call"):
        f()


# Limits


def test_a_cell_or_a_call_that_overruns_is_interrupted_and_the_worker_lives(
    fresh: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "GRACE", LIMIT)  # it is given time to answer an interrupt
    assert fresh.run_cell("while True: pass", 1.5) == ("KeyboardInterrupt", "", "")
    bound(fresh, "import time\ndef f(seconds):\n    time.sleep(seconds)\n    return 'slept'")
    with pytest.raises(TimeLimitError, match=r"ran longer than 1\.5 s"):
        fresh.call([100], {}, 1.5)
    assert fresh.call([0], {}, LIMIT) == "slept"


@pytest.mark.parametrize("how", ["cell", "call", "bind", "go"])
def test_what_ignores_the_interrupt_is_killed(how: str, fresh: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(fresh, f"{STUBBORN}\ndef f():\n    time.sleep(600)\nclass Slow:\n    g = property(lambda self: f())")
    fresh.prepare([{}], 64)
    monkeypatch.setattr(transport, "START_LIMIT", 1.0)
    ways: dict[str, Callable[[], Any]] = {
        "cell": lambda: fresh.run_cell("f()", 0.5),
        "call": lambda: fresh.call([], {}, 0.5),
        "bind": lambda: fresh.bind("Slow().g"),
        "go": lambda: fresh.go(1, 0.5),
    }
    begun = time.monotonic()
    with pytest.raises(TimeLimitError):
        ways[how]()
    assert time.monotonic() - begun < 50
    assert "after an interrupt" in fresh.dead
    with pytest.raises(WorkerDiedError):
        fresh.run_cell("1", LIMIT)


# Death, and lies


@pytest.mark.parametrize("stage", ["bind", "call", "ask", "prepare", "go", "between"])
def test_death_at_any_stage_is_told(stage: str, fresh: Worker) -> None:
    source = f"""\
    import gc, os
    class Deadly:
        g = property(lambda self: os._exit(0))
    def f(network=None):
        if network is not None: network.forward(1)
        if {stage in ("call", "go", "ask")}: os._exit(0)
    if {stage == "prepare"}:
        gc.disable()  # there it is asked for, and sooner it must not come
        gc.callbacks.append(lambda *_: os._exit(0))
    """
    bound(fresh, source)
    if stage == "between":
        fresh.send_signal(signal.SIGKILL)
        assert eventually(lambda: gone(fresh.pid))
    ways: dict[str, Callable[[], Any]] = {
        "bind": lambda: fresh.bind("Deadly().g"),
        "ask": lambda: fresh.call([Network()], {}, LIMIT),
        "prepare": lambda: fresh.prepare([{}], 64),
        "go": lambda: (fresh.prepare([{}], 64), fresh.go(1, LIMIT)),
    }
    with pytest.raises(WorkerDiedError, match="it ended"):
        ways.get(stage, lambda: fresh.call([], {}, LIMIT))()


@pytest.mark.parametrize(
    "answer",
    [{"ended": 3}, {"ended": [[], {}]}, {"ended": ["A", "B", "C"]}, {"raised": [1], "lines": [[1]]}, {"ask": {}}],
)
def test_odd_words_in_an_answer_break_nothing(answer: Any, fresh: Worker) -> None:
    """The cell phase believes whatever ends it, but nothing but a text is a text."""
    fresh.run_cell(RAW, LIMIT)
    try:
        ended = fresh.run_cell(f"raw({answer!r})", LIMIT)
    except WorkerDiedError:
        return
    assert ended is None or all(isinstance(word, str) for word in ended)


def test_a_block_is_answered_by_its_own_answer_alone(fresh: Worker) -> None:
    bound(fresh, f"{RAW}\ndef f():\n    raw({{'done': 'guessed'}})\n    return 1.0")
    fresh.prepare([{}], 64)
    with pytest.raises(WorkerDiedError, match="another question"):
        fresh.go(1, LIMIT)


def test_an_answer_before_its_question_is_none(fresh: Worker) -> None:
    bound(fresh, f"{RAW}\ndef f():\n    return 1.0")
    fresh.prepare([{}], 64)
    fresh._channel.send({"cell": "raw({'done': 'early'})"})
    assert select.select([fresh.socket], [], [], LIMIT)[0]
    with pytest.raises(WorkerDiedError, match="before it was asked"):
        fresh.go(1, LIMIT)


# Blocks


def test_a_block_leaves_its_results_and_its_inputs_in_sight(shared: Worker) -> None:
    bound(shared, "def f(x):\n    return x * 2")
    inputs = [{"x": np.full(3, n, "f8")} for n in range(4)]
    shared.prepare(inputs, wire.aligned(24))
    took = shared.go(10, LIMIT)
    assert took.wall > 0
    for number in range(4):
        np.testing.assert_array_equal(shared.result(number, wire.aligned(24), inputs[0]["x"]), np.full(3, 2.0 * number))
        np.testing.assert_array_equal(shared.inputs_now(number)["x"], inputs[number]["x"])


def test_a_result_larger_than_its_place_spills_into_no_other(shared: Worker) -> None:
    bound(shared, "import numpy\ndef f(n):\n    return numpy.full(1000 if n == 0 else 8, n, 'f8')")
    shared.prepare([{"n": 1}, {"n": 2}, {"n": 0}, {"n": 3}], 64)
    shared.go(4, LIMIT)
    assert shared.result(3, 64, np.zeros(8)).tolist() == [3.0] * 8
    shared.go(3, LIMIT)  # the last one is longer than its place, and ends where the next one begins
    assert shared.result(3, 64, np.zeros(8)).tolist() == [3.0] * 8


# Ends


def test_a_flood_of_text_during_a_call_is_taken_in(shared: Worker) -> None:
    printed: list[str] = []
    shared.on_print = lambda name, text: printed.append(text)
    try:
        assert bound(shared, "def f():\n    print('x' * 3_000_000, flush=True)\n    return 7")() == 7
    finally:
        shared.on_print = lambda name, text: None
    assert sum(map(len, printed)) == 3_000_001


def test_what_stands_below_a_failed_line_is_interrupted_as_well(fresh: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "GRACE", LIMIT)
    assert fresh.run_cell("1 / 0\nimport time\ntime.sleep(600)\nlater = 1", 1.5) == ("KeyboardInterrupt", "", "")
    assert fresh.run_cell("later", LIMIT) == ("NameError", "name 'later' is not defined", "")
