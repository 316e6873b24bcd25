# %% [markdown]
# ### Exercise: add_kernel_backwards
#
# **Core**, about 7 minutes.
#
# Write the kernel that adds two arrays, the second from its end: thread i adds value i of x and value n - 1 - i of y. A
# thread beyond the last value does nothing. The check launches it, with sizes that do not divide a block. (A warp that
# reads backwards needs the same sectors as one that reads forwards, or one more.)


# %% nbgrader={"grade": false, "grade_id": "add_kernel_backwards", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def add_kernel_backwards(x, y, out, n):
    # out[0] = x[0] + y[n - 1], and so on, all with n values of float32. About 3 lines.
    ### BEGIN SOLUTION
    i = cp.int32(jit.grid(1))
    if i < n:
        out[i] = x[i] + y[n - 1 - i]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_add_kernel_backwards", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.add_kernel_backwards(add_kernel_backwards)

# %% [markdown]
# The rest of the lesson adds from the beginning.
#
# ```python
# i = jit.grid(1)
# if i < n:
#     out[i] = x[i] + y[i]
# ```

# %%
add_kernel = add_kernel_backwards
