"""Wrong and imperfect answers to lesson 10."""

from __future__ import annotations

import itertools
import math

import numpy as np

from answers import Mutant, in_place
from unrolled import device
from unrolled.checks.exercises.l10_faster_convolutions import transforms
from unrolled.ops.winograd import PIXELS, RESULTS, WEIGHTS

# fft_conv2d


def as_one_product(x, weight, bias, padding=0):
    """The right numbers, with all multiplications of the direct way."""
    xp, (o, _, kh, kw) = device.array_module(x), weight.shape
    padded = xp.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = xp.lib.stride_tricks.sliding_window_view(padded, (kh, kw), axis=(2, 3))
    n, c, oh, ow = windows.shape[:4]
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * oh * ow, c * kh * kw)
    y = (columns @ weight.reshape(o, -1).T).reshape(n, oh, ow, o).transpose(0, 3, 1, 2)
    return y + bias[:, None, None]


def weight_by_weight(x, weight, bias, padding=0):
    """A launch for each weight."""
    xp, (_, _, kh, kw) = device.array_module(x), weight.shape
    padded = xp.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    oh, ow = padded.shape[2] - kh + 1, padded.shape[3] - kw + 1
    y = 0
    for i in range(kh):
        for j in range(kw):
            part = padded[:, None, :, i : i + oh, j : j + ow] * weight[None, :, :, i, j, None, None]
            y = y + part.sum(axis=2)
    return y + bias[:, None, None]


def image_by_image(x, weight, bias, padding=0):
    """Honest: image by image, and the weight is transformed anew for each."""
    xp, (kh, kw), (h, w) = device.array_module(x), weight.shape[2:], x.shape[2:]
    lengths, found = (h + kh - 1, w + kw - 1), []
    top, left = kh - 1 - padding, kw - 1 - padding
    for image in x:
        products = xp.fft.rfft2(image, lengths) * xp.fft.rfft2(weight[:, :, ::-1, ::-1], lengths)
        whole = xp.fft.irfft2(products.sum(axis=1), lengths)
        found.append(whole[:, top : h + padding, left : w + padding] + bias[:, None, None])
    return xp.stack(found)


def of_a_padded_image(x, weight, bias, padding=0):
    """Honest: zeros are put around the image first, and lengths are those of powers of two."""
    xp, (kh, kw) = device.array_module(x), weight.shape[2:]
    padded = xp.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    h, w = padded.shape[2:]
    lengths = [1 << (size + kernel - 2).bit_length() for size, kernel in ((h, kh), (w, kw))]
    pixels, weights = xp.fft.rfft2(padded, lengths), xp.fft.rfft2(weight[:, :, ::-1, ::-1], lengths)
    products = (pixels[:, None] * weights[None]).sum(axis=2)
    return xp.fft.irfft2(products, lengths)[:, :, kh - 1 : h, kw - 1 : w] + bias[:, None, None]


# count_multiplications


def one_of_four(method, shape):
    images, channels, filters, *window = shape
    ways = {
        "direct": lambda size, kernel: (size * kernel) ** 2,
        "fft": lambda size, kernel: 4 * (size + kernel - 1) * ((size + kernel + 1) // 2),
        "winograd 2x2": lambda size, kernel: 16 * ((size + 1) // 2) ** 2,
        "winograd 4x4": lambda size, kernel: 36 * math.ceil(size / 4) ** 2,
    }
    return images * channels * filters * ways[method](*window)


def counted_out(method, shape):
    n, c, o, size, kernel = shape
    if method == "fft":
        return 4 * n * c * o * np.fft.rfft2(np.zeros((size + kernel - 1, size + kernel - 1))).size
    tile = 1 if method == "direct" else int(method.split("x")[1])
    each = kernel**2 if tile == 1 else (tile + 2) ** 2
    return sum(each for _ in range(0, size, tile) for _ in range(0, size, tile)) * np.prod([n, c, o])


# winograd


def of_flat_tiles(tiles, weight, products):
    b, g, a = (np.array(rows[2], np.float32) for rows in (PIXELS, WEIGHTS, RESULTS))
    ways = ((b, tiles, 4), (g, weight, 4), (a, products, 2))
    return [(x.reshape(*x.shape[:-2], -1) @ np.kron(m, m).T).reshape(*x.shape[:-2], k, k) for m, x, k in ways]


def by_sums(tiles, weight, products):
    """Rows, then columns, as they stand in the picture."""
    pixels, weights, results = tiles, weight, products
    for _ in range(2):
        d0, d1, d2, d3 = np.moveaxis(pixels, -1, 0)
        pixels = np.stack([d0 - d2, d1 + d2, d2 - d1, d1 - d3], axis=-1).swapaxes(-1, -2)
        w0, w1, w2 = np.moveaxis(weights, -1, 0)
        weights = np.stack([w0, (w0 + w1 + w2) / 2, (w0 - w1 + w2) / 2, w2], axis=-1).swapaxes(-1, -2)
        m0, m1, m2, m3 = np.moveaxis(results, -1, 0)
        results = np.stack([m0 + m1 + m2, m1 - m2 - m3], axis=-1).swapaxes(-1, -2)
    return pixels, weights, results


def without_halves(tiles, weight, products):
    g = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1]], tiles.dtype)
    pixels, _, results = transforms.transforms(tiles, weight, products)
    return pixels, g @ weight @ g.T, results


def winograd_summed_late(x, weight, bias, padding=1):
    """The convolution with its sum over channels after the way back."""
    b, g, a = transforms.matrices(x)
    tiles = transforms.cut(x, padding)
    (n, _, th, tw), o = tiles.shape[:4], len(weight)
    pixels, weights = b @ tiles @ b.T, g @ weight @ g.T
    y = (a @ (pixels[:, None] * weights[None, :, :, None, None]) @ a.T).sum(axis=2)
    y = y.transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * th, 2 * tw) + bias[:, None, None]
    height, width = (size + 2 * padding - 2 for size in x.shape[2:])
    return y[:, :, :height, :width]


# choose_algorithm and overlap_add


def always_gemm(n, c, o, size, kernel):
    return "gemm"


def always_fft(n, c, o, size, kernel):
    return "fft"


def winograd_for_all(n, c, o, size, kernel):
    return "winograd"


def or_winograd(rule, least=128):
    """Choose Winograd for 3 x 3 kernels with so many channels and more, else by the rule."""
    return lambda n, c, o, size, kernel: "winograd" if kernel == 3 and c >= least else rule(n, c, o, size, kernel)


def cut_to_the_image(image, kernel, step, convolve):
    return transforms.overlap_add(image, kernel, step, convolve)[: image.shape[0], : image.shape[1]]


def in_one_tile(image, kernel, step, convolve):
    return convolve(image)


def pixel_tiles(image, kernel, step, convolve):
    return transforms.overlap_add(image, kernel, 1, convolve)


def clipped_places(image, kernel, step, convolve):
    """A loop over all tiles, in a list, and the parts padded to the whole."""
    (height, width), more = image.shape, kernel - 1
    y = np.zeros((height + more, width + more), image.dtype)
    for top, left in itertools.product(range(0, height, step), range(0, width, step)):
        part = convolve(image[top : min(top + step, height), left : min(left + step, width)])
        after = ((top, height + more - top - len(part)), (left, width + more - left - part.shape[1]))
        y = y + np.pad(part, after)
    return y


def from_the_end(image, kernel, step, convolve):
    parts = {
        (top, left): convolve(image[top : top + step, left : left + step])
        for top in range(len(image) - 1 - (len(image) - 1) % step, -1, -step)
        for left in range(0, image.shape[1], step)
    }
    y = np.zeros([size + kernel - 1 for size in image.shape], image.dtype)
    for (top, left), part in parts.items():
        rows, columns = np.arange(len(part)) + top, np.arange(part.shape[1]) + left
        y[np.ix_(rows, columns)] += part
    return y


MUTANTS = {
    "fft_conv2d": [
        Mutant(as_one_product, "operations, at most"),
        Mutant(weight_by_weight, "launches, at most 60 allowed"),
    ],
    "winograd_transforms": [Mutant(without_halves, "the transformed weights")],
    "winograd_conv2d": [Mutant(winograd_summed_late, "operations, at most")],
    "choose_algorithm": [
        Mutant(always_gemm, "times the time of the fastest is allowed"),
        Mutant(winograd_for_all, "can be chosen"),
        Mutant(lambda n, c, o, size, kernel: None, "you return None"),
    ],
    "overlap_add": [
        Mutant(cut_to_the_image, "shape"),
        Mutant(in_one_tile, "its transform has room for"),
        Mutant(pixel_tiles, "of step x step pixels cover the image"),
    ],
}


RULES = [
    or_winograd(lambda n, c, o, size, kernel: "fft" if kernel > 12 and c * o < 500 else "gemm"),
    or_winograd(lambda n, c, o, size, kernel: "gemm" if kernel < 9 or max(c, o) >= 40 else "fft"),
    lambda n, c, o, size, kernel: (
        "fft" if kernel**2 > 10 * c * o else "gemm" if c * o < 150**2 or kernel > 3 else "winograd"
    ),
    or_winograd(lambda n, c, o, size, kernel: ("gemm", "fft")[kernel >= 15 and c < 20]),
    or_winograd(lambda n, c, o, size, kernel: "gemm" if n * c * o * kernel > 10**4 or kernel < 8 else "fft"),
]
RIGHT = {
    "count_multiplications": [
        *(one_of_four, counted_out),
        *in_place(
            "count_multiplications",
            ("n, c, o, size, kernel = shape", "n, c, o, size, kernel = np.array(shape, np.float64)"),
            ("(-(-size // tile)) ** 2", "((size + tile - 1) // tile) ** 2"),
            ("return n * c * o * pair", "return np.float64(pair) * n * c * o"),
        ),
    ],
    "fft_conv2d": [
        *in_place(
            "fft_conv2d",
            (
                "    lengths = h + kh - 1, w + kw - 1",
                "    from scipy.fft import next_fast_len\n    lengths = *map(next_fast_len, (h + kh - 1, w + kw - 1)),",
            ),
            ("weight[:, :, ::-1, ::-1]", "xp.flip(weight, (2, 3))"),
        ),
    ],
    "winograd_transforms": [
        *(of_flat_tiles, by_sums),
        *in_place(
            "winograd_transforms",
            ("B_T @ tiles @ B_T.T", 'np.einsum("ij,...jk,lk->...il", B_T, tiles, B_T)'),
            ("G @ weight @ G.T", "np.matmul(G, np.matmul(weight, G.T))"),
            ("A_T @ products @ A_T.T", "(A_T @ (A_T @ products).swapaxes(-1, -2)).swapaxes(-1, -2)"),
        ),
    ],
    "winograd_conv2d": in_place(
        "winograd_conv2d",
        ("b @ tiles @ b.T)", "xp.matmul(xp.matmul(b, tiles), xp.transpose(b)))"),
        ("results.transpose(0, 1, 2, 4, 3, 5)", "results.swapaxes(3, 4)"),
        ("return y[:, :, :oh, :ow] + bias[:, None, None]", "return y[:, :, :oh, :ow] + bias.reshape(1, -1, 1, 1)"),
        ("(weights @ pixels)", "xp.stack([weight @ part for weight, part in zip(weights, pixels)])"),
        ("xp.asarray(B_T), xp.asarray(G), xp.asarray(A_T)", "map(xp.array, (B_T, G, A_T))"),
    ),
    "choose_algorithm": RULES,
    "overlap_add": [
        *(clipped_places, from_the_end),
        *in_place(
            "overlap_add",
            ("top : top + part.shape[0], left : left", "slice(top, top + len(part)), left : left"),
            ("image[top : top + step, left : left + step]", "np.array(image[top:, left:][:step, :step])"),
            ("for top in range(0, image.shape[0], step):", "for top in reversed(range(0, len(image), step)):"),
        ),
    ],
}
HONEST = {"fft_conv2d": [image_by_image, of_a_padded_image]}
