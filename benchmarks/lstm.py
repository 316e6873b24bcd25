"""The LSTM in all its forms, beside cuDNN on a GPU and PyTorch on the CPU.

    python benchmarks/lstm.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/lstm.json] [--threads 2]

On a GPU (`one layer`, `four layers`, `training step`): hidden size and inputs 512, 64 samples, 100 steps, float32; TF32
is off on both sides. A time is that of a whole call, from the first launch until the device has done all, since what
most rungs save is the host's time; medians of calls of all sides in turn. On the CPU (`CPU`): 256 and 256, 32 samples,
100 steps; every side in a process of its own. Results, and for `training step` all gradients, are compared with the
peer's first.

`speedup` is the naive form's time over this one's, `ratio` this one's over the peer's. `gflops` counts the products
alone, which are the same for all rungs; `of_peak` is their share of the GPU's float32 peak by its datasheet.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

import common
import gpu_common
from common import Row
from cpu import limit_threads
from unrolled import device, ops
from unrolled.ops.lstm import FORMS
from unrolled.simgpu.profiles import H200

PEER = "PyTorch"
CPU_FORMS = tuple(form for form in FORMS if form not in ("streams", "persistent"))


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


GPU_CASE, FOUR = Case(100, 64, 512, 512), Case(100, 64, 512, 512, layers=4)
CPU_CASE = Case(100, 32, 256, 256)
QUICK = Case(6, 8, 64, 64), Case(6, 8, 64, 64, layers=4)


def weights_of(layers: torch.nn.LSTM, array: Callable[[torch.Tensor], Any]) -> list[ops.LSTMWeights]:
    """Return PyTorch's weights as ours, made arrays by `array`."""
    found = []
    for number in range(layers.num_layers):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ih, hh, *biases = (getattr(layers, f"{name}_l{number}").detach() for name in names)
        found.append(ops.LSTMWeights(array(ih), array(hh), array(biases[0] + biases[1])))
    return found


def compare(what: str, ours: Any, peers: torch.Tensor) -> None:
    """Raise ArithmeticError unless both sides computed the same."""
    common.check(what, device.to_host(ours), peers.detach().cpu().numpy())


def in_turn(sides: Mapping[str, common.Step], quick: bool) -> dict[str, float]:
    """Return the median seconds of a call of each side, until the device has done it."""
    steps = {side: lambda step=step: (step(), gpu_common.synchronize()) for side, step in sides.items()}
    times, _ = common.side_by_side(steps, 1 if quick else 7, 0.0)
    return {side: statistics.median(found) for side, found in times.items()}


def rows(section: str, prefix: str, case: Case, times: Mapping[str, float], passes: int = 1) -> list[Row]:
    """Return a row for each form in `times`, which has the peer's, too. A training step is three passes' products."""
    found = []
    for form in filter(times.__contains__, FORMS):
        rate = passes * case.flops / times[form] / 1e9
        row = {"section": section, "name": f"{prefix}, {form}", "ours_s": times[form], "gflops": rate}
        row |= {"of_peak": 1e9 * rate / H200.float32} if section != "CPU" else {}
        row |= {"speedup": times["naive"] / times[form], "peer": PEER, "peer_s": times[PEER]}
        found.append(row | {"ratio": times[form] / times[PEER]})
    return found


def forward_rows(section: str, prefix: str, case: Case, quick: bool) -> list[Row]:
    """Measure the forward pass of all forms on the GPU, as for using a trained network."""
    cp = device.gpu()
    layers, x = case.peer("cuda")
    weights, mine = weights_of(layers, cp.asarray), cp.asarray(x)

    def peer() -> torch.Tensor:
        with torch.no_grad():
            return layers(x)[0]

    sides: dict[str, common.Step] = {form: lambda form=form: ops.lstm(mine, weights, form=form)[0] for form in FORMS}
    for form, step in sides.items():
        compare(f"{prefix}, {form}", step(), peer())
    return rows(section, prefix, case, in_turn({**sides, PEER: peer}, quick))


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

    def peer() -> None:
        layers.zero_grad(set_to_none=True)
        x.grad = None
        torch.autograd.backward(layers(x)[0], grad)

    sides: dict[str, common.Step] = {form: lambda form=form: ours(form) for form in FORMS}
    peer()
    for form in FORMS:
        by_x, by_weights, _ = ours(form)
        compare(f"{prefix}, {form}, by x", by_x, x.grad)
        for number, by_layer in enumerate(by_weights):
            for name, one in zip(("weight_ih", "weight_hh", "bias_ih"), by_layer, strict=True):
                compare(f"{prefix}, {form}, by {name}", one, getattr(layers, f"{name}_l{number}").grad)
    return rows(section, prefix, case, in_turn({**sides, PEER: peer}, quick), passes=3)


def on_cpu(side: str, case: Case, threads: int) -> tuple[common.Step, common.Step]:
    """Return one side's forward pass, and a small one."""
    limit_threads(threads)
    layers, x = case.peer("cpu")
    weights = weights_of(layers, torch.Tensor.numpy)

    def step(x: torch.Tensor) -> Any:
        if side != PEER:
            return ops.lstm(x.numpy(), weights, form=side)[0]
        with torch.no_grad():
            return layers(x)[0].numpy()

    return lambda: step(x), lambda: step(x[:2])


def cpu_rows(section: str, prefix: str, case: Case, quick: bool, threads: int) -> list[Row]:
    """Measure the forms for the CPU and PyTorch's, each in a process of its own."""
    sides = (*CPU_FORMS, PEER)
    expected = torch.from_numpy(on_cpu(PEER, case, threads)[0]())
    for form in CPU_FORMS:
        compare(f"{prefix}, {form}", on_cpu(form, case, threads)[0](), expected)
    times, others, _ = common.each_apart(on_cpu, {side: (side, case, threads) for side in sides}, *common.rounds(quick))
    medians = {side: statistics.median(found) for side, found in times.items()}
    return [row | {"others": round(others, 2)} for row in rows(section, prefix, case, medians)]


def main() -> int:
    """Measure; the sections of the GPU only where there is one. Exit with 1 if one fails."""
    chosen = common.sections(__doc__, ("one layer", "four layers", "training step", "CPU"))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    one, four = QUICK if chosen.quick else (GPU_CASE, FOUR)
    tasks: dict[str, Callable[[], list[Row]]] = {
        "one layer": lambda: forward_rows("one layer", "lstm", one, chosen.quick),
        "four layers": lambda: forward_rows("four layers", "lstm, four layers", four, chosen.quick),
        "training step": lambda: training_rows("training step", "lstm, training step", one, chosen.quick),
        "CPU": lambda: cpu_rows("CPU", "lstm on the CPU", CPU_CASE, chosen.quick, chosen.threads),
    }
    if gpu_common.lacking(chosen):
        return 1
    return int(any("error" in row for row in gpu_common.measured(chosen, lambda name, rows: tasks[name]())))


if __name__ == "__main__":
    sys.exit(main())
