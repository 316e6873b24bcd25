"""Figures of GPUs for the cost model, each with its source: a datasheet, a measurement, or an assumption.

Bandwidths are those that programs reach, not those of the datasheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

T4_SHEET = "NVIDIA T4 datasheet, 2019 (2,560 cores at 1.59 GHz, TU104)"
A100_SHEET = "NVIDIA A100 datasheet, 2021 (SXM4, 40 GB)"
H200_SHEET = "NVIDIA H200 datasheet, 2024 (SXM5)"


@dataclass(frozen=True)
class GPUProfile:
    """What the cost model knows of a GPU and of the calls that drive it: bytes, seconds, operations a second."""

    name: str
    memory: float
    multiprocessors: float
    bandwidth: float
    """Bytes a second of the GPU's memory, read and written together."""
    l2: float
    """Bytes of the cache that all multiprocessors share."""
    l2_bandwidth: float
    """Bytes a second of that cache, for sectors that index arrays name."""
    scattered: float
    """Bytes a second of the memory, for sectors that index arrays name."""
    float32: float
    float64: float
    float16: float
    integer: float
    tensor_float16: float
    """Matrix products of float16 with sums in float32."""
    tensor_int8: float
    """Matrix products of int8 with sums in int32."""
    matmul_float64: float
    matmul_efficiency: float
    """What a large matrix product reaches of its peak."""
    atomics: float
    """Additions a second to places that many threads may name (`add.at`)."""
    transposed: float
    """How many times more a dense operand costs that is read across its rows: sectors are fetched for one value each,
    and partly found again in the cache."""
    shortest_kernel: float
    """Seconds from one empty kernel to the next on one stream."""
    shortest_product: float
    """Seconds from one shortest matrix product to the next: it waits for its first tiles before it begins."""
    shortest_draw: float
    """Seconds from one shortest draw of random numbers to the next: each thread first fetches its generator's state."""
    graph_gain: float
    """Seconds that a kernel of a graph begins sooner after the one before it than a kernel of a stream does."""
    link_bandwidth: float
    """Bytes a second to and from the host, for page-locked memory."""
    pageable_bandwidth: float
    """Bytes a second to and from the host, for ordinary memory, which the driver first copies."""
    link_latency: float
    host: Mapping[str, float]
    """The host's time for a call, by kind: `cost.kind` names them. And "library": our own Python (layers, shapes,
    checks, views) before each call of one of our kernels. The Python of other programs between their calls is not
    counted."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each figure is from; "host.ufunc" for those of `host`."""

    def __post_init__(self) -> None:
        names = {f.name for f in fields(self)} - {"name", "host", "sources"} | {f"host.{kind}" for kind in self.host}
        missing = names - set(self.sources)
        if missing:
            raise ValueError(f"{self.name}: no source for {', '.join(sorted(missing))}")


def _profile(name: str, figures: Mapping[str, tuple[float, str]], slower: float = 1, host: str = "") -> GPUProfile:
    """A profile from figures with their sources. The host takes so many times those of `_HOST`; `host` says why."""
    values = {key: value for key, (value, _) in figures.items()}
    sources = {key: source for key, (_, source) in figures.items()}
    sources |= {f"host.{kind}": host or source for kind, (_, source) in _HOST.items()}
    times = {kind: slower * seconds for kind, (seconds, _) in _HOST.items()}
    return GPUProfile(name=name, host=times, sources=sources, **values)


_H200_RUN = "measured: H200, driver 580.159.04, CuPy 14.2, benchmarks/gpu.py, 2026-11-21"
_H200_OPS = "measured: H200, driver 580.159.04, CuPy 14.2, benchmarks/gpu_ops.py, 2026-11-21"
_H200_PLACES = "measured: H200, driver 580.159.04, CuPy 14.2, benchmarks/gpu_ops.py, 2026-11-22"
_WITHOUT = _H200_RUN + ", less the allocation of its result"
_GRAPH_CALL = (
    "2.5 us, which NVIDIA names for kernels in a row (Constant Time Launch for Straight-Line CUDA Graphs, 2024), and "
    "as much as an event takes for CuPy's call"
)
_GRAPH_GAIN = (
    "assumed: 3.8 us less 3.4 us a kernel, as NVIDIA measured on a V100 (Getting Started with CUDA Graphs, 2019)"
)
_HOST: dict[str, tuple[float, str]] = {
    "ufunc": (10.5e-6, _H200_RUN + ": a ufunc into out"),
    "reduction": (14e-6, _WITHOUT + ": 11 us to sum all, 15 us along an axis"),
    "matmul": (17.5e-6, _H200_RUN + ": our call of cuBLAS, 15 us to 20 us; CuPy's matmul takes 19 us"),
    "einsum": (69e-6, _WITHOUT),
    "indexing": (17e-6, _WITHOUT + ": 16 us to take, 18 us to put"),
    "scatter_add": (18e-6, _H200_RUN),
    "copy": (9e-6, _WITHOUT + ": 9 us to assign, 9 us to copy"),
    "concatenate": (24e-6, _WITHOUT),
    "fill": (5e-6, _H200_RUN),
    "sort": (30e-6, "assumed: several launches in one call"),
    "random": (4.4e-6, _WITHOUT),
    "kernel": (8.6e-6, _H200_RUN + ": RawKernel; an ElementwiseKernel takes 9 us"),
    "library": (13e-6, _H200_RUN + ": what remains of a launch beside call and allocations, the median of 12 steps"),
    "upload": (7e-6, _H200_RUN + ": half of the 14 us of 4,000 bytes"),
    "download": (8e-6, _H200_RUN + ": half of the 14 to 19 us of a few bytes"),
    "allocate": (4.3e-6, _H200_RUN + ": empty, from the pool"),
    "reserve": (150e-6, "assumed: cudaMalloc"),
    "synchronize": (2.4e-6, _H200_RUN),
    "event": (2.8e-6, _H200_RUN),
    "graph": (5.3e-6, "assumed: " + _GRAPH_CALL),
    "instantiate": (100e-6, "assumed: a graph is instantiated once, so it hardly counts"),
}
_HOSTED = (
    "assumed: 1.5 times as measured on the H200's host, as a virtual core of a hosted notebook is slower than a "
    "server's"
)

_DERIVED = "from the datasheet: cores, clock and rate"
_NINETY = "assumed: 90 % of the datasheet's, as a copy reaches on an H200 (measured: 4.29 of 4.8 TB/s)"
_MATMUL = "assumed: what cuBLAS reaches of the peak in float32 (measured on an H200: 77 %)"
_TRANSPOSED = "assumed: between the 8 sectors fetched for 8 values and the cache that keeps them"
_L2_BANDWIDTH = "assumed: as many times the bandwidth of a copy as on an H200"
_SCATTERED = "assumed: a quarter of the bandwidth of a copy, as on an H200"
_ATOMICS = "assumed: one atomic addition a clock for each of the slices of the L2 cache"
_KERNEL = "assumed: 2 us as measured on an H200, and longer for slower clocks"
_LIKE_KERNEL = "assumed: as many of the shortest kernels as measured on an H200"
_PAGEABLE = "assumed: about half of page-locked, since one core copies each byte first"
_LATENCY = "assumed: as measured on an H200"

T4 = _profile(
    "T4",
    {
        "memory": (15 * 2**30, T4_SHEET + ": 16 GB, of which 15 GiB are free"),
        "multiprocessors": (40, T4_SHEET),
        "bandwidth": (0.9 * 320e9, _NINETY),
        "l2": (4e6, T4_SHEET + " (TU104: 4 MB)"),
        "l2_bandwidth": (0.9 * 320e9, _L2_BANDWIDTH),
        "scattered": (0.9 * 320e9 / 4, _SCATTERED),
        "float32": (8.1e12, T4_SHEET),
        "float64": (8.1e12 / 32, T4_SHEET + ": 1/32 of float32"),
        "float16": (16.2e12, _DERIVED),
        "integer": (4.1e12, _DERIVED),
        "tensor_float16": (65e12, T4_SHEET),
        "tensor_int8": (130e12, T4_SHEET),
        "matmul_float64": (8.1e12 / 32, T4_SHEET),
        "matmul_efficiency": (0.6, _MATMUL + "; the card's 70 W lower its clock"),
        "atomics": (2.5e10, _ATOMICS),
        "transposed": (2.5, _TRANSPOSED),
        "shortest_kernel": (3e-6, _KERNEL),
        "shortest_product": (6e-6, _LIKE_KERNEL),
        "shortest_draw": (27e-6, _LIKE_KERNEL),
        "graph_gain": (0.4e-6, _GRAPH_GAIN),
        "link_bandwidth": (12e9, "assumed: three quarters of PCIe 3.0 x16 (15.75 GB/s)"),
        "pageable_bandwidth": (5e9, _PAGEABLE),
        "link_latency": (8e-6, _LATENCY),
    },
    slower=1.5,
    host=_HOSTED,
)

A100 = _profile(
    "A100",
    {
        "memory": (40e9, A100_SHEET),
        "multiprocessors": (108, A100_SHEET),
        "bandwidth": (0.9 * 1555e9, _NINETY),
        "l2": (40e6, A100_SHEET),
        "l2_bandwidth": (0.9 * 1555e9, _L2_BANDWIDTH),
        "scattered": (0.9 * 1555e9 / 4, _SCATTERED),
        "float32": (19.5e12, A100_SHEET),
        "float64": (9.7e12, A100_SHEET),
        "float16": (78e12, A100_SHEET + " and architecture whitepaper: four times float32"),
        "integer": (9.7e12, _DERIVED),
        "tensor_float16": (312e12, A100_SHEET),
        "tensor_int8": (624e12, A100_SHEET),
        "matmul_float64": (19.5e12, A100_SHEET + ", tensor cores"),
        "matmul_efficiency": (0.85, _MATMUL),
        "atomics": (1e11, _ATOMICS),
        "transposed": (2.0, _TRANSPOSED),
        "shortest_kernel": (2.2e-6, _KERNEL),
        "shortest_product": (4.4e-6, _LIKE_KERNEL),
        "shortest_draw": (20e-6, _LIKE_KERNEL),
        "graph_gain": (0.4e-6, _GRAPH_GAIN),
        "link_bandwidth": (24e9, "assumed: three quarters of PCIe 4.0 x16 (31.5 GB/s)"),
        "pageable_bandwidth": (9e9, _PAGEABLE),
        "link_latency": (8e-6, _LATENCY),
    },
    slower=1.5,
    host=_HOSTED,
)

H200 = _profile(
    "H200",
    {
        "memory": (141e9, H200_SHEET),
        "multiprocessors": (132, H200_SHEET),
        "bandwidth": (4.3e12, _H200_RUN + ": a copy of 2 GB on the device, read and write counted"),
        "l2": (63e6, _H200_PLACES + ": the device says so"),
        "l2_bandwidth": (4.4e12, _H200_PLACES + ": 10 million places of 16 MB, read in 79 us, written in 139 us"),
        "scattered": (1.1e12, _H200_PLACES + ": 10 million places of 1 GB, read in 288 us, written in 640 us"),
        "float32": (67e12, H200_SHEET),
        "float64": (34e12, H200_SHEET),
        "float16": (134e12, "NVIDIA H100 whitepaper: twice float32"),
        "integer": (33.5e12, "NVIDIA H100 whitepaper: half of float32"),
        "tensor_float16": (989e12, H200_SHEET + ": half of the figure for sparse matrices"),
        "tensor_int8": (1979e12, H200_SHEET + ": half of the figure for sparse matrices"),
        "matmul_float64": (67e12, H200_SHEET + ", tensor cores"),
        "matmul_efficiency": (
            0.77,
            _H200_RUN + ": 51.3 TFLOP/s for float32 of 8192 x 8192; float16 76 %, float64 94 %",
        ),
        "atomics": (1.6e11, _ATOMICS),
        "transposed": (2.0, _TRANSPOSED),
        "shortest_kernel": (2e-6, _H200_OPS + ": 1.9 us for the smallest, 2.3 us to 2.8 us for small sums"),
        "shortest_product": (4e-6, _H200_RUN + ": 64 x 64; 2.9 us to 6.6 us for the smallest of gpu_ops.py"),
        "shortest_draw": (18e-6, _H200_RUN + ": 64 x 64 uniform values"),
        "graph_gain": (0.4e-6, _GRAPH_GAIN),
        "link_bandwidth": (54e9, _H200_RUN + ": 256 MB"),
        "pageable_bandwidth": (12e9, _H200_RUN + ": 8 GB/s to 15 GB/s for 16 MB and 256 MB"),
        "link_latency": (8e-6, _H200_RUN + ": half of the 14 to 19 us of 4,000 bytes, the other is the call's"),
    },
)

PROFILES: dict[str, GPUProfile] = {profile.name: profile for profile in (T4, A100, H200)}


def named(name: str) -> GPUProfile:
    """Return the profile of this name. Raises ValueError for an unknown one."""
    if name not in PROFILES:
        raise ValueError(f"GPU is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]
