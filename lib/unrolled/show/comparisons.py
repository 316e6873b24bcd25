"""What was measured beside what was said beforehand, what a machine allows, and what another method takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from numpy.typing import NDArray

from unrolled.show.charts import beside, chart, heights, spread, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import COLOURS, GREY, INK, MARKERS, ORANGE, PALE, SIGNED, SKY, SMALL, WIDTH, mark, styled, tint
from unrolled.show.words import amount, count_of, number, percent, rounded, seconds, times, titled

# Said beforehand, by a model or by a learner

MARKED = "full: measured; hollow: recorded; half: modelled"
MOST_NAMED = 3  # of those farthest off, in the words
CLOSE = 2.0  # a guess or a modelled time within this factor is close
Figures = Mapping[str, tuple[float, float]]


@styled()
def agreement(groups: Mapping[str, Figures], title: str = "") -> Picture:
    """Draw modelled against measured times on log axes, with the line where they are equal and a band around it.

    groups: group -> name -> (measured, modelled), in seconds above 0.
    """
    lasting = [time for figures in groups.values() for pair in figures.values() for time in pair]
    figure, axes = chart(3.9, 0.8, 2.6, top=0.35 if title else 0.1)
    _equals(axes, min(lasting) / 2, max(lasting) * 2, seconds, color=INK, linewidth=1)
    axes.text(0.04, 0.94, "modelled too long", transform=axes.transAxes, size=SMALL, style="italic")
    axes.text(0.96, 0.04, "modelled too short", transform=axes.transAxes, ha="right", size=SMALL, style="italic")
    axes.set(xlabel="measured", ylabel="modelled", title=title)
    *places, last = spread([0.9 - 0.8 * i / max(1, len(groups)) for i in range(len(groups) + 1)], 0.14)
    for i, ((name, figures), place) in enumerate(zip(groups.items(), places, strict=True)):
        measured, modelled = zip(*figures.values(), strict=True) if figures else ((), ())
        marker = MARKERS[i % 8]
        look: dict[str, Any] = {"color": COLOURS[i % 8], "markeredgecolor": INK}
        axes.plot(measured, modelled, marker, markeredgewidth=0.5, **look)
        words = f"{name}\n{_count(figures.values())}"
        beside(axes, [1.06], 1.11, place, words, marker, markersize=8, **look)
    words = f"grey: at most {times(CLOSE)}\ntoo long or too short"
    axes.annotate(words, (1.04, last), xycoords="axes fraction", va="center", size=SMALL, style="italic")
    texts = [f"{name}: {_count(figures.values())}" for name, figures in groups.items()]
    everything = {name: pair for figures in groups.values() for name, pair in figures.items()}
    far = [name for name, pair in everything.items() if off(pair) > CLOSE]
    for name in sorted(far, key=lambda name: -off(everything[name]))[:MOST_NAMED]:
        was, predicted = (seconds(time) for time in everything[name])
        texts.append(f"Far off: {name}, measured {was}, modelled {predicted}")
    return Picture(figure, titled(title, f"Modelled against measured times, log axes. {'. '.join(texts)}."))


@styled()
def guesses(rows: Sequence[Mapping[str, Any]]) -> Picture:
    """Draw guesses against measurements, both as a number of times, on log axes with the line of perfect guesses.

    rows: mappings with "name", "guess" and "measured", both above 0, and perhaps "where", as in "modelled, T4", which
    the mark shows, too.
    """
    values = [float(row[key]) for row in rows for key in ("guess", "measured")]
    figure, axes = chart(max(3.6, 0.42 * len(rows) + 1.0), 0.75, 3.6, top=0.15)
    _equals(axes, min(values) / 2.2, max(values) * 2.2, number, color=GREY, linewidth=1.2)
    axes.set(xlabel="guess (times)", ylabel="what it is (times)")
    axes.annotate(MARKED, (1.07, -0.16), xycoords="axes fraction", size=SMALL, color=GREY)
    axes.text(0.03, 0.96, "more than guessed", transform=axes.transAxes, va="top", size=SMALL, color=GREY)
    axes.text(0.97, 0.04, "less than guessed", transform=axes.transAxes, ha="right", size=SMALL, color=GREY)
    for i, row in enumerate(rows):
        look = mark(row.get("where") or "measured", COLOURS[(i + i // 8) % 8]) | {"markersize": 9}
        marker, y = MARKERS[i % 8], 0.97 - i * 0.97 / max(len(rows), 7)
        axes.plot(float(row["guess"]), float(row["measured"]), marker, zorder=3, **look)
        seen, far = verdict(row).rsplit(": ", 1)
        beside(axes, [1.07], 1.12, y, f"{row['name']}: {far}\n{seen}", marker, **look)
    close = sum(off((float(row["measured"]), float(row["guess"]))) <= CLOSE for row in rows)
    lines = "; ".join(f"{row['name']}: {verdict(row)}" for row in rows)
    sentence = f"{count_of(len(rows), 'prediction')} against measurements, in times: {lines}."
    return Picture(figure, f"{sentence} {close} within a factor of 2.")


def off(pair: tuple[float, float]) -> float:
    """Return how many times too high or too low what was said of (measured, predicted) is: 1 or more."""
    measured, predicted = pair
    return max(predicted / measured, measured / predicted)


def verdict(row: Mapping[str, Any]) -> str:
    """Return how far off a guess was, as in "guessed 40 times, measured 9: 4.4 times too high"."""
    guess, measured = float(row["guess"]), float(row["measured"])
    factor = off((measured, guess))
    far = "just right" if factor < 1.1 else f"{times(factor)} too {'high' if guess > measured else 'low'}"
    seen = f"{rounded(measured)} ({row['where']})" if row.get("where") else f"measured {rounded(measured)}"
    return f"guessed {rounded(guess)} times, {seen}: {far}"


def _equals(axes: Axes, low: float, high: float, words: Callable[[float], str], **look: Any) -> None:
    """Draw the line of equal values, both axes logarithmic from low to high, and a band a factor `CLOSE` around it."""
    ends = np.array([low, high])
    axes.fill_between(ends, ends / CLOSE, ends * CLOSE, color=PALE, linewidth=0)
    axes.loglog(ends, ends, **look)
    axes.set(xlim=(low, high), ylim=(low, high))
    for which in ("x", "y"):
        word_ticks(axes, which, words)


def _count(pairs: Iterable[tuple[float, float]]) -> str:
    offs = [off(pair) for pair in pairs]
    return f"{sum(each <= CLOSE for each in offs)} of {number(len(offs))} within {times(CLOSE)}"


# What memory and arithmetic allow

MOST_KERNELS = 6
OFFSET: dict[str, Any] = {"textcoords": "offset points", "size": SMALL}
Points = Mapping[str, tuple[float, float]]
Kernels = Mapping[str, tuple[float, float, float]]


@styled()
def roofline(
    peak_flops: float,
    bandwidth: float,
    points: Points | None = None,
    *,
    kernels: Kernels | Any = None,
    where: str = "",
    modelled: Mapping[str, float] | None = None,
    units: Mapping[str, float] | None = None,
) -> Picture:
    """Draw the roof min(peak, intensity · bandwidth) and what was measured under it.

    peak_flops: flop/s; bandwidth: bytes/s; points: name -> (flops a byte, flop/s). kernels, besides or instead: name ->
    (flops, bytes, seconds), or a trace of the simulated GPU. Of either, the six that take longest are shown; those that
    compute nothing stand below the chart. where: whose roof it is and what gave the times, as in "modelled, T4".
    modelled: name -> seconds that a model gives the kernels that were measured, drawn half above or below them.
    units: lower peaks by name, dashed, each the roof of those points that have its name in theirs.
    Source: Williams, Waterman, Patterson: Roofline, 2009. All values are above 0, but kernels may have 0 flops.
    """
    given = {} if kernels is None else dict(kernels) if isinstance(kernels, Mapping) else kernels_of(kernels)
    longest = {name: given[name] for name in sorted(given, key=lambda name: -given[name][2])[:MOST_KERNELS]}
    computing = {name: (flops / moved, flops / took) for name, (flops, moved, took) in longest.items() if flops}
    points = {**(points or {}), **computing}
    units = units or {}
    roofs = {name: next((units[unit] for unit in units if unit in name), peak_flops) for name in points}
    copies = [
        f"{name} computes nothing: {amount(moved / took, 'B/s')}, {percent(moved / took / bandwidth)} of the bandwidth"
        for name, (flops, moved, took) in longest.items()
        if not flops
    ]
    ridge = peak_flops / bandwidth
    intensities = [ridge, *(intensity for intensity, _ in points.values())]
    x = np.geomspace(min(intensities) / 6, max(*intensities, ridge * 3) * 3, 100)
    model = {name: (points[name][0], longest[name][0] / s) for name, s in (modelled or {}).items() if name in points}
    height = 3.6 + 0.2 * len(copies) + 0.45 * max(0, len(points) - MOST_KERNELS)
    figure, axes = chart(height, 0.95, 2.35, bottom=0.55 + 0.2 * len(copies))
    axes.loglog(x, np.minimum(peak_flops, x * bandwidth), color=INK)
    low, high = min([bandwidth * x[0], *(speed for _, speed in (*points.values(), *model.values()))]), peak_flops * 5
    axes.set(xlim=(x[0], x[-1]), ylim=(low * (low / high) ** 0.18, high))  # room below the lowest for words
    _regions(axes, x, ridge, peak_flops, bandwidth)
    for unit, peak in units.items():
        axes.plot([peak / bandwidth, x[-1]], [peak, peak], color=INK, linestyle="--", linewidth=1)
        axes.annotate(f"{unit}: {amount(peak, 'flop/s')}", (peak / bandwidth, peak), (-8, -3), ha="right", **OFFSET)
    for i, (name, (intensity, speed)) in enumerate(points.items()):
        if name in model:
            axes.plot(*model[name], MARKERS[i % 8], markersize=9, **mark("modelled", COLOURS[i % 8]))
        axes.plot(intensity, speed, MARKERS[i % 8], markersize=9, **mark(where or "measured", COLOURS[i % 8]))
    axes.set(xlabel="arithmetic intensity (flops a byte moved)", ylabel="speed (flop/s)")
    word_ticks(axes, "x", number)
    word_ticks(axes, "y", lambda value: amount(value, ""))
    axes.grid(True)
    axes.set_title(f"Roofline ({where})" if where else "")
    places = heights(axes, (speed for _, speed in points.values()), min(0.16, 1 / len(points)) if points else 0.16)
    for i, ((name, (intensity, speed)), place) in enumerate(zip(points.items(), places, strict=True)):
        share, limit = bound(intensity, speed, roofs[name], bandwidth)
        words = f"{name}\n{percent(share)} of the roof ({limit})"
        if name in model:
            modelled_share = percent(bound(*model[name], roofs[name], bandwidth)[0])
            words = f"{name}: {percent(share)}\nof the roof; model: {modelled_share}"
        look = mark(where or "measured", COLOURS[i % 8]) | {"markersize": 9}
        beside(axes, [1.05], 1.09, place, words, MARKERS[i % 8], **look)
    for i, words in enumerate(copies):
        figure.text(0.015, (0.08 + 0.2 * i) / height, words, size=SMALL)
    return Picture(figure, _alt(peak_flops, bandwidth, points, model, copies, where, roofs))


def kernels_of(trace: Any) -> dict[str, tuple[float, float, float]]:
    """Return the operations of a trace, the longest first: name -> (flops, bytes, seconds), summed over launches."""
    return {name: (sums.flops, sums.bytes, sums.seconds) for name, sums in trace.by_op().items()}


def _regions(axes: Axes, x: NDArray[np.float64], ridge: float, peak: float, bandwidth: float) -> None:
    """Shade where memory is the limit and where arithmetic is, and name both parts of the roof."""
    low, high = axes.get_ylim()
    below = np.array([x[0], ridge])
    axes.fill_between(below, low, below * bandwidth, color=tint(SKY, 0.35), linewidth=0)
    axes.fill_between([ridge, x[-1]], low, peak, color=tint(ORANGE, 0.3), linewidth=0)
    axes.annotate(f"arithmetic: {amount(peak, 'flop/s')}", (x[-1], peak), (-4, 6), ha="right", **OFFSET)
    half, near = float(np.sqrt(x[0] * ridge)), float(x[0] ** 0.1 * ridge**0.9)
    axes.annotate(f"memory: {amount(bandwidth, 'B/s')}", (near, near * bandwidth), (-8, 6), ha="right", **OFFSET)
    for place, words in ((half, "memory is the limit"), (np.sqrt(ridge * x[-1]), "arithmetic is")):
        axes.text(place, low * (high / low) ** 0.03, words, ha="center", size=SMALL, style="italic")


def bound(intensity: float, speed: float, peak_flops: float, bandwidth: float) -> tuple[float, str]:
    """Return the share of the roof that a point reaches, and what limits it there: "memory" or "arithmetic"."""
    limit = "memory" if intensity * bandwidth < peak_flops else "arithmetic"
    return speed / min(peak_flops, intensity * bandwidth), limit


def _alt(
    peak: float,
    bandwidth: float,
    points: Points,
    model: Points,
    copies: Sequence[str],
    where: str,
    roofs: Mapping[str, float],
) -> str:
    texts = [
        f"Roofline{f' ({where})' if where else ''}: memory allows {amount(bandwidth, 'B/s')}, arithmetic "
        f"{amount(peak, 'flop/s')}; below {rounded(peak / bandwidth)} flops a byte memory is the limit"
    ]
    for name, (intensity, speed) in points.items():
        share, limit = bound(intensity, speed, roofs[name], bandwidth)
        place = f"{amount(speed, 'flop/s')} at {rounded(intensity)} flops a byte"
        beside_it = f" (modelled: {amount(model[name][1], 'flop/s')})" if name in model else ""
        texts.append(f"{name}: {place}, {percent(share)} of what {limit} allows{beside_it}")
    return ". ".join([*texts, *copies]) + "."


# Where one method overtakes another: a map over the size of kernel and image

LEFT, TOP, GAP, BOTTOM = 0.75, 0.65, 0.8, 0.95  # inches
LARGEST = 0.75, 0.42  # inches of a cell
DEEPEST = 0.25  # of the colours, to either side: numbers are written on them
Row = Mapping[str, Any]
Map = tuple[list[int], list[int], NDArray[np.float64]]


def crossover(rows: Sequence[Row], recorded: tuple[str, Sequence[Row]] | None = None) -> Picture:
    """Draw how many times as fast the FFT is as one product, by size of kernel and image; 1 is where they meet.

    rows: mappings with "kernel" and "size" in pixels, and "faster", above 0. recorded: a label and such rows, drawn
    beside them. A thick line runs where the faster one changes.
    """
    panels = [("measured here", _mapped(rows))]
    if recorded is not None:
        panels.append((recorded[0], _mapped(recorded[1])))
    return _draw(panels)


def _mapped(rows: Sequence[Row]) -> Map:
    """Sizes, kernels, and what was measured for each pair; NaN where nothing was."""
    sizes, kernels = (sorted({int(row[key]) for row in rows}) for key in ("size", "kernel"))
    found = np.full((len(sizes), len(kernels)), np.nan)
    for row in rows:
        found[sizes.index(int(row["size"])), kernels.index(int(row["kernel"]))] = float(row["faster"])
    return sizes, kernels, found


def _draw(panels: Sequence[tuple[str, Map]]) -> Picture:
    room = (WIDTH - 0.15 - LEFT * len(panels) - GAP * (len(panels) - 1)) / len(panels)
    height = max(len(found[0]) for _, found in panels) * LARGEST[1]
    sheet, alt = Sheet(TOP + height + BOTTOM), "Times as fast FFT is as one product."
    for place, (label, (sizes, kernels, values)) in enumerate(panels):
        width = min(LARGEST[0], room / len(kernels))
        cells = Cells(LEFT + place * (room + LEFT + GAP), TOP, len(sizes), len(kernels), width, LARGEST[1])
        shares = 0.5 + DEEPEST * np.clip(np.log2(values) / 3, -1, 1)
        sheet.paint(cells, np.asarray(colormaps[SIGNED](np.ma.masked_invalid(shares)), np.float64))
        sheet.rule(cells)
        sheet.numbers(cells, [rounded(value) if value == value else "" for value in values.ravel().tolist()])
        for (row, column), wins in np.ndenumerate(values > 1):  # a thick line where the neighbour's winner is another
            left, top, width, height = cells.box(row, column)
            if column and wins != (values[row, column - 1] > 1):
                sheet.line((left, top), (left, top + height), colour=INK, width=3)
            if row and wins != (values[row - 1, column] > 1):
                sheet.line((left, top), (left + width, top), colour=INK, width=3)
        sheet.text((cells.left, TOP - 0.42), label, size=11, bold=True)
        sheet.text((cells.left, cells.bottom + 0.4), "kernel (pixels a side)", size=SMALL)
        for column, kernel in enumerate(kernels):
            sheet.text((cells.centre(0, column)[0], cells.bottom + 0.16), str(kernel), size=SMALL, anchor="middle")
        won = []  # for each size of image, from which kernel on the FFT wins
        for row, size in enumerate(sizes):
            fast = [str(kernel) for kernel, value in zip(kernels, values[row], strict=True) if value > 1]
            won.append(f"images of {size}: {'faster with kernels of ' + ', '.join(fast) if fast else 'never faster'}")
            sheet.text((cells.left - 0.1, cells.centre(row, 0)[1]), str(size), size=SMALL, anchor="right")
        sheet.text((cells.left - 0.1, TOP - 0.14), "image", size=SMALL, anchor="right")
        alt += f" {label}, {count_of(int(np.isfinite(values).sum()), 'pair')} of sizes: {'; '.join(won)}; "
        alt += f"at most {rounded(float(np.nanmax(values)))} times."
    caption = "times as fast FFT is as one product; from the thick line on, FFT is faster"
    sheet.text((LEFT, sheet.height - 0.2), caption, size=SMALL)
    return Picture(sheet.figure(), alt)
