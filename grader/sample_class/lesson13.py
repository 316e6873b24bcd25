"""Lesson 13: in what a student of the sample class differs from the solution, a class a student."""


class slow:
    """All from Python, and a repair that is none."""

    own_network = {'if version == "before":': 'if version in ("before", "after"):'}

    replayed_epoch = {"            graph.launch()\n": "            program()\n"}


class off_by_one:
    """A launch too few, and a rate that falls before the step."""

    replayed_epoch = {"for _ in range(len(order)):": "for _ in range(len(order) - 1):"}
    capturable_step = {"    grad *= rate\n": "    rate *= 0.99\n    grad *= rate\n    rate /= 0.99\n"}


class another_way:
    """Right, by other ways: differences of causes by logarithms."""

    ablation = {
        "return {cause: float(np.median(found)) for cause, found in ratios.items()}": (
            "return {cause: float(np.exp(np.median(np.log(found)))) for cause, found in ratios.items()}"
        ),
    }
