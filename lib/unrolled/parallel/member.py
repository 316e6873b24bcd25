"""A rank that others have started, as one of a group: by `mpiexec`, by `torchrun`, by `srun`."""

from __future__ import annotations

import time
from typing import Any

from unrolled.parallel.communicator import Communicator
from unrolled.parallel.packing import end_with, failure_of
from unrolled.parallel.store import StoreServer

FAILURE_SECONDS = 0.5  # that others have to receive a failure, before the store ends with this process


class Member(Communicator):
    """What such a rank does at its end, beside what its engine does. Rank 0 holds the store, until all have left."""

    timeout: float
    server: StoreServer | None = None

    def close(self) -> None:
        """Leave the group; rank 0 waits until all have left, `timeout` seconds at most."""
        super().close()
        if self.server is not None:
            self.server.wait_for_goodbyes(self.timeout)
            self.server.close()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Take `sys.exit(0)` for what it is: no error."""
        left = isinstance(error, SystemExit) and not error.code
        super().__exit__(kind, None if left else error, trace)

    def fail(self, error: BaseException) -> None:
        """Tell all others of the error, and end this process with it."""
        super().fail(error)
        if self.server is not None:
            time.sleep(FAILURE_SECONDS)
        end_with(failure_of(self.rank, error))
