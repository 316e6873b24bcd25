"""unrolled.show: the style, Picture and Explorer, and what holds for every picture."""

import base64
import io
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from pictures import KERNEL, NETWORK, PICTURES, RNG, SQUARE, TEXTS, stills, texts
from PIL import Image

import unrolled
from unrolled import show, simgpu
from unrolled.show.style import new_figure, styled

EVERY = pytest.mark.parametrize("name", PICTURES)
MAIN = [name for name in PICTURES if "," not in name]


@pytest.fixture(autouse=True)
def _few_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a graded notebook, which is drawn in half the time."""
    monkeypatch.setenv("UNROLLED_GRADING", "1")


@cache
def made(name: str) -> list[show.Picture]:
    """A picture, or an explorer's at the start and both ends: drawn once for two tests."""
    return stills(PICTURES[name]())


def test_every_picture_of_the_library_is_here() -> None:
    drawn = {name for name in show.__all__ if name.islower()} - {"live"}  # draws again and again
    assert {name.partition(",")[0] for name in PICTURES} == drawn


@pytest.mark.parametrize("name", MAIN)
def test_looks_the_same_in_every_session_and_leaves_no_trace_there(name: str) -> None:
    from matplotlib import pyplot

    pyplot.close("all")
    plain = made(name)[0].png()
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 31, "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        again = PICTURES[name]()
        assert (again.still() if isinstance(again, show.Explorer) else again).png() == plain
        assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


@EVERY
def test_a_picture_says_what_it_shows_fills_its_paper_and_goes_into_a_notebook(name: str) -> None:
    """Read `picture_texts.json` by eye when it changes."""
    assert texts(made(name)) == json.loads(TEXTS.read_text("utf-8"))[name]
    for picture in made(name):
        size = picture.figure.get_size_inches()
        low, high = extent(picture.figure)
        assert (size <= 7.5).all()
        assert (low > -0.02).all()
        assert (high < size + 0.02).all()
    still = made(name)[0]
    data, metadata = still._repr_mimebundle_()
    assert set(data) == {"text/html", "image/png", "text/plain"}  # no kernel here: the still
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == str(still) == still.alt == metadata["image/png"]["alt"]
    assert data["text/html"].startswith("<img ")
    assert len(still.alt) > 15
    assert still.alt.endswith(".")
    assert "nan" not in still.alt


def extent(figure: Figure) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high ends, in inches, of all that is drawn."""
    corners = []
    for axes in figure.axes:
        if axes.axison:
            with styled():
                box = axes.get_tightbbox(figure.canvas.get_renderer())
            corners.append(box.get_points() / figure.dpi)
            continue
        # A sheet: its unit is the inch, and it cuts off what leaves it, so look at the shapes themselves.
        paths = [path for artist in axes.collections for path in artist.get_paths()]
        corners += [path.vertices for path in paths + [patch.get_path() for patch in axes.patches]]
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


IMAGES = RNG.random((4, 1, 6, 6), dtype=np.float32)
CLASSES, GUESSED = np.array([0, 1, 2, 1]), np.array([0, 1, 1, 1])
FEW_KERNELS = RNG.standard_normal((2, 1, 3, 3)).astype(np.float32)
ARRAYS = {
    "images": lambda at: show.images(at(IMAGES), at(CLASSES), at(GUESSED)),
    "difference": lambda at: show.difference(at(IMAGES[0, 0]), at(IMAGES[1, 0])),
    "convolution": lambda at: show.convolution(at(IMAGES[0]), at(FEW_KERNELS[0])),
    "conv2d_backward": lambda at: show.conv2d_backward(at(IMAGES[0, 0]), at(np.eye(3)), at(IMAGES[1, 0, :4, :4])),
    "im2col": lambda at: show.im2col(at(IMAGES[0, 0]), 3),
    "max_pool2d": lambda at: show.max_pool2d(at(IMAGES[0, 0]), 2, values=at(IMAGES[1, 0, :3, :3])),
    "filters": lambda at: show.filters(at(FEW_KERNELS), at(IMAGES[0])),
    "confusion": lambda at: show.confusion(at(CLASSES), at(GUESSED)),
    "losses": lambda at: show.losses({"Adam": at(IMAGES[:, 0, 0, 0])}),
    "race": lambda at: show.race(at(IMAGES), at(CLASSES), {"a": (1e-3, at(GUESSED)), "b": (1e-4, at(CLASSES))}),
    "computation_graph": lambda at: show.computation_graph(
        at(NETWORK["x"]), at(NETWORK["labels"]), *(list(map(at, NETWORK[name])) for name in ("weights", "biases"))
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_on_a_gpu_are_drawn_as_those_of_the_host(name: str) -> None:
    assert ARRAYS[name](simgpu.asarray).alt == ARRAYS[name](np.asarray).alt


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


@pytest.mark.parametrize("name", ["launches", "matmul_workers"])
def test_a_widget_follows_its_sliders(name: str) -> None:
    """That each explorer's picture moves with them is in `picture_texts.json`."""
    explorer = PICTURES[name]()
    assert isinstance(explorer, show.Explorer)
    *rows, image = explorer.widget().children
    first, chosen = image.value, {}
    for row, (which, slider) in zip(rows, explorer.sliders.items(), strict=True):
        control = row.children[0] if slider.play else row
        assert [words for words, _ in control.options] == [slider.words(value) for value in slider.values]
        control.index = len(slider.values) - 1 if slider.start == 0 else 0
        chosen[which] = slider.values[control.index]
    assert image.value == explorer.frame(**chosen)
    assert image.value != first


CELLS = [
    "from unrolled import show\n"
    "explorer = show.convolution([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0], [0, 1]])\n"
    "explorer",
    "box = explorer.widget()\n(row, image) = box.children\ncontrol, play = row.children\nprint(image.value)",
    "control.index = 3\nprint(image.value)",
    "print(control.description, '|', control.options[3][0], '|', play.max, play.interval)",
    "import sys\nsys.modules['ipywidgets'] = None\nexplorer",
]


def test_a_real_kernel_gives_the_widget_and_the_still_and_without_ipywidgets_the_still(tmp_path: Path) -> None:
    import nbformat

    from unrolled.notebook import run

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    executed = run.execute(notebook, cwd=tmp_path, env={"PYTHONPATH": str(Path(unrolled.__file__).parents[1])})
    assert (executed.stopped, executed.errors) == (None, ())
    outputs = [cell.outputs for cell in executed.notebook.cells]
    data, alone = outputs[0][-1]["data"], outputs[4][-1]["data"]
    assert set(alone) == {"text/html", "image/png", "text/plain"}
    assert set(data) == {*alone, "application/vnd.jupyter.widget-view+json"}
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert data["text/plain"] == str(show.convolution([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0], [0, 1]]))
    # All that is printed: a slow kernel sends a line and its end apart.
    before, after, words = ("".join(output.get("text", "") for output in outputs[i]) for i in (1, 2, 3))
    assert before.split("alt=")[0] != after.split("alt=")[0]
    assert "adds up to 8" in before
    assert "adds up to 14" in after
    assert words.strip() == "output position | row 1, column 1 | 3 400"


def test_a_graded_notebook_gets_half_the_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    def pixels() -> tuple[int, int]:
        return Image.open(io.BytesIO(show.convolution(SQUARE, KERNEL).still().png())).size

    width, height = pixels()
    monkeypatch.delenv("UNROLLED_GRADING")
    assert pixels() == (round(width * 144 / 96), pytest.approx(height * 144 / 96, abs=1))
