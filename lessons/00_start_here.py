# %% [markdown]
# # Start here
#
# Lesson 00, about 20 minutes.
#
# **Afterwards you can**
#
# - run a lesson, write down a guess, and read what a check says;
# - tell what your machine offers;
# - hand in a notebook.
#
# **You need** Python functions and loops, and NumPy arrays as far as `x.shape`, `x[0]` and `x + 1`.
#
# A lesson is text and cells of code. Click the first cell of code and press Shift+Enter: it runs, and the next cell
# is selected. Go on like this from top to bottom. If you come back later, or restart the kernel (the program behind the
# notebook that runs the cells), what earlier cells defined is gone. Then click the cell that you want to go on with and
# choose *Run*, *Run All Above Selected Cell*.

# %%
import numpy as np

from unrolled import check, data, doctor, journal, nn, show, timing

check.start("00_start_here")

# %% [markdown]
# ## Where the course goes
#
# In 2020 somebody wrote a small network that reads handwritten digits, in Python and NumPy, and trained it on the
# 60,000 images of MNIST. One pass over all the images, an *epoch*, took 30 minutes. Ported to a GPU it took 100
# seconds. One slow line was found and replaced: 50 seconds. A finished library needed 4.¹
#
# You will go the same way yourself, one measured step at a time. You write the network in plain loops, unroll the loops
# into matrix products, hunt the slow line, and move to a GPU (a simulated one will do). At each step you guess first,
# then measure, then say what the number means. At the end stands a recorded epoch of under a second. It took a large
# GPU, and 128 images at a time; with 8 at a time, as in the article, it takes that GPU several seconds.
#
# ¹ *Deep Learning Gaiden: GPU Programming*, an article on Qiita (in Japanese), September 2020. From one of its
# numbers to the next, hardware, code, batch size and library change, sometimes at once. Lesson 07 takes them apart.

# %% [markdown]
# ## Your machine
#
# Nearly every time in this course is measured on the machine that runs your notebook, so begin by asking what it is. A
# missing GPU is no problem: lessons 00 to 05 do without one, and from lesson 06 on a simulated one steps in. What that
# one says of time comes from a model, and is marked so.

# %%
print(doctor.table(doctor.examine()))

# %% [markdown]
# ## The data
#
# No download is needed. The library scikit-learn comes with 1,797 digits, written by hand on forms and scanned.² They
# have 8 x 8 pixels. The course enlarges them to 28 x 28, the size of MNIST's. White is 0, full ink is 1.

# %%
digits = data.digits()
print("images", digits.images.shape, digits.images.dtype, "  labels", digits.labels.shape)
show.images(digits.images[:20], digits.labels[:20])

# %% [markdown]
# The shape (1797, 1, 28, 28) reads: 1,797 images, 1 channel (grey), 28 rows, 28 columns. float32 is the type of the
# numbers, the *dtype*: 4 bytes each.
#
# ² E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine Learning Repository, 1998.

# %% [markdown]
# ## A race
#
# Here is what you will be able to build after lesson 05: a small network of five layers. You need not know yet what
# they do. The network looks at 1,500 of the digits and learns to name them. Then it is asked about the 297 others.

# %%
known, unknown = digits.split(train=1500)
network = nn.Sequential(nn.Conv2d(4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10))
network.fit(known, epochs=5)
print(f"{network.evaluate(unknown).accuracy:.1%} of {len(unknown)} digits named correctly")

# %% [markdown]
# The network can compute its answer in two ways, with the same weights and the same result: in plain Python loops
# over every pixel, or with operations on whole arrays. How many times faster are the arrays?
#
# Put a number in place of the dots below and run the cell. Nobody grades a guess. It stands beside the measurement
# later, and that is how you learn to guess better.

# %%
journal.predict("digit_race", ...)  # your guess, such as 5 or 5000: how many times faster?

# %% [markdown]
# Now the race. Move the slider, or press play. The further you move the slider, the more time each of its steps covers.
# With equal steps the winner would be done before you saw it start.

# %%
images, labels = unknown.images[:10], unknown.labels[:10]
by_loops = nn.predict_with_loops(network, images)
by_arrays = network.predict(images)
assert np.array_equal(by_loops, by_arrays)  # a race counts only if both give the same answers

loops = timing.measure(nn.predict_with_loops, {"network": network, "images": images[:2]}).seconds / 2
arrays = timing.measure(network.predict, {"images": images}).seconds / len(images)
journal.measured("digit_race", loops / arrays)
show.race(images, labels, {"plain loops": (loops, by_loops), "whole arrays": (arrays, by_arrays)})

# %% [markdown]
# Both give the same answers, wrong ones included: it is one network. The loops lose because Python spends most of its
# time on finding the next number, and little on computing with it.
# <!-- why: loops --> The rest of the course is about that difference, and
# about the smaller ones that show once it is gone.

# %% [markdown]
# ## How much ink?
#
# Every exercise comes with the same parts: a few sentences, a guess, a function to write, a check, and what the
# number means. Exercises are marked **core** or **more**; if time is short, do the core. Here is a small one to
# practise on.
#
# How much ink is in each digit? Take the mean of its pixels. With loops it goes like this:


# %%
def ink_in_loops(images):
    """The mean pixel of each image: (N, 1, H, W) to (N,)."""
    # body of unrolled.checks.exercises.l00_start_here.exercises.ink_in_loops


for label in (0, 1):
    mean = ink_in_loops(digits.images[digits.labels == label][:20]).mean()
    print(f"twenty digits {label}: {mean:.3f} ink on average")

# %% [markdown]
# NumPy can do all of it in one expression. How many times faster will that be?

# %%
journal.predict("ink", ...)  # your guess

# %% [markdown]
# ### Exercise: ink
#
# **Core**, about 3 minutes.
#
# Write the mean pixel of each image as one expression on the whole array, without a loop. `images.mean(axis=…)` takes the
# mean over the axes that you name, one or several. Put your code in place of the line `raise NotImplementedError`.


# %% nbgrader={"grade": false, "grade_id": "ink", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ink(images):
    """The mean pixel of each image: images (N, 1, H, W) to (N,), same dtype. No loop. About 1 line."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l00_start_here.exercises.ink_in_one_expression
    ### END SOLUTION


# %% [markdown]
# Then run the check. It tries your function on several inputs and stops at the first that goes wrong: it says which
# one, what came out, what should have, and often why. Change your function, run its cell again, check again, as often
# as you like. NumPy is all yours. Of this course's own library, a function that is checked may use what its exercise
# names; the rest refuses to work for it.

# %% nbgrader={"grade": true, "grade_id": "check_ink", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.ink(ink)

# %% [markdown]
# Stuck? Take away the # below. Each run of the cell gives a hint: first the idea, then the shapes, then nearly the code.

# %%
# check.ink.hint()

# %% [markdown]
# **What the number means.** Once all cases are right, the last line is your own ratio. The check ran the loop and
# your function on the same images, one right after the other, at least eight times. The ratio is the middle one of
# those pairs, and the true one very likely lies between the two numbers in brackets.
#
# To rehearse, the check asks for a ratio of {T}; in this lesson speed earns no points. A speed check has three answers:
# *pass*, *fail*, and *inconclusive*, which means too close to call. If that is because the machine was busy, it never
# costs you a point.

# %% [markdown]
# ## In your own words
#
# One cell in each lesson asks you to explain something that you measured. In a course somebody reads it; alone, write
# it down anyway, because what you cannot explain you do not know yet.
#
# **Why does the check compare your function with a loop, and not with a fixed time such as "under 1 millisecond"?**
# One or two sentences, with your own ratio in them. (If you have none yet, take the one from the race.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_ratio", "locked": false, "points": 1, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A fixed time depends on the machine and on what else it is doing: a fast laptop would pass with slow code, a busy
# one would fail with good code. Both sides of a ratio run on the same machine at nearly the same moment, so my ratio
# (N times, the last line of the check of `ink`) says much about the code and little about the machine.
#
# *Rubric, 1 point.* 1: says that a time depends on machine or load while a ratio largely cancels that, and gives an
# own number. 0.5: one of the two. Any number that the notebook shows will do. Not asked for: that ratios, too, differ
# somewhat from machine to machine.
# ### END SOLUTION

# %% [markdown]
# ## Your record
#
# The journal keeps your guesses and what was measured. A point on the line is a perfect guess.

# %%
journal.guesses()

# %% [markdown]
# It also keeps your *ladder*: the time that your own code needs for the 60,000 images of MNIST, one rung for each way
# of writing it. Your first rungs come in lessons 01 and 02. Until then it shows only the four numbers from above.

# %%
journal.ladder()

# %% [markdown]
# ## Handing in
#
# 1. In the menu choose *Kernel*, *Restart Kernel and Run All Cells*. A notebook that runs in this way, from an empty
#    start, also runs where it is graded.
# 2. Save it. The file is `00_start_here.ipynb`, in the folder where you opened it.
# 3. In a course, make the file to hand in: `unrolled submit 00 --student ID` in a terminal, or `journal.submit("ID")` in
#    a cell, as on Colab. ID is the name or number by which your course knows you. Hand in that file or the notebook,
#    whichever your instructor asks for. Leave the names of functions and the cells of the checks as they are.
#
# The grader runs your notebook again and checks your functions with inputs that you have not seen. What was on your
# screen does not count, so a notebook without outputs is just as good.

# %% [markdown]
# ## Working alone
#
# You need not hand in anything: the checks in the notebook are the same ones. Two commands help, in a terminal:
#
# - `unrolled progress` says what you have passed, what comes next, and how many minutes are left;
# - `unrolled check 00_start_here.ipynb` runs all checks of a notebook.

# %% [markdown]
# ## What you have
#
# In three sentences: Guess, write, check, and then ask what the number means. A ratio compares two ways of doing the
# same work on the same machine at the same moment. Loops over single numbers are slow in Python, and operations on
# whole arrays are the first way out.
#
# ### Stretch
#
# Your one expression is not the end. The mean of a row of numbers is also a product: the row times a vector in which
# every number is 1 / (H · W). Flatten each image into a row first, with `x = images.reshape(len(images), -1)`; H · W is
# then `x.shape[1]`. Make the vector with `np.full`, in the dtype of the images, multiply with `@`, and pass your function
# to `check.ink` in a cell of your own. Is it faster than `mean`? Lesson 01 shows what stands behind `@`.
