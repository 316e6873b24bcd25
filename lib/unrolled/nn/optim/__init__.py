"""Optimizers: how the parameters follow their gradients. Update rules are PyTorch's, here on one flat array."""

from unrolled.nn.optim.adadelta import AdaDelta
from unrolled.nn.optim.adagrad import AdaGrad
from unrolled.nn.optim.adam import Adam
from unrolled.nn.optim.gradient_descent import SGD
from unrolled.nn.optim.optimizer import Optimizer
from unrolled.nn.optim.rmsprop import RMSProp

__all__ = ["SGD", "AdaDelta", "AdaGrad", "Adam", "Optimizer", "RMSProp"]
