"""A loop over batches that never goes on to the next."""


def evaluate(forward, images, labels, batch_size):
    loss, correct, start = 0.0, 0, 0
    while start < len(images):
        scores = forward(images[start : start + batch_size])
        correct += (scores.argmax(axis=1) == labels[start : start + batch_size]).sum()
    return loss, correct / len(images)
