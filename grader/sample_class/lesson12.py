"""Lesson 12: in what a student of the sample class differs from the solution, a class a student."""


class off_by_one:
    """A chunk further on than it should be, and a way back that begins a slot too early."""

    ring_allreduce = {"comm.rank - k - 1": "comm.rank - k - 2"}
    pipeline_schedule = {"row[half + (stages - 1 - stage) + i]": "row[half - 1 + (stages - 1 - stage) + i]"}


class another_way:
    """Right, by other ways: a bias that rank 0 alone adds."""

    column_row_linear = {
        "return comm.all_reduce(hidden @ weight2) + bias2": (
            "return comm.all_reduce(hidden @ weight2 + (bias2 if comm.rank == 0 else np.float32(0)))"
        ),
    }
