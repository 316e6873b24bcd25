"""data: the digits, their resizing, splits, and the table behind `unrolled data`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from unrolled import data


def test_digits_are_all_there_and_look_like_mnist() -> None:
    digits = data.digits()
    assert len(digits) == 1797
    assert digits.images.shape == (1797, 1, 28, 28)
    assert digits.images.dtype == np.float32
    assert digits.labels.dtype == np.int64
    assert digits.labels.shape == (1797,)
    assert sorted(set(digits.labels.tolist())) == list(range(10))
    assert digits.images.min() == 0
    assert digits.images.max() == 1


def test_digits_are_the_originals_resized() -> None:
    originals = load_digits()
    digits = data.digits()
    np.testing.assert_array_equal(digits.labels, originals.target)
    # The mean over a large area hardly changes when an image is resized.
    np.testing.assert_allclose(digits.images.mean(axis=(1, 2, 3)), originals.images.mean(axis=(1, 2)) / 16, atol=0.02)


def test_resizing_agrees_with_pytorchs_bilinear_interpolation() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    small = torch.tensor(load_digits().images[:20, None] / 16)
    expected = torch.nn.functional.interpolate(small, (28, 28), mode="bilinear", align_corners=False)
    np.testing.assert_allclose(data.digits().images[:20], expected, atol=1e-6)


def test_bilinear_matrix_keeps_constants_and_ramps() -> None:
    matrix = data.bilinear_matrix(8, 28)
    assert matrix.shape == (28, 8)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    inside = np.clip((np.arange(28) + 0.5) * 8 / 28 - 0.5, 0, 7)
    np.testing.assert_allclose(matrix @ np.arange(8), inside)
    np.testing.assert_array_equal(data.bilinear_matrix(5, 5), np.eye(5))


def test_digits_do_without_importing_what_carries_them() -> None:
    program = "import sys; from unrolled import data; data.digits(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"sklearn", "scipy"} & set(done.stdout.split())


def test_digits_are_kept_in_memory_and_cannot_be_changed_by_accident() -> None:
    digits = data.digits()
    assert data.digits() is digits
    with pytest.raises(ValueError, match="read-only"):
        digits.images[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        digits.labels[0] = 0


def test_split_is_a_partition_that_the_seed_decides() -> None:
    digits = data.digits()
    train, test = digits.split()
    assert (len(train), len(test)) == (1500, 297)
    together = np.concatenate([train.images, test.images]).reshape(1797, -1)
    np.testing.assert_array_equal(np.sort(together.sum(axis=1)), np.sort(digits.images.reshape(1797, -1).sum(axis=1)))
    np.testing.assert_array_equal(digits.split()[0].images, train.images)
    assert not np.array_equal(digits.split(seed=1)[0].labels, train.labels)
    assert set(train.labels.tolist()) == set(test.labels.tolist()) == set(range(10))
    assert train.images.flags.writeable


def test_split_keeps_images_and_labels_together() -> None:
    images = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)
    for part in data.Dataset(images, np.arange(6)).split(train=4, seed=3):
        np.testing.assert_array_equal(part.images.ravel(), part.labels)


@pytest.mark.parametrize("train", [-1, 1798])
def test_split_refuses_more_images_than_there_are(train: int) -> None:
    with pytest.raises(ValueError, match=f"train is {train}; expected 0 to 1797"):
        data.digits().split(train)


def test_the_table_lists_only_what_fetch_can_load() -> None:
    assert [entry.name for entry in data.available()] == ["digits", "mnist", "fashion_mnist", "cifar10"]
    for entry in data.available():
        assert entry.about
        assert entry.source
        assert entry.size > 0 or entry.ready()
    assert [len(part) for part in data.load("digits")] == [1500, 297]


def test_fetch_names_what_there_is() -> None:
    with pytest.raises(ValueError, match="name is 'minst'; expected one of: digits, mnist"):
        data.load("minst")
