"""Networks built on `unrolled.ops`."""

from unrolled.nn.digit_network import DigitNetwork, softmax_cross_entropy, train

__all__ = ["DigitNetwork", "softmax_cross_entropy", "train"]
