"""unrolled.profile: spans, the tree that they add up to, and what is left over. On clocks of paper."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest

from unrolled import nn, profile
from unrolled.profile import REMAINDER, Recording


class PaperClock:
    """The wall clock of the host: it moves when it is told to, and by `reading` whenever it is read."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reading = 0.0

    def perf_counter(self) -> float:
        self.now += self.reading
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> PaperClock:
    paper = PaperClock()
    monkeypatch.setattr(sys.modules[Recording.__module__], "time", paper)
    return paper


def recorded(wall: PaperClock) -> profile.Recording:
    """forward 3 s, of which conv 2 s in two calls; backward 5 s; 2 s in neither."""
    with profile.recording(name="step") as p:
        with p.span("forward"):
            for seconds in (0.5, 1.5):
                with p.span("conv"):
                    wall.pass_by(seconds)
            wall.pass_by(1)
        wall.pass_by(2)
        with p.span("backward"):
            wall.pass_by(5)
    return p


# the tree


def test_spans_of_one_name_add_up_where_they_stand(wall: PaperClock) -> None:
    p = recorded(wall)
    assert [part.name for part in p.root.parts] == ["forward", "backward"]
    conv = p.at("forward", "conv")
    assert (conv.calls, conv.seconds, conv.self_seconds) == (2, pytest.approx(2), pytest.approx(2))
    assert p.at("forward").self_seconds == pytest.approx(1)


def test_the_tree_as_plain_data(wall: PaperClock) -> None:
    tree = json.loads(json.dumps(recorded(wall).tree))
    assert tree["where"].startswith("measured, CPU, ")
    assert {name: tree[name] for name in ("name", "calls", "share")} == {"name": "step", "calls": 1, "share": 1}
    forward, backward = tree["parts"]
    assert (forward["share"], backward["share"]) == (pytest.approx(0.3), pytest.approx(0.5))
    assert forward["parts"][0]["name"] == "conv"


def test_a_part_that_is_not_there_names_those_that_are(wall: PaperClock) -> None:
    with pytest.raises(ValueError, match="'step' has no part 'update'; it has 'forward', 'backward'"):
        recorded(wall).at("update")
    with pytest.raises(ValueError, match="'conv' has no part 'x'; it has none"):
        recorded(wall).at("forward", "conv", "x")


def test_a_span_from_anywhere_belongs_to_the_recording_that_runs(wall: PaperClock) -> None:
    def layer() -> None:
        with profile.span("fill"):
            wall.pass_by(1)

    layer()
    with profile.recording() as p, p.span("backward"):
        layer()
    layer()
    assert p.at("backward", "fill").calls == 1


def test_an_error_ends_spans_and_recording(wall: PaperClock) -> None:
    kept: list[profile.Recording] = []

    def fails() -> None:
        with profile.recording() as p, p.span("outer"):
            kept.append(p)
            p.begin("never closed")
            wall.pass_by(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert kept[0].at("outer", "never closed").seconds == pytest.approx(1)
    with profile.recording() as q, profile.span("next"):
        wall.pass_by(1)
    assert [part.name for part in q.root.parts] == ["next"]


def test_there_is_no_tree_before_the_end() -> None:
    with profile.recording() as p:
        assert repr(p) == "Recording(nothing recorded yet)"
        with pytest.raises(RuntimeError, match="after its `with` block"):
            str(p)
    assert math.isclose(p.explained, 0, abs_tol=1e-9)


# the table


def test_the_table_shows_what_no_part_accounts_for(wall: PaperClock) -> None:
    lines = str(recorded(wall)).splitlines()
    assert lines[0].startswith("step: 10 s (measured, CPU, ")
    cells = [line.split() for line in lines[2:8]]
    assert [line[:-1] if line[-1].startswith("█") else line for line in cells] == [
        ["step", "1", "10.000", "100.0", "%", "2.000"],
        ["forward", "1", "3.000", "30.0", "%", "1.000"],
        ["conv", "2", "2.000", "20.0", "%"],
        [*REMAINDER.split(), "1.000", "10.0", "%"],
        ["backward", "1", "5.000", "50.0", "%"],
        [*REMAINDER.split(), "2.000", "20.0", "%"],
    ]
    assert "The parts of step explain 80.0 % of it." in lines
    assert lines[-1] == "Recording took about 0 ns of it (0.0 %)."


def test_the_table_is_aligned_and_can_be_cut(wall: PaperClock) -> None:
    lines = recorded(wall).table(depth=1).splitlines()
    assert not any("conv" in line for line in lines)
    assert len({line.index("%") for line in lines[2:6]}) == 1


@pytest.mark.parametrize(("seconds", "unit", "text"), [(2, "s", "2.000"), (0.002, "ms", "2.000"), (2e-5, "µs", "20.0")])
def test_all_rows_have_the_unit_of_the_whole(wall: PaperClock, seconds: float, unit: str, text: str) -> None:
    with profile.recording() as p, p.span("all"):
        wall.pass_by(seconds)
    head, whole = str(p).splitlines()[1:3]
    assert head.split()[1] == unit
    assert whole.split()[2] == text


def test_what_recording_itself_took_is_said(wall: PaperClock) -> None:
    """Every reading of the clock takes 1 ms here: a span costs two."""
    wall.reading = 0.001
    p = recorded(wall)
    assert p.overhead == pytest.approx(4 * 0.002, rel=0.02)
    assert "Recording took about 8" in str(p)


# on a GPU


@pytest.fixture(params=[False, True], ids=["real", "simulated"])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> fake_gpu.FakeGpu:
    return fake_gpu.register(monkeypatch, request.param)


def test_nothing_waits_for_the_gpu_between_the_borders(gpu: fake_gpu.FakeGpu) -> None:
    with profile.recording(gpu) as p:
        gpu.log.clear()
        with p.span("a"), p.span("b"):
            gpu.launch(0.001, 1.0)
        assert set(gpu.log) == {"record", "launch"}
    assert gpu.log[-1] == "synchronize"


def test_seconds_are_the_devices_and_the_hosts_stand_beside(gpu: fake_gpu.FakeGpu) -> None:
    with profile.recording(gpu, name="step") as p:
        with p.span("forward"):
            gpu.launch(0.1, 2.0)
        with p.span("backward"):
            gpu.launch(0.1, 3.0)
            with p.span("fill"):
                gpu.launch(0.1, 4.0)
    assert p.seconds == pytest.approx(9.1)
    assert p.remainder == pytest.approx(0)
    assert [part.seconds for part in p.root.parts] == pytest.approx([2.1, 7.0])
    assert [part.host_seconds for part in p.root.parts] == pytest.approx([0.1, 0.2])
    assert p.at("backward", "fill").seconds == pytest.approx(4.0)
    assert "launch-bound" not in str(p)
    assert p.table().splitlines()[1].split() == ["calls", "s", "share", "self", "host"]


def test_launch_bound_code_shows(gpu: fake_gpu.FakeGpu) -> None:
    with profile.recording(gpu) as p, p.span("small"):
        for _ in range(10):
            gpu.launch(0.1, 0.01)
    assert p.at("small").seconds == pytest.approx(1.01)
    assert p.at("small").host_seconds == pytest.approx(1.0)
    assert "The host took 1 s: the GPU waited for it. That is launch-bound, unless the host itself" in str(p)


def test_it_says_what_gave_the_times(gpu: fake_gpu.FakeGpu) -> None:
    with profile.recording(gpu) as p:
        gpu.launch(0.1, 0.1)
    assert p.where == ("modelled, paper" if gpu.simulated else "measured, NVIDIA Paper")
    assert p.tree["where"] == p.where
    assert p.where in str(p)


def test_spans_are_ranges_of_nsight(gpu: fake_gpu.FakeGpu) -> None:
    with profile.recording(gpu, name="step") as p, p.span("forward"):
        gpu.launch(0.1, 1.0)
    assert gpu.ranges == ["<step", "<forward", ">", ">"]


# Chrome's trace


def boxes(path: Path, process: int) -> list[tuple[str, float, float]]:
    events = json.loads(path.read_text())["traceEvents"]
    found = [event for event in events if event["ph"] == "X" and event["pid"] == process]
    return [(event["name"], event["ts"], event["dur"]) for event in found]


def test_a_trace_for_perfetto_holds_every_span(wall: PaperClock, tmp_path: Path) -> None:
    path = recorded(wall).chrome_trace(tmp_path / "trace.json")
    assert [(name, start, lasts) for name, start, lasts in boxes(path, 1)] == [
        ("step", 0, 10e6),
        ("forward", 0, 3e6),
        ("conv", 0, 0.5e6),
        ("conv", 0.5e6, 1.5e6),
        ("backward", 5e6, 5e6),
    ]
    assert boxes(path, 2) == []


def test_on_a_gpu_host_and_device_have_rows_of_their_own(gpu: fake_gpu.FakeGpu, tmp_path: Path) -> None:
    with profile.recording(gpu, name="step") as p:
        with p.span("a"):
            gpu.launch(0.5, 2.0)
        with p.span("b"):
            gpu.launch(0.5, 1.0)
    path = p.chrome_trace(tmp_path / "trace.json")
    assert boxes(path, 1) == [("step", 0, 1e6), ("a", 0, 0.5e6), ("b", 0.5e6, 0.5e6)]
    assert boxes(path, 2) == [("step", 0, 3.5e6), ("a", 0, 2.5e6), ("b", 2.5e6, 1e6)]
    names = [event["args"]["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "M"]
    assert names == [f"spans, host ({p.where})", f"spans, device ({p.where})"]


# a network


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3))


IMAGES = np.random.default_rng(0).random((4, 1, 6, 6), dtype=np.float32)
LABELS = np.array([0, 1, 2, 0])
TITLES = ["0: Conv2d(2, 3)", "1: ReLU()", "2: MaxPool2d(2)", "3: Flatten()", "4: Linear(3)"]


def names(node: profile.Node) -> list[str]:
    return [part.name for part in node.parts]


def test_a_step_by_layer() -> None:
    p = profile.step(network(), IMAGES, LABELS, repeats=8)
    assert p.root.name == "step"
    assert names(p.root) == ["forward", "loss", "backward", "update"]
    assert names(p.at("forward")) == TITLES
    assert names(p.at("backward")) == TITLES[::-1]
    assert p.root.calls == p.at("forward", TITLES[0]).calls == 1
    assert len(p.spans) == 4  # the middle half
    parts = sum(part.seconds for part in p.root.parts)
    assert 0 < parts <= p.seconds
    assert p.seconds == pytest.approx(parts + p.remainder)
    assert p.bare is not None
    assert "Without spans inside: " in str(p)


def test_a_step_leaves_network_and_optimizer_as_they_were() -> None:
    net, optimizer = nn.Sequential(nn.BatchNorm2d(), *network().layers).build((1, 6, 6)), nn.Adam()
    before, state = net.parameters.copy(), net.state.copy()
    own = [{*vars(layer)} - {"_kept"} for layer in net.layers]
    profile.step(net, IMAGES, LABELS, optimizer, repeats=2)
    np.testing.assert_array_equal(net.parameters, before)
    np.testing.assert_array_equal(net.state, state)
    assert optimizer.steps == 0
    assert [{*vars(layer)} - {"_kept"} for layer in net.layers] == own
    assert "forward" not in vars(net)
    assert "step" not in vars(optimizer)
    assert all(layer._kept is None for layer in net.layers)


def test_the_step_that_is_measured_is_the_one_of_training() -> None:
    """Each repeat, and each warm-up, takes the same path as `fit`: forward, loss, backward, then the optimizer."""
    net, calls = network().build((1, 6, 6)), []
    optimizer = nn.Adam()
    step = type(optimizer).step
    real = net.loss
    net.loss = lambda scores, labels: calls.append("loss") or real(scores, labels)
    type(optimizer).step = lambda self, *args: calls.append("update") or step(self, *args)  # type: ignore[method-assign]
    try:
        profile.step(net, IMAGES, LABELS, optimizer, repeats=3)
    finally:
        type(optimizer).step = step  # type: ignore[method-assign]
    assert calls == ["loss", "update"] * (3 + 2 * 3)


def test_spans_inside_a_layer_lie_inside_it() -> None:
    class Own(nn.ReLU):
        def backward(self, grad: Any) -> Any:
            with profile.span("fill"):
                return super().backward(grad)

    net = nn.Sequential(nn.Conv2d(2, 3), Own(), nn.Flatten(), nn.Linear(3))
    p = profile.step(net, IMAGES, LABELS, repeats=2)
    assert p.at("backward", "1: Own()", "fill").calls == 1


def test_a_forward_pass_by_layer() -> None:
    net = network()
    p = profile.layers(net, IMAGES, repeats=2)
    assert (p.root.name, names(p.root)) == ("forward", TITLES)
    assert "forward" not in vars(net.layers[0])


def test_what_is_compiled_has_no_layers_to_time() -> None:
    steps = nn.compiled(network().build((1, 6, 6)), nn.Adam(), 4)
    for measured in (lambda: profile.step(steps, IMAGES, LABELS), lambda: profile.layers(steps, IMAGES)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"network is nn\.compiled.*time steps\.epoch as a whole"):
            measured()


def test_at_least_one_repeat() -> None:
    with pytest.raises(ValueError, match="repeats is 0; expected at least 1"):
        profile.step(network(), IMAGES, LABELS, repeats=0)


@pytest.mark.parametrize(("simulated", "repeats"), [(False, 20), (True, 3)])
def test_modelled_times_need_fewer_repeats(monkeypatch: pytest.MonkeyPatch, simulated: bool, repeats: int) -> None:
    gpu = fake_gpu.register(monkeypatch, simulated)
    monkeypatch.setattr("unrolled.profile.repeats._warm_up", lambda run, module: None)
    calls: list[int] = []

    def work(x: fake_gpu.OnDevice) -> None:
        gpu.launch(0.1, 0.2)
        calls.append(1)

    profile.statements(work, fake_gpu.OnDevice())
    assert len(calls) == 2 * repeats


def test_where_a_notebook_is_graded_one_repeat_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_GRADING", "1")
    assert len(profile.step(network(), IMAGES, LABELS).spans) == 1


def test_slow_repeats_do_not_count(wall: PaperClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of eight repeats take a hundred times as long; a span costs nothing here."""
    monkeypatch.setattr("unrolled.profile.repeats._warm_up", lambda run, module: None)
    durations = iter([1.0] * 12 + [100.0] * 4)

    def work() -> None:
        wall.pass_by(next(durations))

    p = profile.statements(work, repeats=8)
    assert p.seconds == pytest.approx(1)
    assert p.bare == pytest.approx(1)


def test_what_spans_cost_is_the_difference_of_pairs(wall: PaperClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading of the clock takes 0.05 s. A run takes 1 s; with spans inside, it reads the clock twice a statement."""
    monkeypatch.setattr("unrolled.profile.repeats._warm_up", lambda run, module: None)
    wall.reading = 0.05

    def work() -> None:
        wall.pass_by(0.5)
        wall.pass_by(0.5)

    p = profile.statements(work, repeats=4)
    assert p.seconds == pytest.approx(1.25)  # 5 readings inside: the first border's is not among them
    assert p.bare == pytest.approx(1.05)
    assert p.overhead == pytest.approx(0.2)


# statements


SCALE = 3


def worked(values: Any, times: int, *, add: int = 1) -> Any:
    """A docstring is no statement."""
    total = 0
    for value in values:
        total += value * times
        if value > 1:
            total += add
        else:
            continue
    try:
        return total * SCALE
    except TypeError:
        pass


def test_statements_with_their_lines_and_what_is_inside() -> None:
    p = profile.statements(worked, [1, 2, 3], 10, add=5, repeats=1)
    assert p.root.name == "worked"
    assert names(p.root) == ["3: total = 0", "4: for value in values:", "10: try:"]
    loop = p.at("4: for value in values:")
    assert names(loop) == ["5: total += value * times", "6: if value > 1:"]
    assert [part.calls for part in loop.parts] == [3, 3]
    assert {part.name: part.calls for part in loop.parts[1].parts} == {"9: continue": 1, "7: total += add": 2}


def test_a_function_by_statement_gives_the_same_result() -> None:
    from unrolled.profile.repeats import spanned

    timed = spanned(worked, profile.span)
    assert timed([1, 2, 3], 10, add=5) == worked([1, 2, 3], 10, add=5) == 210
    assert timed([1, 2], 10) == worked([1, 2], 10)

    offset = 7

    def with_outer(x: int, y: int = 2) -> int:
        return x + y + offset

    assert spanned(with_outer, profile.span)(1) == 10


def test_methods_by_statement() -> None:
    layer = nn.ReLU()
    layer.forward(IMAGES, training=True)
    p = profile.statements(layer.backward, IMAGES, repeats=1)
    assert p.root.name == "backward"
    assert p.root.parts


@pytest.mark.parametrize("function", [len, lambda: None, nn.ReLU])
def test_what_has_no_statements_is_refused(function: Any) -> None:
    with pytest.raises(ValueError, match="written"):
        profile.statements(function)


def test_the_module_of_the_times_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = fake_gpu.register(monkeypatch, simulated=True)

    def work() -> None:
        gpu.launch(0.1, 0.2)

    assert profile.statements(work).where.startswith("measured, CPU")
    assert profile.statements(work, module=gpu).where == "modelled, paper"
