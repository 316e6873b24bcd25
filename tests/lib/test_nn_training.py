"""fit and evaluate: what is learned, when it stops, what is kept, and how much memory it takes."""

import numpy as np
import pytest

from unrolled import data, nn, ops


@pytest.fixture(scope="module")
def halves():
    """Digits at half the size: quick to learn."""
    digits = data.digits()
    small = data.Dataset(digits.images[:, :, ::2, ::2].copy(), digits.labels)
    return small.split()


def dense(**options):
    return nn.Sequential(nn.Flatten(), nn.Linear(32), nn.ReLU(), nn.Linear(10), **options)


def few(dataset, n):
    return data.Dataset(dataset.images[:n], dataset.labels[:n])


def fit(network, train, **options):
    return network.fit(train, **{"progress": False, "epochs": 2, **options})


def test_the_history_counts_every_image_once_an_epoch(halves):
    network, sizes = dense(), []
    forward = network.forward
    network.forward = lambda x, training=False: (sizes.append(len(x)), forward(x, training))[1]
    history = fit(network, few(halves[0], 70), batch_size=32, epochs=3)
    assert sizes == [32, 32, 6] * 3
    assert [len(history.loss), len(history.accuracy), len(history.seconds), len(history.step_loss)] == [3, 3, 3, 9]
    assert history.loss[0] == pytest.approx(np.average(history.step_loss[:3], weights=[32, 32, 6]))
    assert history.stopped is None


@pytest.mark.parametrize("restore_best", [True, False])
def test_early_stop_gives_back_the_best_parameters_or_keeps_the_last(halves, restore_best):
    """The rate grows until the training falls apart; the best epoch is an early one."""
    train, validation = few(halves[0], 200), few(halves[1], 100)
    network = dense()
    options = {"epochs": 30, "optimizer": nn.SGD(0.05), "schedule": lambda epoch: 1.0 if epoch < 3 else 40.0}
    stop = nn.EarlyStop(patience=2, restore_best=restore_best)
    history = fit(network, train, validation=validation, early_stop=stop, **options)
    best = int(np.argmin(history.validation_loss))
    assert len(history.loss) == best + 1 + 2
    assert history.stopped == f"no better validation loss since epoch {best + 1}"
    left = history.validation_loss[best if restore_best else -1]
    assert network.evaluate(validation).loss == pytest.approx(left)
    first, _, second, *_, last = str(history).splitlines()
    assert "validation" in first
    assert second.split()[0] == "2"
    assert last == history.stopped


def test_callbacks_see_each_epoch_and_can_end_it(halves):
    seen = []

    def callback(network, history):
        seen.append(len(history.loss))
        return len(seen) == 2

    history = fit(dense(), few(halves[0], 32), epochs=5, callbacks=[callback, lambda *_: None])
    assert seen == [1, 2]
    assert history.stopped == "a callback ended it after epoch 2"


class Changing(nn.SGD):
    """Keeps the parameters from before the last step; another change follows a step."""

    def __init__(self, number, change):
        super().__init__(0.1)
        self.number, self.change = number, change

    def step(self, parameters, gradients, rate=1.0):
        self.before = parameters.copy()
        super().step(parameters, gradients, rate)
        if self.steps == self.number:
            self.change(parameters)


def half_of_an_update(parameters):
    parameters[:10] = 1e9
    raise KeyboardInterrupt


def test_what_stays_are_the_parameters_from_before_the_bad_step(halves):
    """Interrupted half-way, and poisoned: step 4's update spoils one weight, and step 5's loss shows it."""
    network, optimizer = dense(), Changing(5, half_of_an_update)
    history = fit(network, few(halves[0], 96), optimizer=optimizer, epochs=9)
    np.testing.assert_array_equal(network.parameters, optimizer.before)
    assert (history.stopped, len(history.loss)) == ("interrupted in epoch 2", 1)
    network, optimizer = dense(), Changing(4, lambda parameters: parameters.__setitem__(-1, np.nan))
    with pytest.raises(nn.NonFiniteError) as stopped:
        fit(network, few(halves[0], 320), optimizer=optimizer)
    assert (stopped.value.step, stopped.value.layer, stopped.value.array) == (5, "3: Linear(10)", "bias")
    np.testing.assert_array_equal(network.parameters, optimizer.before)


def test_an_exploding_loss_stops_with_step_layer_and_array_and_warns_by_its_error_alone(halves, recwarn):
    network = dense()
    with pytest.raises(nn.NonFiniteError, match="training stopped at step") as stopped:
        fit(network, halves[0], optimizer=nn.SGD(1e30), epochs=3)
    assert not recwarn.list
    assert stopped.value.step >= 2
    assert stopped.value.layer.startswith(("1: Linear(32)", "3: Linear(10)"))
    assert stopped.value.array in ("weight", "bias", "output")
    assert np.isfinite(network.parameters).all()
    assert np.isfinite(network.evaluate(halves[0]).loss), "the parameters of the last good step give a loss"


@pytest.mark.parametrize("name", ["images", "labels"])
def test_a_data_set_that_is_not_finite_is_named(name):
    arrays = {"images": np.ones((32, 3), np.float32), "labels": np.ones((32, 1), np.float32)}
    arrays[name][7, 0] = np.nan
    network = nn.Sequential(nn.Linear(1), loss=ops.mean_squared_error)
    with pytest.raises(nn.NonFiniteError, match=f"Look at the {name}") as stopped:
        fit(network, data.Dataset(**arrays))
    assert (stopped.value.step, stopped.value.layer, stopped.value.array) == (1, "the input", name)
