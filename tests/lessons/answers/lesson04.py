"""Wrong and imperfect answers to the exercises of lesson 04."""

import numpy as np

from unrolled import ops

from . import Mutant, first, folding, result_of

# numeric_gradient


# softmax_cross_entropy


def softmax_along_the_batch(scores, labels):
    e = np.exp(scores - scores.max(axis=0))
    p = e / e.sum(axis=0)
    rows = np.arange(len(scores))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / len(scores)


MUTANTS = {
    "numeric_gradient": [
        Mutant(result_of("numeric_gradient", np.ravel), "shape (6,), expected (2, 3)"),
        Mutant(result_of("numeric_gradient", np.float32), "dtype is float32, expected float64"),
    ],
    "affine_backward": [
        Mutant(result_of("affine_backward", first), "return grad_x, grad_weight, grad_bias"),
    ],
    "softmax_cross_entropy": [
        Mutant(softmax_along_the_batch, "loss: got"),
        Mutant(result_of("softmax_cross_entropy", first), "return loss, grad"),
    ],
    "col2im": [
        Mutant(folding.col2im_not_swapped, "two axes exchanged"),
    ],
    "conv2d_backward": [
        Mutant(result_of("conv2d_backward", lambda grads: (grads[0], None, None)), "you return None for it"),
        Mutant(lambda **given: ops.conv2d_backward(**given | {"stride": 1}), "ValueError"),
        Mutant(folding.convolution_with_options_forgotten_on_the_way_back, "these columns belong to other windows"),
    ],
    "max_pool2d_backward": [
        Mutant(lambda **given: ops.max_pool2d_backward(**given | {"padding": 0}), "ValueError"),
        Mutant(folding.pooling_without_options, "pass stride and padding on"),
        Mutant(folding.pooling_into_the_size_of_grad, "size is x.shape[2:]"),
    ],
}

HONEST = {"col2im": [folding.col2im_image_by_image, folding.col2im_by_bincount]}

LOOP = {"col2im": folding.col2im_window_by_window}
