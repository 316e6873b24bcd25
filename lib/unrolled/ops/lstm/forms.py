"""One layer forward, step by step, in six forms: the same multiplications in fewer and fewer calls.

A form gets the inputs x (T, N, D), the layer's weights, and arrays to fill. It returns a function that makes one step:
it writes y[t], c[t] and gates[t] from h and c before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.lstm import cell
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights
from unrolled.ops.products import matmul, plain_matmul

Step: TypeAlias = Callable[[int, Array, Array], None]
"""step(t, h, c)."""


def naive(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Step:
    """Eight products a step: for each gate one with the input and one with the last output."""
    blocks = [cell.blocks(a.T) for a in layer]  # rows of the weights, as columns of what is turned

    def step(t: int, h: Array, c: Array) -> None:
        sums = [matmul(x[t], ih.T) + matmul(h, hh.T) + bias for ih, hh, bias in zip(*blocks, strict=True)]
        point_wise(sums, c, kept, t)

    return step


def combined(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Step:
    """Two products a step: the four gates' weights stand below each other already."""

    def step(t: int, h: Array, c: Array) -> None:
        sums = matmul(x[t], layer.weight_ih) + matmul(h, layer.weight_hh) + layer.bias
        point_wise(cell.blocks(sums), c, kept, t)

    return step


def streams(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Step:
    """As combined, and the product with the input runs on a stream of its own, beside that with the last output."""
    beside = Beside(x)

    def step(t: int, h: Array, c: Array) -> None:
        with beside:
            matmul(x[t], layer.weight_ih, out=kept.gates[t])
        sums = matmul(h, layer.weight_hh)
        beside.join()
        point_wise(cell.blocks(sums + kept.gates[t] + layer.bias), c, kept, t)

    return step


def point_wise(sums: Sequence[Array], c: Array, kept: LSTMGates, t: int) -> None:
    """Write gates[t], c[t] and y[t] from c before and the sums of i, f, g and o, (N, H): a call for each operation."""
    gates = cell.activated(*sums)
    for to, gate in zip(cell.blocks(kept.gates[t]), gates, strict=True):
        to[...] = gate
    kept.y[t], kept.c[t] = cell.states(*gates, c)


def fused(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Step:
    """As streams, and all that is done value by value is one launch; on the CPU, one pass in place."""
    return _fused(x, layer, kept, matmul)


def transposed(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Step:
    """As fused, with weights that were turned once, so that no product has to turn them."""
    turned = LSTMWeights(layer.weight_ih.T.copy(), layer.weight_hh.T.copy(), layer.bias)
    return _fused(x, turned, kept, plain_matmul)


def _fused(x: Array, layer: LSTMWeights, kept: LSTMGates, product: Callable[..., Array]) -> Step:
    beside, sums = Beside(x), array_module(x).empty(kept.gates.shape[1:], dtype=x.dtype)

    def step(t: int, h: Array, c: Array) -> None:
        with beside:
            product(x[t], layer.weight_ih, out=kept.gates[t])
        product(h, layer.weight_hh, out=sums)
        beside.join()
        cell.fused(kept.gates[t], sums, layer.bias, c, kept.gates[t], kept.c[t], kept.y[t])

    return step


def inputs_at_once(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Step:
    """One product for the inputs of all steps, then one a step: T + 1 products."""
    sums_of_inputs(x, layer, kept.gates)
    weight_hh = layer.weight_hh.T.copy()
    sums = array_module(x).empty(kept.gates.shape[1:], dtype=x.dtype)

    def step(t: int, h: Array, c: Array) -> None:
        plain_matmul(h, weight_hh, out=sums)
        cell.fused(kept.gates[t], sums, layer.bias, c, kept.gates[t], kept.c[t], kept.y[t])

    return step


def sums_of_inputs(x: Array, layer: LSTMWeights, out: Array) -> None:
    """Write x (T, N, D) times the weights of the inputs, for all steps in one product, to out (T, N, 4 * H)."""
    steps, n, inputs = x.shape
    matmul(x.reshape(steps * n, inputs), layer.weight_ih, out=out.reshape(steps * n, out.shape[2]))


class Beside:
    """A second stream: what is launched in `with beside:` runs beside what comes after, until `join`.

    Without a GPU, or not `wanted`, it does nothing. Arrays that it writes have to live until `join`, and so have those
    that it reads.
    """

    def __init__(self, x: Array, wanted: bool = True) -> None:
        module = array_module(x)
        self._cuda = module.cuda if wanted and kernels.runs_on(module) and hasattr(module, "cuda") else None
        if self._cuda:
            self._stream = self._cuda.Stream(non_blocking=True)
            self.follow()

    def follow(self) -> None:
        """Let what is launched beside wait for what the current stream has to do so far."""
        if self._cuda:
            self._stream.wait_event(self._cuda.get_current_stream().record())

    def __enter__(self) -> None:
        if self._cuda:
            self._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._cuda:
            self._stream.__exit__(*error)

    def join(self) -> None:
        """Let what follows on the current stream wait for what was launched beside it."""
        if self._cuda:
            self._cuda.get_current_stream().wait_event(self._stream.record())
