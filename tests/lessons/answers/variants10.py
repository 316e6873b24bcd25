"""Wrong and imperfect answers to the variants of lesson 10."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from answers.lesson10 import (
    always_fft,
    always_gemm,
    as_one_product,
    cropped_from,
    image_by_image,
    of_a_padded_image,
    pixel_by_pixel,
    winograd_for_all,
    winograd_of,
    without_lengths,
)
from unrolled.checks.exercises.l10_faster_convolutions import counts, transforms, variants


def each(count):
    return lambda method, shape: count(method, shape) / (shape[0] * shape[2] * shape[3] ** 2)


def flipped(function):
    def answer(x, weight, bias, padding=0):
        return function(x, weight[:, :, ::-1, ::-1], bias, padding)

    return answer


def flipped_image_by_image(x, weight, bias, padding=0):
    return image_by_image(x, weight[:, :, ::-1, ::-1], bias, padding)


def flipped_padded(x, weight, bias, padding=0):
    return of_a_padded_image(x, weight[:, :, ::-1, ::-1], bias, padding)


def flipped_pixel_by_pixel(x, weight, bias, padding=0):
    return pixel_by_pixel(x, weight[:, :, ::-1, ::-1], bias, padding)


def rows_without_halves(tiles, weight, products):
    g = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1]], tiles.dtype)
    pixels, _, results = variants.row_transforms(tiles, weight, products)
    return pixels, weight @ g.T, results


def rows_unturned(tiles, weight, products):
    b, g, a = transforms.matrices(tiles)
    return tiles @ b, weight @ g.T, products @ a.T


def nhwc(function):
    def answer(x, weight, bias, padding=1):
        first = (array.transpose(0, 3, 1, 2) for array in (x, weight))
        return function(*first, bias, padding).transpose(0, 2, 3, 1)

    return answer


MUTANTS = {
    "count_multiplications_each": [
        Mutant(each(counts.tiles_not_rounded), "round the number of tiles up"),
        Mutant(each(counts.all_frequencies), "length // 2 + 1 in a row"),
        Mutant(each(counts.complex_as_one), "takes 4 real ones"),
        Mutant(counts.multiplications, "for one result"),
    ],
    "fft_conv2d_flipped": [
        Mutant(flipped(without_lengths), "irfft2 needs the lengths, too"),
        Mutant(flipped(cropped_from(lambda kernel, padding: 0)), "the crop begins at the wrong place"),
        Mutant(flipped(variants.flipped_by_fft), "which turns it by itself"),
        Mutant(lambda x, weight, bias, padding=0: variants.flipped_by_fft(x, weight, bias), "the padding is missing"),
        Mutant(lambda x, weight, bias, padding=0: variants.flipped_by_fft(x, weight, 0 * bias, padding), "the bias is"),
        Mutant(flipped(as_one_product), "operations, at most"),
    ],
    "winograd_transforms_rows": [
        Mutant(rows_unturned, "from the right it is B_T.T"),
        Mutant(rows_without_halves, "the transformed weights"),
        Mutant(lambda tiles, weight, products: variants.row_transforms(tiles, weight, products)[:2], "the results"),
    ],
    "winograd_conv2d_nhwc": [
        Mutant(nhwc(winograd_of(back=(0, 1, 2, 3, 4, 5))), "bring them to (N, O, TH, 2, TW, 2)"),
        Mutant(nhwc(winograd_of(crop=False)), "crop to (OH, OW)"),
        Mutant(nhwc(as_one_product), "operations, at most"),
        Mutant(
            lambda x, weight, bias, padding=1: variants.by_winograd_nhwc(x, weight, bias, padding).transpose(
                0, 3, 1, 2
            ),
            "the channels come last",
        ),
        Mutant(
            lambda x, weight, bias, padding=1: variants.by_winograd_nhwc(x, weight[:, ::-1, ::-1], bias, padding),
            "only the way through frequencies needs that",
        ),
    ],
    "choose_algorithm_backward": [
        Mutant(always_gemm, "times the time of the fastest methods"),
        Mutant(always_fft, "times the time of the fastest methods"),
        Mutant(winograd_for_all, "can be chosen"),
    ],
}

HONEST = {"fft_conv2d_flipped": [flipped_image_by_image, flipped_padded]}
LOOP = {"fft_conv2d_flipped": flipped_pixel_by_pixel}
