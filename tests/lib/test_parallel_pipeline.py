"""Schedules: what they promise, and what is wrong with others. Stages: the gradients of the uncut network."""

import itertools
import re

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
        ([[("F", 0), None, None, ("B", 0)], [("F", 0), ("B", 0)]], "stage 1 begins forward 0 in slot 0, before"),
        ([[("F", 0), None, None, ("B", 0)], [None, ("F", 0)]], "stage 1 never does backward 0"),
        ([[("F", 0), ("F", 0), None, ("B", 0)], [None, ("F", 0), ("B", 0)]], "stage 0 does 1 passes twice"),
        ([[("F", 0), ("F", 1), None, ("B", 0)], [None, ("F", 0), ("B", 0)]], r"stage 0 does \('F', 1\), which"),
    ],
)
def test_faults_are_named(schedule, says):
    assert re.match(says, pipeline.faults(schedule, 2, 1)[0])


def runs(schedule, stages, micro_batches):
    """Whether stages that follow the schedule slot by slot always have what they need, and do all there is to do."""
    done, arrived = set(), {("F", 0, i) for i in range(micro_batches)}
    for slot in itertools.zip_longest(*schedule):
        passed_on = set()
        for stage, piece in enumerate(slot):
            if piece is None:
                continue
            kind, i = piece
            if (kind, stage, i) in done or (kind, stage, i) not in arrived:
                return False
            done.add((kind, stage, i))
            # The way back needs the forward pass of this stage as well: its last stage begins it, the others cannot get
            # a gradient before.
            last = kind == "F" and stage + 1 == stages
            passed_on.add(("B", stage, i) if last else (kind, stage + (1 if kind == "F" else -1), i))
        arrived |= passed_on
    return done == {(kind, stage, i) for kind in "FB" for stage in range(stages) for i in range(micro_batches)}


@settings(max_examples=400)
@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([gpipe, one_forward_one_backward]), st.data())
def test_a_changed_schedule_is_taken_if_it_runs_and_refused_if_not(stages, micro_batches, make, data):
    schedule = make(stages, micro_batches)
    for change in data.draw(st.lists(st.sampled_from(["later", "swap", "drop", "twice", "earlier", "another"]))):
        row = schedule[data.draw(st.integers(0, stages - 1))]
        first, second = (data.draw(st.integers(0, len(row) - 1)) for _ in range(2))
        match change:
            case "swap":
                row[first], row[second] = row[second], row[first]
            case "drop":
                row[first] = None
            case "twice":
                row[first] = row[second]
            case "earlier" if len(row) > 1:
                del row[first]
            case "later":
                row.insert(first, None)
            case "another":
                row[first] = (data.draw(st.sampled_from("FB")), data.draw(st.integers(-1, micro_batches)))
    assert (pipeline.faults(schedule, stages, micro_batches) == []) == runs(schedule, stages, micro_batches)


def layers():
    return nn.Conv2d(2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5), nn.ReLU(), nn.Linear(3)


def assert_stages_find_the_gradients(make_network, images, stages, schedule, atol=1e-14):
    """Compare with the uncut network; return each stage's network."""
    labels = RNG.integers(0, 3, len(images))
    whole = make_network()
    loss, _ = whole.loss_and_scores(images, labels)

    def program(comm):
        stage = parallel.Stage(comm, make_network().build(images.shape[1:]), images.shape[1:])
        return stage.gradients(images, labels, schedule), stage.network

    losses, networks = zip(*emulate(program, ranks=stages), strict=True)
    assert [float(found) for found in losses] == pytest.approx([float(loss)] * stages)
    found = np.concatenate([network.gradients for network in networks])
    np.testing.assert_allclose(found, whole.gradients, rtol=0, atol=atol)
    return networks


@pytest.mark.parametrize("make", [gpipe, one_forward_one_backward])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_stages_find_the_gradients_of_the_uncut_network(stages, make):
    def whole():
        return nn.Sequential(*layers(), dtype=np.float64)

    images = RNG.standard_normal((11, 1, 6, 6))
    networks = assert_stages_find_the_gradients(whole, images, stages, make(stages, 4))
    size = whole().build((1, 6, 6)).parameters.nbytes
    assert sum(network.parameters.nbytes for network in networks) == size
    for rank, network in enumerate(networks):
        assert len(network.layers) == len(range(7)[shard(7, rank, stages)])


class Negative(nn.Layer):
    """A layer that keeps nothing."""

    def forward(self, x, training=False):
        return -x

    def backward(self, grad):
        return -grad


def test_dropout_in_stages_drops_what_the_uncut_network_drops():
    def network():
        return nn.Sequential(nn.Linear(5), nn.Dropout(0.5), Negative(), nn.Dropout(0.3), nn.Linear(3), dtype=np.float64)

    assert_stages_find_the_gradients(network, RNG.standard_normal((11, 6)), 2, gpipe(2, 4))


def test_stages_take_images_of_another_dtype_as_the_uncut_network_does():
    def network():
        return nn.Sequential(nn.ReLU(), nn.Linear(5), nn.ReLU(), nn.Linear(3))  # float32; the images are float64

    assert_stages_find_the_gradients(network, RNG.standard_normal((5, 6)), 3, gpipe(3, 2), atol=1e-6)


def test_networks_that_differ_are_named():
    def program(comm):
        layers = nn.Linear(3), nn.ReLU(), nn.Linear(3)
        parallel.Stage(comm, nn.Sequential(*layers, seed=comm.rank // 2), (2,))

    with pytest.raises(parallel.MismatchError, match="rank 2 differs from rank 0 in parameters; here"):
        emulate(program, ranks=3)


@pytest.mark.parametrize(
    ("schedule", "labels", "ranks", "says"),
    [
        (gpipe(2, 2), 5, 2, r"images \(4, 1, 2, 2\) and labels \(5,\): expected one label"),
        (gpipe(2, 5), 4, 2, "schedule has 5 micro-batches; expected at most 4, the images"),
        (gpipe(3, 2), 4, 3, "3 ranks, but 2 layers"),
        (gpipe(3, 2), 4, 2, "schedule: the schedule has 3 stages"),
    ],
)
def test_bad_stages_and_schedules_are_named(schedule, labels, ranks, says):
    def program(comm):
        stage = parallel.Stage(comm, nn.Sequential(nn.Flatten(), nn.Linear(3)), (1, 2, 2))
        stage.gradients(np.zeros((4, 1, 2, 2), np.float32), np.zeros(labels, int), schedule)

    with pytest.raises(ValueError, match=says):
        emulate(program, ranks=ranks)


def test_schedules_that_cannot_be_are_named():
    for make in (gpipe, one_forward_one_backward):
        with pytest.raises(ValueError, match="micro_batches is 0"):
            make(2, 0)
    with pytest.raises(ValueError, match="no stage can go on in slot 0"):
        pipeline.placed([[("B", 0), ("F", 0)]])
