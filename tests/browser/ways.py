"""What a learner types into a lesson in the browser, which widgets they move, and what is said to them."""

from dataclasses import dataclass

from unrolled import records
from unrolled.show.words import seconds


@dataclass(frozen=True)
class Move:
    """Keys pressed on a slider of the widget whose picture says `before`; then it says `after`.

    Without `before` it is the first widget of the notebook.
    """

    before: str
    slider: int
    keys: tuple[str, ...]
    after: str


def right(before: str, slider: int, after: str, times: int = 1) -> Move:
    return Move(before, slider, ("ArrowRight",) * times, after)


def left(before: str, slider: int, after: str, times: int = 1) -> Move:
    return Move(before, slider, ("ArrowLeft",) * times, after)


@dataclass(frozen=True)
class Way:
    """A way through a lesson. Its notebook ends with the first cell that contains `until`."""

    lesson: str
    until: str
    moves: tuple[Move, ...] = ()
    answer: tuple[str, str, str] = ("", "", "")
    """An exercise, and words of its solution with those that take their place in the answer."""
    report: tuple[str, str] = ("", "")
    """A text of the report's table by which it is found, and what it says is wrong."""
    shows: tuple[str, ...] = ()
    """Outputs that are there, as CSS selectors."""


def steps_on_one_gpu() -> tuple[str, str]:
    """The recorded step of source B's network, where the slider begins, and the slider's next lower stop, in words."""
    rows = [row for row in records.parallel().rows.values() if row.get("gpus") == 1]
    recorded = next(row["ours_s"] for row in rows if row["section"] == "weak")
    stops = [float(f"{step}e{power}") for power in range(-4, 1) for step in (1, 2, 5)]
    stops += [row["ours_s"] for row in rows if "batch 8 " in row["name"]]
    return seconds(recorded), seconds(max(stop for stop in stops if stop < recorded))


RECORDED, BELOW = steps_on_one_gpu()

WAYS = (
    Way("03_pooling", "show.max_pool2d(", (right("", 0, ""),)),
    Way(
        "04_backprop",
        "check.numeric_gradient(",
        (
            right("", 0, "Step 9 of 9, affine 1, backward", times=3),
            right("Step 9 of 9, affine 1, backward", 1, "broken (bias 1 has the wrong sign), with 3 of 38"),
        ),
        ("numeric_gradient", "function(down)) / (2 * step)", "function(x)) / step"),
        ("catches: a sign error", "step to both sides"),
    ),
    Way("05_train_a_cnn", "show.optimizer_paths(", (right("", 0, ""),)),
    Way(
        "06_gpu_port",
        "check.gpu_time(",
        (
            left("after call 4 (matmul), without waiting", 0, "after call 2 (matmul), without waiting", times=2),
            right("after call 2 (matmul), without waiting", 1, "having synchronized"),
        ),
        ("gpu_time", "    device.synchronize(x)\n", ""),
        ("by events on the GPU itself", "the clock stopped before the device was done"),
    ),
    Way(
        "07_profiling",
        "assign(LEARNER)",
        (right("an epoch", 0, "fill", times=2),),
        ("time_layers", "synchronize()\n", "pass\n"),
        ("two layers on a CPU", "the clock was read without a wait"),
        ("img[alt*='8 digits']", "pre:has-text('def step(images, weight)'):has-text('return')"),
    ),
    Way(
        "08_kernels",
        "show.barriers()",
        (
            right("Thread i reads x[2 * i]", 1, "Warp 1, threads 32 to 63, reads at byte 256"),
            right("a column of 32 × 32 from", 0, "A warp wants a column of 32 × 33"),
            left("8 threads add up 8 values", 0, "Step 2: thread 1 goes on without waiting"),
        ),
        ("add_kernel", "if i < n:", "if True:"),
        ("the last block has threads to spare", "out of bounds"),
        ("img[alt*='warps of 32 threads share a memory of 32 banks']",),
    ),
    Way(
        "09_lstm",
        "show.wavefront",
        (
            left("One step of an LSTM", 0, "Step 6 of 7, new cell state"),
            right("naive: 323 launches", 0, "combined: 227 launches"),
            right("A grid of 4 layers and 8 steps", 0, "Slot 4 of 0 to 10"),
        ),
        ("lstm_step", "i, f, g, o", "i, f, o, g"),
        ("everything is forgotten", "the third block is g, the fourth o"),
    ),
    Way(
        "10_faster_convolutions",
        "check.fft_conv2d(",
        (left("F(2, 3), step 4", 0, "F(2, 3), step 3"),),
        ("fft_conv2d", "weight[:, :, ::-1, ::-1]", "weight"),
        ("one image, one channel", "the weight is not flipped"),
    ),
    Way(
        "11_smaller_numbers",
        "show.clipping",
        (
            right("A grid of 3 by 3 cells, step 3", 0, "A grid of 3 by 3 cells, step 4"),
            right("float16: 5 bits of exponent", 0, "6 bits of exponent and 10 of fraction"),
            left("Histogram of", 0, "Histogram of"),
        ),
        (
            "loss_scale_step",
            "gradients.astype(np.float32) / np.float32(scale)",
            "(gradients / np.float16(scale)).astype('f4')",
        ),
        ("finite gradients", "gradients: shape"),
    ),
    Way(
        "12_many_devices",
        "show.scaling_curves",
        (
            right("An all-reduce round a ring of 4 ranks. Round 1 of 6", 0, "Round 2 of 6"),
            right("GPipe: bubble 27.3 %", 2, "4 stages, 9 micro-batches: 24 slots"),
            right("1F1B: bubble 27.3 %", 1, "5 stages, 8 micro-batches: 24 slots"),
            left(f"Step of {RECORDED}", 0, f"Step of {BELOW} on one rank, gradient of 50.3 MB"),
            left(f"Step of {BELOW} on one rank", 1, "gradient of 50 MB, alpha 3.4 µs"),
            right("gradient of 50 MB, alpha 3.4", 2, "alpha 5 µs, 450 GB/s a link"),
            right("alpha 5 µs, 450 GB/s a link", 3, "alpha 5 µs, 200 GB/s a link"),
        ),
        (
            "data_parallel_step",
            " * len(x)\n    total[-1] = len(x)\n    total = comm.all_reduce(total)\n    return (total[:-1] / total[-1]",
            "\n    return (comm.all_reduce(total[:-1]) / np.float32(comm.size)",
        ),
        ("two ranks with 6 samples and 2", "this is the mean of the ranks' means"),
    ),
    Way(
        "13_capstone",
        "show.launches",
        (),
        ("capturable_step", "grad *= rate", "grad *= 0.1"),
        ("captured once", "the rate is frozen at its first value"),
    ),
    Way(
        "14_attention",
        "check.attention_loops(",
        (),
        ("attention_loops", " / sqrt(d) for key in keys", " for key in keys"),
        ("three queries, the first", "the scores are not divided"),
    ),
)
