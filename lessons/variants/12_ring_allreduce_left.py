# %% [markdown]
# ### Exercise: ring_allreduce_left
#
# **Core**, about 15 minutes.
#
# Sum all ranks' x over a ring that goes **to the left**: each rank sends to the one before it only. Use `comm.send(x,
# to)` and `comm.receive(x, source)` alone. Receiving waits until something is there, and fills and returns the array
# that you give. Sending copies: it never waits, and you may change the array at once. `np.array_split` makes chunks of
# about the same size, some perhaps empty. They are views: what you write into one is in y.


# %% nbgrader={"grade": false, "grade_id": "ring_allreduce_left", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_allreduce_left(comm, x):
    """Return the sum (n,) of all ranks' x (n,), in a new array on each rank. About 6 more lines."""
    y = x.copy()
    chunks = np.array_split(y, comm.size)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    ### BEGIN SOLUTION
    for k in range(1, 2 * comm.size - 1):
        comm.send(chunks[(comm.rank + k) % comm.size], left)
        mine = chunks[(comm.rank + k + 1) % comm.size]
        came = comm.receive(np.empty_like(mine), right)
        mine[...] = mine + came if k < comm.size else came
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_ring_allreduce_left", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.ring_allreduce_left(ring_allreduce_left)

# %% [markdown]
# From here on the ring goes to the right, and the lesson takes the library's function for it.
