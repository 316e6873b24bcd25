"""Pictures: each a pure function from data to a `Picture` or an `Explorer`; none prints or plots by itself.

An `Explorer` has sliders; it is a still picture where widgets cannot run. Both carry their words: `str(picture)`.
"""

from unrolled.show.attention_blocks import attention_blocks
from unrolled.show.charts import bars, pairs
from unrolled.show.columns import col2im, im2col
from unrolled.show.comparisons import agreement, crossover, guesses, roofline
from unrolled.show.convolution import conv2d_backward, convolution
from unrolled.show.graph import computation_graph
from unrolled.show.hardware import hardware
from unrolled.show.images import confusion, difference, filters, images, race
from unrolled.show.kernels import banks, barriers, warps
from unrolled.show.ladder import causes, gallery, ladder
from unrolled.show.lstm_cell import lstm_cell
from unrolled.show.matrices import amdahl, matmul_workers, memory_walk, systolic_array
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.pooling import max_pool2d
from unrolled.show.precision import clipping, float_ruler, precision_front
from unrolled.show.ranks import messages, ring_allreduce
from unrolled.show.rungs import rungs
from unrolled.show.scaling import growth, scaling, scaling_curves
from unrolled.show.schedules import pipeline, wavefront
from unrolled.show.timeline import launches, timeline
from unrolled.show.training import learning_curves, live, losses, optimizer_paths
from unrolled.show.waterfall import waterfall
from unrolled.show.winograd import winograd_1d

__all__ = ["Explorer", "Picture", "Slider"]
__all__ += ["col2im", "conv2d_backward", "convolution", "im2col", "max_pool2d", "winograd_1d"]
__all__ += ["confusion", "difference", "filters", "images", "race"]
__all__ += ["attention_blocks", "learning_curves", "live", "losses", "lstm_cell", "optimizer_paths", "wavefront"]
__all__ += ["clipping", "float_ruler", "precision_front"]
__all__ += ["amdahl", "matmul_workers", "memory_walk", "systolic_array"]
__all__ += ["banks", "barriers", "hardware", "launches", "timeline", "warps"]
__all__ += ["growth", "messages", "pipeline", "ring_allreduce", "scaling", "scaling_curves"]
__all__ += ["causes", "computation_graph", "gallery", "ladder", "rungs", "waterfall"]
__all__ += ["agreement", "bars", "crossover", "guesses", "pairs", "roofline"]
