"""Pictures: each a pure function from data to a `Picture` or an `Explorer`; none prints or plots by itself.

An `Explorer` has sliders; it is a still picture where widgets cannot run. Both carry their words: `str(picture)`.
"""

from unrolled.show.agreement import agreement
from unrolled.show.amdahl import amdahl
from unrolled.show.bars import bars
from unrolled.show.columns import im2col
from unrolled.show.confusion import confusion
from unrolled.show.convolution import convolution
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.filters import filters
from unrolled.show.folding import col2im
from unrolled.show.gallery import gallery
from unrolled.show.graph import computation_graph
from unrolled.show.growth import growth
from unrolled.show.guesses import guesses
from unrolled.show.images import difference, images
from unrolled.show.ladder import ladder
from unrolled.show.learning_curves import learning_curves
from unrolled.show.live import live
from unrolled.show.losses import losses
from unrolled.show.memory import memory_walk
from unrolled.show.optimizer_paths import optimizer_paths
from unrolled.show.pairs import pairs
from unrolled.show.picture import Picture
from unrolled.show.pooling import max_pool2d
from unrolled.show.race import race
from unrolled.show.roofline import roofline
from unrolled.show.scaling import scaling
from unrolled.show.timeline import timeline
from unrolled.show.waterfall import waterfall
from unrolled.show.workers import matmul_workers

__all__ = [
    "Explorer",
    "Picture",
    "Slider",
    "agreement",
    "amdahl",
    "bars",
    "col2im",
    "computation_graph",
    "confusion",
    "convolution",
    "difference",
    "filters",
    "gallery",
    "growth",
    "guesses",
    "im2col",
    "images",
    "ladder",
    "learning_curves",
    "live",
    "losses",
    "matmul_workers",
    "max_pool2d",
    "memory_walk",
    "optimizer_paths",
    "pairs",
    "race",
    "roofline",
    "scaling",
    "timeline",
    "waterfall",
]
