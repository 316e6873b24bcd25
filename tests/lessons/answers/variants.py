"""Wrong and imperfect answers to the variants, as a lesson's are to its exercises."""

from __future__ import annotations

from typing import Any

import numpy as np

from answers import Mutant, kernel
from answers.lesson10 import always_fft, always_gemm, winograd_for_all
from answers.lesson12 import read_elsewhere, receiving_first
from unrolled import data, device, kernels, ops
from unrolled.checks.exercises.l08_kernels import naive
from unrolled.checks.exercises.l12_many_devices import ring

# im2col_nhwc


def turned_columns(x, kernel_size, stride=1, padding=0):
    return ops.im2col(x.transpose(0, 3, 1, 2), kernel_size, stride, padding).T.copy()


def rows_by_loops(x, kernel_size, stride, padding, dtype, advance):
    (kh, kw), (n, *size, c) = kernel_size, x.shape
    oh, ow = ops.conv2d_output_size(size, kernel_size, stride, padding)
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows, at = np.empty((n * oh * ow, kh * kw * c), dtype), 0
    for image, row, column in np.ndindex(n, oh, ow):
        top, left = row * stride, column * stride
        rows[at] = x[image, top : top + kh, left : left + kw].reshape(-1)
        at += advance
    return rows


def rows_in_float64(x, kernel_size, stride=1, padding=0):
    return rows_by_loops(x, kernel_size, stride, padding, float, 1)


def rows_without_a_counter(x, kernel_size, stride=1, padding=0):
    return rows_by_loops(x, kernel_size, stride, padding, x.dtype, 0)


# max_pool2d_average


def means(x, kernel_size, each=np.mean):
    n, c, h, w = x.shape
    y = np.empty((n, c, -(-h // kernel_size), -(-w // kernel_size)), x.dtype)
    for row, column in np.ndindex(y.shape[2:]):
        top, left = row * kernel_size, column * kernel_size
        y[:, :, row, column] = each(x[:, :, top : top + kernel_size, left : left + kernel_size], axis=(2, 3))
    return y


def means_by_the_whole_window(x, kernel_size):
    return means(x, kernel_size, np.sum) / np.float32(kernel_size**2)


def means_of_float64(x, kernel_size):
    return means(x.astype(float), kernel_size)


# softmax_cross_entropy_smoothing


def smoothed(scores, labels, smoothing=0.1):
    """Right, from targets written out."""
    targets = np.full(scores.shape, smoothing / scores.shape[1], scores.dtype)
    targets[np.arange(len(labels)), labels] += 1 - smoothing
    shifted = scores - scores.max(axis=1, keepdims=True)
    sums = np.exp(shifted).sum(axis=1, keepdims=True)
    loss = (targets * (np.log(sums) - shifted)).sum(axis=1).mean()
    return loss, (np.exp(shifted) / sums - targets) / len(scores)


def smoothed_in_float64(scores, labels, smoothing=0.1):
    loss, grad = smoothed(scores, labels, smoothing)
    return loss, grad.astype(float)


def smoothed_in_place(scores, labels, smoothing=0.1):
    scores -= scores.max(axis=1, keepdims=True)
    return smoothed(scores, labels, smoothing)


# minibatches_balanced


def orders_of(labels, seed):
    rng = np.random.default_rng(seed)
    return [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]


def pieces(orders, images, labels, per_class, count):
    for batch in range(count):
        piece = slice(batch * per_class, (batch + 1) * per_class)
        chosen = np.concatenate([order[piece] for order in orders])
        yield images[chosen], labels[chosen]


def balanced_by_chance(images, labels, per_class, seed):
    """Ordinary shuffled batches of the right size."""
    return data.minibatches((images, labels), per_class * len(np.unique(labels)), seed)


def balanced_without_the_last(images, labels, per_class, seed):
    orders = orders_of(labels, seed)
    return pieces(orders, images, labels, per_class, (min(map(len, orders)) - 1) // per_class)


def balanced_in_order(images, labels, per_class, seed):
    orders = [np.sort(order) for order in orders_of(labels, seed)]
    return pieces(orders, images, labels, per_class, min(map(len, orders)) // per_class)


def balanced_with_replacement(images, labels, per_class, seed):
    rng = np.random.default_rng(seed)
    orders = [rng.choice(order, len(order)) for order in orders_of(labels, seed)]
    return pieces(orders, images, labels, per_class, min(map(len, orders)) // per_class)


# row_sum_maximum


def maxima(*changes: tuple[str, str]) -> Any:
    return kernel("variants/08_row_sum_maximum", "row_sum_maximum", *changes)


MAXIMA_BY_64, MAXIMA_BY_512 = maxima(("32, 33, 256", "32, 33, 64")), maxima(("32, 33, 256", "32, 33, 512"))


def maxima_by_small_blocks(x: Any) -> Any:
    return MAXIMA_BY_64(x)


def maxima_by_large_blocks(x: Any) -> Any:
    return MAXIMA_BY_512(x)


def maxima_row_by_row(x: Any) -> Any:
    return naive.row_max(x)


# lstm_step_coupled


def coupled(x, h, c, weight_ih, weight_hh, bias, order=(0, 1, 2), turned=False):
    size = weight_hh.shape[1]
    sums = x @ weight_ih.T + h @ weight_hh.T + bias
    f, g, o = (sums[:, k * size : (k + 1) * size] for k in order)
    f = ops.sigmoid(-f if turned else f)
    c = f * c + (1 - f) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def coupled_on_the_host(x, h, c, weight_ih, weight_hh, bias):
    arrays = (device.to_host(a) for a in (x, h, c, weight_ih, weight_hh, bias))
    return tuple(device.array_module(x).asarray(a) for a in coupled(*arrays))


# prune_filters


def smallest_rows(magnitudes, fraction):
    return np.argsort(magnitudes)[: int(fraction * len(magnitudes))]


def pruned_by_largest(weight, fraction, updates):
    mask = np.ones((len(weight), 1), weight.dtype)
    mask[smallest_rows(np.abs(weight).max(axis=1), fraction)] = 0
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


def pruned_at_the_end(weight, fraction, updates):
    weight = weight - sum(updates)
    weight[smallest_rows(np.abs(weight).sum(axis=1), fraction)] = 0
    return weight


def pruned_in_place(weight, fraction, updates):
    weight[smallest_rows(np.abs(weight).sum(axis=1), fraction)] = 0
    return weight


# ring_allreduce_left


def zeros_to_the_left(comm, x):
    ring.ring_allreduce(comm, np.zeros_like(x), step=-1)
    return read_elsewhere(comm, x)


# capturable_step_decay


def decay_step(x, target, weight, velocity, rate, error, grad, decay, rate_now):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    grad += decay
    grad *= rate_now
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99


def decay_with_a_new_array(x, target, weight, velocity, rate, error, grad, decayed):
    decay_step(x, target, weight, velocity, rate, error, grad, 0.01 * weight, rate)


def decay_by_a_number(x, target, weight, velocity, rate, error, grad, decayed):
    device.array_module(x).multiply(weight, 0.01, out=decayed)
    decay_step(x, target, weight, velocity, rate, error, grad, decayed, float(rate[0]))


def decay_forgotten(x, target, weight, velocity, rate, error, grad, decayed):
    decay_step(x, target, weight, velocity, rate, error, grad, 0, rate)


MUTANTS = {
    "im2col_nhwc": [
        Mutant(turned_columns, "yours goes (C, KH, KW)"),
        Mutant(rows_in_float64, "dtype is float64, expected float32"),
        Mutant(rows_without_a_counter, "the counter of rows never advances"),
    ],
    "max_pool2d_average": [
        Mutant(ops.avg_pool2d, "round OH and OW up"),
        Mutant(means_by_the_whole_window, "divide by the pixels that are there"),
        Mutant(means_of_float64, "dtype is float64, expected float32"),
    ],
    "softmax_cross_entropy_smoothing": [
        Mutant(smoothed_in_place, "changed its input scores"),
        Mutant(smoothed_in_float64, "grad: the values are right, but dtype is float64, expected float32"),
        Mutant(lambda scores, labels, smoothing=0.1: smoothed(scores, labels, smoothing)[0], "return loss, grad"),
    ],
    "minibatches_balanced": [
        Mutant(balanced_by_chance, "expected per_class = 3 of every class"),
        Mutant(balanced_without_the_last, "3 batches; expected 4"),
        Mutant(balanced_in_order, "shuffle them, class by class"),
        Mutant(balanced_with_replacement, "come more than once in an epoch"),
    ],
    "row_sum_maximum": [
        Mutant(maxima(("largest = x[row, 0]", "largest = cp.float32(0)")), "your maximum starts at 0"),
        Mutant(maxima(("while half > 0", "while half > 1000")), "what the first thread found"),
        Mutant(maxima(("partial[t + half])\n        jit.syncthreads()", "partial[t + half])")), "race: thread"),
    ],
    "lstm_step_coupled": [
        Mutant(lambda **arrays: coupled(**arrays, order=(0, 2, 1)), "the second block is g, the third o"),
        Mutant(lambda **arrays: coupled(**arrays, turned=True), "1 - f what gets in"),
        Mutant(coupled_on_the_host, "transfers, none allowed"),
    ],
    "choose_algorithm_backward": [
        Mutant(always_gemm, "times the time of the fastest methods"),
        Mutant(always_fft, "times the time of the fastest methods"),
        Mutant(winograd_for_all, "can be chosen"),
    ],
    "prune_filters": [
        Mutant(pruned_by_largest, "differ"),
        Mutant(pruned_at_the_end, "before the first update"),
        Mutant(pruned_in_place, "changed its input weight"),
    ],
    "ring_allreduce_left": [
        Mutant(ring.ring_allreduce, "in the ring it sends to rank"),
        Mutant(receiving_first, "deadlock"),
        Mutant(zeros_to_the_left, "cannot know that of x["),
    ],
    "capturable_step_decay": [
        Mutant(decay_with_a_new_array, "made while a stream was capturing, none allowed"),
        Mutant(decay_by_a_number, "D2H transfers are disallowed"),
        Mutant(decay_forgotten, "the weight decay is missing"),
    ],
}
HONEST = {"row_sum_maximum": [maxima_by_small_blocks, maxima_by_large_blocks]}
LOOP = {"row_sum_maximum": maxima_row_by_row}
