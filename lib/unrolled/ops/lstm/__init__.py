"""Long short-term memory, forward and backward through time, in eight forms.

The cell is that of Hochreiter and Schmidhuber, 1997, with the forget gate of Gers, Schmidhuber and Cummins, 2000.

Each form does the same multiplications and gives the same numbers. What differs is how many calls they are cut into.
Sequences are x (T, N, D): T steps of N samples with D values. Weights are laid out as in PyTorch's `nn.LSTM`.
"""

from unrolled.ops.lstm.backward import lstm_backward
from unrolled.ops.lstm.cell import lstm_step, lstm_step_backward
from unrolled.ops.lstm.sequence import FORMS, lstm, lstm_with_gates
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights

__all__ = ["FORMS", "LSTMGates", "LSTMWeights"]
__all__ += ["lstm", "lstm_backward", "lstm_step", "lstm_step_backward", "lstm_with_gates"]
