"""Links between ranks in the modelled network: a message of n bytes takes alpha + beta n. Figures have their source."""

from __future__ import annotations

from dataclasses import dataclass

NCCL_TUNING = "NCCL 2.18, src/graph/tuning.cc (hwLat: ring, Simple)"


@dataclass(frozen=True)
class Link:
    """One direction of a link. Modelled: what a program reaches on a real one is measured in `benchmarks/`."""

    name: str
    alpha: float
    """Seconds from the sender to the receiver for a message without content."""
    beta: float
    """Seconds a byte: one over the bandwidth of one direction."""
    source: str

    def seconds(self, size: float) -> float:
        """Return the seconds that a message of so many bytes takes."""
        return self.alpha + self.beta * size

    def all_reduce_seconds(self, size: float, ranks: int) -> float:
        """Return the seconds of an all-reduce of `size` bytes round a ring: 2 (p - 1) messages of size / p, one by one.

        Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
        """
        return 2 * (ranks - 1) * self.seconds(size / ranks)


LINKS = {
    link.name: link
    for link in (
        Link(
            "NVLink 4", 3.4e-6, 1 / 450e9, f"latency: {NCCL_TUNING}; bandwidth: NVIDIA H100 datasheet, half of 900 GB/s"
        ),
        Link("PCIe 4", 5.7e-6, 1 / 31.5e9, f"latency: {NCCL_TUNING}; bandwidth: PCI Express 4.0, 16 lanes"),
        Link("100 Gb/s network", 14e-6, 1 / 12.5e9, f"latency: {NCCL_TUNING}; bandwidth: by its name"),
        Link("1 Gb/s Ethernet", 50e-6, 1 / 125e6, "latency: an assumption; bandwidth: by its name"),
    )
}


def named(link: str | Link) -> Link:
    """Return the link of this name, or the link itself. Raises ValueError for an unknown name."""
    if isinstance(link, Link):
        return link
    if link not in LINKS:
        raise ValueError(f"link is {link!r}; expected one of {', '.join(LINKS)}, or a parallel.Link")
    return LINKS[link]
