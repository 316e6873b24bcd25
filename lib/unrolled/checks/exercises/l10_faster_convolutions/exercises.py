"""Lesson 10: convolutions with fewer multiplications, through frequencies and by Winograd, and when they are faster."""

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l10_faster_convolutions import methods, transforms
from unrolled.checks.mistakes import given
from unrolled.checks.spec import Budget, Spec, Speed, case, gpu_case, normal, random_case

count_multiplications = Spec(
    reference=methods.multiplications,
    cases=[
        case("five by five results, direct", method="direct", shape=(1, 1, 1, 5, 3)),
        case("four results, winograd 2x2", method="winograd 2x2", shape=(1, 1, 1, 2, 3)),
        case("five by five results, winograd 2x2", method="winograd 2x2", shape=(2, 3, 4, 5, 3)),
        case("seven by seven results, winograd 4x4", method="winograd 4x4", shape=(2, 1, 3, 7, 3)),
        case("fft", method="fft", shape=(2, 3, 4, 9, 7)),
    ],
    domain=random_case("any method and shape", methods.any_shape),
    points=2,
    hints=(
        "Count for one image, one channel and one filter first: each channel of each image meets each filter, so the "
        "rest is a factor n * c * o.",
        "Tiles: -(-size // m) in each direction, (m + 2)^2 multiplications in each. Frequencies: with "
        "length = size + kernel - 1 there are length * (length // 2 + 1), 4 multiplications in each.",
        'if method == "direct":\n'
        "    pair = size**2 * kernel**2\n"
        'elif method == "fft":\n'
        "    length = size + kernel - 1\n"
        "    pair = 4 * ...\n"
        "else:\n"
        '    m = 2 if method == "winograd 2x2" else 4\n'
        "    pair = (-(-size // m)) ** 2 * ...\n"
        "return n * c * o * pair",
    ),
    mistakes=methods.COUNT_MISTAKES,
    compare=methods.judge_count,
)


# Half of the direct convolution's operations: frequencies, transforms included, take far less here.
THROUGH = Budget(launches=60, float64=0, flops=lambda inputs: transforms.direct_flops(inputs) / 2)

fft_conv2d = Spec(
    reference=transforms.by_fft,
    cases=[
        case("one image, one channel, NumPy", **transforms.arrays((1, 1, 6, 6), (1, 1, 3, 3))),
        case("three channels, two filters, NumPy", **transforms.layer(2, 3, 9, 2, 5)),
        case("padding, NumPy", **transforms.layer(2, 2, 8, 3, 5, padding=2)),
        case("a wide image, a high kernel, NumPy", **transforms.arrays((2, 2, 6, 13), (3, 2, 5, 2)), padding=1),
        gpu_case("15 x 15 on 32 x 32, GPU", THROUGH, **transforms.layer(2, 2, 32, 3, 15, padding=7)),
    ],
    domain=random_case("any size, NumPy", transforms.any_layer),
    points=3,
    hints=(
        "Transform pixels and weights at the same lengths, multiply frequency by frequency, and sum over channels. "
        "Lengths of size + kernel - 1 are long enough that nothing comes in at the other end.",
        "The weight is flipped: weight[:, :, ::-1, ::-1]. The sum over channels is a product of matrices for each "
        "frequency: pixels as (LH, LW, N, C) @ weights as (LH, LW, C, O). In what comes back, the first result stands "
        "at row and column kernel - 1 - padding.",
        "lengths = [size + k - 1 for size, k in zip(x.shape[2:], weight.shape[2:])]\n"
        "pixels = xp.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)\n"
        "weights = xp.fft.rfft2(weight[:, :, ::-1, ::-1], lengths).transpose(...)\n"
        "whole = xp.fft.irfft2((pixels @ weights).transpose(...), lengths)\n"
        "return whole[:, :, kh - 1 - padding : ..., ...] + bias[:, None, None]",
    ),
    mistakes=transforms.FFT_MISTAKES,
    speed=Speed(
        baseline=ops.conv2d_positions,
        inputs=transforms.layer(1, 1, 96, 1, 41),  # of which no direct way is half as fast as that
        at_least=8,
        against="a loop over output positions, for 41 x 41 on 96 x 96",
        advice="two transforms of the pixels and weights, one back, and no loop: rfft2 takes all images and channels",
    ),
)

winograd_transforms = Spec(
    reference=transforms.transforms,
    cases=[
        case(
            "one tile, one kernel",
            tiles=np.arange(16, dtype=np.float32).reshape(1, 4, 4) ** 2,
            weight=np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3),
            products=np.arange(16, dtype=np.float32).reshape(1, 4, 4) ** 2,
        ),
        case("one, six and four", tiles=normal(1, 1, 4, 4), weight=normal(3, 2, 3, 3), products=normal(2, 2, 4, 4)),
    ],
    domain=random_case("any number of them", transforms.any_tiles),
    points=2,
    hints=(
        "A matrix from the left mixes rows, and its transpose from the right mixes columns. `@` does it for all tiles "
        "at once: it takes the last two axes, and the others come along.",
        "Pixels: B_T @ tiles @ B_T.T. The other two have the same form, each with its own matrix.",
        "transformed_pixels: return B_T @ tiles @ B_T.T\n"
        "transformed_weights: the same, with G on both sides\n"
        "results_of: the same, with A_T on both sides",
    ),
    mistakes=transforms.TRANSFORM_MISTAKES,
    compare=named("the transformed pixels", "the transformed weights", "the results"),
)


SAVED = 36 / 16  # multiplications of the direct way, to those of a tile
ROOM = 0.15  # of the direct way's operations for the transforms: by small matrices, or by one for a flat tile
FILTERED = Budget(
    launches=60,
    transfers=transforms.MATRICES,
    float64=0,
    flops=lambda inputs: transforms.direct_flops(inputs) * (1 / SAVED + ROOM),
)

winograd_conv2d = Spec(
    reference=transforms.by_winograd,
    cases=[
        case("one tile, NumPy", **{**transforms.layer(1, 1, 4, 1, 3), "padding": 0}),
        case("three channels, two filters, NumPy", **transforms.layer(2, 3, 8, 2, 3, padding=1)),
        case("7 x 10, padding left out, NumPy", **transforms.arrays((2, 2, 7, 10), (3, 2, 3, 3))),
        gpu_case("128 channels, 128 filters, GPU", FILTERED, **transforms.layer(1, 128, 16, 128, 3, padding=1)),
    ],
    domain=random_case("any size, NumPy", transforms.any_layer, kernel=(3, 3), usual=1),
    points=3,
    hints=(
        "Three parts: transform tiles and weights, multiply, transform back. In the middle each of the 16 places of a "
        "tile is a product of its own, (O, C) with (C, number of tiles), which sums over channels: after the way back "
        "each channel would have paid for that way.",
        "Bring the two axes of the place to the front: pixels (N, C, TH, TW, 4, 4) to (4, 4, C, N, TH, TW) and then "
        "(16, C, N * TH * TW), weights (O, C, 4, 4) to (16, O, C). weights @ pixels is (16, O, N * TH * TW).",
        "pixels = (B_T @ cut(x, padding) @ B_T.T).transpose(4, 5, 1, 0, 2, 3).reshape(16, c, n * th * tw)\n"
        "weights = (G @ weight @ G.T).transpose(2, 3, 0, 1).reshape(16, o, c)\n"
        "products = (weights @ pixels).reshape(4, 4, o, n, th, tw).transpose(3, 2, 4, 5, 0, 1)\n"
        "y = (A_T @ products @ A_T.T).transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * th, 2 * tw)\n"
        "return y[:, :, :oh, :ow] + bias[...]",
    ),
    mistakes=transforms.WINOGRAD_MISTAKES,
)

choose_algorithm = Spec(
    reference=methods.best,
    cases=[case("twelve convolutions", shapes=methods.SHAPES)],
    domain=random_case("twelve others", methods.any_convolutions),
    numbers={"most": methods.MOST},
    points=2,
    hints=(
        "Look at your map: from which kernel on is the FFT faster? And from how many channels on is Winograd?",
        "Two rules do: each asks for the size of the kernel, and for how many channels and filters there are. Many "
        "of both repay Winograd's transforms, and are too many for those of the FFT.",
        'if kernel == 3 and min(c, o) >= ...:\n    return "winograd"\nif kernel >= ... and min(c, o) < ...:\n'
        '    return "fft"\nreturn "gemm"',
    ),
    call=lambda function, inputs: [function(*shape) for shape in inputs["shapes"]],
    compare=methods.judged_by(methods.forward),
)

overlap_add = Spec(
    reference=transforms.overlap_add,
    cases=[
        random_case("one tile", transforms.tiled, 5, 6, 3, 8),
        random_case("two by two tiles", transforms.tiled, 8, 8, 3, 4),
        random_case("tiles that are cut at the edges", transforms.tiled, 11, 9, 4, 5),
    ],
    domain=random_case("any size", transforms.any_image),
    points=2,
    hints=(
        "Cut the image into tiles of step x step pixels, the last ones smaller. What convolve gives for a tile is "
        "larger than the tile: it reaches into where the neighbours' results lie.",
        "Begin with zeros, (H + kernel - 1, W + kernel - 1), and add each part at the place where its tile began.",
        "for top in range(0, height, step):\n"
        "    for left in range(0, width, step):\n"
        "        part = convolve(image[top : top + step, left : left + step])\n"
        "        y[top : top + part.shape[0], ...] += part",
    ),
    mistakes=(
        given("where results of neighbours overlap they are added, not put over each other", adds=False),
        given("what reaches beyond a tile belongs to the neighbours: it is added there", whole=False),
    ),
    compare=transforms.in_small_tiles,
)
