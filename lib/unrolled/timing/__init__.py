"""Measure speed, and compare it fairly: the candidate and a baseline on the same inputs, in the same run.

>>> verdict = compare(mine, baseline, inputs=lambda rng: {"x": rng.random((64, 64))}, at_least=2.5)  # doctest: +SKIP
>>> print(verdict)  # doctest: +SKIP
41x faster than the baseline (38 to 44); at least 2.5x was asked: pass.
"""

from unrolled.timing.blocks import BlockTime
from unrolled.timing.comparing import compare, compare_blocks
from unrolled.timing.measuring import Measurement, copy_bandwidth, matmul_peak, measure
from unrolled.timing.verdict import Pair, TimedBlock, Verdict, untimed, where_able

__all__ = ["BlockTime", "Measurement", "Pair", "TimedBlock", "Verdict"]
__all__ += ["compare", "compare_blocks", "copy_bandwidth", "matmul_peak", "measure", "untimed", "where_able"]
