"""The variant of lesson 10: methods for the gradients of layers."""

from unrolled.checks.exercises.l10_faster_convolutions import choosing, exercises
from unrolled.checks.spec import variant

choose_algorithm_backward = variant(exercises.choose_algorithm, compare=choosing.judged_by(choosing.backward))
