"""Wrong and imperfect answers to lesson 10."""

from __future__ import annotations

import numpy as np

from answers import Mutant, result_of
from unrolled import device, ops
from unrolled.checks.exercises.l10_faster_convolutions import transforms

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


def pixel_by_pixel(x, weight, bias, padding=0):
    """A loop over output positions, image by image."""
    xp = device.array_module(x)
    return xp.concatenate([ops.conv2d_positions(x[n : n + 1], weight, bias, 1, padding) for n in range(len(x))])


# winograd


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


def cut_to_the_image(image, kernel, step, convolve):
    return transforms.overlap_add(image, kernel, step, convolve)[: image.shape[0], : image.shape[1]]


def in_one_tile(image, kernel, step, convolve):
    return convolve(image)


def pixel_tiles(image, kernel, step, convolve):
    return transforms.overlap_add(image, kernel, 1, convolve)


MUTANTS = {
    "count_multiplications": [
        Mutant(lambda method, shape: 0, "for direct: n 1, c 1, o 1, size 2, kernel 3"),
    ],
    "fft_conv2d": [
        Mutant(as_one_product, "operations, at most"),
        Mutant(weight_by_weight, "launches, at most 60 allowed"),
    ],
    "winograd_transforms": [
        Mutant(without_halves, "the transformed weights"),
        Mutant(
            result_of("winograd_transforms", lambda parts: parts[:2]),
            "return the transformed pixels, the transformed weights, the results",
        ),
    ],
    "winograd_conv2d": [
        Mutant(winograd_summed_late, "operations, at most"),
    ],
    "choose_algorithm": [
        Mutant(always_gemm, "times the time of the fastest methods"),
        Mutant(winograd_for_all, "can be chosen"),
        Mutant(lambda n, c, o, size, kernel: None, "you return None"),
    ],
    "overlap_add": [
        Mutant(cut_to_the_image, "shape"),
        Mutant(in_one_tile, "its transform has room for"),
        Mutant(pixel_tiles, "of step x step pixels cover the image"),
    ],
}

HONEST = {"fft_conv2d": [image_by_image, of_a_padded_image]}
LOOP = {"fft_conv2d": pixel_by_pixel}
