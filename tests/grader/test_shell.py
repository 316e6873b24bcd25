"""Cells as students write them, run by the worker's IPython: what stands under them is what Jupyter would show."""

import base64
from collections.abc import Iterator

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from unrolled_grader.box.transport import Worker
from unrolled_grader.judge.outputs import Outputs

LIMIT = 60.0


class Notebook:
    """A worker and what its cells show."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.outputs = Outputs()
        self.error: tuple[str, ...] | None = None
        worker.on_event, worker.on_print = self.outputs.take, self.outputs.stream

    def run(self, source: str) -> list[NotebookNode]:
        """What the cell shows."""
        cell = new_code_cell(source)
        self.outputs.begin(cell)
        self.error = self.worker.run_cell(source, LIMIT)
        nbformat.validate(new_notebook(cells=[cell]))
        return list(cell.outputs)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(boxed=True) as worker:
        yield worker


@pytest.fixture
def notebook(worker: Worker) -> Notebook:
    return Notebook(worker)


def brief(outputs: list[NotebookNode]) -> list[tuple[str, str]]:
    """Kind and text of each output."""
    texts = (output.get("text") or output.get("evalue") or output.data["text/plain"] for output in outputs)
    return [(output.get("name", output.output_type), text) for output, text in zip(outputs, texts, strict=True)]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("6 * 7", [("execute_result", "42")]),
        ("6 * 7;", []),
        ("None", []),
        ("'text'\n'last'", [("execute_result", "'last'")]),
        ("display(1, 2)", [("display_data", "1"), ("display_data", "2")]),
        ("print('a'); print('b', end='')", [("stdout", "a\nb")]),
        ("import sys; print('a', file=sys.stderr)", [("stderr", "a\n")]),
        ("print('a'); display(1); 2", [("stdout", "a\n"), ("display_data", "1"), ("execute_result", "2")]),
        ("import os; os.write(1, b'raw\\xff\\n');", [("stdout", "raw\ufffd\n")]),
        ("!echo from the shell", [("stdout", "from the shell\n")]),
        ("found = !echo two; echo lines\nfound", [("execute_result", "['two', 'lines']")]),
        ("%%bash\necho from bash", [("stdout", "from bash\n")]),
        ("%%capture kept\nprint('kept')", []),
        ("kept.stdout", [("execute_result", "'kept\\n'")]),
        ("import asyncio\nawait asyncio.sleep(0, 'slept')", [("execute_result", "'slept'")]),
        ("%pwd", [("execute_result", "'/tmp/notebook'")]),
        ("In[-1]", [("execute_result", "'In[-1]'")]),
        ("_ = 5\n__name__", [("execute_result", "'__main__'")]),
        ("%matplotlib inline\n1", [("execute_result", "1")]),
        ("exit()", []),
        ("quit", []),
    ],
)
def test_a_cell_shows_what_jupyter_shows(source: str, shown: list[tuple[str, str]], notebook: Notebook) -> None:
    assert [(kind, text.replace("\r\n", "\n")) for kind, text in brief(notebook.run(source))] == shown
    assert notebook.error is None


def test_names_stay_from_cell_to_cell_also_for_pickle(notebook: Notebook) -> None:
    notebook.run("import pickle\n\nclass Mine:\n    number = 7")
    assert brief(notebook.run("pickle.loads(pickle.dumps(Mine())).number")) == [("execute_result", "7")]


def test_tasks_go_on_while_a_later_cell_awaits(notebook: Notebook) -> None:
    notebook.run("import asyncio\n\nasync def work():\n    await asyncio.sleep(0)\n    return 'worked'")
    notebook.run("task = asyncio.create_task(work())")
    assert brief(notebook.run("await task")) == [("execute_result", "'worked'")]


def test_time_is_told(notebook: Notebook) -> None:
    assert "Wall time" in brief(notebook.run("%%time\nx = 1"))[0][1]
    assert "per loop" in brief(notebook.run("%timeit -n 1 -r 1 pass"))[0][1]


@pytest.mark.parametrize("magic", ["%%time", "%%capture"])
def test_a_kernel_below_a_magic_is_compiled(notebook: Notebook, magic: str) -> None:
    notebook.run("from unrolled import simgpu as cp\nfrom unrolled.simgpu import jit\nx = cp.zeros(1)")
    notebook.run(f"{magic}\n\n@jit.rawkernel()\ndef kernel(x):\n    x[0] = 2.0")
    notebook.run("%%time\ny = 1")
    assert brief(notebook.run("kernel[1, 1](x); float(x[0])")) == [("execute_result", "2.0")]


def test_plots_are_pictures_and_come_once(notebook: Notebook) -> None:
    (plot,) = notebook.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert plot.output_type == "display_data"
    assert base64.b64decode(plot.data["image/png"]).startswith(b"\x89PNG")
    assert notebook.run("1;") == []


def test_displays_are_updated_in_place_and_cleared(notebook: Notebook) -> None:
    source = "handle = display(1, display_id=True)\nprint('between')\nhandle.update(2)"
    assert sorted(brief(notebook.run(source))) == [("display_data", "2"), ("stdout", "between\n")]
    source = "from IPython.display import clear_output\nfor n in range(5):\n    clear_output(wait=True)\n    display(n)"
    assert brief(notebook.run(source)) == [("display_data", "4")]
    assert brief(notebook.run("display(1)\nclear_output()")) == []


def test_widgets_show_their_text(notebook: Notebook) -> None:
    (shown,) = notebook.run("import ipywidgets\nipywidgets.IntSlider(value=3)")
    assert set(shown.data) == {"text/plain"}
    assert "IntSlider(value=3)" in shown.data["text/plain"]


# What goes wrong


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def f():\n    return 1 / 0\nf()", ("ZeroDivisionError", "division by zero")),
        ("nosuch", ("NameError", "name 'nosuch' is not defined")),
        ("%nosuch", ("UsageError", "Line magic function `%nosuch` not found.")),
        ("import sys; sys.exit(3)", ("SystemExit", "3")),
        ("raise SystemExit", ("SystemExit", "")),
        ("raise KeyboardInterrupt", ("KeyboardInterrupt", "")),
        ("input('name? ')", ("EOFError", "EOF when reading a line")),
        ("1 +", ("SyntaxError", "invalid syntax")),
        ("raise ValueError('x' * 100_000)", ("ValueError", "x" * 2000)),
        ("raise ValueError('\\ud800')", ("ValueError", "?")),
        ("await 1", ("TypeError", "object int can't be used in 'await' expression")),
    ],
)
def test_an_error_is_shown_and_told(source: str, error: tuple[str, str], notebook: Notebook) -> None:
    shown = notebook.run(source)
    assert notebook.error is not None
    assert (notebook.error[0], notebook.error[1][: len(error[1])]) == error
    assert [output.ename for output in shown if output.output_type == "error"] in ([error[0]], [])
    assert notebook.worker.dead == ""


def test_a_traceback_names_the_line_in_plain_text_of_bounded_length(notebook: Notebook) -> None:
    shown = notebook.run("def f():\n    return 1 / 0\nf()")
    text = "\n".join(shown[-1].traceback)
    assert "return 1 / 0" in text
    assert "\x1b" not in text
    (shown,) = notebook.run("raise ValueError('x' * 100_000)")
    assert sum(map(len, shown.traceback)) <= 20_000


WICKED = """\
class Wicked(Exception):
    def __repr__(self):
        raise ValueError("no repr")
    __str__ = __repr__
"""


def test_objects_whose_text_raises_are_told_apart_from_their_cell(notebook: Notebook) -> None:
    notebook.run(WICKED)
    shown = notebook.run("Wicked()")
    assert [(output.ename, output.evalue) for output in shown] == [("ValueError", "no repr")]
    assert notebook.error is None
    (shown_error,) = notebook.run("raise Wicked()")
    assert notebook.error is not None
    assert "cannot be shown" in shown_error.evalue
    assert brief(notebook.run("'still here'")) == [("execute_result", "'still here'")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("{'text/plain': {1, 2}}", "{1, 2}"),
        ("{'text/plain': 'x' * 20_000_000}", "[output left out: a message of 20,"),
        ("{'text/plain': b'abc'}", base64.b64encode(b"abc").decode()),
        ("{'text/plain': '\\ud800'}", "?"),
        ("{3: 'x', 'text/plain': 'y'}", "y"),
    ],
)
def test_odd_data_is_shown_as_far_as_it_can_be(data: str, text: str, notebook: Notebook) -> None:
    ((kind, shown),) = brief(notebook.run(f"display({data}, raw=True)"))
    assert (kind, shown[: len(text)]) == ("display_data", text)
    assert notebook.error is None


def test_data_that_is_no_json_is_an_error_of_its_cell(notebook: Notebook) -> None:
    notebook.run("loop = []\nloop.append(loop)\ndisplay({'application/json': loop}, raw=True)")
    assert notebook.error is not None
    assert notebook.error[0] == "ValueError"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import missing\n\n@staticmethod\ndef later(): 'made'", "import missing"),
        (
            "x = 1\nfrom google.colab import drive; drive.mount('/x')\ndef later(): 'made'",
            "from google.colab import drive;",
        ),
        ("name = input()\ndef later(): 'made'", "name = input()"),
        ("%%time\nimport missing\ndef later(): 'made'", "import missing"),
        ("if True:\n    import missing\n    def hidden(): 'never made'\nlater = 'made'\n1 / 0", "import missing"),
        ("1 / 0\nimport missing\ndef later(): 'made'", "1 / 0"),
        ("import missing\n@missing.fast\ndef later(): 'made'", "import missing"),
        ("@missing.fast(\n    option=1)\ndef later(): 'made'", "@missing.fast("),
        ("import missing; later = 'made'", "import missing"),
        ("count = 0\n1 / 0\ncount += 1; later = 'made' * (count == 1)", "1 / 0"),  # once
        ("text = 'a\u2028b\x0cc'\nimport missing\ndef later(): 'made'", "import missing"),
        ("raise KeyError('x')\nawait __import__('asyncio').sleep(0)\nlater = 'made'", "raise KeyError('x')"),
    ],
)
def test_what_stands_below_a_line_that_raised_is_run_all_the_same(source: str, line: str, notebook: Notebook) -> None:
    notebook.run("later = None")
    (output,) = [output for output in notebook.run(source) if output.output_type == "error"]
    assert notebook.error is not None
    assert (output.ename, line) == (notebook.error[0], notebook.error[2][: len(line)])
    assert "made" in brief(notebook.run("later.__doc__ if callable(later) else later"))[0][1]


@pytest.mark.parametrize(
    "source",
    ["raise SystemExit\nlater = 1", "raise KeyboardInterrupt\nlater = 1", "later = = 1", "1 / 0", "(0)\n1 / 0"],
)
def test_nothing_more_is_run_after_an_exit_or_an_interrupt(source: str, notebook: Notebook) -> None:
    notebook.run("later = None")
    notebook.run(source)
    assert notebook.error is not None
    assert notebook.error[2] == ""
    assert notebook.run("later") == []


def test_a_stream_that_is_closed_or_replaced_ends_nothing(notebook: Notebook) -> None:
    source = "import io, sys\nkept = sys.stdout\nsys.stdout = io.StringIO()\nprint('lost')\nsys.stdout.close()"
    assert notebook.run(source) == []
    assert brief(notebook.run("sys.stdout = kept\nprint('back')")) == [("stdout", "back\n")]
