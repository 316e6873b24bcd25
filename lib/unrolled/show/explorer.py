"""A picture with sliders, and a still of it where widgets cannot run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from unrolled.show.picture import Bundle, Picture, css_size, image_tag, render
from unrolled.show.style import styled

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
FRAME_DPI = 110  # a compromise: a frame must be drawn faster than a slider is dragged
PLAY_INTERVAL = 400  # milliseconds from one frame to the next
PLAY_STEPS = 64  # about; the whole way takes half a minute


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


class Explorer:
    """A figure that follows sliders.

    draw: `draw(**values) -> Figure`, with one value a slider; alt: `alt(**values) -> str`, what that figure says, in
    words; sliders: name -> Slider.

    In a notebook with widgets it shows sliders over an image; everywhere else the still at the start values, or
    `unfolded`, a picture that shows without sliders what they lead to.
    """

    def __init__(
        self,
        draw: Callable[..., Figure],
        alt: Callable[..., str],
        *,
        unfolded: Callable[[], Picture] | None = None,
        **sliders: Slider,
    ) -> None:
        self._draw = draw
        self._alt = alt
        self._unfolded = unfolded
        self.sliders = sliders
        self._still: Picture | None = None
        self._widget: Any = None

    @property
    def start(self) -> dict[str, Any]:
        """The values at which the sliders stand first."""
        return {name: slider.values[slider.start] for name, slider in self.sliders.items()}

    @property
    def alt(self) -> str:
        """What the picture at the start values says, in words."""
        return self._alt(**self.start)

    def at(self, **values: Any) -> Picture:
        """Return the still picture at these values; sliders that are not named stand at their start."""
        values = {**self.start, **values}
        with styled():
            return Picture(self._draw(**values), self._alt(**values))

    def still(self) -> Picture:
        """Return the picture for where widgets cannot run."""
        if self._still is None:
            self._still = self._unfolded() if self._unfolded else self.at()
        return self._still

    def frame(self, **values: Any) -> str:
        """Return the HTML image at these values, as the widget shows it."""
        picture = self.at(**values)
        return image_tag(render(picture.figure, FRAME_DPI), picture.alt, css_size(picture.figure)[0])

    def widget(self) -> Any:
        """Return the ipywidgets box with the sliders over the image. Needs ipywidgets and a kernel."""
        if self._widget is None:
            self._widget = _build(self)
        return self._widget

    def __str__(self) -> str:
        return self.alt

    def __repr__(self) -> str:
        return f"Explorer({self.alt!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        data, metadata = self.still()._repr_mimebundle_()
        if widgets_work():
            # Viewers that have the widget's model prefer this type to all others. nbconvert ranks HTML next and then
            # PNG, and of the two it gives only HTML a text alternative: so both stay.
            view = {"version_major": 2, "version_minor": 0, "model_id": self.widget().model_id}
            data = {WIDGET_VIEW: view, **data}
        return data, metadata


def in_kernel() -> bool:
    """Return whether this process is a notebook kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def widgets_work() -> bool:
    """Return whether this process is a notebook kernel with ipywidgets."""
    if not in_kernel():
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


def _build(explorer: Explorer) -> Any:
    import ipywidgets

    controls: dict[str, Any] = {}
    rows, image = [], ipywidgets.HTML(value=explorer.frame())

    def redraw(_change: Any) -> None:
        image.value = explorer.frame(**{name: control.value for name, control in controls.items()})

    for name, slider in explorer.sliders.items():
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
    return ipywidgets.VBox([*rows, image])
