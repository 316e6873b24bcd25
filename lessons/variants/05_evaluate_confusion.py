# %% [markdown]
# ### Exercise: evaluate_confusion
#
# **Core**, about 14 minutes.
#
# Make the table of mistakes from above yourself: `counts[i, j]` is how many images of class i the network took for
# class j. Have at most `batch_size` images in the network at once; the check's network keeps count of what you give it.
# From such a table follow the accuracy, `counts.trace() / counts.sum()`, and the accuracy of each class.
#
# Four images of the classes 0, 1, 1, 1 that are taken for 0, 1, 1, 0 make the table [[1, 0], [1, 2]].
#
# Mind two things. The pair (1, 1) came twice, and `counts[rows, columns] += 1` adds once where a pair comes twice in a
# batch: `np.add.at(counts, (rows, columns), 1)` adds for each. And there is a row for every class that has a score,
# even if no image is of that class.


# %% nbgrader={"grade": false, "grade_id": "evaluate_confusion", "locked": false, "schema_version": 3, "solution": true, "task": false}
def evaluate_confusion(forward, images, labels, batch_size):
    """Return counts (classes, classes), whole numbers: rows what images are, columns what they are taken for.

    forward(images) gives scores (n, classes) for n images; the highest score names the class. About 6 lines.
    """
    ### BEGIN SOLUTION
    for start in range(0, len(images), batch_size):
        scores, truth = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        if start == 0:
            counts = np.zeros((scores.shape[1], scores.shape[1]), np.int64)
        np.add.at(counts, (truth, scores.argmax(axis=1)), 1)
    return counts
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_evaluate_confusion", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.evaluate_confusion(evaluate_confusion)
