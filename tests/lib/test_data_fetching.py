"""data: from mirrors into the cache, by way of a local server; and from UNROLLED_DATA, which is only read."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import TEST, TRAIN, archive, cifar_files, mnist_files, write
from data_server import Served, serve

from unrolled import cli, data
from unrolled.data import catalog, fetching

FILES = mnist_files()
IMAGES = "train-images-idx3-ubyte.gz"
NOWHERE = "http://127.0.0.1:9/"  # nothing listens at this port


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "cache" / "mnist"


def point_at(
    monkeypatch: pytest.MonkeyPatch, *mirrors: str, files: dict[str, bytes] = FILES, name: str = "MNIST"
) -> None:
    """Let a data set be `files`, to be had from `mirrors`."""
    sums = {file: hashlib.md5(content).hexdigest() for file, content in files.items()}
    source = dataclasses.replace(getattr(catalog, name), mirrors=mirrors, files=sums)
    monkeypatch.setattr(catalog, name, source)


@contextmanager
def served_mnist(monkeypatch: pytest.MonkeyPatch, **how: Any) -> Iterator[Served]:
    with serve(FILES, **how) as served:
        point_at(monkeypatch, served.address)
        yield served


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_files_are_fetched_once(monkeypatch: pytest.MonkeyPatch, cache: Path, capsys: Any) -> None:
    with served_mnist(monkeypatch) as served:
        train, test = data.mnist()
        assert (len(train), len(test)) == (TRAIN, TEST)
        assert train.images.shape == (TRAIN, 1, 28, 28)
        assert "100%" in capsys.readouterr().err, "a progress bar"
        again, _ = data.mnist()
        np.testing.assert_array_equal(again.images, train.images)
        assert served.asked == list(FILES)
    assert names(cache) == sorted(FILES)
    assert {entry.name: entry.ready() for entry in data.available()}["mnist"]


@pytest.mark.parametrize(("call", "name"), [(data.mnist, "MNIST"), (data.fashion_mnist, "FASHION_MNIST")])
def test_each_set_has_its_own_source(monkeypatch: pytest.MonkeyPatch, capsys: Any, call: Any, name: str) -> None:
    with serve(FILES) as served:
        point_at(monkeypatch, served.address, name=name)
        assert [len(part) for part in call(progress=False)] == [TRAIN, TEST]
        assert capsys.readouterr().err == "", "no progress bar"
        assert [len(part) for part in data.load(name.lower())] == [TRAIN, TEST]


def test_cifar10_is_fetched_as_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"cifar-10-python.tar.gz": archive(cifar_files())}
    with serve(files) as served:
        point_at(monkeypatch, served.address, files=files, name="CIFAR10")
        assert [part.images.shape for part in data.cifar10(progress=False)] == [(20, 3, 32, 32), (4, 3, 32, 32)]


@pytest.mark.parametrize(
    ("how", "rounds"),
    [({"break_after": [1000]}, 1), ({"break_after": [0] * 99}, 2), ({"status": 404}, 2), ({"status": 503}, 2)],
    ids=str,
)
def test_all_mirrors_are_tried_twice_in_turn(
    monkeypatch: pytest.MonkeyPatch, cache: Path, how: Any, rounds: int
) -> None:
    """A download that broke off begins anew, and the cache keeps nothing of it."""
    with serve(FILES, **how) as bad:
        point_at(monkeypatch, bad.address, NOWHERE)
        if rounds == 1:
            assert len(data.mnist(progress=False)[0]) == TRAIN
            assert bad.asked == [IMAGES, *FILES]
        else:
            with pytest.raises(data.DownloadError, match=f"no mirror gave {IMAGES}"):
                data.mnist(progress=False)
            assert bad.asked == [IMAGES, IMAGES]
            assert names(cache) == []
        with serve(FILES) as good:
            point_at(monkeypatch, NOWHERE, bad.address, good.address)
            assert len(data.mnist(progress=False)[0]) == TRAIN
    assert names(cache) == sorted(FILES)


def test_a_wrong_checksum_is_removed_and_the_next_mirror_tried(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    wrong = mnist_files(seed=1)
    with serve(wrong) as bad, serve(FILES) as good:
        point_at(monkeypatch, bad.address, good.address)
        assert len(data.mnist(progress=False)[0]) == TRAIN
        assert (cache / IMAGES).read_bytes() == FILES[IMAGES]
    (cache / IMAGES).write_bytes(b"damaged since")
    with serve(wrong) as bad:
        point_at(monkeypatch, bad.address)
        with pytest.raises(data.DownloadError, match=r"127.0.0.1:\d+: wrong checksum"):
            data.mnist(progress=False)
    assert not [name for name in names(cache) if name not in FILES], "no part, no temporary file"


def test_a_damaged_file_in_the_cache_is_fetched_again(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    with served_mnist(monkeypatch) as served:
        write(cache, FILES | {IMAGES: b"damaged"})
        assert len(data.mnist(progress=False)[0]) == TRAIN
        assert served.asked == [IMAGES]


def test_when_every_mirror_fails_the_error_says_what_each_said(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    with serve({}) as empty, serve(mnist_files(seed=1)) as wrong:
        point_at(monkeypatch, empty.address, wrong.address, NOWHERE)
        with pytest.raises(data.DownloadError) as caught:
            data.mnist(progress=False)
    words = str(caught.value)
    for part in ("404 Not Found", "wrong checksum", "127.0.0.1:9: no connection", "UNROLLED_DATA", "data.digits()"):
        assert part in words
    assert "\n" not in words
    assert names(cache) == []


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", (1, 0.05))
    with served_mnist(monkeypatch, silent=True), pytest.raises(data.DownloadError, match="no answer in time"):
        data.mnist(progress=False)


@contextmanager
def small_disk() -> Iterator[None]:
    """No file of this process may grow beyond 4,000 bytes, pytest's own log included: hold it for one call only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_named_and_left_clean(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    with served_mnist(monkeypatch) as served:
        full = f"{IMAGES} cannot be kept in {cache}: File too large. Offline: put"
        with pytest.raises(data.DownloadError, match=full), small_disk():
            data.mnist(progress=False)
        assert len(served.asked) == 1, "another mirror would not help"
    assert names(cache) == []


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, no folder")
    with (
        served_mnist(monkeypatch),
        pytest.raises(data.DownloadError, match=r"cannot be kept in .*: (Not a dir|File exists)"),
    ):
        data.mnist(progress=False)


def test_a_foreign_file_with_the_right_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    files = FILES | {IMAGES: b"<html>not found</html>"}
    with serve(files) as served:
        point_at(monkeypatch, served.address, files=files)
        with pytest.raises(data.FileFormatError, match=f"{IMAGES}: the packed file is damaged"):
            data.mnist(progress=False)


@pytest.mark.parametrize(
    ("folder", "call"),
    [
        ("mnist", data.mnist),
        ("fashion_mnist", data.fashion_mnist),
        ("fashion-mnist", data.fashion_mnist),
        ("FashionMNIST/raw", data.fashion_mnist),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_unrolled_data_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, call: Any, packed: bool
) -> None:
    given = FILES
    if not packed:
        given = {name.removesuffix(".gz"): gzip.decompress(content) for name, content in FILES.items()}
    write(tmp_path / "given" / folder, given)
    monkeypatch.setenv("UNROLLED_DATA", str(tmp_path / "given"))
    assert [len(part) for part in call()] == [TRAIN, TEST]
    assert names(tmp_path / "given" / folder) == sorted(given), "only read"
    assert not (tmp_path / "cache").exists()
    assert call.__name__ in [entry.name for entry in data.available() if entry.ready()]


@pytest.mark.parametrize("place", ["", "cifar10"])
@pytest.mark.parametrize("packed", [True, False])
def test_cifar10_in_unrolled_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str, packed: bool) -> None:
    made = cifar_files()
    if packed:
        write(tmp_path / "given" / place, {"cifar-10-python.tar.gz": archive(made)})
    else:
        write(tmp_path / "given" / place / "cifar-10-batches-py", made)
    monkeypatch.setenv("UNROLLED_DATA", str(tmp_path / "given"))
    assert [len(part) for part in data.load("cifar10")] == [20, 4]


def test_what_unrolled_data_lacks_is_fetched_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    given = write(tmp_path / "given" / "mnist", {IMAGES: FILES[IMAGES]}).parent
    monkeypatch.setenv("UNROLLED_DATA", str(given))
    with served_mnist(monkeypatch):
        assert len(data.mnist(progress=False)[0]) == TRAIN
    assert names(given / "mnist") == [IMAGES]
    assert names(cache) == sorted(FILES)
    point_at(monkeypatch, NOWHERE, name="FASHION_MNIST")
    with pytest.raises(data.DownloadError, match=f"into a folder fashion_mnist in {given}, which is UNROLLED_DATA"):
        data.fashion_mnist(progress=False)


def test_a_bad_file_in_unrolled_data_is_named_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = write(tmp_path / "given" / "mnist", FILES | {IMAGES: FILES[IMAGES][:500]})
    monkeypatch.setenv("UNROLLED_DATA", str(tmp_path / "given"))
    with pytest.raises(data.FileFormatError, match=f"{folder / IMAGES}: the packed file is damaged or cut short"):
        data.mnist()
    assert (folder / IMAGES).read_bytes() == FILES[IMAGES][:500]


def test_the_cache_is_poochs_unless_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pooch

    assert fetching.cache() == tmp_path / "cache"
    monkeypatch.delenv("UNROLLED_CACHE")
    assert fetching.cache() == Path(pooch.os_cache("unrolled"))


def test_the_command_lists_fetches_and_fails_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    point_at(monkeypatch, NOWHERE)
    assert cli.main(["data", "fetch", "mnist"]) == 1
    assert capsys.readouterr().err.startswith("unrolled data: mnist: no mirror gave train-images")
    assert cli.main(["data", "list"]) == 0
    before = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in before] == ["digits", "mnist", "fashion_mnist", "cifar10"]
    assert before[0].endswith("ready")
    assert before[3].endswith("170 MB to download")
    with served_mnist(monkeypatch):
        assert cli.main(["data", "fetch", "mnist"]) == 0
    said = capsys.readouterr()
    assert said.out == f"mnist: {TRAIN + TEST} images of 1 x 28 x 28 ({TRAIN} to train, {TEST} to test), ready to use\n"
    assert "100%" in said.err
    cli.main(["data", "list"])
    assert capsys.readouterr().out.splitlines()[1].endswith("ready")
