"""Wrong and imperfect answers to lesson 11."""

from functools import partial, reduce
from operator import mul

import numpy as np

from answers import Mutant, in_other_words, result_of
from unrolled.checks.exercises.l11_smaller_numbers import integers

edited = partial(in_other_words, "11_smaller_numbers")

# loss_scale_step


def with_a_floor(gradients, scale, good_steps, every):
    if not (np.abs(gradients) < np.inf).all():
        return None, max(scale / 2, 1), 0
    grown, wide = good_steps >= every - 1, np.asarray(gradients, np.float64) / scale
    return wide.astype(np.float32), np.float64(scale * (1 + grown)), 0 if grown else good_steps + 1


def value_by_value(gradients, scale, good_steps, every):
    flat = [float(value) / scale for value in gradients.ravel()]
    if any(value != value or value in (float("inf"), -float("inf")) for value in flat):
        return [None, scale * 0.5, 0]
    row = (good_steps + 1) % every
    return [np.array(flat, np.float32).reshape(gradients.shape), scale if row else scale + scale, np.int64(row)]


def without_skipping(gradients, scale, good_steps, every):
    found = gradients.astype(np.float32) / np.float32(scale)
    return (found, scale * 2, 0) if good_steps + 1 == every else (found, scale, good_steps + 1)


def down_by_four(gradients, scale, good_steps, every):
    if not np.isfinite(gradients).all():
        return None, scale / 4, 0
    return without_skipping(gradients, scale, good_steps, every)


def of_the_sum(gradients, scale, good_steps, every):
    with np.errstate(over="ignore"):
        if not np.isfinite(gradients.sum()):
            return None, scale / 2, 0
    return without_skipping(gradients, scale, good_steps, every)


# quantize_int8 and int8_matmul


def channel_by_channel(x, limit):
    q, scale = np.empty(x.shape, np.int8), np.ones(len(x), np.float32)
    for channel, most in enumerate(limit):
        scale[channel] = most / 127 if most else 1
        q[channel] = np.clip(np.round(x[channel] / scale[channel]), -127, 127)
    return [q, scale]


def half_added(x, limit):
    """Ties away from 0, in float64."""
    scale = np.where(limit == 0, 127.0, limit) / 127.0
    steps = (x.T.astype(float) / scale).T
    return (np.sign(steps) * np.floor(np.abs(steps) + 0.5)).clip(-127, 127).astype("i1"), scale.astype("f4")


def term_by_term(a, b):
    y = np.zeros((len(a), b.shape[1]), np.int32)
    for k in range(len(b)):
        y += np.multiply.outer(a[:, k].astype(np.int32), b[k].astype(np.int32))
    return y


def asymmetric(x, limit):
    q, scale = integers.quantize_int8(x, limit)
    return np.where(q == -127, np.int8(-128), q), scale


# prune


def by_places_that_go(weight, fraction, updates):
    flat = weight.flatten()
    gone = sorted(range(flat.size), key=lambda place: abs(flat[place]))[: int(np.floor(fraction * flat.size))]
    for update in [np.zeros_like(weight), *updates]:
        flat -= update.ravel()
        flat[gone] = 0
    return flat.reshape(weight.shape)


def all_updates_in_one(weight, fraction, updates):
    mask = np.argsort(np.argsort(np.abs(weight), axis=None)).reshape(weight.shape) >= int(fraction * weight.size)
    return (weight - sum(updates, np.zeros_like(weight))) * mask


def masked_updates(weight, fraction, updates):
    gone = np.argpartition(np.abs(weight), int(weight.size * fraction) - 1, axis=None)[: int(weight.size * fraction)]
    stays = np.isin(np.arange(weight.size), gone, invert=True).reshape(weight.shape)
    return reduce(lambda w, update: np.where(stays, w - update, w), updates, np.where(stays, weight, np.float32(0)))


# binary_matmul


def one_by_one(a, b, k):
    """A loop over pairs of rows, and over the words of each."""
    y = np.empty((len(a), len(b)), np.int32)
    words = np.full(a.shape[1], 2**64 - 1, np.uint64)
    if k % 64:
        words[-1] = (1 << k % 64) - 1
    for i in range(len(a)):
        for j in range(len(b)):
            y[i, j] = k - 2 * sum(int(word).bit_count() for word in (a[i] ^ b[j]) & words)
    return y


def all_at_once(a, b, k):
    """Honest: one large array of all pairs."""
    differ = a[:, None] ^ b[None]
    if k % 64:
        differ[:, :, -1] &= np.uint64((1 << k % 64) - 1)
    return (k - 2 * np.bitwise_count(differ).sum(axis=2, dtype=np.int64)).astype(np.int32)


def row_by_row_in_python_numbers(a, b, k):
    """Honest: a mask for each row, sums of 64 bits, and a list that is joined at the end."""
    last = np.uint64((1 << k % 64) - 1) if k % 64 else np.uint64(2**64 - 1)
    rows = []
    for row in a:
        differ = np.bitwise_xor(row[None], b)
        differ[:, -1] = differ[:, -1] & last
        rows.append(k - 2 * np.bitwise_count(differ).astype(np.int64).sum(axis=1))
    return np.array(rows).astype(np.int32).reshape(len(a), len(b))


def as_numbers_of_python(a, b, k):
    rows, columns = ([int.from_bytes(row.tobytes(), "little") % (1 << k) for row in words] for words in (a, b))
    return np.array([[k - 2 * (row ^ column).bit_count() for column in columns] for row in rows], np.int32)


# straight_through


def both_in_a_helper(grad, x, weight):
    def gradient(grad, other, own):
        signs = 2 * (other > 0).astype(np.float32) - 1
        return np.where((own >= -1) & (own <= 1), np.matmul(grad, signs), np.float32(0))

    return gradient(grad, weight, x), gradient(grad.T, x, weight)


def pair_by_pair(grad, x, weight):
    by_x, by_weight = np.zeros_like(x), np.zeros_like(weight)
    for n, m in np.ndindex(grad.shape):
        by_x[n] += grad[n, m] * np.where(weight[m] <= 0, np.float32(-1), np.float32(1))
        by_weight[m] += grad[n, m] * np.where(x[n] <= 0, np.float32(-1), np.float32(1))
    return by_x * (x**2 < 1), by_weight * (weight**2 < 1)


MUTANTS = {
    "loss_scale_step": [
        *(Mutant(without_skipping, "so None is expected"), Mutant(of_the_sum, "no None is expected")),
        Mutant(down_by_four, "the scale was 8, and a skipped step halves it: 4"),
    ],
    "quantize_int8": [Mutant(asymmetric, "-127 to 127")],
    "straight_through": [Mutant(result_of("straight_through", lambda grads: grads[::-1]), "the gradient by x")],
}

RIGHT = {
    "loss_scale_step": [
        *(with_a_floor, value_by_value),
        *edited(
            "loss_scale_step",
            ("not np.isfinite(gradients).all()", "np.isinf(gradients).any() | (gradients != gradients).any()"),
            ("gradients.astype(np.float32) / np.float32(scale)", "np.multiply(gradients, 1 / scale, dtype=np.float32)"),
            ("isfinite(gradients).all()", "isfinite(np.abs(gradients, dtype=float).sum())"),
        ),
    ],
    "quantize_int8": [
        *(channel_by_channel, half_added),
        *edited(
            "quantize_int8",
            ("np.rint(x / scale.reshape(-1, *[1] * (x.ndim - 1)))", "(x.T / scale).T.round()"),
            ("np.clip(steps, -127, 127)", "np.maximum(-127, np.minimum(steps, 127))"),
            ("np.rint(x", "np.rint(np.clip(x.T, -limit, limit).T"),
        ),
    ],
    "int8_matmul": [
        lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32),
        lambda a, b: np.matmul(a, b, dtype=np.int32),
        lambda a, b: np.array([[sum(map(mul, row, column)) for column in b.T.tolist()] for row in a.tolist()], "i4"),
        term_by_term,
    ],
    "prune": [
        *(by_places_that_go, all_updates_in_one, masked_updates),
        *edited("prune", ("np.argsort(np.abs(weight), axis=None)", "(weight.ravel() ** 2).argsort()")),
    ],
    "binary_matmul": [
        as_numbers_of_python,
        *edited(
            "binary_matmul", ("np.bitwise_count((a[row] ^ b) & words)", "np.bitwise_count(a[row] & words ^ b & words)")
        ),
    ],
    "straight_through": [
        *(both_in_a_helper, pair_by_pair),
        *edited(
            "straight_through",
            ("grad @ weight_signs, grad.T @", 'np.einsum("nm,mk->nk", grad, weight_signs), grad.T @'),
            ("np.where(values > 0, np.float32(1), np.float32(-1))", "np.sign(np.sign(values) - np.float32(0.5))"),
            ("by_x * (np.abs(x) <= 1)", "np.where(np.clip(x, -1, 1) == x, by_x, 0)"),
        ),
    ],
}
HONEST = {"binary_matmul": [all_at_once, row_by_row_in_python_numbers]}
LOOP = {"binary_matmul": one_by_one}
