"""Attention on a GPU beside each backend of PyTorch's, and beside the plain form that keeps T x T weights.

    python benchmarks/attention.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/attention.json]

Queries, keys and values are (1, 64, T, 64), normal random numbers, in a section for each dtype. "blocks" is
`ops.attention`, one launch for the forward pass; "plain" is `ops.attention_plain`, up to T = 4,096: its memory grows
with T squared. Each backend of `scaled_dot_product_attention` is a side, allowed alone; why others take no such inputs
is in `refused`. Those of float32 are measured with TF32, too. "both passes" are forward and backward, with the
gradients by q, k and v.

Results of the first head are compared first, with float64: `error` is the largest difference, of the largest value.
`ratio` is the median of paired ratios to the peer's times; the peer is the fastest backend whose error is as small as
ours has to be, without TF32. `memory_mb` is how far a call raises what CuPy's pool and PyTorch's allocator hold, less
its outputs, in MB. `of_plain` is its share of the plain form's.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import common
import gpu_common
from common import Row, Step
from cpu import limit_threads
from unrolled import device, ops

BLOCKS, PLAIN, PEER, TF32 = "blocks", "plain", "PyTorch", ", TF32"
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
SIZES, D = (256, 512, 1024, 2048, 4096, 8192, 16_384), 64
AIMED, LARGEST_PLAIN = 2048, 4096
AIMS = {
    "attention, CPU, T = 2,048": {"at_most": 1.3, "at_most_of_plain": 1 / 8},
    "attention, float32, T = 2,048": {"at_most": 1.0, "at_most_of_plain": 1 / 50},
}
LOOSE = 1e-2  # the tolerance for float16, and for backends that may round factors
Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Case:
    """Queries, keys and values of so many heads, and what is done with them."""

    section: str
    heads: int
    dtype: str = "float32"
    t: int = AIMED
    causal: bool = False
    both: bool = False

    @property
    def name(self) -> str:
        marks = ", causal" * self.causal + ", both passes" * self.both
        return f"attention, {self.section}, T = {self.t:,}{marks}"

    @property
    def outputs_mb(self) -> float:
        return (4 if self.both else 1) * self.heads * self.t * D * np.dtype(self.dtype).itemsize / 1e6

    @property
    def tolerance(self) -> float:
        return common.TOLERANCE if self.dtype == "float32" else LOOSE

    def sides(self) -> list[str]:
        """Return the names of all that is measured; the plain forms only where their weights fit."""
        marks, fits = ("", TF32) if self.dtype == "float32" else ("",), self.t <= LARGEST_PLAIN
        peers = [PEER] if self.section == "CPU" else [f"{PEER} {name}{mark}" for name in BACKENDS for mark in marks]
        return [BLOCKS, *[PLAIN] * fits, *(peer for peer in peers if fits or "math" not in peer)]

    def tensors(self, where: str) -> list[torch.Tensor]:
        """Return q, k, v and the gradient by the output, the same numbers in every process."""
        drawn, shape = torch.Generator().manual_seed(0), (1, self.heads, self.t, D)
        return [torch.randn(shape, generator=drawn).to(where, getattr(torch, self.dtype)) for _ in range(4)]

    def step(self, side: str, tensors: Tensors) -> Step:
        """Return one side's call, which gives the output, and for both passes the gradients."""
        if side.startswith(PEER):
            return partial(self.peer, *tensors)
        asarray = gpu_common.cp.asarray if tensors[0].is_cuda else np.asarray  # on the same memory
        return partial(self.blocks if side == BLOCKS else self.plain, *map(asarray, tensors))

    def blocks(self, q: Any, k: Any, v: Any, grad: Any) -> tuple[Any, ...]:
        y, logsumexp = ops.attention_with_logsumexp(q, k, v, causal=self.causal)
        return (y, *ops.attention_backward(grad, q, k, v, y, logsumexp, causal=self.causal)) if self.both else (y,)

    def plain(self, q: Any, k: Any, v: Any, grad: Any) -> tuple[Any, ...]:
        if not self.both:
            return (ops.attention_plain(q, k, v, causal=self.causal),)
        weights = ops.attention_weights(q, k, causal=self.causal)
        return weights @ v, *ops.attention_plain_backward(grad, q, k, v, weights)

    def peer(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor) -> tuple[torch.Tensor, ...]:
        attention = partial(scaled_dot_product_attention, is_causal=self.causal)
        if not self.both:
            return (attention(q, k, v),)
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        y = attention(q, k, v)
        return y.detach(), *torch.autograd.grad(y, (q, k, v), grad)

    def error(self, side: str, found: Sequence[Any], tensors: Tensors) -> float:
        """Return the largest error of a side's results for the first head. Raises ArithmeticError for a large one."""
        exact = self.peer(*(tensor[:, :1].double() for tensor in tensors))
        ours = (x[:, :1].cpu().numpy() if isinstance(x, torch.Tensor) else device.to_host(x[:, :1]) for x in found)
        check = partial(common.check, f"{self.name}, {side}")
        tolerance, pairs = LOOSE if side.startswith(PEER) else self.tolerance, zip(ours, exact, strict=True)
        return max(check(one.astype(np.float32), right.cpu().numpy(), tolerance) for one, right in pairs)


def rows(
    case: Case, times: common.Times, memory: Mapping[str, Any], errors: Mapping[str, float], peer: str
) -> list[Row]:
    """Return a row for each side. Memory is in MB, with the outputs, None where the system does not say."""
    found = []
    for side, error in errors.items():
        row = {"name": f"{case.name}, {side}", "peer": peer, **common.compared(times, side, peer), "error": error}
        if memory[side] is not None:
            row["memory_mb"] = memory[side] - case.outputs_mb
            row |= {"of_plain": row["memory_mb"] / (memory[PLAIN] - case.outputs_mb)} if PLAIN in memory else {}
        found.append(row | (AIMS.get(case.name, {}) if side == BLOCKS else {}))
    return found


def allowed(side: str) -> AbstractContextManager[None]:
    """Return what lets PyTorch take this side's backend alone, inside of a `with`, and set TF32 as it asks."""
    torch.backends.cuda.matmul.allow_tf32 = side.endswith(TF32)
    backend = side.removeprefix(f"{PEER} ").removesuffix(TF32)
    return sdpa_kernel(BACKENDS[backend]) if backend in BACKENDS else nullcontext()


def peak_mb(step: Step) -> tuple[Any, float]:
    """Return the results of a call on the GPU, and how far it raises memory."""
    pool = gpu_common.cp.get_default_memory_pool()
    step()  # what libraries keep for themselves is there from now on
    gpu_common.synchronize()
    pool.free_all_blocks()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = pool.total_bytes() + torch.cuda.memory_allocated()
    found = step()
    gpu_common.synchronize()
    return found, (pool.total_bytes() + torch.cuda.max_memory_allocated() - before) / 1e6


def gpu_rows(case: Case, chosen: Any) -> list[Row]:
    """Measure a case on the GPU: results and memory first, then all sides in turn."""
    tensors, errors, memory, refused = case.tensors("cuda"), dict[str, float](), dict[str, float](), list[str]()
    steps = {side: case.step(side, tensors) for side in case.sides()}
    for side, step in steps.items():
        try:
            with allowed(side):
                found, memory[side] = peak_mb(step)
        except RuntimeError as error:
            if not side.startswith(PEER):
                raise
            refused.append(f"{side}: {str(error).splitlines()[0]}")  # most backends have no kernel for float32
        else:
            errors[side] = case.error(side, found, tensors)

    def turn(side: str) -> float:
        with allowed(side):
            steps[side]()
            return gpu_common.block(steps[side], max(1, min(50, 20_000 // case.t)))

    times = common.in_turn({side: partial(turn, side) for side in errors}, 3 if chosen.quick or case.t != AIMED else 9)
    same = [side for side, error in errors.items() if side.startswith(PEER) and error <= case.tolerance]
    fastest = min((side for side in same if TF32 not in side), key=lambda side: statistics.median(times[side]))
    found = rows(case, times, memory, errors, fastest)
    return [found[0] | {"refused": "; ".join(refused)}, *found[1:]]


def in_all_sizes(measure: Callable[[Case, Any], list[Row]], case: Case, chosen: Any) -> list[Row]:
    """Measure the forward pass and both, without and with a mask, in all sizes."""
    limit_threads(chosen.threads)
    sizes, no_yes = (256, AIMED) if chosen.quick else SIZES, (False, True)
    cases = [replace(case, t=t, causal=causal, both=both) for both in no_yes for causal in no_yes for t in sizes]
    return gpu_common.each(cases, lambda case: measure(case, chosen))


SECTIONS: dict[str, Callable[[Any], list[Row]]] = {
    "float32": partial(in_all_sizes, gpu_rows, Case("float32", 64)),
    "float16": partial(in_all_sizes, gpu_rows, Case("float16", 64, "float16")),
}


if __name__ == "__main__":
    sys.exit(gpu_common.run(__doc__, SECTIONS))
