"""Every picture of `unrolled.show`, with samples that show each of its sides; and the texts that stand for them.

`picture_texts.json` holds what each of them says without being seen, at the start of its sliders and at both ends, each
text once: read it as a reader of braille would. After a change of words, `python tests/lib/pictures.py` writes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from paper_trace import PaperTrace, lying_clock

from unrolled import show
from unrolled.parallel.network import Message
from unrolled.simgpu.profiles import PROFILES

TEXTS = Path(__file__).with_name("picture_texts.json")
RNG = np.random.default_rng(3)

# Images and networks

DIGITS = RNG.random((12, 1, 28, 28)).astype(np.float32)
LABELS = np.arange(12) % 10
SLIPS = np.where(LABELS == 7, 1, LABELS)
SQUARE = np.array([[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]])
TIED = np.array([[0, 0, 2, 0], [0, 0, 1, 3], [0, 4, 0, 0], [1, 4, 0, 0]])
KERNEL = np.array([[2, 0, 1], [0, 2, 1], [1, 0, 1]])
CHANNELS = np.array(
    [
        [[1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]],
        [[4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]],
        SQUARE.tolist(),
    ]
)
KERNELS = np.array(
    [[[2, 0, 1], [0, 3, 0], [1, 0, 2]], [[0, 1, 3], [0, 1, 2], [1, 0, 0]], [[2, 0, 1], [0, 1, 2], [1, 0, 2]]]
)
FILTERS, COLOURED = RNG.standard_normal((12, 1, 3, 3)), RNG.standard_normal((16, 3, 5, 5))
NETWORK = {
    "x": [[1, 2], [2, -1]],
    "labels": [0, 1],
    "weights": ([[1, -1], [0.5, 1], [-1, 0.5]], [[0, 0.5, -1], [0.5, 1, 0.5]]),
    "biases": ([0.5, -0.5, 0.25], [0, 0]),
}
DIFFERENT = np.arange(120.0).reshape(2, 3, 4, 5)
DIFFERENT[1, 2, 1:3, 4] = [-1, np.nan]
TRUTH, GUESSES = np.array([0, 0, 1, 1, 2, 2, 2]), np.array([0, 1, 1, 1, 0, 1, 1])

# Training

HISTORY = SimpleNamespace(
    loss=[2.0, 1.0, 0.1],
    accuracy=[0.3, 0.7, 1.0],
    validation_loss=[2.1, 1.1, 1.4],
    validation_accuracy=[0.25, 0.6, 0.62],
)
TRAINING_ONLY = SimpleNamespace(loss=[2.0, 1.0], accuracy=[0.3, 0.7], validation_loss=[], validation_accuracy=[])
LONG_HISTORY = SimpleNamespace(**{name: [float("accuracy" in name)] * 99 for name in vars(HISTORY)})
LONG_HISTORY.validation_loss = [1e-3] * 99
BOX = (-4.0, 4.0, -2.0, 2.0)


def bowl(x: Any, y: Any) -> Any:
    return x**2 + 4 * y**2


def descent(rate: float, steps: int = 20) -> np.ndarray:
    points = [np.array([-3.0, 1.0])]
    for _ in range(steps):
        points.append(points[-1] - rate * np.array([2.0, 8.0]) * points[-1])
    return np.array(points)


PATHS = {name: {rate: descent(factor * rate) for rate in (0.1, 1.0)} for name, factor in (("slow", 0.5), ("fast", 1.0))}

# Times

RUNGS = [
    {"label": "loops", "seconds": 5400, "what": "convolution forward only", "batch": 32, "precision": "float32"},
    {"label": "network", "seconds": 41.0, "what": "an epoch", "hardware": "2 cores", "accuracy": 0.9803},
    {"label": "gemm", "seconds": 2.0, "what": "convolution forward only"},
    {"label": "GPU", "seconds": 3.5, "what": "an epoch of training", "hardware": "T4, modelled"},
]
CLIMB = [
    {"label": "NumPy", "seconds": 1800.0, "how": "published"},
    {"label": "a GPU", "seconds": 100.0, "cause": "hardware", "batch": 8},
    {"label": "one fix", "seconds": 50.0, "cause": "code", "batch": 8},
    {"label": "a larger batch", "seconds": 5.0, "cause": "batch", "batch": 128},
    {"label": "a graph", "seconds": 2.5, "cause": "code", "batch": 128},
    {"label": "another", "seconds": 0.0123, "cause": "several", "how": "recorded"},
]
GALLERY = [
    {"name": "moss", "rungs": [{"label": "loops", "seconds": 90.0}, {"label": "one product", "seconds": 0.9}]},
    {"name": "fern" * 11, "rungs": [{"label": f"way number {n}", "seconds": 2.0**-n} for n in range(7)]},
]
GUESSED = [
    {"name": "gemm", "guess": 40, "measured": 9},
    {"name": "rows", "guess": 10, "measured": 412.3},
    {"name": "threads", "guess": 2, "measured": 2.1},
    {"name": "a GPU", "guess": 2, "measured": 40.0, "where": "modelled, T4"},
]
RECORD = [
    {"name": "lstm, naive", "ours_s": 0.04, "speedup": 1.0, "gflops": 500.0, "of_peak": 0.01},
    {"name": "lstm, combined", "ours_s": 0.02, "speedup": 2.0, "gflops": 1000.0, "of_peak": 0.02},
    {"name": "lstm, streams", "ours_s": 0.025, "speedup": 1.6, "gflops": 800.0, "of_peak": 0.016},
    {"name": "lstm, persistent", "ours_s": 0.002, "speedup": 20.0, "gflops": 10000.0, "of_peak": 0.2},
]
MODELLED = {
    "kernels": {"add": (2e-6, 3e-6), "relu": (4e-6, 2e-6)},
    "products": {"a product": (50e-6, 10e-6), "another": (1e-6, 3e-6), "a third": (1e-6, 1e-6)},
}
TIMED = {"matmul": (2e9, 3e7, 4e-4), "add": (1e6, 1.2e7, 5e-5), "a longer name": (0, 9e7, 4e-4)}
TIMED |= {f"kernel {i}": (1e6, 1e6, 1e-6 * i) for i in range(1, 5)}
LINES = {
    "this CPU": ([16, 64, 256], [0.01, 0.04, 0.16], "measured"),
    "H200": ([16, 64, 256], [0.001, 0.001, 0.002], "recorded: H200, 2026-11-21"),
    "T4": ([16, 256], [0.002, 0.01], "modelled, T4"),
}
PRECISIONS = [
    {"name": "float32", "accuracy": 0.98, "bytes": 4000, "seconds": 0.02},
    {"name": "binary", "accuracy": 0.95, "bytes": 125, "seconds": 0.01},
]
CROSSING = [{"kernel": k, "size": size, "faster": k * k / 30 * size / 32} for size in (64, 32) for k in (3, 5, 7)]
CROSSED = [{**row, "faster": 0.1} for row in CROSSING]


def node(name: str, seconds: float, *parts: Any) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "parts": list(parts)}


STEP = {
    **node(
        "step",
        10.0,
        node("forward", 3.0, node("conv", 2.0)),
        node("backward", 5.0, node("pool", 4.5, node("fill", 4.4)), node("conv", 0.5)),
    ),
    "where": "modelled, T4",
}
LONG = node(
    "a rather long name of a part, as layers have", 0.002, *[node(f"{i}: Conv2d(64, 5)", 0.001) for i in range(3)]
)
PUBLISHED = node("backward", 10.3, node("pooling", 9.72), node("others", 0.82))


class Fast:
    """A stand-in for a timing verdict."""

    pairs = (2.0, 2.1, 1.9)

    def draw(self, ax: Any) -> None:
        ax.semilogy([1, 2, 3], self.pairs, "o")

    def __str__(self) -> str:
        return "2x faster: pass."


def race() -> show.Explorer:
    return show.race(DIGITS, LABELS, {"loops": (0.1, LABELS), "network": (1e-3, SLIPS)})


def forms() -> dict[str, Any]:
    """The same work as eight launches with gaps, and as two without; times in seconds."""
    many, few = PaperTrace(), PaperTrace()
    for _ in range(4):
        many.launch("matmul", 1e-5, call=2e-5).launch("add", 5e-6, call=2e-5)
    few.launch("matmul", 4e-5, call=2e-5).launch("lstm_cell", 2e-5, call=2e-5, stream=7)
    return {"naive": many.synchronize(), "fused": few.synchronize()}


# Schedules


def slots(*rows: str) -> list[list[tuple[str, int] | None]]:
    """A schedule of a pipeline from words: "F0 B0 -"."""
    return [[None if word == "-" else (word[0], int(word[1:])) for word in row.split()] for row in rows]


IN_TURN = slots("F0 F1 -  B0 F2 B1 -  B2", "-  F0 B0 F1 B1 F2 B2")
DIAGONALS = [[(layer, slot - layer) for layer in range(3) if 0 <= slot - layer < 4] for slot in range(6)]
EARLY = [[(0, 0)], [(0, 1), (1, 1)], []]
MESSAGES = [Message(i, 15 - i, 10**6, i * 1e-6, 4e-5, 1 + i) for i in range(8)]
MANY_MESSAGES = [Message(0, 1, 8, 1e-6 * i, 1e-6 * (i + 1), 1) for i in range(14)]
POINTS = [(1, 0.012, "ours"), (4, 0.015, "ours"), (2, 0.02, "theirs")]

Made = show.Picture | show.Explorer
PICTURES: dict[str, Callable[[], Made]] = {
    "agreement": lambda: show.agreement(MODELLED, title="H200"),
    "amdahl": lambda: show.amdahl(),
    "amdahl, another": lambda: show.amdahl().at(fraction=0.35),
    "attention_blocks": lambda: show.attention_blocks(),
    "attention_blocks, causal": lambda: show.attention_blocks(12, 4, causal=True),
    "attention_blocks, uneven": lambda: show.attention_blocks(16, 3, causal=True).at(step=2),
    "attention_blocks, many": lambda: show.attention_blocks(7, 1),
    "banks": lambda: show.banks(start="a column of 32 × 32"),
    "barriers": lambda: show.barriers(),
    "barriers, first round": lambda: show.barriers().at(step=1),
    "bars": lambda: show.bars({"digits": 1e5, "their patch matrix": 9e5}, "B", title="Memory"),
    "bars, log": lambda: show.bars({"loops": 0.21, "one call": 6.2e-5}, "s", log=True),
    "causes": lambda: show.causes(CLIMB, "an epoch of MNIST"),
    "clipping": lambda: show.clipping([-3, -1, 0, 0, 1, 1.5, 8], bits=4),
    "col2im": lambda: show.col2im(np.ones((4, 4)), (3, 3), 2),
    "computation_graph": lambda: show.computation_graph(**NETWORK),
    "computation_graph, broken": lambda: show.computation_graph(**NETWORK, step=9, broken=1),
    "confusion": lambda: show.confusion(TRUTH, GUESSES),
    "confusion, none": lambda: show.confusion(TRUTH, TRUTH),
    "confusion, names": lambda: show.confusion([0, 1, 2, 1], [0, 0, 1, 1], ["cat", "airplane", "8"]),
    "conv2d_backward": lambda: show.conv2d_backward(
        [[1, 2, 0], [0, 1, 3], [2, 0, 1]], [[1, 0], [2, -1]], [[1, 2], [0, 3]]
    ),
    "conv2d_backward, padded": lambda: show.conv2d_backward(SQUARE, KERNEL, np.eye(4), padding=1),
    "conv2d_backward, digit": lambda: show.conv2d_backward(DIGITS[0], np.ones((5, 5)), np.eye(13), 2, 1),
    "convolution": lambda: show.convolution(SQUARE, KERNEL),
    "convolution, second": lambda: show.convolution(SQUARE, KERNEL).at(position=1),
    "convolution, padded": lambda: show.convolution(SQUARE, KERNEL, stride=(2, 1), padding=1),
    "convolution, channels": lambda: show.convolution(CHANNELS, KERNELS),
    "convolution, digit": lambda: show.convolution(DIGITS[0], KERNEL, padding=1),
    "convolution, stride": lambda: show.convolution(DIGITS[0], np.ones((5, 5)) / 25, stride=2),
    "crossover": lambda: show.crossover(CROSSING),
    "crossover, two": lambda: show.crossover(CROSSING, recorded=("recorded", CROSSED)),
    "difference": lambda: show.difference(np.eye(4), np.zeros((4, 4))),
    "difference, large": lambda: show.difference(DIGITS, DIGITS + 1.0),
    "difference, few": lambda: show.difference(DIFFERENT, np.arange(120.0).reshape(2, 3, 4, 5)),
    "difference, none": lambda: show.difference(np.eye(4), np.eye(4)),
    "filters": lambda: show.filters(COLOURED),
    "filters, responses": lambda: show.filters(FILTERS, DIGITS[0], 1, "Twelve"),
    "filters, silent": lambda: show.filters(np.stack([np.ones((1, 3, 3)), -np.ones((1, 3, 3))]), np.ones((1, 5, 5))),
    "float_ruler": lambda: show.float_ruler(),
    "float_ruler, bfloat16": lambda: show.float_ruler().at(exponent=8, fraction=7),
    "gallery": lambda: show.gallery(GALLERY),
    "growth": lambda: show.growth([100, 200, 400], {"merge": [1e-4, 2e-4, 4e-4], "bubble": [1e-3, 4e-3, 16e-3]}),
    "growth, memory": lambda: show.growth(
        [100, 200, 400], {"kept": [4e8, 16e8], "blocks": [1e6, 1.1e6, 1.3e6]}, unit="B"
    ),
    "guesses": lambda: show.guesses(GUESSED),
    "hardware": lambda: show.hardware(PROFILES["H200"], PROFILES["T4"]),
    "hardware, inside": lambda: show.hardware(PROFILES["T4"], inside=True),
    "im2col": lambda: show.im2col([[2, 0, 1], [0, 2, 3], [1, 3, 1]], 2),
    "im2col, channels": lambda: show.im2col(CHANNELS, 3),
    "im2col, digit": lambda: show.im2col(DIGITS[0], 3, padding=1),
    "images": lambda: show.images(DIGITS, LABELS, SLIPS, title="Twelve digits"),
    "images, all right": lambda: show.images(DIGITS, LABELS, LABELS),
    "images, one": lambda: show.images(DIGITS[0]),
    "ladder": lambda: show.ladder(RUNGS),
    "launches": lambda: show.launches(forms(), "Two steps"),
    "launches, fused": lambda: show.launches(forms(), start="fused").at(part="the first sixteenth"),
    "learning_curves": lambda: show.learning_curves(HISTORY, [0, 5, 50], title="A title"),
    "learning_curves, training only": lambda: show.learning_curves(TRAINING_ONLY),
    "learning_curves, long": lambda: show.learning_curves(LONG_HISTORY),
    "losses": lambda: show.losses({"good": [4.0, 2.0, 1.0], "trapped": [4.0, 3.0, np.nan, np.nan]}, title="two ways"),
    "lstm_cell": lambda: show.lstm_cell(),
    "lstm_cell, sums": lambda: show.lstm_cell().at(step=1),
    "lstm_cell, new state": lambda: show.lstm_cell().at(step=6),
    "matmul_workers": lambda: show.matmul_workers(),
    "matmul_workers, one cell": lambda: show.matmul_workers().at(workers=4, cell=28),
    "max_pool2d": lambda: show.max_pool2d(SQUARE, 2),
    "max_pool2d, put back": lambda: show.max_pool2d(SQUARE, 3, 1, [[1, 2], [3, 4]]),
    "max_pool2d, tied": lambda: show.max_pool2d(TIED, 2, values=[[5, 6], [7, 8]]),
    "max_pool2d, channels": lambda: show.max_pool2d(np.stack([SQUARE, TIED]), 2),
    "memory_walk": lambda: show.memory_walk(),
    "messages": lambda: show.messages(MESSAGES),
    "messages, many": lambda: show.messages(MANY_MESSAGES[::-1], "There and back"),
    "optimizer_paths": lambda: show.optimizer_paths(bowl, PATHS, BOX),
    "optimizer_paths, away": lambda: show.optimizer_paths(bowl, PATHS, BOX).at(optimizer="fast", rate=1.0),
    "pairs": lambda: show.pairs(Fast()),
    "pipeline, named": lambda: show.pipeline("1f1b"),
    "pipeline, GPipe": lambda: show.pipeline("1f1b", stages=4, micro_batches=8).at(schedule="gpipe"),
    "pipeline": lambda: show.pipeline(IN_TURN),
    "pipeline, one": lambda: show.pipeline(slots("F0 B0")),
    "pipeline, long": lambda: show.pipeline([[("F", slot) for slot in range(128)]] * 8),
    "precision_front": lambda: show.precision_front(PRECISIONS, "Digits"),
    "precision_front, intervals": lambda: show.precision_front(
        [row | {"interval": (row["accuracy"] - 0.01, row["accuracy"] + 0.005)} for row in PRECISIONS], like=PRECISIONS
    ),
    "race": lambda: race(),
    "race, on the way": lambda: race().at(elapsed=0.35),
    "ring_allreduce": lambda: show.ring_allreduce(2),
    "ring_allreduce, adds": lambda: show.ring_allreduce(4).at(round=2),
    "ring_allreduce, gathers": lambda: show.ring_allreduce(4).at(round=4),
    "ring_allreduce, many": lambda: show.ring_allreduce(8).at(round=6),
    "roofline": lambda: show.roofline(5e10, 1e10, {"add": (0.083, 7e8), "matmul": (85, 4e10)}),
    "roofline, units": lambda: show.roofline(
        2e15,
        4e12,
        {"int8, matrix": (2700, 1e15), "float32, vector": (0.5, 1.9e12), "float32, matrix": (1400, 5e13)},
        units={"float32": 6.7e13},
    ),
    "roofline, kernels": lambda: show.roofline(
        8e12, 3e11, kernels=TIMED, where="modelled, T4", modelled={"matmul": 3e-4}
    ),
    "rungs": lambda: show.rungs({"yours, here": {"naive": 0.06, "combined": 0.02}, "H200": RECORD}),
    "scaling": lambda: show.scaling(LINES, title="A step"),
    "scaling_curves": lambda: show.scaling_curves(0.012, strong=[(2, 0.009, "ours")], weak=POINTS),
    "scaling_curves, link": lambda: show.scaling_curves(0.01, 1e3, alpha=14e-6, beta=8e-11).at(),
    "scaling_curves, slow link": lambda: show.scaling_curves(0.01, 1e3, alpha=14e-6, beta=8e-11).at(alpha=0.01),
    "systolic_array": lambda: show.systolic_array([[1, 2], [3, 4]], [[5, 6], [7, 8]]),
    "timeline": lambda: show.timeline(lying_clock()),
    "timeline, streams": lambda: show.timeline(
        lying_clock().launch("add", 1e-3, stream=12).copy("to host", 1e-4), "One step"
    ),
    "warps": lambda: show.warps(),
    "warps, every second": lambda: show.warps().at(pattern="x[2 * i]", warp=1),
    "waterfall": lambda: show.waterfall(STEP),
    "waterfall, path": lambda: show.waterfall(STEP, ("backward", "pool")),
    "waterfall, too much": lambda: show.waterfall(PUBLISHED),
    "waterfall, long": lambda: show.waterfall(node("step", 0.003, LONG)),
    "wavefront": lambda: show.wavefront(DIAGONALS, 3, 4),
    "wavefront, too early": lambda: show.wavefront(EARLY, 2, 2),
    "winograd_1d": lambda: show.winograd_1d([1, 2, 4, 3], [2, 1, -1]),
    "winograd_1d, sums": lambda: show.winograd_1d([1, 2, 4, 3], [2, 1, -1]).at(step=2),
    "winograd_1d, products": lambda: show.winograd_1d([1, 2, 4, 3], [2, 1, -1]).at(step=3),
}


def stills(made: Made) -> list[show.Picture]:
    """The picture, or an explorer's pictures with its sliders at the start and at both ends, each once."""
    if isinstance(made, show.Picture):
        return [made]
    ends = [{name: slider.values[i] for name, slider in made.sliders.items()} for i in (0, -1)]
    found = [made.still(), *(made.at(**values) for values in ends)]
    return list({picture.alt: picture for picture in found}.values())


def texts(pictures: list[show.Picture]) -> str | list[str]:
    """What stills say: the one text, or all texts that differ."""
    alts = list(dict.fromkeys(picture.alt for picture in pictures))
    return alts[0] if len(alts) == 1 else alts


if __name__ == "__main__":
    alts = {name: texts(stills(make())) for name, make in PICTURES.items()}
    TEXTS.write_text(json.dumps(alts, indent=1, ensure_ascii=False) + "\n", "utf-8")
