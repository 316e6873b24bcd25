"""One program on many ranks: threads of one process, processes, or GPUs; and training on them."""

from unrolled.parallel.batch_gradients import gradients
from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.data_parallel import evaluate, fit
from unrolled.parallel.emulation import emulate
from unrolled.parallel.errors import DeadlockError, MismatchError, NoEngineError, ParallelError, RankError
from unrolled.parallel.launch import run, world
from unrolled.parallel.links import LINKS, Link
from unrolled.parallel.network import Message, Network
from unrolled.parallel.pipeline import gpipe, one_forward_one_backward
from unrolled.parallel.shards import shard

__all__ = ["LINKS", "Communicator", "Link", "Message", "Network", "Pending", "emulate"]
__all__ += ["DeadlockError", "MismatchError", "NoEngineError", "ParallelError", "RankError"]
__all__ += ["evaluate", "fit", "gpipe", "gradients", "one_forward_one_backward"]
__all__ += ["run", "shard", "world"]
