"""What a classifier takes for what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unrolled.show.picture import Picture
from unrolled.show.sheet import Cells, Scale, Sheet, on_host
from unrolled.show.style import GREEN, INK, RED, SMALL
from unrolled.show.words import count_of, percent

MOST = 12  # classes for which the cells have room
LISTED = 6  # pairs in words
SIDE, LEFT, TOP = 3.6, 0.95, 0.6  # inches


def confusion(labels: ArrayLike, predictions: ArrayLike, names: Sequence[str] | None = None) -> Picture:
    """Draw how often each class (a row) was predicted as each class (a column), and list the usual mix-ups in words.

    labels, predictions: integers (N,) from 0 on; names: those of the classes, by default their numbers. ValueError for
    shapes that differ, no labels, labels or predictions without a class, or more than 12 classes.
    """
    truth, guess = on_host(labels), on_host(predictions)
    if truth.shape != guess.shape or truth.ndim != 1 or not truth.size:
        raise ValueError(f"labels and predictions must be (N,) alike, got {truth.shape} and {guess.shape}")
    count = int(max(truth.max(), guess.max())) + 1 if names is None else len(names)
    if min(truth.min(), guess.min()) < 0 or max(truth.max(), guess.max()) >= count or count > MOST:
        raise ValueError(f"labels and predictions must be 0 to {min(count, MOST) - 1}, at most {MOST} classes")
    words = [str(name) for name in (range(count) if names is None else names)]
    counts = np.zeros((count, count), dtype=np.int64)
    np.add.at(counts, (truth, guess), 1)
    right, total = int(np.trace(counts)), int(counts.sum())
    score, share = f"{right:,} of {total:,} right", percent(right / total)
    wrong = counts * (1 - np.eye(count, dtype=np.int64))
    pairs = sorted(np.argwhere(wrong).tolist(), key=lambda pair: -wrong[tuple(pair)])
    lines = []
    for row, column in pairs[:LISTED]:
        article = "an" if words[row][:1].lower() in "8aeiou" else "a"
        lines.append(f"{article} {words[row]} taken for {words[column]}: {count_of(int(wrong[row, column]), 'time')}")
    if len(pairs) > LISTED:
        lines.append(f"and {sum(int(wrong[row, column]) for row, column in pairs[LISTED:])} more")
    cells = Cells.fitting(counts.shape, SIDE, SIDE, 0.45).at(LEFT, TOP)
    sheet = Sheet(TOP + cells.size[1] + 0.15)
    sheet.paint(cells, Scale(float(wrong.max()) or 1.0, signed=True).colours(wrong.astype(np.float64), 1.6))
    for i in range(count):
        sheet.fill(cells.box(i, i), "#CFEBE1")
        sheet.text((cells.left - 0.1, cells.centre(i, 0)[1]), words[i][:10], size=SMALL, anchor="right")
        sheet.text((cells.centre(0, i)[0], cells.top - 0.14), words[i][:4], size=SMALL, anchor="middle")
    sheet.rule(cells)
    sheet.numbers(cells, [str(value) if value else "" for value in counts.ravel()])
    sheet.text((cells.left, 0.17), "taken for ...")
    sheet.text((0.1, cells.top - 0.14), "a true ...")
    left = cells.right + 0.35
    sheet.text((left, TOP + 0.1), score, GREEN, 11, bold=True)
    sheet.text((left, TOP + 0.38), f"{share} of them, on the diagonal", size=SMALL)
    for place, text in enumerate(lines):
        sheet.text((left, TOP + 0.82 + 0.26 * place), text, RED if place == 0 else INK, SMALL)
    alt = f"Confusion matrix: {score} ({share}). {'; '.join(lines) or 'no mix-ups'}."
    return Picture(sheet.figure(), alt)
