# %% [markdown]
# ### Exercise: fft_conv2d_flipped
#
# **Core**, about 15 minutes.
#
# Write the convolution of **mathematics**, which turns the kernel round: `ops.conv2d` with
# `weight[:, :, ::-1, ::-1]`. Which of the four points above is then not needed? `xp.fft.rfft2(x, lengths)` transforms
# the last two axes and adds zeros up to the two lengths; `xp.fft.irfft2(waves, lengths)` is the way back. Padding is
# less than the kernel. The check wants the numbers of the direct way, counts on the simulated GPU that all
# operations, transforms included, are at most half of the direct way's, and asks for 3 times the speed of a loop over
# output positions.


# %% nbgrader={"grade": false, "grade_id": "fft_conv2d_flipped", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fft_conv2d_flipped(x, weight, bias, padding=0):
    """Return (N, O, OH, OW) for x (N, C, H, W), weight (O, C, KH, KW), turned round, and bias (O,). About 8 lines."""
    xp = device.array_module(x)
    ### BEGIN SOLUTION
    (kh, kw), (h, w) = weight.shape[2:], x.shape[2:]
    lengths = h + kh - 1, w + kw - 1
    pixels = xp.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = xp.fft.rfft2(weight, lengths).transpose(2, 3, 1, 0)
    whole = xp.fft.irfft2((pixels @ weights).transpose(2, 3, 0, 1), lengths)
    top, left = kh - 1 - padding, kw - 1 - padding
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    return whole[:, :, top : top + oh, left : left + ow] + bias[:, None, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_fft_conv2d_flipped", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.fft_conv2d_flipped(fft_conv2d_flipped)

# %% [markdown]
# From here on the kernel stands as deep learning has it again, and the lesson takes the library's function for it.
