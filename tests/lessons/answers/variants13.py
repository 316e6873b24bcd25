"""Wrong answers to the variants of lesson 13."""

from __future__ import annotations

from answers import Mutant
from answers.lesson13 import graphs_of, once_each, one_after_the_other, one_step_a_graph, two_steps_a_graph
from unrolled import kernels
from unrolled.checks.exercises.l13_capstone import factors, steps, variants


def with_a_new_array(x, target, weight, velocity, rate, error, grad, decayed):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    grad += 0.01 * weight
    grad *= rate
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99


def shares_of(measured):
    def answer(run, causes):
        return {cause: 1 - 1 / factor for cause, factor in measured(run, causes).items()}

    return answer


MUTANTS = {
    "capturable_step_decay": [
        Mutant(variants.decaying(frozen=steps.FIRST_RATE), "the rate is frozen at its first value"),
        Mutant(variants.decaying(decay=0), "the weight decay is missing"),
        Mutant(variants.decaying(mean=False), "divide by len(x)"),
        Mutant(with_a_new_array, "made while a stream was capturing, none allowed"),
    ],
    "replayed_epoch_pairs": [
        Mutant(steps.eager, "no launch of a graph"),
        Mutant(one_step_a_graph, "launches, at most 50 allowed"),
        Mutant(lambda **given: graphs_of(**given, at_once=2, back="p"), "differ"),
        Mutant(lambda **given: graphs_of(**given, at_once=2, inside=False), "differ"),
    ],
    "ablation_shares": [
        Mutant(shares_of(once_each), "repeat, and take the median"),
        Mutant(shares_of(one_after_the_other), "turn each on again"),
        Mutant(factors.turned_off_alone, "a share of 1 or more"),
        Mutant(lambda run, causes: run.factors, "has no attribute 'factors'"),
    ],
}


def pairs_with_a_copy(images, targets, order, weight):
    return graphs_of(images.copy(), targets.copy(), order.copy(), weight, at_once=2).copy()


HONEST = {"replayed_epoch_pairs": [two_steps_a_graph, pairs_with_a_copy]}
LOOP = {"replayed_epoch_pairs": steps.eager}
