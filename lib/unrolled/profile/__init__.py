"""Where the time goes: nested timing of parts, and whether the parts explain the whole. On CPU, CuPy and simgpu alike.

>>> with recording(cp) as p:  # doctest: +SKIP
...     with p.span("forward"):
...         scores = network.forward(images, training=True)
>>> print(p)  # doctest: +SKIP

`step` measures a training step by layer, `statements` a function line by line. In each table, what no part accounts for
is a row of its own.
"""

from unrolled.profile.profiles import REMAINDER, Node, Profile
from unrolled.profile.recording import Recording, recording, span
from unrolled.profile.repeats import by_layer, statements, step

__all__ = ["REMAINDER", "Node", "Profile", "Recording", "by_layer", "recording", "span", "statements", "step"]
