"""What a learner types into a lesson in the browser, which widgets they move, and what is said to them."""

from __future__ import annotations

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
    answer: str = ""
    """One function, for the cell of its name."""
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


TO_ONE_SIDE = """def numeric_gradient(function, x, step=1e-5):
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += step
        gradient[index] = (function(moved) - function(x)) / step
    return gradient
"""
A_LIE = """def gpu_time(function, x):
    function(x)
    start = device.clock(x)
    function(x)
    return device.clock(x) - start
"""
WITHOUT_WAITING = """def time_layers(layers, x, grad, clock, synchronize):
    forward, backward = [], []
    for layer in layers:
        start = clock()
        x = layer.forward(x, True)
        forward.append(clock() - start)
    for layer in reversed(layers):
        start = clock()
        grad = layer.backward(grad)
        backward.append(clock() - start)
    return list(zip(forward, reversed(backward)))
"""
WITHOUT_A_GUARD = """@jit.rawkernel()
def add_kernel(x, y, out, n):
    i = jit.grid(1)
    out[i] = x[i] + y[i]
"""
IN_ANOTHER_ORDER = """def lstm_step(x, h, c, weight_ih, weight_hh, bias):
    size = weight_hh.shape[1]
    sums = x @ weight_ih.T + h @ weight_hh.T + bias
    i, f, o, g = (sums[:, k * size : (k + 1) * size] for k in range(4))
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c
"""
NOT_FLIPPED = """def fft_conv2d(x, weight, bias, padding=0):
    xp = device.array_module(x)
    (kh, kw), (h, w) = weight.shape[2:], x.shape[2:]
    lengths = h + kh - 1, w + kw - 1
    pixels = xp.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = xp.fft.rfft2(weight, lengths).transpose(2, 3, 1, 0)
    whole = xp.fft.irfft2((pixels @ weights).transpose(2, 3, 0, 1), lengths)
    top, left = kh - 1 - padding, kw - 1 - padding
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    return whole[:, :, top : top + oh, left : left + ow] + bias[:, None, None]
"""
IN_FLOAT16 = """def loss_scale_step(gradients, scale, good_steps, every):
    if not np.isfinite(gradients).all():
        return None, scale / 2, 0
    found = (gradients / np.float16(min(scale, 65504))).astype(np.float32)
    if good_steps + 1 == every:
        return found, scale * 2, 0
    return found, scale, good_steps + 1
"""
MEAN_OF_MEANS = """def data_parallel_step(comm, weight, x, labels):
    own = gradient_of_mean(weight, x, labels) if len(x) else np.zeros_like(weight)
    return comm.all_reduce(own) / np.float32(comm.size)
"""
FROZEN = """def capturable_step(x, target, weight, velocity, rate, error, grad):
    matmul(x, weight, out=error)
    error -= target
    matmul(x.T, error, out=grad)
    grad *= 0.1 / len(x)
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99
"""
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
        TO_ONE_SIDE,
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
        A_LIE,
        ("by events on the GPU itself", "the clock stopped before the device was done"),
    ),
    Way(
        "07_profiling",
        "assign(LEARNER)",
        (right("an epoch", 0, "fill", times=2),),
        WITHOUT_WAITING,
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
        WITHOUT_A_GUARD,
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
        IN_ANOTHER_ORDER,
        ("everything is forgotten", "the third block is g, the fourth o"),
    ),
    Way(
        "10_faster_convolutions",
        "check.fft_conv2d(",
        (left("F(2, 3), step 4", 0, "F(2, 3), step 3"),),
        NOT_FLIPPED,
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
        IN_FLOAT16,
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
        MEAN_OF_MEANS,
        ("two ranks with 6 samples and 2", "this is the mean of the ranks' means"),
    ),
    Way(
        "13_capstone",
        "show.launches",
        (),
        FROZEN,
        ("captured once", "the rate is frozen at its first value"),
    ),
)
