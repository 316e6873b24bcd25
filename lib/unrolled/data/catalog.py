"""The data sets by name, and the functions that load them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import cifar, fetching, idx
from .dataset import Split, digits
from .fetching import CIFAR10, FASHION_MNIST, IDX_FILES, MNIST, Source


@dataclass(frozen=True)
class CatalogEntry:
    """A data set: its name, what it is, whose it is, bytes to download, and the functions that find and load it."""

    name: str
    about: str
    source: str
    size: int
    load: Callable[[], Split]
    ready: Callable[[], bool]  # without a download


def mnist(progress: bool = True) -> Split:
    """Return (train, test) of MNIST: 60,000 and 10,000 handwritten digits, images (N, 1, 28, 28) float32 in [0, 1].

    From UNROLLED_DATA, else the cache, else downloaded with a progress bar. Raises DownloadError, FileFormatError.
    """
    return _idx(MNIST, progress)


def fashion_mnist(progress: bool = True) -> Split:
    """Return (train, test) of Fashion-MNIST, pictures of clothes; otherwise as `mnist`."""
    return _idx(FASHION_MNIST, progress)


def cifar10(progress: bool = True) -> Split:
    """Return (train, test) of CIFAR-10: 50,000 and 10,000 photographs (N, 3, 32, 32), 0.74 GB; otherwise as `mnist`."""
    folder = fetching.given(CIFAR10, (cifar.FOLDER,))
    if folder:
        return cifar.read_folder(folder[0])
    archive = fetching.given(CIFAR10, tuple(CIFAR10.files)) or fetching.fetched(CIFAR10, progress)
    return cifar.read_archive(archive[0])


def available() -> tuple[CatalogEntry, ...]:
    """Return the data sets that `load` knows; the first needs no network."""
    about = "1,797 handwritten digits, 8 x 8 resized to 28 x 28, in 10 classes"
    return (
        CatalogEntry("digits", about, "scikit-learn", 0, lambda: digits().split(), lambda: True),
        _entry(MNIST, mnist, IDX_FILES),
        _entry(FASHION_MNIST, fashion_mnist, IDX_FILES),
        _entry(CIFAR10, cifar10, (cifar.FOLDER,)),
    )


def load(name: str) -> Split:
    """Return (train, test) of the data set of that name. Raises ValueError, with the names there are, for any other."""
    entries = {entry.name: entry for entry in available()}
    if name not in entries:
        raise ValueError(f"name is {name!r}; expected one of: {', '.join(entries)}")
    return entries[name].load()


def _entry(source: Source, load: Callable[[], Split], names: tuple[str, ...]) -> CatalogEntry:
    def ready() -> bool:
        given = fetching.given(source, names) or fetching.given(source, tuple(source.files))
        return bool(given) or fetching.cached(source)

    return CatalogEntry(source.name, source.about, source.home, source.size, load, ready)


def _idx(source: Source, progress: bool) -> Split:
    files = fetching.given(source, IDX_FILES) or fetching.fetched(source, progress)
    return idx.read_pair(*files[:2]), idx.read_pair(*files[2:])
