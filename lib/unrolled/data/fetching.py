"""Where the files of a data set are: in UNROLLED_DATA, in the cache, or on a mirror, from which they are fetched.

UNROLLED_DATA names a folder that holds data sets and is only read. The cache is pooch's for "unrolled", or the folder
that UNROLLED_CACHE names.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from .sources import Source

ROUNDS = 2  # through all mirrors: a connection that broke off may hold the second time
TIMEOUT = (10, 30)  # seconds to connect, and between two pieces
HEADERS = {"Accept-Encoding": "identity"}  # the checksum is that of the bytes as they lie on the server


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
