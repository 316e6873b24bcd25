"""A picture that says in words what it shows; with sliders, and a still of it where widgets cannot run."""

from __future__ import annotations

import base64
import html
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from unrolled.show.style import styled
from unrolled.timing.measuring import is_graded

CSS_DPI = 96  # pixels an inch in a browser's own measure
STILL_DPI = 144  # sharp on dense screens and in print
GRADED_DPI = 96  # half the pixels, where hundreds of notebooks are run and kept
FRAME_DPI = 110  # a compromise: a frame must be drawn faster than a slider is dragged
PLAY_INTERVAL = 400  # milliseconds from one frame to the next
PLAY_STEPS = 64  # about; the whole way takes half a minute
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

Bundle = tuple[dict[str, Any], dict[str, Any]]


def render(figure: Figure, dpi: int = STILL_DPI) -> bytes:
    """Return the figure as PNG bytes, drawn in the course's style."""
    buffer = io.BytesIO()
    with styled():
        # Fast compression: four times quicker than the default for a file a third larger.
        figure.savefig(buffer, format="png", dpi=dpi, pil_kwargs={"compress_level": 2})
    return buffer.getvalue()


def css_size(figure: Figure) -> tuple[int, int]:
    """Return the width and height of the figure in a browser's pixels, 96 an inch."""
    width, height = figure.get_size_inches()
    return round(width * CSS_DPI), round(height * CSS_DPI)


class Picture:
    """A Matplotlib figure, drawn when the picture is first shown, with a text alternative.

    alt: what the picture says, in words; also what `str(picture)` and a terminal give.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        self.figure, self.alt = figure, alt
        self._png: bytes | None = None

    def png(self) -> bytes:
        """Return the picture as PNG bytes."""
        if self._png is None:
            self._png = render(self.figure, GRADED_DPI if is_graded() else STILL_DPI)
        return self._png

    def html(self, dpi: int | None = None) -> str:
        """Return the picture as an HTML image with its text alternative: as wide as the figure or the page.

        dpi: pixels an inch, where they are not those of a still.
        """
        data = base64.b64encode(render(self.figure, dpi) if dpi else self.png()).decode("ascii")
        return (
            f'<img src="data:image/png;base64,{data}" alt="{html.escape(self.alt)}" width="{css_size(self.figure)[0]}" '
            'style="max-width: 100%; height: auto; background: white">'
        )

    def __str__(self) -> str:
        return self.alt

    def __repr__(self) -> str:
        return f"Picture({self.alt!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        image, (width, height) = base64.b64encode(self.png()).decode("ascii"), css_size(self.figure)
        data = {"text/html": self.html(), "image/png": image, "text/plain": self.alt}
        return data, {"image/png": {"width": width, "height": height, "alt": self.alt}}


@dataclass(frozen=True)
class Slider:
    """One thing that the learner can change.

    label: what it is, in words, with its unit; values: what it can be, in order; start: the index in `values` where it
    stands first; words: how a value reads beside the slider; play: also give a button that moves it step by step.
    """

    label: str
    values: Sequence[Any]
    start: int = 0
    words: Callable[[Any], str] = str
    play: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.start < len(self.values):
            raise ValueError(f"start must be an index into the {len(self.values)} values, got {self.start}")


def counting(label: str, last: int, start: int, words: str = "{} of {}") -> Slider:
    """Return a slider with a button to play that counts from 0 to last; words: how it reads, with both numbers."""
    return Slider(label, range(last + 1), start, lambda value: words.format(value, last), True)


def choosing(label: str, what: str, names: Sequence[str], start: str | None, play: bool = False) -> Slider:
    """Return a slider over names that begins with start, or with the first name. ValueError where there is none."""
    if not names or start not in (None, *names):
        raise ValueError(f"start must be one of the {what}, got {start!r} for {names}")
    return Slider(label, names, 0 if start is None else names.index(start), play=play)


class Explorer:
    """A figure that follows sliders.

    draw: `draw(*given, **values) -> Picture`, with one value a slider; sliders: name -> Slider.

    In a notebook with widgets it shows sliders over an image; everywhere else the still at the start values, or
    `unfolded`, a picture that shows without sliders what they lead to.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        *given: Any,
        unfolded: Callable[[], Picture] | None = None,
        **sliders: Slider,
    ) -> None:
        self._draw, self._unfolded, self.sliders = partial(draw, *given), unfolded, sliders
        self._still: Picture | None = None
        self._widget: Any = None

    @property
    def start(self) -> dict[str, Any]:
        """The values at which the sliders stand first."""
        return {name: slider.values[slider.start] for name, slider in self.sliders.items()}

    @property
    def alt(self) -> str:
        """What the picture at the start values says, in words."""
        return self.at().alt

    def at(self, **values: Any) -> Picture:
        """Return the still picture at these values; sliders that are not named stand at their start."""
        with styled():
            return self._draw(**{**self.start, **values})

    def still(self) -> Picture:
        """Return the picture for where widgets cannot run."""
        if self._still is None:
            self._still = self._unfolded() if self._unfolded else self.at()
        return self._still

    def frame(self, **values: Any) -> str:
        """Return the HTML image at these values, as the widget shows it."""
        return self.at(**values).html(FRAME_DPI)

    def widget(self) -> Any:
        """Return the ipywidgets box with the sliders over the image. Needs ipywidgets and a kernel."""
        if self._widget is not None:
            return self._widget
        import ipywidgets

        controls: dict[str, Any] = {}
        rows, image = [], ipywidgets.HTML(value=self.frame())

        def redraw(_change: Any) -> None:
            image.value = self.frame(**{name: control.value for name, control in controls.items()})

        for name, slider in self.sliders.items():
            # Its readout is in words. Arrow keys move it (ipywidgets 7.7 and 8 alike).
            row = controls[name] = ipywidgets.SelectionSlider(
                options=[(slider.words(value), value) for value in slider.values],
                index=slider.start,
                description=slider.label,
                continuous_update=True,
                style={"description_width": "initial"},
                layout={"width": "100%", "max_width": "640px"},
            )
            row.observe(redraw, names="value")
            if slider.play:
                last = len(slider.values) - 1
                step = max(1, last // PLAY_STEPS)
                play = ipywidgets.Play(min=0, max=last, value=slider.start, step=step, interval=PLAY_INTERVAL)
                ipywidgets.jslink((play, "value"), (controls[name], "index"))
                row = ipywidgets.HBox([controls[name], play])
            rows.append(row)
        self._widget = ipywidgets.VBox([*rows, image])
        return self._widget

    def __str__(self) -> str:
        return self.alt

    def __repr__(self) -> str:
        return f"Explorer({self.alt!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        data, metadata = self.still()._repr_mimebundle_()
        if in_kernel():
            with suppress(ImportError):  # ipywidgets may be missing, or there and broken
                import ipywidgets  # noqa: F401

                # Viewers that have the widget's model prefer this type to all others. nbconvert ranks HTML next and
                # then PNG, and of the two it gives only HTML a text alternative: so both stay.
                view = {"version_major": 2, "version_minor": 0, "model_id": self.widget().model_id}
                data = {WIDGET_VIEW: view, **data}
        return data, metadata


def in_kernel() -> bool:
    """Return whether this process is a notebook kernel."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython.get_ipython() if ipython else None, "kernel", None) is not None
