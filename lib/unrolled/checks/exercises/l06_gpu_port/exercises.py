"""Lesson 06: functions that run wherever their arrays are, honest seconds, and a training that never looks back."""

from __future__ import annotations

import numpy as np

from unrolled import ops, timing
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_X
from unrolled.checks.exercises.l03_pooling.exercises import POOLINGS
from unrolled.checks.exercises.l06_gpu_port import gpu_work, porting
from unrolled.checks.spec import (
    Budget,
    Draw,
    Inputs,
    Spec,
    Speed,
    case,
    filters,
    gpu_case,
    images,
    normal,
    random_gpu_case,
    vector,
)
from unrolled.ops import blocks

NEAR_ZERO = np.array([[-200, -2, -0.5], [0, 0.5, 3]], np.float32)


def _small_integers(*shape: int) -> Draw:
    """Draw images (N, C, H, W) of -1, 0, 1 and 2: ties in nearly every window."""
    return Draw(lambda rng: rng.integers(-1, 3, shape).astype(np.float32))


# activation

ACTIVATION_BUDGET = Budget(launches=6, float64=0)

activation = Spec(
    reference=porting.activate,
    answers=(ops.step, ops.relu, ops.leaky_relu, ops.sigmoid),
    cases=[
        *(case(f"{kind}, NumPy", kind=kind, x=NEAR_ZERO) for kind in porting.KINDS),
        *(gpu_case(f"{kind}, GPU", ACTIVATION_BUDGET, kind=kind, x=images(4, 3, 5, 5)) for kind in porting.KINDS),
        gpu_case("sigmoid, GPU, float64", Budget(launches=6), kind="sigmoid", x=normal(7, dtype=float)),
    ],
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
    mistakes=porting.ACTIVATION_MISTAKES,
)


# conv2d_port


def _any_convolution(rng: np.random.Generator) -> Inputs:
    """Draw eight to twelve images: a loop over them shows in the launches."""
    n, c, o = int(rng.integers(8, porting.FEW + 1)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    h, w = (int(value) for value in rng.integers(5, 9, 2))
    return {
        "x": rng.standard_normal((n, c, h, w)).astype(np.float32),
        "weight": rng.standard_normal((o, c, 3, 3)).astype(np.float32),
        "bias": rng.standard_normal(o).astype(np.float32),
        "padding": int(rng.integers(0, 3)),
    }


def _convolution_budget(places: int) -> Budget:
    """Allow one copy for each place inside the kernel, and a dozen launches besides."""
    return Budget(launches=places + 12, float64=0)


conv2d_port = Spec(
    reference=porting.convolution,
    answers=(ops.conv2d, ops.conv2d_loops, ops.conv2d_positions, ops.im2col, blocks.forward),
    cases=[
        case("the seminar's image, NumPy", x=SEMINAR_X, weight=filters(1, 1, 3, 3), bias=vector(1)),
        case("padding 1, NumPy", x=images(2, 3, 5, 7), weight=filters(4, 3, 3, 2), bias=vector(4), padding=1),
        gpu_case(
            "the seminar's image, GPU", _convolution_budget(9), x=SEMINAR_X, weight=filters(1, 1, 3, 3), bias=vector(1)
        ),
        gpu_case(
            "three channels, four filters, GPU",
            _convolution_budget(6),
            x=images(2, 3, 5, 7),
            weight=filters(4, 3, 3, 2),
            bias=vector(4),
        ),
        gpu_case(
            "twelve images, padding 1, GPU",
            _convolution_budget(9),
            x=images(porting.FEW, 1, 8, 8),
            weight=filters(2, 1, 3, 3),
            bias=vector(2),
            padding=1,
        ),
        random_gpu_case("sizes as they come, GPU", _any_convolution, _convolution_budget(9)),
    ],
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
    mistakes=porting.CONVOLUTION_MISTAKES,
    # Many small images: much to launch and little to copy, since the judge's blocks hold the way there and back.
    speed=Speed(
        baseline=porting.image_by_image,
        inputs={"x": images(1024, 1, 8, 8), "weight": filters(10, 1, 3, 3), "bias": vector(10)},
        at_least=6,
        points=1,
        against="a convolution image by image, on the GPU",
        gpu=True,
    ),
)


# max_pool2d_port


def _any_pooling(rng: np.random.Generator) -> Inputs:
    """Draw 1 to 3 images and channels, every other time of whole numbers, so that there are ties."""
    n, c = (int(value) for value in rng.integers(1, 4, 2))
    h, w = (int(value) for value in rng.integers(14, 20, 2))
    x = rng.standard_normal((n, c, h, w)).astype(np.float32)
    return {"x": x if rng.random() < 0.5 else np.round(x), "kernel_size": 2}


def _pooling_budget(kernel_size: int) -> Budget:
    """Allow eight launches for each place inside the window, and a dozen besides."""
    return Budget(launches=8 * kernel_size**2 + 12, float64=0)


max_pool2d_port = Spec(
    reference=porting.pooling,
    answers=POOLINGS,
    cases=[
        case("the seminar's image, NumPy", x=SEMINAR_X, kernel_size=2),
        case("ties, NumPy", x=_small_integers(2, 3, 6, 4), kernel_size=2),
        gpu_case("the seminar's image, GPU", _pooling_budget(2), x=SEMINAR_X, kernel_size=2),
        gpu_case("14 x 14 windows of 2, GPU", _pooling_budget(2), x=images(2, 3, 28, 28), kernel_size=2),
        gpu_case("ties, GPU", _pooling_budget(2), x=_small_integers(2, 3, 20, 24), kernel_size=2),
        gpu_case("windows of 3, an edge is left over, GPU", _pooling_budget(3), x=images(2, 1, 26, 31), kernel_size=3),
        random_gpu_case("sizes as they come, GPU", _any_pooling, _pooling_budget(2)),
    ],
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
    mistakes=porting.POOLING_PORT_MISTAKES,
)


# gpu_time

gpu_time = Spec(
    reference=gpu_work.honest_seconds,
    answers=(timing.measure,),
    cases=[
        random_gpu_case("one kernel", lambda rng: gpu_work.work(rng, 1)),
        random_gpu_case("three kernels", lambda rng: gpu_work.work(rng, 3)),
    ],
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


# train_epoch

train_epoch = Spec(
    reference=porting.epoch,
    cases=[
        case("two steps, NumPy", **porting.epoch_of(np.random.default_rng(0), 8, 4)),
        gpu_case("two steps, GPU", Budget(launches=60, float64=0), **porting.epoch_of(np.random.default_rng(0), 8, 4)),
        random_gpu_case("six steps, GPU", porting.any_epoch, Budget(launches=180, float64=0)),
    ],
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
    mistakes=porting.EPOCH_MISTAKES,
)
