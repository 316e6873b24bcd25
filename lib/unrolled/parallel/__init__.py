"""The same program on many ranks: threads of one process, processes, or GPUs."""

from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.emulation import emulate
from unrolled.parallel.errors import DeadlockError, MismatchError, NoEngineError, ParallelError, RankError
from unrolled.parallel.links import LINKS, Link
from unrolled.parallel.network import Message, Network

__all__ = ["LINKS", "Link", "Message", "Network", "emulate"]
__all__ += ["Communicator", "DeadlockError", "MismatchError", "NoEngineError", "ParallelError", "Pending", "RankError"]
