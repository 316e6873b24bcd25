"""unrolled.profile: spans, the tree that they add up to, and what is left over; on clocks of paper, and modelled."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_gpu
import numpy as np
import pytest
from fake_gpu import PaperClock

from unrolled import nn, profile, show, simgpu
from unrolled.profile import REMAINDER, Recording
from unrolled.profile.repeats import spanned
from unrolled.show.timeline import course_of, reading


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


def test_spans_of_one_name_add_up_where_they_stand(wall: PaperClock) -> None:
    p = recorded(wall)
    assert names(p.root) == ["forward", "backward"]
    conv = p.at("forward", "conv")
    assert (conv.calls, conv.seconds, conv.self_seconds) == pytest.approx((2, 2, 2))
    assert p.at("forward").self_seconds == pytest.approx(1)
    tree = json.loads(json.dumps(p.tree))
    assert tree["where"].startswith("measured, CPU, ")
    assert (tree["name"], tree["calls"], tree["share"]) == ("step", 1, 1)
    assert [part["share"] for part in tree["parts"]] == pytest.approx([0.3, 0.5])
    assert tree["parts"][0]["parts"][0]["name"] == "conv"
    with pytest.raises(ValueError, match="'step' has no part 'update'; it has 'forward', 'backward'"):
        p.at("update")
    with pytest.raises(ValueError, match="'conv' has no part 'x'; it has none"):
        p.at("forward", "conv", "x")


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
    def fails() -> None:
        p.begin("never closed")
        wall.pass_by(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), profile.recording() as p, p.span("outer"):
        fails()
    assert p.at("outer", "never closed").seconds == pytest.approx(1)
    with profile.recording() as q, profile.span("next"):
        wall.pass_by(1)
    assert names(q.root) == ["next"]


def test_there_is_no_tree_before_the_end() -> None:
    with profile.recording() as p:
        assert repr(p) == "Recording(nothing recorded yet)"
        with pytest.raises(RuntimeError, match="after its `with` block"):
            str(p)
    assert p.explained == pytest.approx(0, abs=1e-9)


def test_the_table_shows_what_no_part_accounts_for_and_can_be_cut(wall: PaperClock) -> None:
    p = recorded(wall)
    lines = str(p).splitlines()
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
    lines = p.table(depth=1).splitlines()
    assert not any("conv" in line for line in lines)
    assert len({line.index("%") for line in lines[2:6]}) == 1


@pytest.mark.parametrize(("seconds", "unit", "text"), [(2, "s", "2.000"), (0.002, "ms", "2.000"), (2e-5, "µs", "20.0")])
def test_all_rows_have_the_unit_of_the_whole(wall: PaperClock, seconds: float, unit: str, text: str) -> None:
    with profile.recording() as p, p.span("all"):
        wall.pass_by(seconds)
    head, whole = str(p).splitlines()[1:3]
    assert head.split()[1] == unit
    assert whole.split()[2] == text


@pytest.fixture(params=[False, True], ids=["real", "simulated"])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> fake_gpu.FakeGpu:
    return fake_gpu.register(monkeypatch, request.param)


def test_seconds_are_the_devices_and_the_hosts_stand_beside(gpu: fake_gpu.FakeGpu, tmp_path: Path) -> None:
    with profile.recording(gpu, name="step") as p:
        gpu.log.clear()
        with p.span("forward"):
            gpu.launch(0.5, 2.0)
        with p.span("backward"):
            gpu.launch(0.5, 3.0)
            with p.span("fill"):
                gpu.launch(0.5, 4.0)
        assert set(gpu.log) == {"record", "launch"}, "nothing waits between the borders"
    assert gpu.log[-1] == "synchronize"
    assert gpu.ranges == ["<step", "<forward", ">", "<backward", "<fill", ">", ">", ">"]
    assert (p.seconds, p.remainder) == pytest.approx((9.5, 0))
    assert "launch-bound" not in str(p)
    assert p.table().splitlines()[1].split() == ["calls", "s", "share", "self", "host"]
    assert p.where == p.tree["where"] == ("modelled, paper" if gpu.simulated else "measured, NVIDIA Paper")
    assert p.where in str(p)
    path = p.chrome_trace(tmp_path / "trace.json")
    on_host = [("step", 0, 1.5e6), ("forward", 0, 0.5e6), ("backward", 0.5e6, 1e6), ("fill", 1e6, 0.5e6)]
    on_device = [("step", 0, 9.5e6), ("forward", 0, 2.5e6), ("backward", 2.5e6, 7e6), ("fill", 5.5e6, 4e6)]
    assert [boxes(path, process) for process in (1, 2)] == [on_host, on_device]
    for part, host, device in zip([*p.root.parts, p.at("backward", "fill")], on_host[1:], on_device[1:], strict=True):
        assert (1e6 * part.host_seconds, 1e6 * part.seconds) == pytest.approx((host[2], device[2]))
    rows = [event["args"]["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "M"]
    assert rows == [f"spans, host ({p.where})", f"spans, device ({p.where})"]


def test_launch_bound_code_shows(gpu: fake_gpu.FakeGpu) -> None:
    with profile.recording(gpu) as p, p.span("small"):
        for _ in range(10):
            gpu.launch(0.1, 0.01)
    assert p.at("small").seconds == pytest.approx(1.01)
    assert p.at("small").host_seconds == pytest.approx(1.0)
    assert "The host took 1 s: the GPU waited for it. That is launch-bound, unless the host itself" in str(p)


def boxes(path: Path, process: int) -> list[tuple[str, float, float]]:
    events = json.loads(path.read_text())["traceEvents"]
    found = [event for event in events if event["ph"] == "X" and event["pid"] == process]
    return [(event["name"], event["ts"], event["dur"]) for event in found]


def test_a_trace_for_perfetto_holds_every_span(wall: PaperClock, tmp_path: Path) -> None:
    path = recorded(wall).chrome_trace(tmp_path / "trace.json")
    convs = [("conv", 0, 0.5e6), ("conv", 0.5e6, 1.5e6)]
    assert boxes(path, 1) == [("step", 0, 10e6), ("forward", 0, 3e6), *convs, ("backward", 5e6, 5e6)]
    assert boxes(path, 2) == []


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3))


IMAGES = np.random.default_rng(0).random((4, 1, 6, 6), dtype=np.float32)
LABELS = np.array([0, 1, 2, 0])
TITLES = ["0: Conv2d(2, 3)", "1: ReLU()", "2: MaxPool2d(2)", "3: Flatten()", "4: Linear(3)"]


def names(node: profile.Node) -> list[str]:
    return [part.name for part in node.parts]


def test_a_step_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setenv("UNROLLED_GRADING", "1")
    assert len(profile.step(network(), IMAGES, LABELS).spans) == 1


def test_a_step_leaves_network_and_optimizer_as_they_were() -> None:
    def own() -> list[set[str]]:
        return [{*vars(each)} - {"_kept"} for each in (net, optimizer, *net.layers)]

    net, optimizer = nn.Sequential(nn.BatchNorm2d(), *network().layers).build((1, 6, 6)), nn.Adam()
    before, state, had = net.parameters.copy(), net.state.copy(), own()
    profile.step(net, IMAGES, LABELS, optimizer, repeats=2)
    np.testing.assert_array_equal(net.parameters, before)
    np.testing.assert_array_equal(net.state, state)
    assert optimizer.steps == 0
    assert own() == had
    assert all(layer._kept is None for layer in net.layers)


def test_the_step_that_is_measured_is_the_one_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each repeat, and each warm-up, takes the same path as `fit`: forward, loss, backward, then the optimizer."""
    net, calls, step = network().build((1, 6, 6)), [], nn.Adam.step
    real = net.loss
    net.loss = lambda scores, labels: calls.append("loss") or real(scores, labels)
    monkeypatch.setattr(nn.Adam, "step", lambda self, *args: calls.append("update") or step(self, *args))
    profile.step(net, IMAGES, LABELS, nn.Adam(), repeats=3)
    assert calls == ["loss", "update"] * (2 + 2 * 3)


def test_spans_inside_a_layer_lie_inside_it() -> None:
    class Own(nn.ReLU):
        def backward(self, grad: Any) -> Any:
            with profile.span("fill"):
                return super().backward(grad)

    p = profile.step(nn.Sequential(Own(), nn.Flatten(), nn.Linear(3)), IMAGES, LABELS, repeats=2)
    assert p.at("backward", "0: Own()", "fill").calls == 1


def compiled() -> Any:
    return nn.compiled(network().build((1, 6, 6)), nn.Adam(), 4)


@pytest.mark.parametrize(
    ("measure", "error", "words"),
    [
        (lambda: profile.step(compiled(), IMAGES, LABELS), TypeError, r"network is nn\.compiled.*time steps\.epoch as"),
        (lambda: profile.step(network(), IMAGES, LABELS, repeats=0), ValueError, "repeats is 0; expected at least 1"),
        *((lambda f=f: profile.statements(f), ValueError, "written") for f in (len, lambda: None, nn.ReLU)),
    ],
)
def test_what_cannot_be_profiled_is_named(measure: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        measure()


@pytest.fixture
def _warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unrolled.profile.repeats._warm_up", lambda run, module: None)


@pytest.mark.usefixtures("_warm")
@pytest.mark.parametrize(("simulated", "repeats"), [(False, 20), (True, 3)])
def test_modelled_times_need_fewer_repeats(monkeypatch: pytest.MonkeyPatch, simulated: bool, repeats: int) -> None:
    gpu = fake_gpu.register(monkeypatch, simulated)

    def work(x: Any = None) -> None:
        gpu.launch(0.1, 0.2)

    found = profile.statements(work, fake_gpu.OnDevice())
    assert gpu.log.count("launch") == 2 * repeats
    if simulated:
        assert profile.statements(work).where.startswith("measured, CPU")
        assert found.where == "modelled, paper"


@pytest.mark.usefixtures("_warm")
def test_slow_repeats_do_not_count(wall: PaperClock) -> None:
    """Two of eight repeats take a hundred times as long; a span costs nothing here."""
    durations = iter([1.0] * 12 + [100.0] * 4)

    def work() -> None:
        wall.pass_by(next(durations))

    p = profile.statements(work, repeats=8)
    assert (p.seconds, p.bare) == pytest.approx((1, 1))


@pytest.mark.usefixtures("_warm")
def test_what_spans_cost_is_the_difference_of_pairs(wall: PaperClock) -> None:
    """A reading of the clock takes 0.05 s. A run takes 1 s; with spans inside, it reads the clock twice a statement."""
    wall.reading = 0.05

    def work() -> None:
        wall.pass_by(0.5)
        wall.pass_by(0.5)

    p = profile.statements(work, repeats=4)
    # 5 readings inside: the first border's is not among them
    assert (p.seconds, p.bare, p.overhead) == pytest.approx((1.25, 1.05, 0.2))


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
    layer = nn.ReLU()
    layer.forward(IMAGES, training=True)
    p = profile.statements(layer.backward, IMAGES, repeats=1)
    assert p.root.name == "backward"
    assert p.root.parts


def test_a_function_by_statement_gives_the_same_result() -> None:
    timed = spanned(worked, profile.span)
    assert timed([1, 2, 3], 10, add=5) == worked([1, 2, 3], 10, add=5) == 210
    assert timed([1, 2], 10) == worked([1, 2], 10)
    offset = 7

    def with_outer(x: int, y: int = 2) -> int:
        return x + y + offset

    assert spanned(with_outer, profile.span)(1) == 10


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    simgpu.use("T4")
    yield
    simgpu.use("T4")


def test_a_step_in_modelled_time_is_the_same_each_time() -> None:
    steps = []
    for _ in range(2):
        simgpu.use("T4")
        steps.append(profile.step(network(), simgpu.asarray(IMAGES), simgpu.asarray(LABELS)))
    first, second = steps
    assert first.tree == second.tree
    assert first.where == "modelled, T4"
    assert "Launch-bound: launching" in str(first)
    assert first.explained > 0.8
    assert first.bare is not None
    assert first.overhead > 0


def test_waits_and_copies_that_set_the_pace_are_named() -> None:
    def centred(x: Any) -> Any:
        for i in range(len(x)):
            x[i] -= float(x[i].mean())

    profiled = profile.statements(centred, simgpu.ones((8, 4), simgpu.float32))
    parts = profiled.host_parts
    assert parts is not None
    assert parts["copying"] > 8 * simgpu.profile().link_latency
    stops = 100 * (parts["waiting"] + parts["copying"]) / sum(parts.values())
    assert f"the GPU waited for it. {stops:.0f} % of that is waits and copies: launching" in str(profiled)


def test_spans_and_launches_share_a_trace_for_perfetto(tmp_path: Path) -> None:
    x = simgpu.ones((64, 64))
    with simgpu.trace() as trace, profile.recording(simgpu, name="step") as p, p.span("product"):
        x @ x
    path = p.chrome_trace(tmp_path / "trace.json", trace)
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {event["pid"] for event in events} == {0, 1, 2}
    (kernel,) = (event for event in events if event["name"] == "matmul" and event["tid"] != 1)
    (span,) = (event for event in events if event["name"] == "product" and event["pid"] == 2)
    assert span["ts"] <= kernel["ts"]
    assert kernel["ts"] + kernel["dur"] <= span["ts"] + span["dur"] + 1e-3  # µs, rounded


def test_the_clock_that_lies() -> None:
    x = simgpu.ones((768, 768), simgpu.float32)
    for _ in range(3):
        x = x @ x  # from here on, memory comes from the pool
    with simgpu.trace() as trace:
        for _ in range(8):
            x = x @ x
    course = course_of(trace)
    clock, true = reading(course, len(course.stops) - 1, wait=False)
    assert clock < true / 2
    assert true == pytest.approx(trace.seconds)
    assert "(modelled, T4)" in show.timeline(trace).alt


def test_kernels_of_a_trace_lie_under_the_roof() -> None:
    x = simgpu.ones((256, 256), simgpu.float32)
    with simgpu.trace() as trace:
        simgpu.exp(x @ x + 1)
    gpu = simgpu.profile()
    alt = show.roofline(gpu.float32, gpu.bandwidth, kernels=trace, where="modelled, T4").alt
    assert "matmul: " in alt
    for op, sums in trace.by_op().items():
        assert sums.flops <= gpu.float32 * sums.seconds, op
        assert sums.bytes <= gpu.bandwidth * sums.seconds * 1.001, op
