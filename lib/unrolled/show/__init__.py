"""Pictures: each a pure function from data to a `Picture` or an `Explorer`; none prints or plots by itself.

An `Explorer` has sliders; it is a still picture where widgets cannot run. Both carry their words: `str(picture)`.
"""

from unrolled.show.agreement import agreement as agreement
from unrolled.show.amdahl import amdahl as amdahl
from unrolled.show.bars import bars as bars
from unrolled.show.columns import im2col as im2col
from unrolled.show.confusion import confusion as confusion
from unrolled.show.convolution import convolution as convolution
from unrolled.show.explorer import Explorer as Explorer
from unrolled.show.explorer import Slider as Slider
from unrolled.show.filters import filters as filters
from unrolled.show.folding import col2im as col2im
from unrolled.show.gallery import gallery as gallery
from unrolled.show.graph import computation_graph as computation_graph
from unrolled.show.growth import growth as growth
from unrolled.show.guesses import guesses as guesses
from unrolled.show.hardware import hardware as hardware
from unrolled.show.images import difference as difference
from unrolled.show.images import images as images
from unrolled.show.ladder import ladder as ladder
from unrolled.show.learning_curves import learning_curves as learning_curves
from unrolled.show.learning_curves import live as live
from unrolled.show.losses import losses as losses
from unrolled.show.memory import memory_walk as memory_walk
from unrolled.show.optimizer_paths import optimizer_paths as optimizer_paths
from unrolled.show.pairs import pairs as pairs
from unrolled.show.picture import Picture as Picture
from unrolled.show.pooling import max_pool2d as max_pool2d
from unrolled.show.race import race as race
from unrolled.show.roofline import roofline as roofline
from unrolled.show.scaling import scaling as scaling
from unrolled.show.sharing import conv2d_backward as conv2d_backward
from unrolled.show.timeline import timeline as timeline
from unrolled.show.waterfall import waterfall as waterfall
from unrolled.show.workers import matmul_workers as matmul_workers
