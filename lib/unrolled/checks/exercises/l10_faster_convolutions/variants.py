"""The variant of lesson 10: methods for the gradients of layers."""

from unrolled.checks.exercises.l10_faster_convolutions import exercises, methods
from unrolled.checks.spec import variant

choose_algorithm_backward = variant(exercises.choose_algorithm, compare=methods.judged_by(methods.backward))
