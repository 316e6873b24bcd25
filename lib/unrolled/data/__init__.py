"""Data sets as arrays, in mini-batches, whitened or shifted. `digits()` needs no network.

The others come from UNROLLED_DATA (a folder that is only read), from the cache, or from a mirror.
"""

from .catalog import CatalogEntry, available, cifar10, fashion_mnist, load, mnist
from .dataset import Dataset, FileFormatError, Split, bilinear_matrix, digits, minibatches
from .fetching import DownloadError
from .idx import read_idx
from .preprocessing import shifted, zca_whiten

__all__ = ["CatalogEntry", "available", "cifar10", "digits", "fashion_mnist", "load", "mnist"]
__all__ += ["Dataset", "DownloadError", "FileFormatError", "Split"]
__all__ += ["bilinear_matrix", "minibatches", "read_idx", "shifted", "zca_whiten"]
