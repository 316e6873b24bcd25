"""Wrong and imperfect answers to the exercise of lesson 00."""

import numpy as np

from . import Mutant


def sum_of_ink(images):
    return images.sum(axis=(1, 2, 3))


def mean_of_everything(images):
    return images.mean()


def mean_with_a_channel_left(images):
    return images.mean(axis=(2, 3))


def mean_without_the_columns(images):
    return images.mean(axis=(1, 2))


def mean_of_the_images(images):
    return images.mean(axis=0)


def mean_in_a_list(images):
    return [float(image.mean()) for image in images]


def mean_with_empty_axes(images):
    return images.mean(axis=(1, 2, 3), keepdims=True)


def mean_in_float64(images):
    return images.mean(axis=(1, 2, 3), dtype=np.float64)


def mean_in_float32_always(images):
    return images.mean(axis=(1, 2, 3)).astype(np.float32)


def mean_without_return(images):
    images.mean(axis=(1, 2, 3))


def image_by_image(images):
    return np.array([image.mean() for image in images])


def sum_divided(images):
    return images.sum(axis=(1, 2, 3)) / images[0].size


def as_a_product(images):
    pixels = images[0].size
    return images.reshape(-1, pixels) @ np.full(pixels, 1 / pixels, images.dtype)


def pixel_by_pixel(images):
    return np.array([sum(float(p) for row in image[0] for p in row) / image.size for image in images], images.dtype)


MUTANTS = {
    "ink": [
        Mutant(sum_of_ink, "the mean divides by the number of pixels"),
        Mutant(mean_of_everything, "one mean over everything"),
        Mutant(mean_with_a_channel_left, "one axis is left over"),
        Mutant(mean_without_the_columns, "the columns are left over"),
        Mutant(mean_of_the_images, "this averages over the images"),
        Mutant(mean_in_a_list, "return them as an array"),
        Mutant(mean_with_empty_axes, "leave out keepdims"),
        Mutant(mean_in_float64, "dtype is float64, expected float32"),
        Mutant(mean_in_float32_always, "dtype is float32, expected float64"),
        Mutant(mean_without_return, "is the return statement missing?"),
    ],
}

HONEST = {"ink": [image_by_image, sum_divided, as_a_product]}

LOOP = {"ink": pixel_by_pixel}
