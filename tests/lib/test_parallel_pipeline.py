"""Schedules: what they promise, and what is wrong with others. Stages: the gradients of the uncut network."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import nn, parallel
from unrolled.parallel import emulate, gpipe, one_forward_one_backward, pipeline, shard

SIZES = st.integers(1, 6), st.integers(1, 9)
RNG = np.random.default_rng(0)


@given(*SIZES)
def test_schedules_take_the_slots_and_the_memory_they_promise(stages, micro_batches):
    for make in (gpipe, one_forward_one_backward):
        schedule = make(stages, micro_batches)
        assert pipeline.faults(schedule, stages, micro_batches) == []
        assert {len(row) for row in schedule} == {2 * (micro_batches + stages - 1)}
        assert pipeline.bubble(schedule) == pytest.approx((stages - 1) / (micro_batches + stages - 1))
    assert pipeline.activations(gpipe(stages, micro_batches)) == [micro_batches] * stages
    held = pipeline.activations(one_forward_one_backward(stages, micro_batches))
    assert held == [min(stages - stage, micro_batches) for stage in range(stages)]


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ([[("F", 0), ("B", 0)]], "the schedule has 1 stages; expected 2"),
        ([[("F", 0), ("B", 0)], [None, ("F", 0), ("B", 0)]], "stage 0 begins backward 0 in slot 1, before stage 1"),
        (
            [[("F", 0), None, None, ("B", 0)], [("F", 0), ("B", 0)]],
            "stage 1 begins forward 0 in slot 0, before stage 0",
        ),
        ([[("F", 0), None, None, ("B", 0)], [None, ("F", 0)]], "stage 1 never does backward 0"),
        ([[("F", 0), ("F", 0), None, ("B", 0)], [None, ("F", 0), ("B", 0)]], "stage 0 does 1 passes twice"),
        ([[("F", 0), ("F", 1), None, ("B", 0)], [None, ("F", 0), ("B", 0)]], r"stage 0 does \('F', 1\), which"),
    ],
)
def test_faults_are_named(schedule, says):
    (first, *_) = pipeline.faults(schedule, 2, 1)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(first)


def runs(schedule, stages, micro_batches):
    """Whether stages that follow the schedule slot by slot always have what they need, and do all there is to do."""
    done, arrived = set(), {("F", 0, i) for i in range(micro_batches)}
    for slot in range(max(map(len, schedule))):
        passed_on = set()
        for stage, row in enumerate(schedule):
            kind, i = (row[slot] if slot < len(row) else None) or ("", -1)
            if not kind:
                continue
            if (kind, stage, i) in done or (kind, stage, i) not in arrived:
                return False
            done.add((kind, stage, i))
            if kind == "F":
                # The way back needs the forward pass of this stage as well: its last stage begins it, the others
                # cannot get a gradient before.
                passed_on.add(("F", stage + 1, i) if stage + 1 < stages else ("B", stage, i))
            else:
                passed_on.add(("B", stage - 1, i))
        arrived |= passed_on
    return done == {(kind, stage, i) for kind in "FB" for stage in range(stages) for i in range(micro_batches)}


@st.composite
def valid_schedules(draw):
    """Stages that take any of the passes that they could do, or wait."""
    stages, micro_batches = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    done, schedule = [set() for _ in range(stages)], [[] for _ in range(stages)]
    every = [(kind, i) for kind in "FB" for i in range(micro_batches)]
    while any(len(there) < len(every) for there in done):
        begun = []
        for stage in range(stages):
            ready = [
                (kind, i)
                for kind, i in every
                if (kind, i) not in done[stage]
                and (kind == "B" or stage == 0 or ("F", i) in done[stage - 1])
                and (kind == "F" or ("F", i) in done[stage])
                and (kind == "F" or stage == stages - 1 or ("B", i) in done[stage + 1])
            ]
            waits = not ready or rng.random() < 0.2
            begun.append(None if waits else ready[rng.integers(len(ready))])
        for stage, piece in enumerate(begun):
            schedule[stage].append(piece)
            done[stage] |= {piece} - {None}
    return schedule, stages, micro_batches


@settings(max_examples=300)
@given(valid_schedules(), st.data())
def test_a_changed_schedule_is_taken_if_it_runs_and_refused_if_not(drawn, data):
    schedule, stages, micro_batches = drawn
    row = schedule[data.draw(st.integers(0, stages - 1))]
    first, second = (data.draw(st.integers(0, len(row) - 1)) for _ in range(2))
    match data.draw(st.sampled_from(["swap", "drop", "twice", "earlier", "later", "another"])):
        case "swap":
            row[first], row[second] = row[second], row[first]
        case "drop":
            row[first] = None
        case "twice":
            row[first] = row[second]
        case "earlier":
            del row[first]
        case "later":
            row.insert(first, None)
        case "another":
            row[first] = (data.draw(st.sampled_from("FB")), data.draw(st.integers(-1, micro_batches)))
    assert (pipeline.faults(schedule, stages, micro_batches) == []) == runs(schedule, stages, micro_batches)


def test_work_that_waits_for_itself_is_named():
    with pytest.raises(ValueError, match="no stage can go on in slot 0"):
        pipeline.placed([[("B", 0), ("F", 0)]])


def layers():
    return nn.Conv2d(2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5), nn.ReLU(), nn.Linear(3)


@pytest.mark.parametrize("make", [gpipe, one_forward_one_backward])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_stages_find_the_gradients_of_the_uncut_network(stages, make):
    images, labels = RNG.standard_normal((11, 1, 6, 6)), RNG.integers(0, 3, 11)
    whole = nn.Sequential(*layers(), dtype=np.float64)
    loss, _ = whole.loss_and_scores(images, labels)

    def program(comm):
        network = nn.Sequential(*layers(), dtype=np.float64).build((1, 6, 6))
        stage = parallel.Stage(comm, network, (1, 6, 6))
        return stage.gradients(images, labels, make(stages, 4)), stage.network

    results = emulate(program, ranks=stages)
    assert [float(found) for found, _ in results] == pytest.approx([float(loss)] * stages)
    found = np.concatenate([network.gradients for _, network in results])
    np.testing.assert_allclose(found, whole.gradients, rtol=0, atol=1e-14)
    assert sum(network.parameters.nbytes for _, network in results) == whole.parameters.nbytes
    for rank, (_, network) in enumerate(results):
        assert len(network.layers) == len(range(7)[shard(7, rank, stages)])


class Negative(nn.Layer):
    """A layer that keeps nothing."""

    def forward(self, x, training=False):
        return -x

    def backward(self, grad):
        return -grad


def test_dropout_in_stages_drops_what_the_uncut_network_drops():
    images, labels = RNG.standard_normal((11, 6)), RNG.integers(0, 3, 11)

    def network():
        return nn.Sequential(nn.Linear(5), nn.Dropout(0.5), Negative(), nn.Dropout(0.3), nn.Linear(3), dtype=np.float64)

    def program(comm):
        stage = parallel.Stage(comm, network(), (6,))
        stage.gradients(images, labels, gpipe(2, 4))
        return stage.network.gradients

    whole = network()
    whole.loss_and_scores(images, labels)
    np.testing.assert_allclose(np.concatenate(emulate(program)), whole.gradients, rtol=0, atol=1e-14)


def test_stages_take_images_of_another_dtype_as_the_uncut_network_does():
    images, labels = RNG.standard_normal((5, 6)), RNG.integers(0, 3, 5)  # float64

    def network():
        return nn.Sequential(nn.ReLU(), nn.Linear(5), nn.ReLU(), nn.Linear(3))  # float32

    def program(comm):
        stage = parallel.Stage(comm, network(), (6,))
        stage.gradients(images, labels, gpipe(3, 2))
        return stage.network.gradients

    whole = network()
    whole.loss_and_scores(images, labels)
    np.testing.assert_allclose(np.concatenate(emulate(program, ranks=3)), whole.gradients, rtol=0, atol=1e-6)


def test_networks_that_differ_are_named():
    def program(comm):
        layers = nn.Linear(3), nn.ReLU(), nn.Linear(3)
        parallel.Stage(comm, nn.Sequential(*layers, seed=comm.rank // 2), (2,))

    with pytest.raises(parallel.MismatchError, match="rank 2 differs from rank 0 in parameters; here"):
        emulate(program, ranks=3)


def test_bad_stages_and_schedules_are_named():
    def program(comm, schedule, labels=4):
        stage = parallel.Stage(comm, nn.Sequential(nn.Flatten(), nn.Linear(3)), (1, 2, 2))
        stage.gradients(np.zeros((4, 1, 2, 2), np.float32), np.zeros(labels, int), schedule)

    with pytest.raises(ValueError, match=r"images \(4, 1, 2, 2\) and labels \(5,\): expected one label"):
        emulate(program, gpipe(2, 2), labels=5, ranks=2)

    with pytest.raises(ValueError, match="schedule has 5 micro-batches; expected at most 4, the images"):
        emulate(program, gpipe(2, 5), ranks=2)

    with pytest.raises(ValueError, match="3 ranks, but 2 layers"):
        emulate(program, gpipe(3, 2), ranks=3)
    with pytest.raises(ValueError, match="schedule: the schedule has 3 stages"):
        emulate(program, gpipe(3, 2), ranks=2)
    for make in (gpipe, one_forward_one_backward):
        with pytest.raises(ValueError, match="micro_batches is 0"):
            make(2, 0)
