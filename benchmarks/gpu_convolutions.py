"""Convolution by FFT and by Winograd's filtering beside one matrix product and cuDNN, on a GPU.

    python benchmarks/gpu_convolutions.py [--only SECTION ...] [--quick]
        [--json lib/unrolled/records/gpu_convolutions.json]

Sections: `crossovers` (64 images of 3 channels, 8 filters, by size of image and kernel: FFT beside one product;
`faster` is how many times as fast FFT is), `methods` (3 x 3 kernels, stride 1: all methods beside PyTorch, which calls
cuDNN). All in float32, TF32 off on both sides; medians of blocks of calls in turn, timed by CUDA events. Results are
compared
with the peer's first: `error` is the largest difference, of the largest value.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import common
import gpu
from unrolled import device, ops

Row = dict[str, Any]
TOLERANCE = 1e-4  # of the largest value
SIZES, KERNELS = (16, 32, 64, 128, 256), (3, 5, 7, 11, 15, 31)
SHAPES = ((32, 64, 56), (32, 64, 28), (32, 128, 28), (32, 256, 14), (128, 64, 28))  # images, channels = filters, size
WAYS: dict[str, Callable[..., Any]] = {
    "gemm": ops.conv2d,
    "fft": ops.fft_conv2d,
    "winograd 2x2": lambda *arrays, padding: ops.winograd_conv2d(*arrays, padding=padding, tile=2),
    "winograd 4x4": lambda *arrays, padding: ops.winograd_conv2d(*arrays, padding=padding, tile=4),
}


def drawn(n: int, c: int, o: int, size: int, kernel: int) -> tuple[Any, ...]:
    """Return x (N, C, size, size), weight (O, C, kernel, kernel) and bias (O,) on the GPU, in float32."""
    rng, cp = np.random.default_rng(0), device.gpu()
    shapes = ((n, c, size, size), (o, c, kernel, kernel), (o,))
    return tuple(cp.asarray(rng.normal(size=shape).astype(np.float32)) for shape in shapes)


def medians(steps: dict[str, common.Step], quick: bool) -> dict[str, float]:
    """Return the median seconds of a call of each side."""
    import gpu_timing

    times = gpu_timing.side_by_side(steps, *((3, 3) if quick else (20, 9)))
    return {side: statistics.median(found) for side, found in times.items()}


def compared(what: str, ours: Any, exact: Any) -> float:
    """Return how far results are apart, of the largest value. Raises ArithmeticError if that is too far."""
    a, b = device.to_host(ours), device.to_host(exact)
    error = float(np.abs(a - b).max() / np.abs(b).max())
    if error > TOLERANCE:
        raise ArithmeticError(f"{what}: off by {error:.1e} of the largest value")
    return error


def crossovers(quick: bool) -> list[Row]:
    """Measure FFT beside one product."""
    rows = []
    for size in SIZES[:2] if quick else SIZES:
        for kernel in KERNELS[:2] if quick else KERNELS:
            arrays, padding = drawn(64, 3, 8, size, kernel), kernel // 2
            name = f"fft, 64 images {size}x{size}, kernel {kernel}x{kernel}"
            steps = {way: lambda way=way, p=padding, a=arrays: WAYS[way](*a, padding=p) for way in ("fft", "gemm")}
            error = compared(name, steps["fft"](), steps["gemm"]())
            times = medians(steps, quick)
            row = {"section": "crossovers", "name": name, "size": size, "kernel": kernel, "ours_s": times["fft"]}
            row |= {"peer": "gemm", "peer_s": times["gemm"], "faster": times["gemm"] / times["fft"], "error": error}
            rows.append(row)
    return rows


def methods(quick: bool) -> list[Row]:
    """Measure all methods beside cuDNN, as PyTorch calls it with its own choice of algorithm by trying."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    rows = []
    for n, c, size in SHAPES[1:2] if quick else SHAPES:
        arrays = drawn(n, c, c, size, 3)
        theirs = [torch.from_dlpack(array) for array in arrays]
        steps: dict[str, common.Step] = {way: lambda way=way, a=arrays: WAYS[way](*a, padding=1) for way in WAYS}
        steps["PyTorch"] = lambda t=theirs: torch.nn.functional.conv2d(*t, padding=1)
        exact = device.gpu().from_dlpack(steps["PyTorch"]())
        errors = {way: compared(way, steps[way](), exact) for way in WAYS}
        times = medians(steps, quick)
        for way in WAYS:
            name = f"{way}, {n} images {size}x{size}, {c} channels, 3x3"
            row = {"section": "methods", "name": name, "ours_s": times[way], "faster": times["gemm"] / times[way]}
            row |= {"peer": "PyTorch", "peer_s": times["PyTorch"], "ratio": times[way] / times["PyTorch"]}
            rows.append(row | {"error": errors[way]})
    return rows


def main() -> int:
    """Measure. Exit with 1 if a section fails."""
    sections = {"crossovers": crossovers, "methods": methods}
    reader = common.parser(__doc__)
    reader.add_argument("--only", nargs="+", choices=sections, default=list(sections), metavar="SECTION")
    chosen = reader.parse_args()
    if device.is_simulated(device.gpu()):
        print("no GPU works here", file=sys.stderr)
        return 1
    found: list[Row] = []
    for name in chosen.only:
        found += gpu.guarded(name, lambda name=name: sections[name](chosen.quick))
    gpu.write(chosen, found)
    return int(any("error" in row and isinstance(row["error"], str) for row in found))


if __name__ == "__main__":
    sys.exit(main())
