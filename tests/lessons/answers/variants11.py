"""Wrong and imperfect answers to the variants of lesson 11."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from answers.lesson11 import all_at_once, one_by_one, row_by_row_in_python_numbers, without_skipping
from unrolled.checks.exercises.l11_smaller_numbers import fewer, integers, scaling, variants


def last(function):
    def answer(x, limit):
        q, scale = function(np.moveaxis(x, -1, 0), limit)
        return np.moveaxis(q, 0, -1), scale

    return answer


def agreeing_all_at_once(a, b, k):
    return (k + all_at_once(a, b, k)) // 2


def agreeing_row_by_row(a, b, k):
    return (k + row_by_row_in_python_numbers(a, b, k)) // 2


def agreeing_one_by_one(a, b, k):
    return (k + one_by_one(a, b, k)) // 2


MUTANTS = {
    "loss_scale_step_quarter": [
        Mutant(scaling.loss_scale_step, "a quarter of the scale is left"),
        Mutant(scaling.with_the_scale, "divide by it"),
        Mutant(without_skipping, "so None is expected"),
    ],
    "quantize_int8_last": [
        Mutant(last(integers.wrapped), "clip before you make int8"),
        Mutant(last(integers.cut_off), "round to the nearest"),
        Mutant(last(integers.of_one_scale), "a scale of its own"),
        Mutant(lambda x, limit: variants.quantize_last(x, limit)[0], "return q, scale"),
    ],
    "int8_matmul_turned": [
        Mutant(lambda a, b: integers.wrapping(a, b.T), "wrap round at 128"),
        Mutant(lambda a, b: integers.in_int16(a, b.T), "wrap round at 32,768"),
        Mutant(lambda a, b: integers.in_float32(a, b.T), "2^24"),
    ],
    "prune_filters": [
        Mutant(fewer.prune, "whole rows go"),
        Mutant(variants._grown_again, "grows again"),
        Mutant(variants._of_the_last, "before the first update"),
        Mutant(variants._by_sums, "if its magnitudes are"),
        Mutant(variants._rounded_rows, "int cuts off"),
    ],
    "binary_matmul_agreement": [
        Mutant(fewer.binary_matmul, "those that agree is asked"),
        Mutant(lambda a, b, k: k - variants.agreement(a, b, k), "the others agree"),
        Mutant(lambda a, b, k: (k + fewer.with_the_tail(a, b, k)) // 2, "must not count"),
        Mutant(lambda a, b, k: (k + fewer.without_a_full_word(a, b, k)) // 2, "the last word is full"),
    ],
}

HONEST = {"binary_matmul_agreement": [agreeing_all_at_once, agreeing_row_by_row]}
LOOP = {"binary_matmul_agreement": agreeing_one_by_one}
