"""Training on many ranks is training on one with the full batch, to rounding; what is wrong is named on all ranks."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled import data, nn, ops, parallel, simgpu
from unrolled.parallel import Network, emulate, same, shard

RNG = np.random.default_rng(0)
IMAGES = data.Dataset(RNG.standard_normal((53, 1, 6, 6)), RNG.integers(0, 4, 53))  # batches of 10: the last one has 3
NOTHING = data.Dataset(IMAGES.images[:0], IMAGES.labels[:0])
PLAN = {"epochs": 2, "batch_size": 10}


def network(seed=0):
    layers = nn.Conv2d(3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(7), nn.ReLU()
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(4), seed=seed, dtype=np.float64)


def of(*layers, **options):
    """A network of these layers on flat images."""
    return nn.Sequential(nn.Flatten(), *layers, **{"dtype": np.float64} | options)


def assert_close(found, expected, atol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


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
@pytest.mark.parametrize("options", [{}, {"buckets": 3}], ids=["plain", "in buckets"])
def test_any_number_of_ranks_takes_the_steps_of_one_and_drops_the_same(ranks, options, alone):
    one, expected = alone
    for parameters, history in emulate(trained, ranks=ranks, **options):
        assert_close(parameters, one.parameters)
        assert_same(history, expected)


def assert_same(history, expected):
    """The histories differ in seconds alone."""
    for name in ("loss", "accuracy", "step_loss", "validation_loss", "validation_accuracy"):
        np.testing.assert_allclose(getattr(history, name), getattr(expected, name), rtol=1e-6)
    assert len(history.seconds) == len(expected.seconds)


def test_a_step_takes_one_all_reduce_and_buckets_as_many_as_asked():
    def sums(**options):
        net = Network(2)
        emulate(trained, network=net, **options)
        return [count for name, count in net.collectives if name.endswith("all_reduce")]

    size, plain, pieces = network().build((1, 6, 6)).parameters.nbytes, sums(), sums(buckets=3)
    assert plain.count(size) == 12
    assert size not in pieces
    assert sum(pieces) == sum(plain)


@given(st.integers(0, 100), st.integers(1, 9))
def test_shards_share_all_rows_evenly(count, size):
    shards = [shard(count, rank, size) for rank in range(size)]
    assert [row for part in shards for row in range(count)[part]] == list(range(count))
    sizes = [part.stop - part.start for part in shards]
    assert max(sizes) - min(sizes) <= 1


def test_dropout_drops_the_same_whatever_ranks_have_drawn_before():
    def program(comm, before):
        mine = of(nn.Dropout(0.5), nn.Linear(4)).build((1, 6, 6))
        before(comm, mine)
        mine.parameters = np.ones(len(mine.parameters))
        parallel.fit(mine, IMAGES, comm, **PLAN)
        return np.array(mine.parameters)

    def one_image(comm, mine):  # some ranks have no row of it
        parallel.fit(mine, data.Dataset(IMAGES.images[:1], IMAGES.labels[:1]), comm, batch_size=3)

    def rank_0_alone(comm, mine):
        if comm.rank == 0:
            mine.forward(IMAGES.images, training=True)

    (expected,) = emulate(program, one_image, ranks=1)
    for before in one_image, rank_0_alone:
        for parameters in emulate(program, before, ranks=3):
            assert_close(parameters, expected)


def test_what_rank_0s_optimizer_remembers_is_everybodys():
    def program(comm, differing):
        mine, optimizer = network().build((1, 6, 6)), adam()
        rng = np.random.default_rng(comm.rank if differing else 0)
        for _ in range(2):
            optimizer.step(mine.parameters, rng.standard_normal(len(mine.parameters)))
        parallel.fit(mine, IMAGES, comm, **PLAN, optimizer=optimizer)
        return np.array(mine.parameters)

    expected, _ = emulate(program, False)
    for parameters in emulate(program, True):
        np.testing.assert_array_equal(parameters, expected)


def test_a_rank_reads_its_own_rows_from_a_file_and_moves_only_them(tmp_path):
    images = IMAGES.images.astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    read = []

    class Reading(np.memmap):
        def __getitem__(self, rows):
            found = super().__getitem__(rows)
            read.append(found.nbytes)
            return found

    def program(comm):
        there = np.load(tmp_path / "images.npy", mmap_mode="r").view(Reading)
        mine = of(nn.Linear(4), dtype=np.float32).build((1, 6, 6), simgpu)
        parallel.fit(mine, data.Dataset(there, IMAGES.labels), comm, epochs=1, batch_size=10)
        return simgpu.asnumpy(mine.parameters)

    first, second = emulate(program)
    np.testing.assert_array_equal(first, second)
    one = of(nn.Linear(4), dtype=np.float32)
    one.fit(data.Dataset(images, IMAGES.labels), epochs=1, batch_size=10, progress=False)
    assert_close(first, one.parameters, atol=1e-5)
    looked_at = 2 * 53  # both look at some of the images before: of so few, at all
    assert sum(read) == (53 + looked_at) * 36 * 4


def test_a_training_that_is_spoiled_gives_back_the_parameters_of_the_epoch_before():
    """The first wild step leaves finite parameters, of which the second has a loss that is not."""
    errors = []

    def program(comm, wild):
        mine = nn.Sequential(nn.Conv2d(3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(7), nn.ReLU(), nn.Linear(4))
        schedule = lambda epoch: wild if epoch == 2 else 1.0  # noqa: E731
        try:
            parallel.fit(mine, IMAGES, comm, epochs=3, batch_size=10, schedule=schedule)
        except nn.NonFiniteError as error:
            errors.append(str(error))
        return np.array(mine.parameters)

    assert np.isfinite(emulate(program, 1e38)).all()
    assert len(errors) == 2
    assert {error.partition(":")[0] for error in errors} == {"training stopped at step 14"}
    assert all("has the parameters that epoch 3 began with." in error for error in errors)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("network", {"network": nn.Linear(5)}),
        ("network", {"network": nn.Linear(4, weight_scale=1.0)}),
        ("network", {"loss": lambda scores, labels: (1, scores)}),
        ("seed", {"seed": 1}),
        ("optimizer", {"optimizer": nn.SGD(0.1)}),
        ("epochs, schedule", {"epochs": 3}),
        ("schedule", {"schedule": nn.schedules.cosine_decay(3)}),
        ("batch_size", {"batch_size": 9}),
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
        loss = {"loss": options.pop("loss")} if "loss" in options else {}
        mine = of(options.pop("network"), dtype=np.float32, **loss)
        parallel.fit(mine, options.pop("train"), comm, **options)

    with pytest.raises(parallel.MismatchError, match=f"rank 1 differs from rank 0 in {name}; here"):
        emulate(program, ranks=3)
    assert stepped == []


class Scaling(nn.Layer):
    """A layer of somebody's own: no dataclass, and nothing of its option in its repr."""

    def __init__(self, factor):
        super().__init__()
        self._factor = factor


def weighted(factor):
    return lambda scores, labels: factor * ops.softmax_cross_entropy(scores, labels)


def smooth(scores, labels, epsilon):
    return epsilon, scores


DIFFERING = [
    [weighted(1.0), weighted(2.0)],
    [partial(smooth, epsilon=0.1), partial(smooth, epsilon=0.2)],
    [partial(smooth, epsilon=0.1), partial(weighted, epsilon=0.1)],
    [Scaling(1), Scaling(2)],
    [Scaling(np.ones(2)), Scaling(np.zeros(2))],
    [Scaling(smooth), Scaling(weighted)],
    [Scaling(np.tanh), Scaling(np.exp)],
    [nn.Linear(3), nn.Linear(3, weight_scale=0.1)],
    [nn.Adam(), nn.Adam(beta1=0.8)],
]


@pytest.mark.parametrize("differing", DIFFERING, ids=lambda pair: type(pair[0]).__name__)
def test_what_differs_has_other_words_and_the_same_in_another_process(differing):
    first, second = map(same.words, differing)
    assert first != second
    assert "0x" not in first
    cloudpickle = pytest.importorskip("cloudpickle", reason="nothing else carries lambdas to other processes")
    assert same.words(cloudpickle.loads(cloudpickle.dumps(differing[0]))) == first


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"batch_size": 2}, ValueError, "batch_size is 2; expected at least 3, an image for each rank"),
        ({"buckets": 0}, ValueError, "buckets is 0"),
        ({"seed": "x"}, TypeError, "seed is 'x'; expected a whole number"),
        ({"schedule": 3}, TypeError, "schedule and callbacks are functions, got 3"),
        ({"optimizer": nn.Adam}, TypeError, "optimizer is <class .*; expected an object such as"),
        ({"train": NOTHING}, ValueError, r"train is empty: its images have shape \(0, 1, 6, 6\)"),
        ({"validation": NOTHING}, ValueError, "validation is empty"),
        ({"validation": data.Dataset(np.zeros((2, 1, 5, 5)), np.zeros(2, int))}, ValueError, "validation: x has shape"),
        ({"validation": data.Dataset(np.zeros((2, 1, 6, 6)), np.full(2, 4))}, ValueError, "validation: labels holds 4"),
    ],
    ids=str,
)
def test_bad_options_are_named_before_anything_is_sent(options, error, says):
    net = Network(3)
    with pytest.raises(error, match=says):
        emulate(lambda comm: parallel.fit(network(), comm=comm, **{"train": IMAGES} | options), network=net)
    assert not net.collectives


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda comm: shard(3, 0.5, 2), TypeError, r"rank is 0.5; expected a whole number"),
        (lambda comm: shard(3, 2, 2), ValueError, "rank is 2; expected 0 to 1"),
        (lambda comm: parallel.evaluate(network().build((1, 6, 6)), NOTHING, comm), ValueError, "dataset is empty"),
    ],
)
def test_what_is_wrong_outside_of_a_training_is_named(call, error, says):
    with pytest.raises(error, match=says):
        emulate(call)
