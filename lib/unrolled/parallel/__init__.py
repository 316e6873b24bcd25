"""The same program on many ranks: threads of one process, processes, or GPUs."""

from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.errors import DeadlockError, MismatchError, NoEngineError, ParallelError, RankError

__all__ = ["Communicator", "DeadlockError", "MismatchError", "NoEngineError", "ParallelError", "Pending", "RankError"]
