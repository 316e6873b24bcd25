"""Lesson 06: functions that run wherever their arrays are, honest seconds, and a training that never looks back."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_X
from unrolled.checks.exercises.l03_pooling.exercises import small_integers
from unrolled.checks.exercises.l03_pooling.pooling import INDEXED_MISTAKES
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l06_gpu_port import epochs, gpu_work
from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Budget, Inputs, Spec, Speed, case, gpu_case, normal, random_case, random_gpu_case
from unrolled.device import Array, array_module

KINDS = {"step": ops.step, "relu": ops.relu, "leaky_relu": ops.leaky_relu, "sigmoid": ops.sigmoid}
NEAR_ZERO = np.array([[-200, -2, -0.5], [0, 0.5, 3]], np.float32)


def activate(kind: str, x: Array) -> Array:
    """Return the activation of this name."""
    return KINDS[kind](x)


def _in_kind(wrong: str, says: str, change: Function) -> Mistake:
    """Return the mistake of change(x) for the activation of this name alone."""
    return result(says, lambda y, kind, x: change(x) if kind == wrong else y)


in_step, in_leaky, in_sigmoid = (partial(_in_kind, kind) for kind in ("step", "leaky_relu", "sigmoid"))


def _activated(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Compare, and say why a step came out in another dtype. A sigmoid near 0 may be rounded to it."""
    found = mismatch(got, expected, activation.tolerance)
    if inputs["kind"] == "sigmoid" and getattr(got, "dtype", None) == expected.dtype:
        found = mismatch(got + 1, expected + 1, activation.tolerance) and found
    if found is None or inputs["kind"] != "step" or not found.lines[0].startswith("the values are right, but dtype"):
        return found
    advice = (
        "where(x > 0, 1.0, 0.0) has no array to take a dtype from, so it makes float64, and whole numbers make int64: "
        "(x > 0).astype(x.dtype) stays in x's"
    )
    return Mismatch((found.lines[0], advice))


LAUNCHES = 12


def _any_activation(rng: np.random.Generator) -> Inputs:
    """Draw a kind, and whole and other numbers, small and large, of one to four axes."""
    shape = [edge_size(rng, 5) for _ in range(rng.integers(1, 5))]
    x = rng.choice([0.01, 1, 100]) * np.round(rng.standard_normal(shape), int(rng.integers(0, 5)))
    return {"kind": str(rng.choice(list(KINDS))), "x": x.astype(str(rng.choice(["float32", "float64"])))}


activation = Spec(
    reference=activate,
    numbers={"launches": LAUNCHES},
    cases=[
        *(case(f"{kind}, NumPy", kind=kind, x=NEAR_ZERO) for kind in KINDS),
        *(gpu_case(f"{kind}, GPU", Budget(LAUNCHES, float64=0), kind=kind, x=normal(4, 3, 5, 5)) for kind in KINDS),
    ],
    domain=random_gpu_case("any floats, GPU", _any_activation, Budget(LAUNCHES)),
    points=2,
    hints=(
        "The array knows where it lies. Ask it, and take the functions from the module that it names.",
        "device.array_module(x) is NumPy or the GPU's module. A comparison gives booleans, and astype(x.dtype) makes "
        "numbers of them; where(x > 0, 1, 0) would make whole numbers. Numbers such as 0.01 keep x's dtype.",
        "xp = device.array_module(x)\n"
        'if kind == "step":\n'
        "    return (x > 0).astype(x.dtype)\n"
        'if kind == "relu":\n'
        "    return xp.maximum(x, 0)\n"
        "... and two more",
    ),
    mistakes=(
        in_leaky("the slope below zero is 0.01", lambda x: np.maximum(x, 0.1 * x)),
        in_sigmoid("the sign in the exponent is wrong: sigmoid is 1 / (1 + exp(-x))", lambda x: ops.sigmoid(-x)),
        in_step("sign is -1 below 0, where a step is 0", np.sign),
        in_leaky("the larger of x and 0.01 * x is asked: maximum(x, 0.01 * x)", lambda x: np.minimum(x, 0.01 * x)),
        in_leaky(
            "below 0 it is 0.01 * x, and above 0 it is x itself: maximum(x, 0.01 * x)",
            lambda x: np.maximum(0.01 * x, 0),
        ),
        in_sigmoid("1 / 1 + exp(-x) divides first: put 1 + exp(-x) in brackets", lambda x: 1 + np.exp(-x)),
        in_step("your step is 1 at 0, too: it is 1 where x > 0", lambda x: (x >= 0).astype(x.dtype)),
    ),
    compare=_activated,
)


FEW = 12  # images in the largest case of a convolution


def convolution(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Return `ops.conv2d` with stride 1."""
    return ops.conv2d(x, weight, bias, 1, padding)


def image_by_image(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Convolve with a product for each image: right, and many small launches. A baseline for speed.

    A few images are taken together: so it keeps to the budget of the cases, as a baseline must.
    """
    if len(x) <= FEW:
        return convolution(x, weight, bias, padding)
    oh, ow = ops.conv2d_output_size(x.shape[2:], weight.shape[2:], 1, padding)
    y = array_module(x).empty((len(x), len(weight), oh, ow), dtype=x.dtype)
    for i in range(len(x)):
        y[i : i + 1] = ops.conv2d(x[i : i + 1], weight, bias, 1, padding)
    return y


def _layer(x: Any, o: int, c: int, kh: int, kw: int) -> Inputs:
    """Return an input, and draws for the parameters of a convolution with o filters (C, KH, KW)."""
    return {"x": x, "weight": normal(o, c, kh, kw), "bias": normal(o)}


def _any_convolution(rng: np.random.Generator) -> Inputs:
    n, c, o, kh, kw = (edge_size(rng, 3) for _ in range(5))
    h, w = kh - 1 + edge_size(rng, 6), kw - 1 + edge_size(rng, 6)
    drawn = {name: draw.make(rng) for name, draw in _layer(normal(n, c, h, w), o, c, kh, kw).items()}
    return {**drawn, "padding": int(rng.integers(0, 3))}


BESIDES = 12  # launches, besides those for each place inside the window
SIX_PLACES, NINE_PLACES = Budget(6 + BESIDES, float64=0), Budget(9 + BESIDES, float64=0)


conv2d_port = Spec(
    reference=convolution,
    numbers={"besides": BESIDES},
    cases=[
        case("the seminar's image, NumPy", **_layer(SEMINAR_X, 1, 1, 3, 3)),
        case("padding 1, NumPy", **_layer(normal(2, 3, 5, 7), 4, 3, 3, 2), padding=1),
        gpu_case("the seminar's image, GPU", NINE_PLACES, **_layer(SEMINAR_X, 1, 1, 3, 3)),
        gpu_case("three channels, four filters, GPU", SIX_PLACES, **_layer(normal(2, 3, 5, 7), 4, 3, 3, 2)),
        gpu_case("twelve images, padding 1, GPU", NINE_PLACES, **_layer(normal(FEW, 1, 8, 8), 2, 1, 3, 3), padding=1),
    ],
    domain=random_gpu_case("any sizes, GPU", _any_convolution, NINE_PLACES),
    points=3,
    hints=(
        "Go through the NumPy version and look at every np. What does it make, where, and of which dtype?",
        "np.zeros becomes xp.zeros, and needs dtype=x.dtype. The padding can be xp.zeros with the image put inside: "
        "padded[:, :, p : p + h, p : p + w] = x. The loop over places inside the kernel may stay: it is short.",
        "xp = device.array_module(x)\n"
        "padded = xp.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=x.dtype)\n"
        "padded[:, :, padding : padding + h, padding : padding + w] = x\n"
        "columns = xp.zeros((c, kh, kw, n, oh, ow), dtype=x.dtype)\n"
        "... then as in NumPy",
    ),
    mistakes=(
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("the padding is missing", padding=0),
        given(
            "your kernels are flipped, as in the mathematical convolution: deep learning leaves them as they are",
            weight=lambda weight: weight[:, :, ::-1, ::-1],
        ),
    ),
    # Many small images: much to launch and little to copy, since the judge's blocks hold the way there and back.
    speed=Speed(
        baseline=image_by_image,
        inputs=_layer(normal(1024, 1, 8, 8), 10, 1, 3, 3),
        at_least=6,
        against="a convolution image by image, on the GPU",
        gpu=True,
    ),
)


def _any_pooling(rng: np.random.Generator) -> Inputs:
    """Draw at least one window; some values are whole, so that there are ties, or all below 0."""
    size = edge_size(rng, 3)
    shape = edge_size(rng, 3), edge_size(rng, 3), size - 1 + edge_size(rng, 8), size - 1 + edge_size(rng, 8)
    x = np.round(rng.standard_normal(shape), int(rng.integers(0, 5))).astype(np.float32)
    return {"x": -1 - abs(x) if rng.random() < 0.3 else x, "kernel_size": size}


EACH = 8  # launches for each place inside the window
WINDOWS_OF_2, WINDOWS_OF_3 = Budget(EACH * 4 + BESIDES, float64=0), Budget(EACH * 9 + BESIDES, float64=0)


max_pool2d_port = Spec(
    reference=ops.max_pool2d_with_indices,
    numbers={"launches": EACH, "besides": BESIDES},
    cases=[
        case("the seminar's image, NumPy", x=SEMINAR_X, kernel_size=2),
        case("ties, NumPy", x=small_integers(2, 3, 6, 4), kernel_size=2),
        gpu_case("14 x 14 windows of 2, GPU", WINDOWS_OF_2, x=normal(2, 3, 28, 28), kernel_size=2),
        gpu_case("windows of 5, GPU", Budget(EACH * 25 + BESIDES, float64=0), x=normal(1, 1, 11, 12), kernel_size=5),
    ],
    domain=random_gpu_case("any sizes, GPU", _any_pooling, WINDOWS_OF_3),
    points=3,
    hints=(
        "Turn the loops inside out, as in lesson 03: loop over the places inside the window, and let each step handle "
        "all windows at once. Keep two arrays: the largest so far, and the index of the pixel that it came from.",
        "corner = (xp.arange(oh)[:, None] * w + xp.arange(ow)) * kernel_size is the index of each window's first "
        "pixel, (OH, OW). Place (i, j) of all windows is x[:, :, i : i + oh * k : k, j : j + ow * k : k], and its "
        "index is corner + (i * w + j). xp.where(larger, new, old) chooses; `if` would ask the host.",
        "for every place (i, j) inside the window:\n"
        "    pixel = x[:, :, i : i + oh * k : k, j : j + ow * k : k]\n"
        "    leads = pixel > largest\n"
        "    indices = xp.where(leads, corner + (i * w + j), indices)\n"
        "    largest = xp.where(leads, pixel, largest)",
    ),
    mistakes=INDEXED_MISTAKES,
    compare=named("largest", "indices"),
)


def fewest_bytes(
    cpu: float,
    gpu: float,
    launch: float,
    latency: float,
    bandwidth: float,
    uses: int = 1,
    *,
    latencies: int = 2,
    ways: int = 2,
    launches: int | None = None,
    never: bool = True,
) -> float:
    """Return from how many bytes on the way to the GPU, so many uses there and the way back take less than the CPU.

    Mistakes have fewer latencies, ways and launches than there are, or take no notice of work that never pays.
    """
    saved = uses * (cpu - gpu) - ways / bandwidth
    fixed = latencies * latency + (launches or uses) * launch
    return fixed / saved if saved > 0 or not never else math.inf


A_LINK = {"launch": 1e-5, "latency": 2e-5, "bandwidth": 1e10}


def _any_link(rng: np.random.Generator) -> Inputs:
    """Draw a computer with a GPU, and work that pays from some size on."""
    cpu, bandwidth = float(rng.uniform(4e-10, 2e-9)), float(rng.uniform(8e9, 5e10))
    figures = {"gpu": cpu / int(rng.integers(3, 100)), "launch": float(rng.uniform(5e-6, 3e-5))}
    latency, uses = float(rng.uniform(5e-6, 3e-5)), edge_size(rng, 12)
    return {"cpu": cpu, **figures, "latency": latency, "bandwidth": bandwidth, "uses": uses}


NOTHING_SAVED = "in yours a byte saves nothing: it saves cpu - gpu in each use, and a transfer takes bytes / bandwidth"

break_even = Spec(
    reference=fewest_bytes,
    cases=[
        case("a slow function, used once", cpu=1e-9, gpu=1e-10, **A_LINK),
        case("a quick function, used once: never", cpu=2e-10, gpu=1e-11, **A_LINK),
        case("the same, used ten times in a row", cpu=2e-10, gpu=1e-11, **A_LINK, uses=10),
        case("a GPU that is slower than the CPU: never", cpu=1e-10, gpu=2e-10, **A_LINK, uses=100),
    ],
    domain=random_case("any computer for which it pays", _any_link),
    tolerance=1e-9,
    points=2,
    hints=(
        "Write down the seconds for n bytes on the CPU, and on the GPU with both ways. What of it grows with n, and "
        "what is there for an array of a single byte, too?",
        "CPU: uses * cpu * n. GPU: 2 * (latency + n / bandwidth) + uses * (launch + gpu * n). Set them equal and solve "
        "for n. If a byte on the GPU, ways included, costs as much as on the CPU or more, no n is large enough.",
        "fixed = 2 * latency + ...              # seconds, whatever the size\n"
        "saved = uses * (cpu - gpu) - ...       # seconds for each byte\n"
        "if saved is not above 0, it never pays; else n = fixed / saved",
    ),
    mistakes=(
        given("the way back is missing: the result has to come home, so there are two transfers", latencies=1, ways=1),
        given("each transfer has its latency: there are two", latencies=1),
        given("each byte goes there and back: 2 / bandwidth seconds for it", ways=1),
        given("each use is a launch: uses * launch", launches=1),
        given("you move the array in each use: it is moved once, used there, and fetched once", uses=1),
        given("each use costs a byte on the GPU, too: uses * (cpu - gpu)", gpu=lambda gpu, uses: gpu / uses),
        given(NOTHING_SAVED, cpu=lambda gpu: gpu, gpu=lambda cpu: cpu),
        given(NOTHING_SAVED, bandwidth=lambda bandwidth: 1 / bandwidth),
        given("the bytes on the way are missing: 2 / bandwidth seconds for each", ways=0),
        given("the ways cost the GPU: subtract them from what a byte saves", ways=-2),
        given("the latency is missing: each of two transfers has it", latency=0),
        result("this is upside down: the fixed seconds, divided by what each byte saves", lambda y: 1 / y),
        result(
            'where it never pays, no size is large enough: return float("inf"), not 0',
            lambda y: 0.0 if math.isinf(y) else y,
        ),
        given("the launches are missing: each use costs the host one, whatever the size", launch=0),
        given(
            "a negative number of bytes: if a byte costs the GPU more, ways included, it never pays, which is "
            'float("inf")',
            never=False,
        ),
    ),
)

gpu_time = Spec(
    reference=gpu_work.honest_seconds,
    cases=[
        gpu_case("one short kernel", **gpu_work.SHORT),
    ],
    domain=random_gpu_case("three long kernels, any number of calls", gpu_work.long_work),
    points=3,
    hints=(
        "A call only hands work over. Before you read the clock, wait until the GPU has done it; and before you start "
        "the clock, make sure that nothing is left over from before.",
        "One call first, outside the clock, and a wait. Then the clock, many calls, one wait, the clock again. "
        "device.synchronize(x) waits, and device.clock(x) reads. What you have is the time of many calls.",
        "function(x)\n"
        "device.synchronize(x)\n"
        "start = device.clock(x)\n"
        "... calls times function(x), then wait\n"
        "return (device.clock(x) - start) / calls",
    ),
    compare=gpu_work.honest,
)


train_epoch = Spec(
    reference=epochs.epoch,
    allows=(ops.affine, ops.softmax_cross_entropy),
    cases=[
        case("two steps, NumPy", **epochs.epoch_of(np.random.default_rng(0), 8, 4)),
        gpu_case("two steps, GPU", Budget(launches=60, float64=0), **epochs.epoch_of(np.random.default_rng(0), 8, 4)),
    ],
    domain=random_gpu_case("up to three steps, GPU", epochs.any_epoch, Budget(launches=90, float64=0), anywhere=True),
    points=3,
    hints=(
        "Look for every line that needs to know a value on the host: it has to be copied from the GPU, and the host "
        "waits until it is there. Which of these values does the host really need, and when?",
        "labels come as an array already; they need no np.asarray. A look at the loss, by `if` or float(), stops "
        "everything: put each loss into an array that lies beside the weights, and let the caller look at the end.",
        "xp, losses = device.array_module(images), []\n"
        "in the loop: losses.append(loss)\n"
        "return weight, bias, xp.stack(losses)\n"
        "Or an array from the beginning, xp.zeros(steps, dtype=weight.dtype), and losses[step] = loss.",
    ),
    mistakes=epochs.MISTAKES,
    compare=named("weight", "bias", "losses"),
)
