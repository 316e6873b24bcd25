"""Training on many ranks is training on one with the full batch, to rounding; what is wrong is named on all ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled import data, nn, parallel, simgpu
from unrolled.parallel import ColumnLinear, Network, RowLinear, checkpoint, emulate, shard

RNG = np.random.default_rng(0)
IMAGES = data.Dataset(RNG.standard_normal((53, 1, 6, 6)), RNG.integers(0, 4, 53))  # batches of 10: the last one has 3
NOTHING = data.Dataset(IMAGES.images[:0], IMAGES.labels[:0])
PLAN = {"epochs": 2, "batch_size": 10}


def network(seed=0):
    layers = nn.Conv2d(3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(7), nn.ReLU(), nn.Linear(4)
    return nn.Sequential(*layers, seed=seed, dtype=np.float64)


def adam():
    return nn.Adam(0.01)


@pytest.fixture(scope="module")
def alone():
    """The network that one rank trains without `parallel`, and its history."""
    one = network()
    return one, one.fit(IMAGES, **PLAN, optimizer=adam(), validation=IMAGES, progress=False)


def trained(comm, **options):
    mine = network(seed=comm.rank)  # rank 0's first parameters are everybody's
    history = parallel.fit(mine, IMAGES, comm, **PLAN, optimizer=adam(), validation=IMAGES, **options)
    return np.array(mine.parameters), history


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"accumulate": 3}, {"buckets": 3}], ids=["plain", "accumulated", "in buckets"])
def test_any_number_of_ranks_takes_the_steps_of_one(ranks, options, alone):
    one, expected = alone
    for parameters, history in emulate(trained, ranks=ranks, **options):
        np.testing.assert_allclose(parameters, one.parameters, rtol=0, atol=1e-12)
        for name in ("loss", "accuracy", "step_loss", "validation_loss", "validation_accuracy"):
            np.testing.assert_allclose(getattr(history, name), getattr(expected, name), rtol=1e-6)


def test_a_step_takes_one_all_reduce_and_buckets_as_many_as_asked():
    def sums(**options):
        net = Network(2)
        emulate(trained, network=net, **options)
        size = network().build((1, 6, 6)).parameters.nbytes
        return [count for name, count in net.collectives if name.endswith("all_reduce")], size

    plain, size = sums()
    assert plain.count(size) == 12
    pieces, _ = sums(buckets=3)
    assert size not in pieces
    assert sum(pieces) == sum(plain)


@given(st.integers(0, 100), st.integers(1, 9))
def test_shards_share_all_rows_evenly(count, size):
    shards = [shard(count, rank, size) for rank in range(size)]
    assert [row for part in shards for row in range(count)[part]] == list(range(count))
    sizes = [part.stop - part.start for part in shards]
    assert max(sizes) - min(sizes) <= 1


def test_a_shard_of_no_rank_is_named():
    with pytest.raises(TypeError, match=r"rank is 0.5; expected a whole number"):
        shard(3, 0.5, 2)
    with pytest.raises(ValueError, match="rank is 2; expected 0 to 1"):
        shard(3, 2, 2)


def test_dropout_drops_what_one_rank_drops():
    def dropping(seed=0):
        layers = nn.Flatten(), nn.Dropout(0.2), nn.Linear(9), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4)
        return nn.Sequential(*layers, seed=seed, dtype=np.float64)

    def program(comm, **options):
        mine = dropping(seed=comm.rank)
        for seed in (0, 1):  # the second goes on where the first has left the generators
            parallel.fit(mine, IMAGES, comm, **PLAN, seed=seed, **options)
        return np.array(mine.parameters)

    one = dropping()
    for seed in (0, 1):
        one.fit(IMAGES, **PLAN, seed=seed, progress=False)
    for ranks, options in ((1, {}), (2, {"accumulate": 3}), (7, {"buckets": 2})):  # the last batch has 3 images
        for parameters in emulate(program, ranks=ranks, **options):
            np.testing.assert_allclose(parameters, one.parameters, rtol=0, atol=1e-12)


def test_a_rank_reads_its_own_rows_from_a_file_and_moves_only_them(tmp_path):
    np.save(tmp_path / "images.npy", IMAGES.images.astype(np.float32))
    read = []

    class Reading(np.memmap):
        def __getitem__(self, rows):
            found = super().__getitem__(rows)
            read.append(found.nbytes)
            return found

    def program(comm):
        images = np.load(tmp_path / "images.npy", mmap_mode="r").view(Reading)
        mine = network32().build((1, 6, 6), simgpu)
        parallel.fit(mine, data.Dataset(images, IMAGES.labels), comm, epochs=1, batch_size=10)
        return simgpu.asnumpy(mine.parameters)

    def network32():
        return nn.Sequential(nn.Flatten(), nn.Linear(4))

    first, second = emulate(program)
    np.testing.assert_array_equal(first, second)
    one = network32()
    one.fit(data.Dataset(IMAGES.images.astype(np.float32), IMAGES.labels), epochs=1, batch_size=10, progress=False)
    np.testing.assert_allclose(first, one.parameters, rtol=0, atol=1e-5)
    looked_at = 2 * 53  # both look at some of the images before: of so few, at all
    assert sum(read) == (53 + looked_at) * 36 * 4


def test_batch_normalization_averages_what_each_shard_saw():
    def program(comm):
        mine = nn.Sequential(nn.BatchNorm2d(), nn.Flatten(), nn.Linear(4), dtype=np.float64)
        parallel.fit(mine, IMAGES, comm, epochs=1, batch_size=53)
        return np.array(mine.state)

    first, second = emulate(program)
    np.testing.assert_array_equal(first, second)


# model parallel


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_split_pair_of_layers_is_the_unsplit_pair(ranks):
    x, labels = RNG.standard_normal((5, 6)), RNG.integers(0, 4, 5)
    bias = RNG.standard_normal(4)
    whole = nn.Sequential(nn.ReLU(), nn.Linear(8), nn.ReLU(), nn.Linear(4), dtype=np.float64).build((6,))
    whole.layers[3].parameters["bias"] = bias
    loss, scores = whole.loss_and_scores(x, labels)
    grad_first = whole.layers[1].gradients

    def program(comm):
        layers = nn.ReLU(), ColumnLinear(8, comm=comm), nn.ReLU(), RowLinear(4, comm=comm)
        mine = nn.Sequential(*layers, dtype=np.float64).build((6,))
        mine.layers[3].parameters["bias"] = bias
        found = mine.loss_and_scores(x, labels)
        return *found, mine.layers[1].gradients["weight"].copy(), mine.layers[3].gradients["bias"].copy()

    net = Network(ranks)
    for rank, (got, got_scores, weight, grad_bias) in enumerate(emulate(program, network=net)):
        np.testing.assert_allclose(got, loss)
        np.testing.assert_allclose(got_scores, scores)
        np.testing.assert_allclose(weight, grad_first["weight"][shard(8, rank, ranks)], atol=1e-14)
        np.testing.assert_allclose(grad_bias, whole.layers[3].gradients["bias"], atol=1e-14)
    assert [name for name, _ in net.collectives].count("all_reduce") == 2  # one forward, one backward


# checkpoints


class _EndError(Exception):
    pass


@pytest.mark.parametrize("steps", [1, 5, 6, 8, 12])  # 6 to an epoch
def test_a_training_goes_on_after_a_death(tmp_path, monkeypatch, steps, alone):
    taken = []
    save = checkpoint.Checkpoint.save

    def dying(self, *arguments):
        save(self, *arguments)
        taken.append(1)
        if len(taken) == steps:
            raise _EndError

    monkeypatch.setattr(checkpoint.Checkpoint, "save", dying)
    with pytest.raises(_EndError):
        emulate(trained, checkpoint=tmp_path)
    for parameters, _ in emulate(trained, checkpoint=tmp_path):
        np.testing.assert_allclose(parameters, alone[0].parameters, rtol=0, atol=1e-12)
    assert len(taken) == 12  # no step was taken twice
    assert [path.name for path in tmp_path.iterdir()] == ["step-12"]


def test_dropout_goes_on_after_a_death(tmp_path, monkeypatch):
    """With a generator that has drawn as much as if nothing had been, in an epoch's middle too."""

    def program(comm, **options):
        mine = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(4), dtype=np.float64)
        parallel.fit(mine, IMAGES, comm, **PLAN, **options)
        return np.array(mine.parameters)

    def dying(self, path):
        save(self, path)
        if self.steps == 9:  # while the tenth checkpoint is not begun
            raise _EndError

    expected, _ = emulate(program)
    save = nn.Adam.save
    with monkeypatch.context() as patch:
        patch.setattr(nn.Adam, "save", dying)
        with pytest.raises(_EndError):
            emulate(program, checkpoint=tmp_path)
    for parameters in emulate(program, checkpoint=tmp_path):
        np.testing.assert_array_equal(parameters, expected)


def test_what_is_no_checkpoint_is_left_alone(tmp_path):
    for name in ("step-old", "step-", "notes"):
        (tmp_path / name).mkdir()
    emulate(trained, checkpoint=tmp_path, every=6)
    assert {path.name for path in tmp_path.iterdir()} == {"step-old", "step-", "notes", "step-2"}


def test_an_unfinished_checkpoint_is_none(tmp_path, monkeypatch, alone):
    def broken(self, path):
        raise _EndError

    with monkeypatch.context() as patch:
        patch.setattr(nn.Adam, "save", broken)
        with pytest.raises(_EndError):
            emulate(trained, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1.unfinished"]
    for parameters, _ in emulate(trained, checkpoint=tmp_path):
        np.testing.assert_allclose(parameters, alone[0].parameters, rtol=0, atol=1e-12)


# what is wrong


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("network", {"network": nn.Linear(5)}),
        ("network", {"network": nn.Linear(4, weight_scale=1.0)}),
        ("seed", {"seed": 1}),
        ("optimizer", {"optimizer": nn.SGD(0.1)}),
        ("epochs, schedule", {"epochs": 3}),
        ("schedule", {"schedule": nn.schedules.exponential_decay(0.5)}),
        ("batch_size", {"batch_size": 9}),
        ("accumulate", {"accumulate": 2}),
        ("checkpoint", {"checkpoint": "x"}),
        ("validation", {"validation": IMAGES}),
        ("train", {"train": data.Dataset(IMAGES.images[:52], IMAGES.labels[:52])}),
        ("train", {"train": data.Dataset(IMAGES.images.astype(np.float32), IMAGES.labels)}),
        ("train", {"train": data.Dataset(changed(IMAGES.images, (17, 0, 2, 3), 9), IMAGES.labels)}),
        ("train", {"train": data.Dataset(IMAGES.images, changed(IMAGES.labels, 17, 3 - IMAGES.labels[17]))}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ranks_that_differ_are_named_before_the_first_step(name, given):
    stepped = []

    class Counted(nn.Adam):
        def step(self, *arguments):
            stepped.append(1)

    def program(comm):
        options = {"train": IMAGES, "network": nn.Linear(4), "optimizer": Counted(), "epochs": 2}
        options |= given if comm.rank == 1 else {}
        mine = nn.Sequential(nn.Flatten(), options.pop("network"))
        parallel.fit(mine, options.pop("train"), comm, **options)

    with pytest.raises(parallel.MismatchError, match=f"rank 1 differs from rank 0 in {name}; here"):
        emulate(program, ranks=3)
    assert stepped == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 2}, "batch_size is 2; expected at least 3, an image for each rank"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"accumulate": 2, "buckets": 2}, "accumulate is 2 and buckets 2"),
        ({"checkpoint": "x", "every": 0}, "every is 0"),
        ({"train": NOTHING}, r"train is empty: its images have shape \(0, 1, 6, 6\)"),
        ({"validation": NOTHING}, "validation is empty"),
    ],
)
def test_bad_options_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        emulate(lambda comm: parallel.fit(network(), comm=comm, **{"train": IMAGES} | options), ranks=3)


def test_nothing_to_evaluate_is_named():
    with pytest.raises(ValueError, match="dataset is empty"):
        emulate(lambda comm: parallel.evaluate(network().build((1, 6, 6)), NOTHING, comm))


def test_numbers_that_are_none_end_all_ranks_alike():
    images = IMAGES.images.copy()
    images[17] = np.nan
    spoiled = data.Dataset(images, IMAGES.labels)
    ended = []

    def program(comm):
        try:
            parallel.fit(network(), spoiled, comm, epochs=3, batch_size=10)
        except nn.NonFiniteError:
            ended.append(comm.rank)

    emulate(program, ranks=3)
    assert sorted(ended) == [0, 1, 2]
