"""data: from mirrors into the cache, by way of a local server; and from UNROLLED_DATA, which is only read."""

import dataclasses
import gzip
import hashlib
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import TEST, TRAIN, archive, cifar_files, mnist_files, publish, write

from unrolled import cli, data
from unrolled.data import catalog, fetching

FILES, WRONG = mnist_files(), mnist_files(seed=1)
CIFAR = {"cifar-10-python.tar.gz": archive(cifar_files())}
IMAGES = "train-images-idx3-ubyte.gz"
NOWHERE = "http://127.0.0.1:9/"  # nothing listens at this port
LENGTHS = {"mnist": [TRAIN, TEST], "fashion_mnist": [TRAIN, TEST], "cifar10": [20, 4]}


@dataclasses.dataclass
class Served:
    """What a server holds, how it misbehaves, and what it was asked."""

    files: dict[str, bytes]
    break_after: list[int] = dataclasses.field(default_factory=list)  # bytes of the next answers, then the line is cut
    status: int = 404  # of what is not among the files
    silent: bool = False  # until the block ends
    address: str = ""
    asked: list[str] = dataclasses.field(default_factory=list)


@contextmanager
def serve(files: dict[str, bytes] = FILES, **how: Any) -> Iterator[Served]:
    """`files` at http://127.0.0.1:PORT/, until the block ends."""
    served, over = Served(files, **how), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            served.asked.append(name)
            if served.silent:
                over.wait()
            elif name not in served.files:
                self.send_error(served.status)
            else:
                body = served.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: served.break_after.pop(0)] if served.break_after else body)
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Silent: a client that hangs up is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        served.address = f"http://127.0.0.1:{server.server_port}/"
        try:
            yield served
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "cache" / "mnist"


@pytest.fixture
def point_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that lets a data set be `files`, to be had from mirrors: addresses or servers."""

    def point(*mirrors: Any, files: dict[str, bytes] = FILES, name: str = "mnist") -> None:
        sums = {file: hashlib.md5(content).hexdigest() for file, content in files.items()}
        addresses = tuple(getattr(mirror, "address", mirror) for mirror in mirrors)
        source = getattr(catalog, name.upper())
        monkeypatch.setattr(catalog, name.upper(), dataclasses.replace(source, mirrors=addresses, files=sums))

    return point


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def lengths(name: str = "mnist") -> list[int]:
    return [len(part) for part in getattr(data, name)(progress=False)]


def test_files_are_fetched_once(point_at: Any, cache: Path, capsys: Any) -> None:
    with serve() as served:
        point_at(served)
        train, _ = data.mnist()
        assert train.images.shape == (TRAIN, 1, 28, 28)
        assert "100%" in capsys.readouterr().err, "a progress bar"
        again, _ = data.mnist()
        np.testing.assert_array_equal(again.images, train.images)
        assert served.asked == list(FILES)
    assert names(cache) == sorted(FILES)
    assert {entry.name: entry.ready() for entry in data.available()}["mnist"]


@pytest.mark.parametrize("name", LENGTHS)
def test_each_set_has_its_own_source(point_at: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    publish(cifar_files(), monkeypatch)
    files = CIFAR if name == "cifar10" else FILES
    with serve(files) as served:
        point_at(served, files=files, name=name)
        assert lengths(name) == LENGTHS[name]
        assert capsys.readouterr().err == "", "no progress bar"
        assert [len(part) for part in data.load(name)] == LENGTHS[name]


@pytest.mark.parametrize(
    "how", [{"break_after": [1000]}, {"break_after": [0] * 99}, {"files": {}}, {"files": {}, "status": 503}], ids=str
)
def test_all_mirrors_are_tried_twice_in_turn(point_at: Any, cache: Path, how: Any) -> None:
    """A download that broke off begins anew, and the cache keeps nothing of it."""
    with serve(**how) as bad, serve() as good:
        point_at(bad, NOWHERE)
        if how == {"break_after": [1000]}:
            assert lengths() == [TRAIN, TEST]
            assert bad.asked == [IMAGES, *FILES]
        else:
            with pytest.raises(data.DownloadError, match=f"no mirror gave {IMAGES}"):
                lengths()
            assert bad.asked == [IMAGES, IMAGES]
            assert names(cache) == []
        point_at(NOWHERE, bad, good)
        assert lengths() == [TRAIN, TEST]
    assert names(cache) == sorted(FILES)


def test_a_wrong_checksum_is_removed_and_the_next_mirror_tried(point_at: Any, cache: Path) -> None:
    with serve(WRONG) as bad, serve() as good:
        point_at(bad, good)
        assert lengths() == [TRAIN, TEST]
        assert (cache / IMAGES).read_bytes() == FILES[IMAGES]
        (cache / IMAGES).write_bytes(b"damaged since")
        point_at(bad)
        with pytest.raises(data.DownloadError, match=r"127.0.0.1:\d+: wrong checksum"):
            lengths()
        assert not [name for name in names(cache) if name not in FILES], "no part, no temporary file"
        write(cache, FILES | {IMAGES: b"damaged"})
        good.asked.clear()
        point_at(good)
        assert lengths() == [TRAIN, TEST]
        assert good.asked == [IMAGES]


def test_the_error_says_what_each_mirror_said(point_at: Any, cache: Path) -> None:
    with serve({}) as empty, serve(WRONG) as wrong:
        point_at(empty, wrong, NOWHERE)
        with pytest.raises(data.DownloadError) as caught:
            lengths()
    message, nobody = str(caught.value), "127.0.0.1:9: no connection"
    for words in ("404 Not Found", "wrong checksum", nobody, "UNROLLED_DATA", "data.digits()"):
        assert words in message
    assert "\n" not in message
    assert names(cache) == []


def test_a_mirror_that_is_silent_does_not_answer_in_time(point_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself: within so short a time a busy machine lets no other mirror answer either."""
    monkeypatch.setattr(fetching, "TIMEOUT", (60, 0.05))
    with serve(silent=True) as silent:
        point_at(silent)
        with pytest.raises(data.DownloadError, match="no answer in time"):
            lengths()


@contextmanager
def small_disk() -> Iterator[None]:
    """No file of this process may grow beyond 4,000 bytes, pytest's own log included: hold it for one call only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_cache_that_cannot_be_written_is_named_and_left_clean(point_at: Any, cache: Path) -> None:
    with serve() as served:
        point_at(served)
        full = f"{IMAGES} cannot be kept in {cache}: File too large. Offline: put"
        with pytest.raises(data.DownloadError, match=full), small_disk():
            lengths()
        assert len(served.asked) == 1, "another mirror would not help"
        assert names(cache) == []
        cache.rmdir()
        cache.write_text("a file, no folder")
        with pytest.raises(data.DownloadError, match=r"cannot be kept in .*: (Not a dir|File exists)"):
            lengths()


def test_a_foreign_file_with_the_right_checksum(point_at: Any) -> None:
    files = FILES | {IMAGES: b"<html>not found</html>"}
    with serve(files) as served:
        point_at(served, files=files)
        with pytest.raises(data.FileFormatError, match=f"{IMAGES}: the packed file is damaged"):
            lengths()


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(("mnist", "mnist"), ("fashion_mnist", "fashion_mnist"), ("fashion-mnist", "fashion_mnist")),
        *(("FashionMNIST/raw", "fashion_mnist"), ("", "cifar10"), ("cifar10", "cifar10")),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_unrolled_data_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, name: str, packed: bool
) -> None:
    publish(cifar_files(), monkeypatch)
    place = tmp_path / "given" / folder
    if packed:
        files = CIFAR if name == "cifar10" else FILES
    elif name == "cifar10":
        place, files = place / "cifar-10-batches-py", cifar_files()
    else:
        files = {file.removesuffix(".gz"): gzip.decompress(content) for file, content in FILES.items()}
    write(place, files)
    monkeypatch.setenv("UNROLLED_DATA", str(tmp_path / "given"))
    assert [len(part) for part in data.load(name)] == lengths(name) == LENGTHS[name]
    assert names(place) == sorted(files), "only read"
    assert not (tmp_path / "cache").exists()
    assert name in [entry.name for entry in data.available() if entry.ready()]


def test_what_unrolled_data_lacks_is_fetched_elsewhere(
    monkeypatch: pytest.MonkeyPatch, point_at: Any, tmp_path: Path, cache: Path
) -> None:
    given = write(tmp_path / "given" / "mnist", {IMAGES: FILES[IMAGES]}).parent
    monkeypatch.setenv("UNROLLED_DATA", str(given))
    with serve() as served:
        point_at(served)
        assert lengths() == [TRAIN, TEST]
    assert names(given / "mnist") == [IMAGES]
    assert names(cache) == sorted(FILES)
    point_at(NOWHERE, name="fashion_mnist")
    with pytest.raises(data.DownloadError, match=f"into a folder fashion_mnist in {given}, which is UNROLLED_DATA"):
        lengths("fashion_mnist")


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


def test_the_command_lists_fetches_and_fails_in_one_line(point_at: Any, capsys: Any) -> None:
    point_at(NOWHERE)
    assert cli.main(["data", "fetch", "mnist"]) == 1
    assert capsys.readouterr().err.startswith("unrolled data: mnist: no mirror gave train-images")
    assert cli.main(["data", "list"]) == 0
    before = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in before] == ["digits", "mnist", "fashion_mnist", "cifar10"]
    assert before[0].endswith("ready")
    assert before[3].endswith("170 MB to download")
    with serve() as served:
        point_at(served)
        assert cli.main(["data", "fetch", "mnist"]) == 0
    output = capsys.readouterr()
    assert (
        output.out == f"mnist: {TRAIN + TEST} images of 1 x 28 x 28 ({TRAIN} to train, {TEST} to test), ready to use\n"
    )
    assert "100%" in output.err
    cli.main(["data", "list"])
    assert capsys.readouterr().out.splitlines()[1].endswith("ready")
