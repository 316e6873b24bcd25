"""data: the readers of IDX and of CIFAR-10's batches, and what they refuse."""

import gzip
import hashlib
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import archive, batch, cifar_files, idx, publish, write
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from unrolled import data
from unrolled.data import cifar
from unrolled.data.idx import read_pair


@given(arrays.arrays(np.uint8, arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)), st.booleans())
def test_idx_bytes_come_back(tmp_path_factory: Any, values: Any, packed: bool) -> None:
    path = tmp_path_factory.getbasetemp() / ("made.gz" if packed else "made")
    path.write_bytes(gzip.compress(idx(values)) if packed else idx(values))
    read = data.read_idx(path, axes=values.ndim)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, values)


GOOD = idx(np.arange(24).reshape(2, 3, 4))
PACKED = gzip.compress(GOOD)
DAMAGED = "damaged or cut short"
BAD_IDX = {
    "empty": (b"", "begins with b''; expected an IDX file"),
    "foreign": (b"\x89PNG" + GOOD, "begins with b'.*PNG'; expected an IDX file"),
    "magic": (b"\0\1" + GOOD[2:], "expected an IDX file"),
    "dtype": (GOOD[:2] + b"\x0d" + GOOD[3:], "type 0x0d; expected 0x08, unsigned bytes"),
    "rank": (idx([1, 2, 3]), "found 1 axes; expected 3"),
    "short header": (GOOD[:9], "found 9 bytes; expected a header of 16 bytes"),
    "truncated": (GOOD[:-1], "found 23 values; expected 24"),
    "over-long": (GOOD + b"\0", "found more values; expected 24"),
    "false header": (GOOD[:4] + struct.pack(">3I", 2**31, 2**31, 2**31) + GOOD[16:], "found 24 values"),
}
FILES = {
    **{f"{name}, plain": ("odd", content, words) for name, (content, words) in BAD_IDX.items()},
    **{f"{name}, packed": ("odd.gz", gzip.compress(content), words) for name, (content, words) in BAD_IDX.items()},
    "a packed file cut short": ("odd.gz", PACKED[:-12], DAMAGED),
    "not packed": ("odd.gz", GOOD, DAMAGED),
    "a wrong sum": ("odd.gz", PACKED[:-8] + bytes(8), DAMAGED),
    "a damaged packed file": ("odd.gz", PACKED[:10] + b"\xff" * 30, DAMAGED),
}


@pytest.mark.parametrize(("name", "content", "words"), FILES.values(), ids=FILES)
def test_idx_names_what_is_wrong(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = write(tmp_path, {name: content}) / name
    with pytest.raises(data.FileFormatError, match=words) as caught:
        data.read_idx(path, axes=3)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (np.zeros((3, 28, 28)), [0, 1], "labels: found 2 labels; expected 3, one for each image"),
        (np.zeros((2, 28, 28)), [0, 10], "labels: found the label 10; expected 0 to 9"),
        (np.zeros((2, 28, 27)), [0, 1], r"images: found images of \(28, 27\) pixels; expected \(28, 28\)"),
    ],
)
def test_images_and_labels_must_fit(tmp_path: Path, images: Any, labels: Any, words: str) -> None:
    write(tmp_path, {"images": idx(images), "labels": idx(labels)})
    with pytest.raises(data.FileFormatError, match=words):
        read_pair(tmp_path / "images", tmp_path / "labels")


def test_pixels_become_floats_from_0_to_1(tmp_path: Path) -> None:
    pixels = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 256
    write(tmp_path, {"images": idx(pixels), "labels": idx([3, 9])})
    read = read_pair(tmp_path / "images", tmp_path / "labels")
    assert (read.images.dtype, read.labels.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(read.images, (pixels[:, None] / 255).astype(np.float32))
    np.testing.assert_array_equal(read.labels, [3, 9])
    assert read.images.flags.writeable


def test_a_batch_as_python_2_and_numpy_1_wrote_it() -> None:
    """The published files: protocol 2, names of numpy.core, text and array content as byte strings."""
    made = batch()
    content = pickle.dumps({b"labels": made[b"labels"]}, 2)
    raw = made[b"data"].tobytes()
    by_hand = (
        content[:-2]  # without SETITEM and STOP
        + b"sU\x04data"
        + b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
        + b"(K\x01(K\x04M\x00\x0ctcnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + b"\x89T"
        + struct.pack("<i", len(raw))
        + raw
        + b"tbs."
    )
    pixels, labels = cifar.read_batch(by_hand, hashlib.sha256(by_hand).hexdigest(), "made")
    np.testing.assert_array_equal(pixels, made[b"data"].reshape(4, 3, 32, 32))
    np.testing.assert_array_equal(labels, made[b"labels"])
    assert labels.dtype == np.int64


class Calls:
    """Pickles as a call of `function` with `arguments`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def test_code_in_a_pickle_never_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    attack = pickle.dumps(Calls(os.system, "touch proof"))
    folder = write(tmp_path / "folder", cifar_files() | {"data_batch_1": attack})
    packed = write(tmp_path, {"packed.tar.gz": archive({"test_batch": attack})}) / "packed.tar.gz"
    for read, place in ((cifar.read_folder, folder), (cifar.read_archive, packed)):
        with pytest.raises(
            data.FileFormatError, match=r"batch.*: its SHA-256 is .*; expected .*, that of the published"
        ):
            read(place)
    assert not Path("proof").exists()
    pickle.loads(attack)
    assert Path("proof").exists(), "the attack is real"


def test_cifar10_is_the_same_from_folder_and_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cifar_files()
    publish(made, monkeypatch)
    folder = write(tmp_path / "folder", made)
    packed = write(tmp_path, {"packed.tar.gz": archive(made)}) / "packed.tar.gz"
    for read in (cifar.read_folder(folder), cifar.read_archive(packed)):
        assert [part.images.shape for part in read] == [(20, 3, 32, 32), (4, 3, 32, 32)]
        for part, seeds in zip(read, (range(5), [5]), strict=True):
            batches = [batch(seed=seed) for seed in seeds]
            assert (part.images.dtype, part.labels.dtype) == (np.float32, np.int64)
            pixels = np.concatenate([one[b"data"] for one in batches]).reshape(-1, 3, 32, 32)
            np.testing.assert_array_equal(part.images, (pixels / 255).astype(np.float32))
            np.testing.assert_array_equal(part.labels, np.concatenate([one[b"labels"] for one in batches]))
    (folder / "data_batch_4").unlink()
    with pytest.raises(FileNotFoundError, match="data_batch_4"):
        cifar.read_folder(folder)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (archive(cifar_files())[:-400], "damaged or cut short"),
        (b"no archive", "damaged or cut short"),
        (
            archive({"data_batch_1": cifar_files()["data_batch_1"]}),
            "found no data_batch_2, .*; expected the batches of",
        ),
        (archive(cifar_files() | {"data_batch_3": b"odd"}), "odd.tar.gz: data_batch_3: its SHA-256 is"),
    ],
)
def test_an_archive_names_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    publish(cifar_files(), monkeypatch)
    write(tmp_path, {"odd.tar.gz": content})
    with pytest.raises(data.FileFormatError, match=words):
        cifar.read_archive(tmp_path / "odd.tar.gz")
