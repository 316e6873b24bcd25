"""The LSTM in all its forms, beside cuDNN on a GPU and PyTorch on the CPU.

    python benchmarks/lstm.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/lstm.json] [--threads 2]

On a GPU (`one layer`, `four layers`, `training step`): hidden size and inputs 512, 64 samples, 100 steps, float32. TF32
is off, but for the peer's second row, "PyTorch, TF32": that is how PyTorch's LSTM runs unless told otherwise. On the
CPU (`CPU`): 256 and 256, 32 samples, 100 steps; every side in a process of its own, "the products alone" among them:
no form in NumPy takes less. Results, and for `training step`
all gradients, are compared first: with float64, or with the peer's; `error` is the largest difference, of the largest
value. Medians of calls of all sides in turn; `low_s` and `high_s` are their quartiles.

`ours_s` is a whole call, from the first launch until the device has done all. `host_s` is what the host needs to issue
it, with `launches` as the simulated GPU counts them. `device_s` is a launch of a CUDA graph of the same call, so
without the host's work for each launch. CuPy's functions for cuBLAS raise in a capture, so PyTorch multiplies there, by
cuBLAS on the same memory. "at once, not fused" is no form of the library: it takes the changes in another order.

`speedup` is the naive form's time over this one's, `device_speedup` the same in graphs; `ratio` is this one's over the
peer's, both without TF32. `gflops` counts the products alone, which are the same for all rungs; `of_peak` and
`device_of_peak` are their share of the GPU's float32 peak by its datasheet.
"""

from __future__ import annotations

import statistics
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import common
import gpu_common
from common import Row
from cpu import limit_threads
from unrolled import device, kernels, ops, simgpu
from unrolled.ops.lstm import FORMS, cell, columns, forms, sequence
from unrolled.ops.products import matmul
from unrolled.simgpu.profiles import H200

PEER, PEER_TF32 = "PyTorch", "PyTorch, TF32"
OTHER_ORDER = "at once, not fused"
PRODUCTS = "the products alone"
CPU_FORMS = tuple(form for form in FORMS if form not in ("streams", "persistent"))
Sides = Mapping[str, Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """A stack of LSTM layers, and a batch of sequences."""

    steps: int
    samples: int
    inputs: int
    hidden: int
    layers: int = 1

    @property
    def flops(self) -> int:
        """Of the products in a forward pass: a multiplication and an addition for each weight, sample and step."""
        inputs = self.inputs + (self.layers - 1) * self.hidden
        return 2 * self.steps * self.samples * 4 * self.hidden * (inputs + self.layers * self.hidden)

    def peer(self, where: str) -> tuple[torch.nn.LSTM, torch.Tensor]:
        """Return PyTorch's layers, the same numbers in every process, and a batch (T, N, D)."""
        torch.manual_seed(0)
        layers = torch.nn.LSTM(self.inputs, self.hidden, self.layers)
        return layers.to(where), torch.randn(self.steps, self.samples, self.inputs).to(where)

    def launches(self, form: str) -> int:
        """Return how many launches a forward pass is, as the simulated GPU counts them: sizes do not matter to it."""
        weights = [ops.LSTMWeights(*(simgpu.zeros(shape, "float32") for shape in ((256, 64), (256, 64), (256,))))]
        x = simgpu.zeros((self.steps, 2, 64), "float32")
        with other_order(), simgpu.trace() as trace:
            ops.lstm(x, weights * self.layers, form=form)
        return len(trace.launches)


GPU_CASE, FOUR = Case(100, 64, 512, 512), Case(100, 64, 512, 512, layers=4)
CPU_CASE = Case(100, 32, 256, 256)


def at_once_not_fused(x: Any, layer: ops.LSTMWeights, kept: ops.LSTMGates) -> forms.Step:
    """Do the inputs of all steps in one product, and everything else as the combined form does it."""
    forms.sums_of_inputs(x, layer, kept.gates)

    def step(t: int, h: Any, c: Any) -> None:
        sums = kept.gates[t] + matmul(h, layer.weight_hh) + layer.bias
        forms.point_wise(cell.blocks(sums), c, kept, t)

    return step


def other_order() -> Any:
    """Return what lets `ops.lstm` know OTHER_ORDER, too, inside of a `with`."""
    stepping = {**sequence.STEPPING, OTHER_ORDER: at_once_not_fused}
    return patch.multiple(sequence, FORMS=(*FORMS, OTHER_ORDER), STEPPING=stepping)


def weights_of(layers: torch.nn.LSTM, array: Callable[[torch.Tensor], Any]) -> list[ops.LSTMWeights]:
    """Return PyTorch's weights as ours, made arrays by `array`."""
    found = []
    for number in range(layers.num_layers):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ih, hh, *biases = (getattr(layers, f"{name}_l{number}").detach() for name in names)
        found.append(ops.LSTMWeights(array(ih), array(hh), array(biases[0] + biases[1])))
    return found


def compare(what: str, ours: Any, peers: torch.Tensor, tolerance: float = common.TOLERANCE) -> float:
    """Return the largest difference, of the largest value. Raises ArithmeticError if it is too large."""
    return common.check(what, device.to_host(ours), peers.detach().cpu().numpy(), tolerance)


def in_turn(sides: Sides, rounds: int) -> common.Times:
    """Return the seconds of calls of each side, until the device has done each."""
    steps = {side: lambda step=step: (step(), gpu_common.synchronize()) for side, step in sides.items()}
    return common.side_by_side(steps, rounds, 0.0)[0]


def spread(times: common.Times, side: str) -> Row:
    """Return the median of a side's times and their quartiles."""
    low, middle, high = statistics.quantiles(times[side], n=4, method="inclusive")
    return {"ours_s": middle, "low_s": low, "high_s": high}


def rows(section: str, prefix: str, case: Case, times: common.Times, passes: int = 1) -> list[Row]:
    """Return a row for each side in `times`, the peer among them. A training step is three passes' products."""
    median, found = {side: statistics.median(seconds) for side, seconds in times.items()}, []
    for side in times:
        rate = passes * case.flops / median[side] / 1e9
        row = {"section": section, "name": f"{prefix}, {side}", **spread(times, side), "gflops": rate}
        row |= {"of_peak": 1e9 * rate / H200.float32} if section != "CPU" else {}
        row |= {"speedup": median["naive"] / median[side], "peer": PEER, "peer_s": median[PEER]}
        found.append(row | {"ratio": median[side] / median[PEER]})
    return found


def cudnn(layers: torch.nn.LSTM, x: torch.Tensor, tf32: bool) -> torch.Tensor:
    """Return the outputs of PyTorch's layers, which are cuDNN's, with or without TF32."""
    torch.backends.cudnn.allow_tf32 = tf32
    with torch.no_grad():
        outputs: torch.Tensor = layers(x)[0]
    return outputs


def forward_rows(section: str, prefix: str, case: Case, quick: bool) -> list[Row]:
    """Measure the forward pass of all forms on the GPU, as for using a trained network."""
    cp = device.gpu()
    layers, x = case.peer("cuda")
    weights, mine = weights_of(layers, cp.asarray), cp.asarray(x)
    exact = cudnn(layers.double(), x.double(), tf32=False)
    layers.float()
    names = (*FORMS, OTHER_ORDER)
    ours: Sides = {form: lambda form=form: ops.lstm(mine, weights, form=form)[0] for form in names}
    peers: Sides = {name: partial(cudnn, layers, x, name == PEER_TF32) for name in (PEER, PEER_TF32)}
    sides = {**ours, **peers}
    with other_order():
        errors = {side: compare(side, cp.asarray(step()), exact, tolerance(side)) for side, step in sides.items()}
        times = in_turn(sides, 1 if quick else 5 if case.layers == 1 else 3)
        host = {side: gpu_common.host_seconds(step, 1 if quick else 3, 3) for side, step in sides.items()}
        graphs, failed = in_graphs(sides, exact)
    alone = gpu_common.side_by_side(graphs, 3, 3 if quick else 9)
    found = rows(section, prefix, case, times)
    for row, side in zip(found, times, strict=True):
        row |= {"error": errors[side], "host_s": host[side]}
        row |= {"launches": case.launches(side)} if side in ours else {}
        row |= in_graph(case, alone, side) if side in alone else {"failed": failed[side]}
    return found


def tolerance(side: str) -> float:
    """Return how far a side may be from float64: TF32 rounds factors to 10 bits behind the binary point."""
    return 1e-2 if side == PEER_TF32 else common.TOLERANCE


def in_graph(case: Case, times: common.Times, side: str) -> Row:
    """Return what a side takes within a graph, beside the naive form there and the GPU's peak."""
    row = {f"device_{key.removeprefix('ours_')}": value for key, value in spread(times, side).items()}
    if "naive" in times:
        row["device_speedup"] = statistics.median(times["naive"]) / row["device_s"]
    return row | {"device_of_peak": case.flops / row["device_s"] / H200.float32}


def in_graphs(sides: Sides, exact: torch.Tensor) -> tuple[dict[str, common.Step], dict[str, str]]:
    """Return the launch of a graph for each side that can be captured, once it is seen to be right; why others failed.

    Memory that a capture gave back is used again, so the graphs may run one after the other only.
    """
    from compiled_products import captured

    graphs, failed, streams = dict[str, common.Step](), dict[str, str](), list[forms.Beside]()

    def beside(*arguments: Any) -> forms.Beside:
        streams.append(forms_beside(*arguments))  # a stream has to live as long as the capture that it takes part in
        return streams[-1]

    forms_beside = forms.Beside
    with patch.object(kernels, "product", by_torch), patch.object(forms, "Beside", beside):
        for side, step in sides.items():
            outputs: list[Any] = []
            try:
                launch = captured(lambda step=step, outputs=outputs: outputs.append(step()), 1)
                launch()
                gpu_common.synchronize()
                compare(f"{side}, in a graph", device.gpu().asarray(outputs[-1]), exact, tolerance(side))
                graphs[side] = launch
            except Exception as error:  # one that cannot be captured does not stop the others
                traceback.print_exc()
                failed[side] = f"{type(error).__name__}: {error}"
    return graphs, failed


def by_torch(inputs: Any, outputs: Any, layout: Mapping[str, bool]) -> None:
    """Do what `kernels.product` does, by PyTorch's call of cuBLAS, on CuPy's stream."""
    stream = torch.cuda.ExternalStream(device.gpu().cuda.get_current_stream().ptr)
    with torch.cuda.stream(stream):
        a, b, out = (torch.as_tensor(array, device="cuda") for array in (*inputs, *outputs))
        torch.matmul(a.mT if layout["transpose_a"] else a, b.mT if layout["transpose_b"] else b, out=out)


def training_rows(section: str, prefix: str, case: Case, quick: bool) -> list[Row]:
    """Measure forward and backward together, with the gradients by weights and inputs."""
    cp = device.gpu()
    layers, x = case.peer("cuda")
    x.requires_grad_()
    grad = torch.randn(case.steps, case.samples, case.hidden, device="cuda")
    weights, mine, by_y = weights_of(layers, cp.asarray), cp.asarray(x.detach()), cp.asarray(grad)

    def ours(form: str) -> Any:
        kept, _ = ops.lstm_with_gates(mine, weights, form=form)
        return ops.lstm_backward(by_y, mine, weights, kept, form=form)

    def peer(tf32: bool) -> None:
        torch.backends.cudnn.allow_tf32 = tf32
        layers.zero_grad(set_to_none=True)
        x.grad = None
        torch.autograd.backward(layers(x)[0], grad)

    peer(tf32=False)
    for form in FORMS:
        by_x, by_weights = ours(form)
        compare(f"{prefix}, {form}, by x", by_x, x.grad)
        for number, by_layer in enumerate(by_weights):
            for name, one in zip(("weight_ih", "weight_hh", "bias_ih"), by_layer, strict=True):
                compare(f"{prefix}, {form}, by {name}", one, getattr(layers, f"{name}_l{number}").grad)
    sides: Sides = {form: partial(ours, form) for form in FORMS}
    peers: Sides = {PEER: partial(peer, tf32=False), PEER_TF32: partial(peer, tf32=True)}
    return rows(section, prefix, case, in_turn({**sides, **peers}, 1 if quick else 3), passes=3)


def on_cpu(side: str, case: Case, threads: int) -> tuple[common.Step, common.Step]:
    """Return one side's forward pass, and a small one."""
    limit_threads(threads)
    layers, x = case.peer("cpu")
    weights = weights_of(layers, torch.Tensor.numpy)

    products = products_alone(case, weights[0])

    def step(x: torch.Tensor) -> Any:
        if side == PRODUCTS:
            return products()
        if side != PEER:
            return ops.lstm(x.numpy(), weights, form=side)[0]
        with torch.no_grad():
            return layers(x)[0].numpy()

    return lambda: step(x), lambda: step(x[:2])


def products_alone(case: Case, layer: ops.LSTMWeights) -> common.Step:
    """Return what makes the products of one layer, as `ops.lstm` cuts them, and nothing else."""
    weights = np.concatenate((layer.weight_hh, layer.weight_ih, layer.bias[:, None]), axis=1)
    known, sums = (np.ones((rows, case.samples), np.float32) for rows in weights.shape[::-1])
    cut = columns.strips(weights, sums)

    def step() -> None:
        for _ in range(case.steps):
            for rows, out in cut:
                np.matmul(rows, known, out=out)

    return step


def cpu_rows(section: str, prefix: str, case: Case, quick: bool, threads: int) -> list[Row]:
    """Measure the forms for the CPU and PyTorch's, each in a process of its own."""
    sides = (*CPU_FORMS, PRODUCTS, PEER)
    expected = torch.from_numpy(on_cpu(PEER, case, threads)[0]())
    for form in CPU_FORMS:
        compare(f"{prefix}, {form}", on_cpu(form, case, threads)[0](), expected)
    makes = {side: (side, case, threads) for side in sides}
    times, others, _ = common.each_apart(on_cpu, makes, *((3, 0.0) if quick else (9, 5.0)))
    return [row | {"others": round(others, 2)} for row in rows(section, prefix, case, times)]


def small(case: Case, chosen: Any) -> Case:
    """Return the case, or with --quick a smaller one of as many layers."""
    return Case(6, 8, 64, 64, case.layers) if chosen.quick else case


SECTIONS: dict[str, Callable[[Any], list[Row]]] = {
    "one layer": lambda chosen: forward_rows("one layer", "lstm", small(GPU_CASE, chosen), chosen.quick),
    "four layers": lambda chosen: forward_rows("four layers", "lstm, four layers", small(FOUR, chosen), chosen.quick),
    "training step": lambda chosen: training_rows(
        "training step", "lstm, training step", small(GPU_CASE, chosen), chosen.quick
    ),
    "CPU": lambda chosen: cpu_rows("CPU", "lstm on the CPU", CPU_CASE, chosen.quick, chosen.threads),
}


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sys.exit(gpu_common.run(__doc__, SECTIONS))
