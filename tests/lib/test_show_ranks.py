"""Pictures of many ranks: the ring all-reduce, the pipeline, scaling curves, and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn import Drawn

from unrolled import show
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.emulation import emulate
from unrolled.parallel.network import Message, Network
from unrolled.show.pipeline import BACKWARD, FORWARD, plan_of
from unrolled.show.pipeline import WRONG as TOO_EARLY
from unrolled.show.ring import ARRIVES, PART, WHOLE, Ring
from unrolled.show.scaling_curves import Model, efficiency
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, INK, ORANGE, PALE, PAPER, RED


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    return Drawn(monkeypatch)


# the ring


@pytest.mark.parametrize("size", range(2, 9))
def test_a_ring_adds_up_real_numbers(size: int) -> None:
    """Powers of two: their sum says which ranks are in it, and a rank that is added twice shows."""
    ring, values = Ring(size), np.repeat(2 ** np.arange(size), size).reshape(size, size)
    assert ring.rounds == 2 * (size - 1)
    for number in range(ring.rounds + 1):
        before = values.copy()
        for rank, chunk in ring.moves(number):
            to = (rank + 1) % size
            values[to, chunk] = before[rank, chunk] + (values[to, chunk] if number < size else 0)
        held = [[sum(2**rank for rank in cell) for cell in row] for row in ring.after(number)]
        assert held == values.tolist()
        assert len(ring.moves(number)) == (size if number else 0)  # a chunk of each rank
    assert (values == 2**size - 1).all()
    assert ring.carried(ring.rounds) * size == 2 * (size - 1)


@pytest.mark.parametrize("size", range(2, 9))
def test_the_first_half_of_a_ring_is_a_reduce_scatter(size: int) -> None:
    whole = [[len(cell) == size for cell in row] for row in Ring(size).after(size - 1)]
    assert whole == np.eye(size, dtype=bool).tolist()


def test_a_round_is_drawn_as_it_is(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    outlined: list[Any] = []
    outline = Sheet.outline
    monkeypatch.setattr(Sheet, "outline", lambda *a, **k: (outlined.append(a[1:3]), outline(*a, **k)))
    explorer = show.ring_allreduce(3)
    parts, wholes = [9, 6, 0, 0, 0], [0, 0, 3, 6, 9]
    for number in range(5):
        outlined.clear()
        drawn.at(explorer, round=number)
        colours = [colour for _, colour in drawn.fills]
        assert (colours.count(PART) - 1, colours.count(WHOLE) - 1) == (parts[number], wholes[number])  # -1: the legend
        assert len(outlined) - 1 == (3 if number else 0)
        assert {colour for _, colour in outlined} == {ARRIVES}
        assert sum(colour == INK for _, colour in drawn.lines) == (2 * (3 + 1) if number else 0)  # one goes round
    drawn.at(explorer, round=1)
    assert [drawn.texts.count(words) for words in ("0+1", "1+2", "0+2", "0", "1", "2")] == [1, 1, 1, 2, 2, 2]


def test_the_ring_in_words() -> None:
    explorer = show.ring_allreduce(4)
    assert explorer.start == {"round": 1}
    alt = explorer.at(round=2).alt
    assert "Round 2 of 6: reduce-scatter. Each rank sends one chunk to the next rank, which adds it to its own." in alt
    assert "So far each link has carried 1/2 of the array; 3/2 of the array after the last round." in alt
    assert "chunk 1 from rank 3 to rank 0, now 0+2+3." in alt
    assert "0 of 16 chunks hold" in alt
    assert "Round 4 of 6: all-gather" in explorer.at(round=4).alt
    assert explorer.at(round=6).alt.endswith("16 of 16 chunks hold the sum of all ranks.")
    assert "Moved" not in explorer.at(round=0).alt
    assert "chunk 2 from rank 0 to rank 1, now 0+1+3+4+5+6+7;" in show.ring_allreduce(8).at(round=6).alt
    assert "the array once after" in show.ring_allreduce(2).alt


@pytest.mark.parametrize("ranks", [1, 9])
def test_rings_that_cannot_be_drawn_are_refused(ranks: int) -> None:
    with pytest.raises(ValueError, match=f"ranks must be 2 to 8, got {ranks}"):
        show.ring_allreduce(ranks)


# the pipeline


def slots(*rows: str) -> list[list[tuple[str, int] | None]]:
    """A schedule from words: "F0 B0 -"."""
    return [[None if word == "-" else (word[0], int(word[1:])) for word in row.split()] for row in rows]


FILLED = slots("F0 F1 F2 -  -  B0 B1 B2", "-  F0 F1 F2 B0 B1 B2")
IN_TURN = slots("F0 F1 -  B0 F2 B1 -  B2", "-  F0 B0 F1 B1 F2 B2")
BROKEN = {
    "same slot": (slots("F0 - B0", "F0 B0"), [(1, 0)], "stage 1 does F0 in slot 0, before F0 of stage 0"),
    "backward first": (slots("B0 F0"), [(0, 0)], "stage 0 does B0 in slot 0, before F0 of stage 0"),
    "not back yet": (
        slots("F0 - B0", "- F0 B0"),
        [(0, 2)],
        "stage 0 does B0 in slot 2, before B0 of stage 1",
    ),
    "neither": (
        slots("B0 F0 - B0", "- - F0 B0"),
        [(0, 0), (0, 3)],
        "B0 in slot 0, before F0 of stage 0 and B0 of stage 1; 1 more slot",
    ),
    "again": (slots("F0 F0 B0"), [(0, 1)], "stage 0 does F0 in slot 1 again"),
    "left out": (slots("F0 F1 - B0 B1", "- F0 B0"), [(0, 4)], "before B1 of stage 1; 2 passes never done"),
}


def test_both_ways_through_a_pipeline_are_right_and_hold_what_they_hold() -> None:
    for schedule, held in ((FILLED, [3, 3]), (IN_TURN, [2, 1])):
        plan = plan_of(schedule)
        assert (plan.wrong, plan.never, plan.held) == ([], 0, held)
        assert (plan.stages, plan.micro_batches, plan.slots, plan.fewest) == (2, 3, 8, 8)
        assert plan.bubble == pytest.approx(1 / (3 + 1))  # (p - 1) / (m + p - 1)
    forward = plan_of(slots("F0 F1", "- F0 F1"))
    assert (forward.never, forward.fewest, forward.held) == (0, 3, [2, 2])


@pytest.mark.parametrize(("schedule", "wrong", "words"), BROKEN.values(), ids=BROKEN)
def test_what_comes_too_early_or_again_in_a_pipeline_is_found(schedule: Any, wrong: Any, words: str) -> None:
    assert plan_of(schedule).wrong == wrong
    assert f"{words}." in show.pipeline(schedule).alt


def test_a_pipeline_is_drawn_as_it_is(drawn: Drawn) -> None:
    drawn.at(show.pipeline(IN_TURN))
    colours = [colour for _, colour in drawn.fills]
    assert [colours.count(colour) - 1 for colour in (FORWARD, BACKWARD, PALE)] == [6, 6, 4]  # -1: the legend
    assert not drawn.hatches
    lefts = {colour: [box[0] for box, its in drawn.fills if its == colour][:-1] for colour in (FORWARD, BACKWARD)}
    slot = lefts[FORWARD][1] - lefts[FORWARD][0]  # micro-batches 0 and 1 of stage 0 stand side by side
    first = [round((left - lefts[FORWARD][0]) / slot) for left in lefts[BACKWARD]]
    assert sorted(first) == [2, 3, 4, 5, 6, 7]
    drawn.at(show.pipeline(BROKEN["again"][0]))
    assert sum(colour == TOO_EARLY for _, colour in drawn.fills) == 2
    assert [colour for _, colour in drawn.hatches] == [RED, RED]


def test_the_pipeline_in_words(drawn: Drawn) -> None:
    alt = show.pipeline(IN_TURN).alt
    assert "Your schedule: bubble 25 %, activations of 2 micro-batches at most." in alt
    assert "2 stages, 3 micro-batches: 8 slots; the fewest that can do it are 8." in alt
    assert "stage 1: – F0 B0 F1 B1 F2 B2 – (holds at most 1)" in alt
    assert "Wrong" not in alt
    drawn.at(show.pipeline(slots("F0 B0")))
    assert "Your schedule: bubble 0 %, activations of 1 micro-batch at most" in drawn.texts
    drawn.at(show.pipeline([[("F", slot) for slot in range(100)]]))
    assert "77" not in drawn.texts  # too small to read


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        ("gpipe2", ValueError, "schedule is 'gpipe2'; expected gpipe, 1f1b, or a list of slots for each stage"),
        ([], ValueError, "schedule must have 1 to 8 stages and at most 128 slots, got 0 and 0"),
        ([[("F", 0)]] * 9, ValueError, "got 9 and 1"),
        ([[None] * 129], ValueError, "got 1 and 129"),
        ([[None], []], ValueError, "schedule holds no work"),
        ([[("F", 0)], [("X", 0)]], ValueError, r"slot 0 of stage 1 is \('X', 0\); expected"),
        ([[("B", -1)]], ValueError, r"is \('B', -1\); expected"),
        (None, TypeError, "schedule is None; expected for each stage a list"),
        ([[0, 1]], TypeError, "expected for each stage a list"),
        ([[("F", 0.5)]], TypeError, "expected for each stage a list"),
        ([[("F", 0, 1)]], TypeError, "expected for each stage a list"),
    ],
)
def test_pipelines_that_cannot_be_drawn_are_refused(schedule: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        show.pipeline(schedule)


@pytest.mark.parametrize("sizes", [(0, 8), (9, 8), (4, 0), (4, 17)])
def test_pipelines_too_small_or_too_large_are_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"stages must be 1 to 8 and micro_batches 1 to 16, got {sizes[0]} and"):
        show.pipeline("gpipe", *sizes)


def test_named_schedules_follow_the_sliders() -> None:
    explorer = show.pipeline("1f1b", stages=4, micro_batches=8)
    assert explorer.start == {"schedule": "1f1b", "stages": 4, "micro_batches": 8}
    assert "1F1B: bubble 27.3 %, activations of 4 micro-batches at most." in explorer.alt
    assert "GPipe: bubble 27.3 %, activations of 8 micro-batches at most." in explorer.at(schedule="gpipe").alt
    wide = explorer.at(stages=8, micro_batches=16).alt
    assert "8 stages, 16 micro-batches: 46 slots; the fewest that can do it are 46." in wide
    assert "Wrong" not in wide
    assert "bubble 0 %" in explorer.at(stages=1).alt


# strong and weak scaling


def test_a_step_computes_and_then_reduces_its_gradient() -> None:
    model = Model(compute=0.08, gradient=4e6, alpha=1e-3, beta=1e-8)
    assert model.step(1, "strong") == model.step(1, "weak") == 0.08
    reduced = 2 * 3 * (1e-3 + 1e-8 * 4e6 / 4)  # 2 (p - 1) (alpha + beta n / p)
    assert model.step(4, "strong") == pytest.approx(0.02 + reduced)
    assert model.step(4, "weak") == pytest.approx(0.08 + reduced)
    assert efficiency(0.08, 0.04, 4, "strong") == pytest.approx(0.5)
    assert efficiency(0.08, 0.1, 4, "weak") == pytest.approx(0.8)
    assert model.efficiency(4, "weak") == pytest.approx(0.08 / (0.08 + reduced))


def test_recorded_points_stand_over_the_lines_with_their_efficiency() -> None:
    weak = [(1, 0.012, "ours"), (4, 0.015, "ours"), (2, 0.02, "theirs")]
    explorer = show.scaling_curves(strong=[(2, 0.009, "ours")], weak=weak)
    panels = explorer.still().figure.axes
    points = [[tuple(map(tuple, line.get_xydata())) for line in axes.lines[2:]] for axes in panels]
    assert points == [
        [((2, 0.009),)],
        [],  # nothing recorded on one rank of this kind
        [((1, 0.012), (4, 0.015)), ((2, 0.02),)],
        [((1, 1.0), (4, pytest.approx(0.8)))],
    ]
    alt = explorer.at(compute=0.012).alt
    assert "Recorded, ours: 15 ms (80 %) on 4. Recorded, theirs: 20 ms on 2." in alt
    assert "Recorded, ours: 9 ms on 2. Weak scaling" in alt
    assert panels[0].get_ylim() == panels[2].get_ylim()
    (legend,) = explorer.still().figure.legends
    assert [text.get_text() for text in legend.get_texts()][2:] == ["recorded: ours, another step", "recorded: theirs"]
    assert 0.012 in explorer.sliders["compute"].values
    assert not {0.009, 0.015} & set(explorer.sliders["compute"].values)  # on more than one rank


def test_points_of_another_step_than_the_lines_are_hollow() -> None:
    explorer = show.scaling_curves(0.012, weak=[(1, 0.012, "ours"), (2, 0.02, "ours")])
    for compute, hollow in ((0.012, False), (0.01, True)):
        picture = explorer.at(compute=compute)
        (points,) = picture.figure.axes[2].lines[2:]
        assert (points.get_markerfacecolor() == PAPER) == hollow
        assert ("Recorded, ours (another step): 20 ms" in picture.alt) == hollow


def test_scaling_in_words_follows_the_sliders() -> None:
    explorer = show.scaling_curves(0.01, 1e3, alpha=14e-6, beta=8e-11)
    assert explorer.start == {"compute": 0.01, "gradient": 1e3, "alpha": 14e-6, "beta": 8e-11}
    assert "Step of 10 ms on one rank, gradient of 1 kB, alpha 14 µs, 12.5 GB/s a link (modelled)." in explorer.alt
    assert "One batch is done soonest on 16 ranks: 1.05 ms." in explorer.alt
    assert "11.8 ms (85 %) on 64." in explorer.alt
    assert "One batch is done soonest on 1 rank: 10 ms." in explorer.at(alpha=0.01).alt
    assert {1e-7, 2e-5, 0.01} < set(explorer.sliders["alpha"].values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compute": 0}, "compute must be above 0, got 0"),
        ({"beta": float("nan")}, "beta must be above 0, got nan"),
        ({"weak": [(65, 0.1, "a")]}, r"weak holds \(65, 0.1, 'a'\); expected 1 to 64 ranks and seconds above 0"),
        ({"strong": [(2, 0.0, "a")]}, r"strong holds \(2, 0.0, 'a'\)"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.scaling_curves(**options)


# messages


def there_and_back(comm: Communicator) -> None:
    x = np.zeros(1000)
    if comm.rank == 0:
        comm.send(x, 2)
        comm.receive(x, 2)
    elif comm.rank == 2:
        comm.receive(x, 0)
        comm.send(x, 0)


def test_a_message_goes_from_its_sender_to_its_receiver(drawn: Drawn) -> None:
    network = Network(3, "PCIe 4")
    emulate(there_and_back, network=network)
    picture = show.messages(network.messages, "There and back")
    arrows = [[points for points, its in drawn.lines if its == colour] for colour in (BLUE, ORANGE)]
    (((left, top), (middle, low)), _), (((again, bottom), (right, high)), _) = arrows  # each with its head
    assert (top, low) == (high, bottom)
    assert low > top
    assert left < middle < right
    assert middle == pytest.approx(again)
    assert middle - left == pytest.approx(right - middle)
    assert "modelled time; colours and strokes change from round to round" in drawn.texts
    alt = picture.alt
    assert alt.startswith("There and back. 2 messages between 3 ranks, 16 kB in 2 rounds; the last is there after ")
    assert "8,000 bytes from rank 0 to rank 2, 0 s to " in alt
    assert alt.endswith(" µs.")


def test_many_messages_are_told_in_part(drawn: Drawn) -> None:
    sent = [Message(0, 1, 8, 1e-6 * i, 1e-6 * (i + 1), 1) for i in range(14)]
    drawn.texts.clear()
    show.messages(sent)
    assert "modelled time" in drawn.texts  # one round: nothing changes
    assert show.messages(sent[:12]).alt.count("from rank") == 12
    alt = show.messages(sent[::-1]).alt
    assert alt.endswith("; and 2 more.")
    assert "rounds" not in alt
    assert "8 bytes from rank 0 to rank 1, 0 s to 1 µs;" in alt  # the earliest first
    assert "13 µs to 14 µs" not in alt


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([], "sent must hold 1 to 400 messages, got 0"),
        ([Message(0, 1, 8, 0, 1, 1)] * 401, "got 401"),
        ([Message(0, 16, 8, 0, 1, 1)], "sent must be between 16 ranks at most, got 17"),
    ],
)
def test_messages_that_cannot_be_drawn_are_refused(sent: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.messages(sent)
