"""Wrong and imperfect answers to the exercise of lesson 00."""

import numpy as np


def image_by_image(images):
    return np.array([image.mean() for image in images])


def sum_divided(images):
    return images.sum(axis=(1, 2, 3)) / images[0].size


def pixel_by_pixel(images):
    return np.array([sum(float(p) for row in image[0] for p in row) / image.size for image in images], images.dtype)


def axis_by_axis(images):
    rows = images.mean(axis=3)
    return rows.mean(axis=2)[:, 0]


def by_einsum(images):
    weight = np.full(images.shape[1:], 1 / images[0].size, images.dtype)
    return np.einsum("nchw,chw->n", images, weight)


HONEST = {"ink": [image_by_image, sum_divided]}

LOOP = {"ink": pixel_by_pixel}

RIGHT = {"ink": [axis_by_axis, by_einsum]}
