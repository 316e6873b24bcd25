"""Schedules: what they promise, and what is wrong with others."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.parallel import gpipe, one_forward_one_backward, pipeline

SIZES = st.integers(1, 6), st.integers(1, 9)


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


def test_schedules_that_cannot_be_are_named():
    for make in (gpipe, one_forward_one_backward):
        with pytest.raises(ValueError, match="micro_batches is 0"):
            make(2, 0)
    with pytest.raises(ValueError, match="no stage can go on in slot 0"):
        pipeline.placed([[("B", 0), ("F", 0)]])
