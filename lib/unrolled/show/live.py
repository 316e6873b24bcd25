"""The learning curves while they grow."""

from __future__ import annotations

from typing import Any

from unrolled.show.learning_curves import Curves, learning_curves
from unrolled.show.picture import Picture


class Live:
    """A callback for `fit` that draws the learning curves after each epoch, always in the same place.

    Outside a notebook nothing is shown; `picture` holds the latest curves everywhere.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.picture: Picture | None = None
        self._handle: Any = None

    def __call__(self, network: Any, history: Curves) -> None:
        """Draw the epochs so far. Never asks `fit` to stop: interrupt the kernel for that."""
        self.picture = learning_curves(history, title=self.title).still()
        if self._handle is not None:
            self._handle.update(self.picture)
        elif _in_notebook():
            from IPython.display import display

            self._handle = display(self.picture, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]


def live(title: str = "") -> Live:
    """Return a callback that draws loss and accuracy while a network trains: `fit(..., callbacks=[show.live()])`."""
    return Live(title)


def _in_notebook() -> bool:
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None
