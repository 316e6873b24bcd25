"""Wrong and imperfect answers to the variants, as a lesson's are to its exercises."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import numpy as np

from answers import Mutant, in_other_words, in_place, lesson02, on_the_host, result_of, solution
from answers.lesson04 import Loss, loss_of_columns, loss_row_by_row, loss_with_targets
from answers.lesson10 import RULES, always_fft, always_gemm, winograd_for_all
from answers.lesson12 import RING_IN_OTHER_WORDS, every_pth, read_elsewhere, two_loops
from answers.lesson13 import STEP_IN_OTHER_WORDS, step_with, with_outs
from unrolled import data, device, ops
from unrolled.checks.exercises.l12_many_devices import ring

# im2col_nhwc


def rows_in_a_list(x, kernel_size, stride=1, padding=0):
    (kh, kw), x = kernel_size, lesson02.padded(x.transpose(0, 3, 1, 2), padding).transpose(0, 2, 3, 1)
    tops, lefts = range(0, x.shape[1] - kh + 1, stride), range(0, x.shape[2] - kw + 1, stride)
    return np.array([image[i : i + kh, j : j + kw].ravel() for image in x for i in tops for j in lefts])


def rows_place_by_place(x, kernel_size, stride=1, padding=0):
    (n, h, w, c), (kh, kw) = x.shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    wide = np.zeros((n, h + 2 * padding, w + 2 * padding, c), x.dtype)
    wide[:, padding : padding + h, padding : padding + w] = x
    rows = np.empty((n, oh, ow, kh, kw, c), x.dtype)
    for i, j in np.ndindex(kh, kw):
        rows[:, :, :, i, j] = wide[:, i : i + oh * stride : stride, j : j + ow * stride : stride]
    return rows.reshape(n * oh * ow, -1)


def rows_by_columns(columns):
    """Rows made of the columns of an image in the other order of axes."""

    def function(x, kernel_size, stride=1, padding=0):
        there = columns(x.transpose(0, 3, 1, 2), kernel_size, stride, padding)
        return there.T.reshape(-1, x.shape[3], len(there) // x.shape[3]).swapaxes(1, 2).reshape(there.T.shape)

    return function


# max_pool2d_average


def average_filled_with_nan(x, kernel_size):
    (n, c, h, w), k = x.shape, kernel_size
    filled = np.full((n, c, -(-h // k) * k, -(-w // k) * k), np.nan, x.dtype)
    filled[:, :, :h, :w] = x
    return np.nanmean(filled.reshape(n, c, filled.shape[2] // k, k, -1, k), axis=(3, 5))


def average_of_sums(x, kernel_size):
    def added(y, axis):
        return np.add.reduceat(y, range(0, y.shape[axis], kernel_size), axis)

    pixels = added(added(np.ones(x.shape[2:], x.dtype), 0), 1)
    return added(added(x, 2), 3) / pixels


def average_by_split(x, kernel_size):
    def pieces(y, axis):
        return np.split(y, range(kernel_size, y.shape[axis], kernel_size), axis)

    return np.stack([np.stack([cell.mean((2, 3)) for cell in pieces(row, 3)], -1) for row in pieces(x, 2)], -2)


def average_by_matrices(x, kernel_size):
    def means(size):
        inside = np.arange(size) // kernel_size == np.arange(-(-size // kernel_size))[:, None]
        return (inside / inside.sum(axis=1, keepdims=True)).astype(x.dtype)

    return means(x.shape[2]) @ x @ means(x.shape[3]).T


def average_pixel_by_pixel(x, kernel_size):
    sums = np.zeros((*x.shape[:2], *(math.ceil(size / kernel_size) for size in x.shape[2:])))
    counts = np.zeros(sums.shape[2:])
    for i, j in np.ndindex(x.shape[2:]):
        sums[:, :, i // kernel_size, j // kernel_size] += x[:, :, i, j]
        counts[i // kernel_size, j // kernel_size] += 1
    return (sums / counts).astype(x.dtype)


# softmax_cross_entropy_smoothing


def smoothed_by_logaddexp(scores, labels, smoothing=0.1):
    log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    grad = np.exp(log_p) - smoothing / scores.dtype.type(scores.shape[1])
    for row, label in enumerate(labels):
        grad[row, label] += smoothing - 1
    own = -np.array([log_p[row, label] for row, label in enumerate(labels)])
    return np.mean((1 - smoothing) * own - smoothing * log_p.mean(axis=1)), grad / len(own)


# minibatches_balanced


def orders_of(labels, seed):
    rng = np.random.default_rng(seed)
    return [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]


def pieces(orders, images, labels, per_class):
    for batch in range(min(map(len, orders)) // per_class):
        piece = slice(batch * per_class, (batch + 1) * per_class)
        chosen = np.concatenate([order[piece] for order in orders])
        yield images[chosen], labels[chosen]


def balanced_by_chance(images, labels, per_class, seed):
    """Ordinary shuffled batches of the right size."""
    return data.minibatches((images, labels), per_class * len(np.unique(labels)), seed)


def balanced_in_order(images, labels, per_class, seed):
    orders = [np.sort(order) for order in orders_of(labels, seed)]
    return pieces(orders, images, labels, per_class)


def balanced_with_replacement(images, labels, per_class, seed):
    rng = np.random.default_rng(seed)
    orders = [rng.choice(order, len(order)) for order in orders_of(labels, seed)]
    return pieces(orders, images, labels, per_class)


def balanced_from_a_shuffled_copy(images, labels, per_class, seed):
    order = np.random.default_rng(seed).permutation(len(labels))
    images, labels = images[order], labels[order]
    places = [np.flatnonzero(labels == label) for label in set(labels.tolist())]
    batches = []
    while all(len(place) >= per_class for place in places):
        chosen = np.sort(np.hstack([place[:per_class] for place in places]))
        places = [place[per_class:] for place in places]
        batches.append((images[chosen], labels[chosen]))
    return batches


def balanced_by_popping(images, labels, per_class, seed):
    rest = {}
    for place, label in enumerate(labels.tolist()):
        rest.setdefault(label, []).append(place)
    for places in rest.values():
        random.Random(seed).shuffle(places)
    for _ in range(min(map(len, rest.values())) // per_class):
        chosen = [places.pop() for places in rest.values() for _ in range(per_class)]
        yield [images[chosen], labels[chosen]]


def balanced_by_rank(images, labels, per_class, seed):
    key = np.random.default_rng(seed).random(len(labels))
    rank = np.array([(key[labels == label] < mine).sum() for mine, label in zip(key, labels, strict=True)])
    for batch in range(np.unique(labels, return_counts=True)[1].min() // per_class):
        now = rank // per_class == batch
        yield images[now], labels[now]


def balanced_by_splitting(images, labels, per_class, seed):
    orders = orders_of(labels, seed)
    pieces = [np.split(order[: len(order) // per_class * per_class], len(order) // per_class or 1) for order in orders]
    for chosen in map(np.concatenate, zip(*pieces, strict=False)):
        if len(chosen) == per_class * len(orders):
            yield images[chosen], labels[chosen]


class Balanced:
    def __init__(self, images, labels, per_class, seed):
        self.given, self.each, self.rng = (images, labels), per_class, np.random.default_rng(seed)

    def __iter__(self):
        labels = self.given[1]
        left = np.ones(len(labels), bool)
        while min(left[labels == label].sum() for label in np.unique(labels)) >= self.each:
            for_class = (np.flatnonzero(left & (labels == label)) for label in np.unique(labels))
            chosen = self.rng.permutation(np.concatenate([self.rng.choice(c, self.each, False) for c in for_class]))
            left[chosen] = False
            yield tuple(array[chosen] for array in self.given)


# row_sum_maximum


def maxima(*changes: tuple[str, str]) -> Any:
    return solution("variants/08_row_sum_maximum", "row_sum_maximum", *changes)


# lstm_step_coupled


def coupled_gate_by_gate(x, h, c, weight_ih, weight_hh, bias):
    xp, size = device.array_module(x), c.shape[1]
    f, g, o = (
        x @ weight_ih[k : k + size].T + h @ weight_hh[k : k + size].T + bias[k : k + size]
        for k in range(0, 3 * size, size)
    )
    g = xp.tanh(g)
    new = g + (c - g) / (1 + xp.exp(-f))
    return [xp.tanh(new) / (1 + xp.exp(-o)), new]


# prune_filters


def rows_of_low_rank(weight, fraction, updates):
    ranks = np.abs(weight).sum(axis=1).argsort().argsort()
    stays = ranks >= int(fraction * len(weight))
    return np.where(stays[:, None], weight - sum(updates, np.zeros_like(weight)), np.float32(0))


def row_by_row(weight, fraction, updates):
    w, count = weight.copy(), int(fraction * len(weight))
    order = sorted(range(len(w)), key=lambda row: np.linalg.norm(w[row], 1))
    for row in order[count:]:
        for update in updates:
            w[row] -= update[row]
    w[order[:count]] = 0
    return w


# ring_allreduce_left


def zeros_to_the_left(comm, x):
    ring.ring_allreduce(comm, np.zeros_like(x), step=-1)
    return read_elsewhere(comm, x)


# online_softmax_joined


def joined_by_branches(largest, total, other_largest, other_total):
    with np.errstate(over="ignore"):
        own, other = total * np.exp(largest - other_largest), other_total * np.exp(other_largest - largest)
    first = largest > other_largest
    return np.where(first, largest, other_largest), np.where(first, total + other, own + other_total)


def joined_row_by_row(largest, total, other_largest, other_total):
    rows = zip(largest, total, other_largest, other_total, strict=True)
    found = [(max(a, b), s * np.exp(a - max(a, b)) + t * np.exp(b - max(a, b))) for a, s, b, t in rows]
    return tuple(np.array(each, np.float32) for each in zip(*found, strict=True))


def joined_by_stacks(largest, total, other_largest, other_total):
    both = np.stack((largest, other_largest))
    return both.max(axis=0), (np.stack((total, other_total)) * np.exp(both - both.max(axis=0))).sum(axis=0)


def joined_sums_undone(largest, total, other_largest, other_total):
    new = np.maximum(largest, other_largest)
    return new, (total * np.exp(largest) + other_total * np.exp(other_largest)) / np.exp(new)


# capturable_step_decay


def decay_with_a_new_array(x, target, weight, velocity, rate, error, grad, decayed):
    step_with(x, target, weight, velocity, rate, error, grad, 0.01 * weight, rate)


def decay_by_a_number(x, target, weight, velocity, rate, error, grad, decayed):
    device.array_module(x).multiply(weight, 0.01, out=decayed)
    step_with(x, target, weight, velocity, rate, error, grad, decayed, float(rate[0]))


MUTANTS = {
    "online_softmax_joined": [Mutant(joined_sums_undone, "NaN")],
    "minibatches_balanced": [
        Mutant(balanced_by_chance, "expected per_class = 3 of every class"),
        Mutant(result_of("minibatches_balanced", lambda batches: list(batches)[:-1]), "4 batches; expected 5"),
        Mutant(balanced_in_order, "shuffle them, class by class"),
        Mutant(balanced_with_replacement, "come more than once in an epoch"),
    ],
    "lstm_step_coupled": [Mutant(on_the_host("lstm_step_coupled"), "transfers, none allowed")],
    "choose_algorithm_backward": [
        Mutant(always_gemm, "times the time of the fastest is allowed"),
        Mutant(always_fft, "times the time of the fastest is allowed"),
        Mutant(winograd_for_all, "can be chosen"),
    ],
    "ring_allreduce_left": [
        Mutant(ring.ring_allreduce, "in the ring it sends to rank"),
        Mutant(zeros_to_the_left, "cannot know that of x["),
    ],
    "capturable_step_decay": [
        Mutant(decay_with_a_new_array, "made while a stream was capturing, none allowed"),
        Mutant(decay_by_a_number, "D2H transfers are disallowed"),
    ],
}
RIGHT = {
    "online_softmax_joined": [
        *(joined_by_branches, joined_row_by_row, joined_by_stacks),
        *in_place("online_softmax_joined", ("np.maximum(largest, other_largest)", "np.fmax(other_largest, largest)")),
        *in_place("online_softmax_joined", ("total * np.exp(largest - new) +", "np.exp(largest - new) * total +")),
    ],
    "lstm_step_coupled": [
        coupled_gate_by_gate,
        *in_other_words(
            "variants/09_lstm_step_coupled",
            "lstm_step_coupled",
            ("(sums[:, k * size : (k + 1) * size] for k in range(3))", "device.array_module(x).split(sums, 3, axis=1)"),
            ("(1 - f) * ops.tanh(g)", "ops.sigmoid(-sums[:, :size]) * ops.tanh(g)"),
            ("return h, c", "return [h, c]"),
            ("x @ weight_ih.T + h @ weight_hh.T + bias", "bias + (weight_ih @ x.T + weight_hh @ h.T).T"),
        ),
    ],
    "choose_algorithm_backward": RULES,
    "prune_filters": [
        *(rows_of_low_rank, row_by_row),
        *in_other_words(
            "variants/11_prune_filters",
            "prune_filters",
            ("(weight - update) * mask", "np.where(mask > 0, weight - update, weight)"),
            ("np.abs(weight).sum(axis=1)", 'np.einsum("ok->o", abs(weight))'),
            ("np.argsort(np.abs(weight).sum(axis=1))", "sorted(range(len(weight)), key=np.abs(weight).sum(1).item)"),
        ),
    ],
    "row_sum_maximum": [
        maxima(("largest = x[row, 0]", "largest = x[row, columns - 1]")),
        maxima(("max(partial[t], partial[t + half])", "max(partial[t + half], partial[t])")),
        maxima(
            (
                "partial[t] = max(partial[t], partial[t + half])",
                "largest = max(largest, partial[t + half])\n            partial[t] = largest",
            )
        ),
    ],
    "im2col_nhwc": [
        rows_in_a_list,
        rows_place_by_place,
        *map(rows_by_columns, (lesson02.im2col_slice_by_slice, lesson02.columns_of_views, lesson02.columns_by_indices)),
    ],
    "max_pool2d_average": [
        average_filled_with_nan,
        average_of_sums,
        average_by_split,
        average_by_matrices,
        average_pixel_by_pixel,
    ],
    "minibatches_balanced": [
        balanced_from_a_shuffled_copy,
        balanced_by_popping,
        balanced_by_rank,
        balanced_by_splitting,
        Balanced,
    ],
    "softmax_cross_entropy_smoothing": [
        smoothed_by_logaddexp,
        *(partial(each, smoothing=0.1) for each in (loss_with_targets, loss_row_by_row, loss_of_columns, Loss())),
    ],
    "ring_allreduce_left": [
        *(partial(each, step=-1) for each in (two_loops, every_pth)),
        *in_place("ring_allreduce_left", *RING_IN_OTHER_WORDS),
    ],
    "capturable_step_decay": [with_outs, *in_place("capturable_step_decay", *STEP_IN_OTHER_WORDS)],
}
HONEST = {"row_sum_maximum": [maxima(("32, 33, 256", "32, 33, 64")), maxima(("32, 33, 256", "32, 33, 512"))]}
