"""Wrong and imperfect answers to the variants, as a lesson's are to its exercises."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from answers import Mutant, in_other_words, on_the_host, result_of, solution
from answers.lesson10 import RULES, always_fft, always_gemm, winograd_for_all
from answers.lesson12 import read_elsewhere, receiving_first
from answers.lesson13 import step_with
from unrolled import data, device
from unrolled.checks.exercises.l12_many_devices import ring

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


def smallest_rows(magnitudes, fraction):
    return np.argsort(magnitudes)[: int(fraction * len(magnitudes))]


def pruned_by_largest(weight, fraction, updates):
    mask = np.ones((len(weight), 1), weight.dtype)
    mask[smallest_rows(np.abs(weight).max(axis=1), fraction)] = 0
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


def rows_below_a_threshold(weight, fraction, updates):
    sums = np.abs(weight).sum(axis=1)
    stays = sums >= np.sort(sums)[int(fraction * len(sums))]
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


# capturable_step_decay


def decay_with_a_new_array(x, target, weight, velocity, rate, error, grad, decayed):
    step_with(x, target, weight, velocity, rate, error, grad, 0.01 * weight, rate)


def decay_by_a_number(x, target, weight, velocity, rate, error, grad, decayed):
    device.array_module(x).multiply(weight, 0.01, out=decayed)
    step_with(x, target, weight, velocity, rate, error, grad, decayed, float(rate[0]))


MUTANTS = {
    "softmax_cross_entropy_smoothing": [
        Mutant(result_of("softmax_cross_entropy_smoothing", itemgetter(0)), "return loss, grad"),
    ],
    "minibatches_balanced": [
        Mutant(balanced_by_chance, "expected per_class = 3 of every class"),
        Mutant(result_of("minibatches_balanced", lambda batches: list(batches)[:-1]), "3 batches; expected 4"),
        Mutant(balanced_in_order, "shuffle them, class by class"),
        Mutant(balanced_with_replacement, "come more than once in an epoch"),
    ],
    "row_sum_maximum": [
        Mutant(maxima(("partial[t + half])\n        jit.syncthreads()", "partial[t + half])")), "race: thread"),
    ],
    "lstm_step_coupled": [
        Mutant(on_the_host("lstm_step_coupled"), "transfers, none allowed"),
    ],
    "choose_algorithm_backward": [
        Mutant(always_gemm, "at most twice the time of the fastest is allowed"),
        Mutant(always_fft, "at most twice the time of the fastest is allowed"),
        Mutant(winograd_for_all, "can be chosen"),
    ],
    "prune_filters": [
        Mutant(pruned_by_largest, "differ"),
    ],
    "ring_allreduce_left": [
        Mutant(ring.ring_allreduce, "in the ring it sends to rank"),
        Mutant(receiving_first, "deadlock"),
        Mutant(zeros_to_the_left, "cannot know that of x["),
    ],
    "capturable_step_decay": [
        Mutant(decay_with_a_new_array, "made while a stream was capturing, none allowed"),
        Mutant(decay_by_a_number, "D2H transfers are disallowed"),
    ],
}
RIGHT = {
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
        *(rows_below_a_threshold, row_by_row),
        *in_other_words(
            "variants/11_prune_filters",
            "prune_filters",
            ("(weight - update) * mask", "np.where(mask > 0, weight - update, weight)"),
            ("np.abs(weight).sum(axis=1)", 'np.einsum("ok->o", abs(weight))'),
            ("np.argsort(np.abs(weight).sum(axis=1))", "sorted(range(len(weight)), key=np.abs(weight).sum(1).item)"),
        ),
    ],
}
HONEST = {"row_sum_maximum": [maxima(("32, 33, 256", "32, 33, 64")), maxima(("32, 33, 256", "32, 33, 512"))]}
