"""Pictures: each a pure function from data to a `Picture` or an `Explorer`; none prints or plots by itself.

An `Explorer` has sliders; it is a still picture where widgets cannot run. Both carry their words: `str(picture)`.
"""

from unrolled.show.charts import bars, pairs
from unrolled.show.columns import col2im, im2col
from unrolled.show.comparisons import agreement, crossover, guesses, roofline
from unrolled.show.convolution import conv2d_backward, convolution
from unrolled.show.graph import computation_graph
from unrolled.show.hardware import hardware
from unrolled.show.images import confusion, difference, filters, images, race
from unrolled.show.kernels import banks, barriers, warps
from unrolled.show.ladder import causes, gallery, ladder, rungs
from unrolled.show.lstm_cell import lstm_cell
from unrolled.show.matrices import amdahl, matmul_workers, memory_walk, systolic_array
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.pooling import max_pool2d
from unrolled.show.precision import clipping, float_ruler, precision_front
from unrolled.show.ranks import messages, ring_allreduce
from unrolled.show.scaling import growth, scaling, scaling_curves
from unrolled.show.schedules import pipeline, wavefront
from unrolled.show.timeline import launches, timeline
from unrolled.show.training import learning_curves, live, losses, optimizer_paths
from unrolled.show.waterfall import waterfall
from unrolled.show.winograd import winograd_1d

__all__ = [
    "Explorer",
    "Picture",
    "Slider",
    "agreement",
    "amdahl",
    "banks",
    "barriers",
    "bars",
    "causes",
    "clipping",
    "col2im",
    "computation_graph",
    "confusion",
    "conv2d_backward",
    "convolution",
    "crossover",
    "difference",
    "filters",
    "float_ruler",
    "gallery",
    "growth",
    "guesses",
    "hardware",
    "im2col",
    "images",
    "ladder",
    "launches",
    "learning_curves",
    "live",
    "losses",
    "lstm_cell",
    "matmul_workers",
    "max_pool2d",
    "memory_walk",
    "messages",
    "optimizer_paths",
    "pairs",
    "pipeline",
    "precision_front",
    "race",
    "ring_allreduce",
    "roofline",
    "rungs",
    "scaling",
    "scaling_curves",
    "systolic_array",
    "timeline",
    "warps",
    "waterfall",
    "wavefront",
    "winograd_1d",
]
