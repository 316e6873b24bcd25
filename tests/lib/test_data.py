"""data: the digits and the table behind `unrolled data`; mini-batches, shifts and whitening."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strict_arrays import strict

from unrolled import cli, data, device
from unrolled.data import fetching


def test_digits_are_the_originals_resized_kept_in_memory_and_cannot_be_changed_by_accident() -> None:
    from sklearn.datasets import load_digits

    originals, digits = load_digits(), data.digits()
    assert (digits.images.shape, digits.images.dtype, digits.labels.dtype) == ((1797, 1, 28, 28), np.float32, np.int64)
    assert (digits.images.min(), digits.images.max()) == (0, 1)
    np.testing.assert_array_equal(digits.labels, originals.target)
    # The mean over a large area hardly changes when an image is resized.
    np.testing.assert_allclose(digits.images.mean(axis=(1, 2, 3)), originals.images.mean(axis=(1, 2)) / 16, atol=0.02)
    assert data.digits() is digits
    for array in (digits.images, digits.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_resizing_agrees_with_pytorchs_bilinear_interpolation() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    from sklearn.datasets import load_digits

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
    images = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)
    for part in data.Dataset(images, np.arange(6)).split(train=4, seed=3):
        np.testing.assert_array_equal(part.images.ravel(), part.labels)


def test_the_table_lists_only_what_fetch_can_load() -> None:
    for entry in data.available():
        assert entry.about
        assert entry.source
        assert entry.size > 0 or entry.ready()
    assert [entry.name for entry in data.available()] == ["digits", *cli.DATA_SETS]
    assert [source.name for source in fetching.SOURCES] == [*cli.DATA_SETS]
    assert [len(part) for part in data.load("digits")] == [1500, 297]


def numbered(count: int) -> data.Dataset:
    """Images that hold their own label."""
    images = np.broadcast_to(np.arange(count, dtype=np.float32)[:, None, None, None], (count, 1, 2, 3)).copy()
    return data.Dataset(images, np.arange(count))


@given(count=st.integers(1, 40), batch_size=st.integers(1, 50), seed=st.integers(0, 2**32))
def test_an_epoch_has_every_image_once_with_its_label(count: int, batch_size: int, seed: int) -> None:
    batches = list(data.minibatches(numbered(count), batch_size, seed))
    sizes = [len(labels) for _, labels in batches]
    assert sizes[:-1] == [batch_size] * (len(sizes) - 1)
    assert 1 <= sizes[-1] <= batch_size
    assert sorted(np.concatenate([labels for _, labels in batches])) == list(range(count))
    for images, labels in batches:
        assert images.shape == (len(labels), 1, 2, 3)
        np.testing.assert_array_equal(images[:, 0, 1, 2], labels)


def test_the_seed_decides_the_order() -> None:
    def order(seed: Any) -> list[int]:
        return np.concatenate([labels for _, labels in data.minibatches(numbered(50), 8, seed)]).tolist()

    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in (0, 1, (0, 1), (1, 1))}) == 4
    assert order(0) != list(range(50)), "shuffled"
    whole = numbered(6)
    for images, labels in data.minibatches((whole.images, whole.labels), 4, 0):  # copies
        images[:], labels[:] = -1, -1
    assert whole.images.min() == whole.labels.min() == 0


@given(
    shape=st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)),
    most=st.integers(0, 7),
    seed=st.integers(0, 100),
)
def test_each_image_is_moved_as_a_whole(shape: tuple[int, ...], most: int, seed: int) -> None:
    from scipy import ndimage

    images = np.random.default_rng(seed).uniform(1, 2, shape).astype(np.float32)
    before = images.copy()
    moved = data.shifted(images, np.random.default_rng(seed), most)
    assert (moved.shape, moved.dtype) == (images.shape, np.float32)
    np.testing.assert_array_equal(images, before)
    reach = range(-most, most + 1)
    for image, result in zip(images, moved, strict=True):
        ways = (ndimage.shift(image, (0, dy, dx), order=0, cval=0, prefilter=False) for dy in reach for dx in reach)
        assert any(np.array_equal(way, result) for way in ways)


def test_shifts_differ_from_image_to_image_and_reach_both_ends() -> None:
    images = np.zeros((2000, 1, 9, 9), np.float32)
    images[:, 0, 4, 4] = 1
    moved = data.shifted(images, np.random.default_rng(0))
    _, _, rows, columns = np.nonzero(moved)
    counts = np.zeros((9, 9), int)
    np.add.at(counts, (rows, columns), 1)
    assert counts[2:7, 2:7].min() > 40, "25 shifts, each about 80 times"
    assert counts.sum() == counts[2:7, 2:7].sum() == 2000
    np.testing.assert_array_equal(moved, data.shifted(images, np.random.default_rng(0), most=2))
    there = data.shifted(device.to_device(images, strict), np.random.default_rng(0))
    np.testing.assert_array_equal(device.to_host(there), moved)


def correlated(count: int, seed: int, shape: tuple[int, ...] = (2, 3, 4)) -> Any:
    """Images whose pixels depend on one another, off centre."""
    rng, pixels = np.random.default_rng(7), int(np.prod(shape))
    mixing = rng.normal(size=(pixels, pixels))
    values = np.random.default_rng(seed).normal(size=(count, pixels)) @ mixing + rng.normal(size=pixels)
    return values.reshape(count, *shape).astype(np.float32)


def test_whitened_pixels_have_no_mean_and_no_correlation() -> None:
    images = correlated(2500, seed=0)  # more than are taken at once
    before = images.copy()
    (white,) = data.zca_whiten(images, epsilon=1e-9)
    assert (white.shape, white.dtype) == (images.shape, np.float32)
    np.testing.assert_array_equal(images, before)
    rows = white.reshape(2500, -1)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(rows.T), np.eye(24), atol=2e-3)
    for few in data.zca_whiten(correlated(5, seed=0), correlated(3, seed=1)):  # fewer than pixels
        assert np.isfinite(few).all()


def test_all_are_whitened_by_the_inverse_root_of_the_training_covariance() -> None:
    from scipy import linalg

    train, first, second = correlated(1200, seed=1), correlated(30, seed=2), correlated(1, seed=3)
    rows = train.reshape(1200, -1).astype(np.float64)
    matrix = np.linalg.inv(linalg.sqrtm(np.cov(rows.T) + 0.5 * np.eye(24)))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)
    whitened = data.zca_whiten(train, first, second, epsilon=0.5)
    for images, white in zip((train, first, second), whitened, strict=True):
        expected = (images.reshape(len(images), -1) - rows.mean(axis=0)) @ matrix
        np.testing.assert_allclose(white.reshape(len(images), -1), expected, atol=1e-4)


RNG = np.random.default_rng(0)
UNEVEN, TURNED = (np.zeros((4, 1, 2, 2)), np.zeros(3)), correlated(5, 0, (2, 4, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: data.minibatches(numbered(4), 0, 0), "batch_size is 0; expected at least 1"),
        (lambda: data.minibatches(numbered(4), 2.5, 0), "float"),
        (lambda: data.minibatches(numbered(0), 2, 0), "images has shape (0, 1, 2, 3); expected at least one image"),
        (lambda: data.minibatches(UNEVEN, 2, 0), "images has shape (4, 1, 2, 2), labels (3,)"),
        (lambda: data.shifted(np.zeros((4, 28, 28)), RNG), "images has shape (4, 28, 28); expected 4 axes"),
        (lambda: data.shifted(np.zeros((4, 1, 28, 28)), RNG, -1), "most is -1"),
        (lambda: data.zca_whiten(correlated(1, 0)), "train_images has shape (1, 2, 3, 4)"),
        (lambda: data.zca_whiten(correlated(5, 0), epsilon=0), "epsilon is 0; expected more than 0"),
        (lambda: data.zca_whiten(correlated(5, 0), TURNED), "others has shape (5, 2, 4, 3); expected images"),
        (lambda: data.digits().split(-1), "train is -1; expected 0 to 1797"),
        (lambda: data.digits().split(1798), "train is 1798; expected 0 to 1797"),
        (lambda: data.load("minst"), "name is 'minst'; expected one of: digits, mnist"),
    ],
)
def test_what_is_wrong_is_named_at_once(call: Any, words: str) -> None:
    with pytest.raises(TypeError if words == "float" else ValueError) as caught:
        call()
    assert words in str(caught.value)
