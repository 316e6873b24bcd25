"""Data sets as arrays, in mini-batches, whitened or shifted. `digits()` needs no network.

The others come from UNROLLED_DATA (a folder that is only read), from the cache, or from a mirror.
"""

from .augment import shifted
from .batches import minibatches
from .catalog import CatalogEntry, available, cifar10, fashion_mnist, fetch, load, mnist
from .dataset import Dataset, Split
from .digits import bilinear_matrix, digits
from .errors import DownloadError, FileFormatError
from .idx import read_idx
from .whitening import zca_whiten

__all__ = [
    "CatalogEntry",
    "Dataset",
    "DownloadError",
    "FileFormatError",
    "Split",
    "available",
    "bilinear_matrix",
    "cifar10",
    "digits",
    "fashion_mnist",
    "fetch",
    "load",
    "minibatches",
    "mnist",
    "read_idx",
    "shifted",
    "zca_whiten",
]
