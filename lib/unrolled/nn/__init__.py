"""Networks built on `unrolled.ops`: layers, `Sequential`, optimizers, schedules, training."""

from unrolled.nn.activations import LeakyReLU, ReLU, Sigmoid, Softplus, Tanh
from unrolled.nn.attention import Attention
from unrolled.nn.compiler.step import Compiled, compiled
from unrolled.nn.history import Evaluation, History
from unrolled.nn.layers import AvgPool2d, BatchNorm2d, Conv2d, Dropout, Flatten, Layer, Linear, MaxPool2d
from unrolled.nn.network import Sequential, predict_with_loops
from unrolled.nn.optim import SGD, AdaDelta, AdaGrad, Adam, Optimizer, RMSProp
from unrolled.nn.recurrent import LSTM
from unrolled.nn.schedules import cosine_decay, warmup
from unrolled.nn.summary import Summary
from unrolled.nn.training import EarlyStop
from unrolled.nn.watch import NonFiniteError

__all__ = ["Attention", "LeakyReLU", "ReLU", "Sigmoid", "Softplus", "Tanh"]
__all__ += ["LSTM", "AvgPool2d", "BatchNorm2d", "Conv2d", "Dropout", "Flatten", "Layer", "Linear", "MaxPool2d"]
__all__ += ["Compiled", "Sequential", "Summary", "compiled"]
__all__ += ["SGD", "AdaDelta", "AdaGrad", "Adam", "Optimizer", "RMSProp"]
__all__ += ["EarlyStop", "Evaluation", "History", "NonFiniteError", "predict_with_loops"]
__all__ += ["cosine_decay", "warmup"]
