"""Figures of GPUs for the cost model, each with its source: a datasheet, a measurement, or an assumption.

A measurement replaces a figure by `measured`. Bandwidths are those that programs reach, not those of the datasheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

T4_SHEET = "NVIDIA T4 datasheet, 2019 (2,560 cores at 1.59 GHz, TU104)"
A100_SHEET = "NVIDIA A100 datasheet, 2021 (SXM4, 40 GB)"
H200_SHEET = "NVIDIA H200 datasheet, 2024 (SXM5)"


@dataclass(frozen=True)
class Profile:
    """What the cost model knows of a GPU and of the calls that drive it: bytes, seconds, operations a second."""

    name: str
    memory: float
    multiprocessors: float
    bandwidth: float
    """Bytes a second of the GPU's memory, read and written together."""
    float32: float
    float64: float
    float16: float
    integer: float
    tensor_float32: float
    """Matrix products whose inputs are rounded to 19 bits; CuPy does not use it unless asked (CUPY_TF32=1)."""
    tensor_float16: float
    """Matrix products of float16 with sums in float32."""
    matmul_float64: float
    matmul_efficiency: float
    """What a large matrix product reaches of its peak."""
    atomics: float
    """Additions a second to places that many threads may name (`add.at`)."""
    transposed: float
    """How many times more a dense operand costs that is read across its rows: sectors are fetched for one value each,
    and partly found again in the cache."""
    shortest_kernel: float
    """From one empty kernel to the next on one stream."""
    link_bandwidth: float
    """To and from the host, page-locked memory."""
    pageable_bandwidth: float
    """The same for ordinary memory, which the driver first copies."""
    link_latency: float
    host: Mapping[str, float]
    """The host's time for a call, by kind: `cost.kind` names them."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each figure is from; "host.ufunc" for those of `host`."""

    def __post_init__(self) -> None:
        names = {f.name for f in fields(self)} - {"name", "host", "sources"} | {f"host.{kind}" for kind in self.host}
        missing = names - set(self.sources)
        if missing:
            raise ValueError(f"{self.name}: no source for {', '.join(sorted(missing))}")


def measured(profile: Profile, figures: Mapping[str, float], source: str) -> Profile:
    """The profile with these figures ("bandwidth", "host.ufunc") in place of its own. Raises ValueError for others."""
    unknown = set(figures) - set(profile.sources)
    if unknown:
        raise ValueError(f"unknown figures: {', '.join(sorted(unknown))}")
    hosts = {name.partition(".")[2]: value for name, value in figures.items() if name.startswith("host.")}
    others = {name: value for name, value in figures.items() if not name.startswith("host.")}
    sources = {**profile.sources, **dict.fromkeys(figures, source)}
    return replace(profile, **others, host={**profile.host, **hosts}, sources=sources)  # type: ignore[arg-type]


def _profile(name: str, figures: Mapping[str, tuple[float, str]], host_scale: float = 1.0) -> Profile:
    """A profile from figures with their sources. The host's times are those of `_HOST`, for a host of that speed."""
    host = {kind: seconds * host_scale for kind, seconds in _HOST.items()}
    values = {key: value for key, (value, _) in figures.items()}
    sources = {key: source for key, (_, source) in figures.items()}
    sources |= {f"host.{kind}": _HOST_SOURCE if host_scale == 1 else _SLOWER for kind in host}
    return Profile(name=name, host=host, sources=sources, **values)


_HOST_SOURCE = "assumed: CuPy calls on an H200's host, a prototype's range (5-10 us a ufunc, 15-20 us a reduction)"
_SLOWER = "assumed: twice the H200's host, as a virtual core of a hosted notebook is about half as fast"
_HOST = {
    "ufunc": 6e-6,
    "reduction": 16e-6,
    "matmul": 14e-6,
    "indexing": 30e-6,  # several calls inside: broadcasting and wrapping the indices
    "scatter_add": 45e-6,
    "copy": 7e-6,
    "fill": 5e-6,
    "sort": 30e-6,
    "random": 12e-6,
    "kernel": 6e-6,
    "upload": 10e-6,
    "download": 8e-6,
    "allocate": 1e-6,
    "reserve": 150e-6,  # cudaMalloc
    "synchronize": 4e-6,
    "event": 2e-6,
}

_DERIVED = "from the datasheet: cores, clock and rate"
_NINETY = "assumed: 90 % of the datasheet's, as a copy reaches on an H200 (4.3 of 4.8 TB/s)"
_MATMUL = "assumed: what cuBLAS reaches of the peak in float32"
_TRANSPOSED = "assumed: between the 8 sectors fetched for 8 values and the cache that keeps them"
_ATOMICS = "assumed: one atomic addition a clock for each of the slices of the L2 cache"
_KERNEL = "assumed: back-to-back empty kernels, 2 us on an H200; slower clocks take longer"
_PAGEABLE = "assumed: about half of page-locked, since one core copies each byte first"
_LATENCY = "assumed: of a small copy, beside the call itself"

T4 = _profile(
    "T4",
    {
        "memory": (15 * 2**30, T4_SHEET + ": 16 GB, of which 15 GiB are free"),
        "multiprocessors": (40, T4_SHEET),
        "bandwidth": (0.9 * 320e9, _NINETY),
        "float32": (8.1e12, T4_SHEET),
        "float64": (8.1e12 / 32, T4_SHEET + ": 1/32 of float32"),
        "float16": (16.2e12, _DERIVED),
        "integer": (4.1e12, _DERIVED),
        "tensor_float32": (8.1e12, T4_SHEET + ": has none, so float32's"),
        "tensor_float16": (65e12, T4_SHEET),
        "matmul_float64": (8.1e12 / 32, T4_SHEET),
        "matmul_efficiency": (0.6, _MATMUL + "; the card's 70 W lower its clock"),
        "atomics": (2.5e10, _ATOMICS),
        "transposed": (2.5, _TRANSPOSED),
        "shortest_kernel": (3e-6, _KERNEL),
        "link_bandwidth": (12e9, "assumed: three quarters of PCIe 3.0 x16 (15.75 GB/s)"),
        "pageable_bandwidth": (5e9, _PAGEABLE),
        "link_latency": (8e-6, _LATENCY),
    },
    host_scale=2.0,
)

A100 = _profile(
    "A100",
    {
        "memory": (40e9, A100_SHEET),
        "multiprocessors": (108, A100_SHEET),
        "bandwidth": (0.9 * 1555e9, _NINETY),
        "float32": (19.5e12, A100_SHEET),
        "float64": (9.7e12, A100_SHEET),
        "float16": (78e12, A100_SHEET + " and architecture whitepaper: four times float32"),
        "integer": (9.7e12, _DERIVED),
        "tensor_float32": (156e12, A100_SHEET),
        "tensor_float16": (312e12, A100_SHEET),
        "matmul_float64": (19.5e12, A100_SHEET + ", tensor cores"),
        "matmul_efficiency": (0.85, _MATMUL),
        "atomics": (1e11, _ATOMICS),
        "transposed": (2.0, _TRANSPOSED),
        "shortest_kernel": (2.2e-6, _KERNEL),
        "link_bandwidth": (24e9, "assumed: three quarters of PCIe 4.0 x16 (31.5 GB/s)"),
        "pageable_bandwidth": (9e9, _PAGEABLE),
        "link_latency": (8e-6, _LATENCY),
    },
    host_scale=2.0,
)

H200 = _profile(
    "H200",
    {
        "memory": (141e9, H200_SHEET),
        "multiprocessors": (132, H200_SHEET),
        "bandwidth": (4.3e12, "measured with a prototype on an H200: a copy on the device, read and write counted"),
        "float32": (67e12, H200_SHEET),
        "float64": (34e12, H200_SHEET),
        "float16": (134e12, "NVIDIA H100 whitepaper: twice float32"),
        "integer": (33.5e12, "NVIDIA H100 whitepaper: half of float32"),
        "tensor_float32": (494e12, H200_SHEET + ": half of the figure for sparse matrices"),
        "tensor_float16": (989e12, H200_SHEET + ": half of the figure for sparse matrices"),
        "matmul_float64": (67e12, H200_SHEET + ", tensor cores"),
        "matmul_efficiency": (0.75, _MATMUL),
        "atomics": (1.6e11, _ATOMICS),
        "transposed": (2.0, _TRANSPOSED),
        "shortest_kernel": (2e-6, "measured with a prototype on an H200: about 2 us"),
        "link_bandwidth": (50e9, "assumed: four fifths of PCIe 5.0 x16 (63 GB/s)"),
        "pageable_bandwidth": (12e9, _PAGEABLE),
        "link_latency": (8e-6, _LATENCY),
    },
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (T4, A100, H200)}


def named(name: str) -> Profile:
    """The profile of this name. Raises ValueError for an unknown one."""
    if name not in PROFILES:
        raise ValueError(f"GPU is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]
