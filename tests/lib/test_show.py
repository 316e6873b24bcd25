"""unrolled.show: the style, Picture and Explorer, and what holds for every picture."""

import base64
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from paper_trace import lying_clock
from PIL import Image

import unrolled
from unrolled import show
from unrolled.parallel.network import Message
from unrolled.show import sheet
from unrolled.show.style import new_figure, styled
from unrolled.simgpu.profiles import PROFILES

RNG = np.random.default_rng(3)
DIGITS = RNG.random((12, 1, 28, 28)).astype(np.float32)
LABELS = np.arange(12) % 10
SLIPS = np.where(LABELS == 7, 1, LABELS)
SQUARE = [[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]]
KERNEL = [[2, 0, 1], [0, 2, 1], [1, 0, 1]]
CHANNELS, KERNELS = RNG.integers(0, 5, (3, 4, 4)), RNG.integers(-2, 3, (3, 3, 3))
RUNG = {"label": "loops", "seconds": 5400, "what": "convolution forward only", "batch": 32, "precision": "float32"}


CLIMB = [
    {"label": "NumPy", "seconds": 1800.0},
    {"label": "a GPU", "seconds": 100.0, "cause": "hardware", "batch": 8},
    {"label": "one fix", "seconds": 50.0, "cause": "code", "batch": 8},
    {"label": "a larger batch", "seconds": 5.0, "cause": "batch", "batch": 128},
    {"label": "a graph", "seconds": 2.5, "cause": "code", "batch": 128},
]
KERNELS_TIMED = {"matmul": (2e9, 3e7, 4e-4), "add": (1e6, 1.2e7, 5e-5), "a longer name": (0, 9e7, 4e-4)}
SIZES = [16, 256]
LONG = {
    "name": "a rather long name of a part, as layers have",
    "seconds": 0.002,
    "parts": [{"name": f"{i}: Conv2d(64, 5)", "seconds": 0.001} for i in range(3)],
}
STEP = {"name": "step", "seconds": 0.003, "where": "measured, NVIDIA H200", "parts": [LONG]}


class Fast:
    """A stand-in for a timing verdict."""

    pairs = (2.0, 2.1, 1.9)

    def draw(self, ax: object) -> None:
        ax.semilogy([1, 2, 3], self.pairs, "o")  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return "2x faster: pass."


PICTURES: dict[str, Callable[[], show.Picture | show.Explorer]] = {
    "agreement": lambda: show.agreement(
        {"products": {"(8, 9) @ (9, 8)": (1e-5, 3e-5)}, "steps": {"a step": (1e-3, 9e-4)}}
    ),
    "amdahl": lambda: show.amdahl(0.9),
    "banks": lambda: show.banks(start="a column of 32 × 32"),
    "barriers": lambda: show.barriers(),
    "barriers, many": lambda: show.barriers(range(16)),
    "bars": lambda: show.bars({"digits": 1e5, "their patch matrix": 9e5}, "B", title="Memory"),
    "bars, log": lambda: show.bars({"loops": 0.21, "one call": 6.2e-5}, "s", log=True),
    "convolution": lambda: show.convolution(SQUARE, KERNEL),
    "convolution, padded": lambda: show.convolution(SQUARE, KERNEL, padding=1, bias=3),
    "convolution, channels": lambda: show.convolution(CHANNELS, KERNELS),
    "convolution, digit": lambda: show.convolution(DIGITS[0], KERNEL, padding=1),
    "convolution, stride": lambda: show.convolution(DIGITS[0], np.ones((5, 5)) / 25, stride=2),
    "conv2d_backward": lambda: show.conv2d_backward(SQUARE, KERNEL, [[1, -2], [0, 3]]),
    "conv2d_backward, padded": lambda: show.conv2d_backward(SQUARE, KERNEL, np.eye(4), padding=1),
    "conv2d_backward, digit": lambda: show.conv2d_backward(DIGITS[0], np.ones((5, 5)), np.eye(13), 2, 1),
    "difference": lambda: show.difference(np.eye(4), np.zeros((4, 4))),
    "difference, large": lambda: show.difference(DIGITS, DIGITS + 1.0),
    "growth": lambda: show.growth([100, 200, 400], {"merge": [1e-4, 2e-4, 4e-4], "bubble": [1e-3, 4e-3, 16e-3]}),
    "guesses": lambda: show.guesses([{"name": "gemm", "guess": 40, "measured": 9}]),
    "hardware": lambda: show.hardware(PROFILES["H200"], PROFILES["T4"], inside=True),
    "im2col": lambda: show.im2col(SQUARE, 3),
    "im2col, channels": lambda: show.im2col(CHANNELS, 3),
    "im2col, digit": lambda: show.im2col(DIGITS[0], 3, padding=1),
    "images": lambda: show.images(DIGITS, LABELS, SLIPS, title="Twelve digits"),
    "ladder": lambda: show.ladder([RUNG, {**RUNG, "label": "im2col", "seconds": 2.0}]),
    "matmul_workers": lambda: show.matmul_workers(),
    "matmul_workers, large": lambda: show.matmul_workers(24, 24, 24, 8),
    "memory_walk": lambda: show.memory_walk(),
    "memory_walk, wide": lambda: show.memory_walk((8, 32), "column"),
    "messages": lambda: show.messages([Message(i, 15 - i, 10**6, i * 1e-6, 4e-5, 1 + i) for i in range(8)]),
    "pairs": lambda: show.pairs(Fast()),
    "pipeline, named": lambda: show.pipeline("1f1b"),
    "pipeline": lambda: show.pipeline([[("F", 0), ("F", 1), None, ("B", 0)], [None, ("F", 0), ("B", 0), ("B", 1)]]),
    "pipeline, long": lambda: show.pipeline([[("F", slot) for slot in range(128)]] * 8),
    "race": lambda: show.race(DIGITS, LABELS, {"loops": (0.05, LABELS), "network": (1e-4, SLIPS)}),
    "causes": lambda: show.causes(CLIMB, "an epoch of MNIST"),
    "ring_allreduce": lambda: show.ring_allreduce(),
    "ring_allreduce, many": lambda: show.ring_allreduce(8),
    "roofline": lambda: show.roofline(5e10, 1e10, {"add": (0.083, 7e8), "matmul": (85, 4e10)}),
    "roofline, kernels": lambda: show.roofline(8e12, 3e11, kernels=KERNELS_TIMED, where="modelled, T4"),
    "scaling": lambda: show.scaling({"CPU": (SIZES, [0.01, 0.04], "measured"), "GPU": (SIZES, [1e-3] * 2, "modelled")}),
    "scaling_curves": lambda: show.scaling_curves(weak=[(1, 0.01, "H200"), (2, 0.012, "H200")]),
    "timeline": lambda: show.timeline(lying_clock()),
    "timeline, streams": lambda: show.timeline(lying_clock().launch("add", 1e-3, stream=12).copy("to host", 1e-4)),
    "warps": lambda: show.warps(),
    "warps, many": lambda: show.warps({"x[0]": lambda i: 0, "x[40 * i]": lambda i: 40 * i}, 8, itemsize=8),
    "waterfall": lambda: show.waterfall(STEP),
    "waterfall, too much": lambda: show.waterfall(STEP, ("a rather long name of a part, as layers have",)),
}
EVERY = pytest.mark.parametrize("name", PICTURES)


def stills(made: show.Picture | show.Explorer) -> list[show.Picture]:
    """The picture, or an explorer's pictures with its sliders at both ends and at the start."""
    if isinstance(made, show.Picture):
        return [made]
    ends = [{name: slider.values[i] for name, slider in made.sliders.items()} for i in (0, -1)]
    return [made.still(), *(made.at(**values) for values in ends)]


@EVERY
def test_leaves_no_trace_in_the_session(name: str) -> None:
    from matplotlib import pyplot

    pyplot.close("all")
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 31}):
        before = dict(matplotlib.rcParams)
        PICTURES[name]()._repr_mimebundle_()
        assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


@EVERY
def test_looks_the_same_in_every_session(name: str) -> None:
    plain = stills(PICTURES[name]())[0].png()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 31, "lines.linewidth": 9}):
        assert stills(PICTURES[name]())[0].png() == plain


@EVERY
def test_nothing_leaves_the_paper(name: str) -> None:
    for picture in stills(PICTURES[name]()):
        width, height = picture.figure.get_size_inches()
        assert width <= 7.5
        assert height <= 7.5
        left, low, right, high = extent(picture.figure)
        assert left > -0.02
        assert low > -0.02
        assert right < width + 0.02
        assert high < height + 0.02


def extent(figure: Figure) -> tuple[float, float, float, float]:
    """Left, low, right and high end, in inches, of all that is drawn."""
    (axes, *others) = figure.axes
    if others or axes.axison:
        with styled():
            box = figure.get_tightbbox()
        return box.x0, box.y0, box.x1, box.y1
    # A sheet: its unit is the inch, and it cuts off what leaves it, so look at the shapes themselves.
    paths = [path for artist in axes.collections for path in artist.get_paths()] + [p.get_path() for p in axes.patches]
    points = np.concatenate([path.vertices for path in paths])
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    return left, top, right, bottom


@EVERY
def test_bundle_has_an_image_with_words(name: str) -> None:
    made = PICTURES[name]()
    data, metadata = made._repr_mimebundle_()
    assert set(data) == {"text/html", "image/png", "text/plain"}  # no kernel here: the still
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    still = made.still() if isinstance(made, show.Explorer) else made
    assert data["text/plain"] == str(still) == still.alt == metadata["image/png"]["alt"]
    assert data["text/html"].startswith("<img ")
    assert len(made.alt) > 15
    assert made.alt.endswith(".")
    assert "nan" not in made.alt


def test_pyplot_and_ipywidgets_are_not_loaded() -> None:
    code = (
        "import sys; from unrolled import show; show.bars({'a': 1.0}, 's')._repr_mimebundle_();"
        "print([name for name in ('matplotlib.pyplot', 'ipywidgets', 'IPython') if name in sys.modules])"
    )
    path = str(Path(unrolled.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path})
    assert done.stdout.strip() == "[]", done.stderr


def test_alt_text_is_escaped() -> None:
    picture = show.Picture(new_figure(1), 'a < b & "c"')
    assert 'alt="a &lt; b &amp; &quot;c&quot;"' in picture.html()
    assert picture._repr_mimebundle_()[0]["text/plain"] == 'a < b & "c"'


def test_explorer_follows_its_sliders() -> None:
    explorer = show.convolution(SQUARE, KERNEL)
    first, last = explorer.at(position=0), explorer.at(position=3)
    assert first.png() != last.png()
    assert first.alt != last.alt
    assert explorer.still().alt == explorer.at().alt == explorer.alt
    assert explorer.frame(position=0) != explorer.frame(position=3)


def test_explorer_draws_what_it_is_asked_for() -> None:
    seen = []

    def draw(**values: float) -> Figure:
        seen.append(values)
        return new_figure(1)

    explorer = show.Explorer(
        draw, lambda **values: f"{values}.", a=show.Slider("a", [1, 2, 3], 2), b=show.Slider("b", "xy")
    )
    assert explorer.start == {"a": 3, "b": "x"}
    assert explorer.at(b="y").alt == "{'a': 3, 'b': 'y'}."
    assert seen == [{"a": 3, "b": "y"}]


def test_slider_refuses_a_start_outside_its_values() -> None:
    with pytest.raises(ValueError, match="start must be an index into the 2 values, got 2"):
        show.Slider("a", [1, 2], 2)


def test_no_kernel_means_a_still(monkeypatch: pytest.MonkeyPatch) -> None:
    from unrolled.show import picture

    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace())  # IPython in a terminal: a shell, no kernel
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not picture.widgets_work()


CELLS = [
    "from unrolled import show\n"
    "explorer = show.convolution([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0], [0, 1]])\n"
    "explorer",
    "box = explorer.widget()\n(row, image) = box.children\ncontrol, play = row.children\nprint(image.value)",
    "control.index = 3\nprint(image.value)",
    "print(control.description, '|', control.options[3][0], '|', play.max, play.interval)",
    "import sys\nsys.modules['ipywidgets'] = None\nexplorer",
]


@pytest.fixture(scope="module")
def kernel_outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict]]:
    """What a real kernel gives for CELLS."""
    import nbformat

    from unrolled.notebook import run

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    path = str(Path(unrolled.__file__).parents[1])
    executed = run.execute(notebook, cwd=tmp_path_factory.mktemp("kernel"), env={"PYTHONPATH": path})
    assert (executed.stopped, executed.errors) == (None, ())
    return [cell.outputs for cell in executed.notebook.cells]


def printed(outputs: list[dict]) -> str:
    """All of it: a slow kernel sends a line and its end apart."""
    return "".join(output.get("text", "") for output in outputs)


def test_kernel_with_ipywidgets_gives_the_widget_and_the_still(kernel_outputs: list[list[dict]]) -> None:
    data = kernel_outputs[0][-1]["data"]
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "text/html", "image/png", "text/plain"}
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert data["text/plain"] == str(show.convolution([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0], [0, 1]]))


def test_moving_a_slider_changes_image_and_words(kernel_outputs: list[list[dict]]) -> None:
    before, after = (printed(kernel_outputs[i]) for i in (1, 2))
    assert before.split("alt=")[0] != after.split("alt=")[0]
    assert "adds up to 8" in before
    assert "adds up to 14" in after
    assert printed(kernel_outputs[3]).strip() == "output position | row 1, column 1 | 3 400"


def test_kernel_without_ipywidgets_gives_the_still(kernel_outputs: list[list[dict]]) -> None:
    assert set(kernel_outputs[4][-1]["data"]) == {"text/html", "image/png", "text/plain"}


def test_a_graded_notebook_gets_half_the_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    def pixels() -> tuple[int, int]:
        return Image.open(io.BytesIO(show.convolution(SQUARE, KERNEL).still().png())).size

    width, height = pixels()
    monkeypatch.setenv("UNROLLED_GRADING", "1")
    assert pixels() == (round(width * 96 / 144), round(height * 96 / 144))


@given(st.text("abgjMWf01µ×·–…₀¹≈✗, ", min_size=1).filter(str.strip), st.booleans())
def test_a_line_of_text_starts_and_ends_where_its_ink_does(text: str, bold: bool) -> None:
    path, start, end = sheet._glyphs(text, bold)
    extent = path.get_extents()
    assert (start, end) == pytest.approx((extent.x0, extent.x1), abs=0.01)
