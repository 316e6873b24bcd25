"""Attention: each query looks at all keys, and gets the mean of their values by softmax of its products with the keys.

With T queries there is a matrix of T x T weights a head (Vaswani and others, 2017). `plain` keeps it, as the formula
reads. `online` never does: a softmax that is computed block by block, with a running maximum and sum. `op` chooses.
"""

from unrolled.ops.attention.op import attention, attention_backward, attention_with_logsumexp
from unrolled.ops.attention.plain import attention_loops, attention_plain, attention_plain_backward, attention_weights

__all__ = ["attention", "attention_backward", "attention_loops", "attention_plain", "attention_plain_backward"]
__all__ += ["attention_weights", "attention_with_logsumexp"]
