"""Pictures of many ranks: the ring all-reduce."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn import Drawn

from unrolled import show
from unrolled.show.ring import ARRIVES, PART, WHOLE, Ring
from unrolled.show.sheet import Sheet
from unrolled.show.style import INK


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
    assert explorer.start == {"round": 3}
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
