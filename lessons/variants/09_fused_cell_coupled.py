# %% [markdown]
# ### Exercise: fused_cell_coupled
#
# **Core**, about 13 minutes.
#
# Take the cheaper cell, in which what is forgotten makes room for what is new: i is 1 - f, and there are three blocks,
# f, g and o. Write the kernel: all of its step but the products. The two sums come apart, as the two products leave
# them. The check asks for one launch, and counts what is read and written: each sum once. A sigmoid is `ONE / (ONE +
# cp.exp(-z))`. A plain 1 would be an integer.


# %% nbgrader={"grade": false, "grade_id": "fused_cell_coupled", "locked": false, "schema_version": 3, "solution": true, "task": false}
THREADS, ONE = 256, np.float32(1)


@jit.rawkernel()
def cell_kernel(from_x, from_h, bias, c, h_new, c_new, size, hidden):
    # from_x, from_h (N, 3 * hidden); bias (3 * hidden,); c, h_new, c_new (N, hidden), `size` values. About 7 more lines.
    at = cp.int32(jit.grid(1))
    if at < size:
        row, unit = at // hidden, at % hidden
        ### BEGIN SOLUTION
        f = ONE / (ONE + cp.exp(-(from_x[row, unit] + from_h[row, unit] + bias[unit])))
        g = from_x[row, unit + hidden] + from_h[row, unit + hidden] + bias[unit + hidden]
        o = from_x[row, unit + 2 * hidden] + from_h[row, unit + 2 * hidden] + bias[unit + 2 * hidden]
        now = f * c[row, unit] + (ONE - f) * cp.tanh(g)
        c_new[row, unit] = now
        h_new[row, unit] = cp.tanh(now) / (ONE + cp.exp(-o))
        ### END SOLUTION


def fused_cell_coupled(from_x, from_h, bias, c):
    """Return the new (h, c), (N, H) each, from the sums of the inputs and of the last outputs, on the GPU."""
    xp = device.array_module(c)
    h_new, c_new = xp.empty(c.shape, c.dtype), xp.empty(c.shape, c.dtype)
    blocks = (c.size + THREADS - 1) // THREADS
    cell_kernel[blocks, THREADS](from_x, from_h, bias, c, h_new, c_new, c.size, c.shape[1])
    return h_new, c_new


# %% nbgrader={"grade": true, "grade_id": "check_fused_cell_coupled", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.fused_cell_coupled(fused_cell_coupled)

# %% [markdown]
# From here on there are four gates again, and the lesson takes the library's functions for them: more launches than
# your kernel needs.
