"""The store that ranks in processes share: notes, who is there, deaths, silence, wrong addresses."""

import contextlib
import select
import socket
import threading
from contextlib import closing
from unittest import mock

import pytest

from unrolled.parallel import MismatchError, ParallelError, RankError, store
from unrolled.parallel.store import QUIET_READS, Store, StoreServer, error_of

LONG = 60.0


@pytest.fixture
def server():
    with closing(StoreServer("127.0.0.1", 0, 2, LONG)) as made:
        yield made


def door(server: StoreServer, rank: int, ranks: int = 2) -> Store:
    return Store("127.0.0.1", server.server_address[1], rank, ranks, LONG)


def test_a_note_reaches_who_waits_for_it(server):
    ours, theirs = door(server, 0), door(server, 1)
    found = []
    waiting = threading.Thread(target=lambda: found.append(theirs.get("id")))
    waiting.start()
    ours.put("id", [1, -2])
    waiting.join(LONG)
    assert found == [[1, -2]]
    assert ours.get("nobody leaves it", 0.01) is None
    ours.put("id", None)
    assert theirs.get("id", 0.01) is None


BEAT, BYE, NOTHING = b"beat\n", b"bye\n", [None] * (QUIET_READS - 1)


@pytest.mark.parametrize(
    ("reads", "says"),
    [
        ([BEAT, BYE], ""),
        ([BEAT, *NOTHING, None], "rank 1 has given no sign of life for 3 s"),
        ([BEAT, *NOTHING, BEAT, *NOTHING, BEAT, BYE], ""),  # all were frozen, as in a box that the grader holds
        ([BEAT, b"beat\nby", b"e\n"], ""),
        ([BEAT, b""], "rank 1 died"),
    ],
)
def test_how_a_rank_ends(reads, says, server):
    """Reads of a rank's connection; None is a read that nothing comes to."""
    visitor = store._Visitor.__new__(store._Visitor)
    recv = mock.Mock(side_effect=[TimeoutError if read is None else read for read in reads])
    visitor.server, visitor.request, server.silence = server, mock.Mock(recv=recv), 3.0
    assert visitor._ended(1) == says
    visitor.request.settimeout.assert_called_with(3.0 / QUIET_READS)


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="the order of ends is known where there is epoll")
def test_the_rank_that_died_first_is_named_whoever_is_heard_of_first(server):
    """As when mpiexec kills the others, and the thread of one of these runs before that of the first."""
    with contextlib.ExitStack() as open_ends:
        for rank in (0, 1, 2):
            line, end = socket.socketpair()
            open_ends.callback(line.close)
            open_ends.callback(end.close)
            server.watch(line, rank)
            if rank == 1:
                end.close()
        assert server.first_to_end(2) == 1
        end.close()
        assert [server.first_to_end(rank) for rank in (0, 1, 2)] == [1, 1, 1]
        server.left.add(1)
        assert server.first_to_end(0) == 2


def test_a_rank_that_does_not_come_is_a_failure(monkeypatch):
    monkeypatch.setattr("unrolled.parallel.store.START_SECONDS", 0.3)
    with closing(StoreServer("127.0.0.1", 0, 3, 0.3)) as server:
        door(server, 1, 3).leave()
        assert server.get("from rank 0", LONG)["failure"]["text"] == "ranks 0, 2 are not there after 0.3 s"


def test_the_first_failure_counts_and_keeps_its_kind(server):
    ours = door(server, 0)
    ours.fail({"kind": "MismatchError", "text": "first"})
    ours.fail({"kind": "RankError", "text": "second"})
    assert isinstance(error_of(server.failure), MismatchError)
    with pytest.raises(MismatchError, match="first"):
        ours.get("anything")


def test_wrong_groups_and_an_address_in_use_are_named(server):
    door(server, 1)
    with pytest.raises(ParallelError, match="two processes say that they are rank 1"):
        door(server, 1)
    with pytest.raises(ParallelError, match="this group has 2 ranks, rank 0 was told 3"):
        door(server, 0, 3)
    with pytest.raises(ParallelError, match=r"cannot listen at port \d+: .*MASTER_PORT"):
        StoreServer("127.0.0.1", server.server_address[1], 2, LONG)


def test_nobody_and_something_else_at_the_address_are_named():
    with closing(socket.socket()) as bound:  # bound, and nobody listens
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(RankError, match=r"rank 0 does not answer at 127.0.0.1:\d+ within 0.2 s"):
            Store("127.0.0.1", bound.getsockname()[1], 1, 2, 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        threading.Thread(target=lambda: other.accept()[0].sendall(b"220 mail\r\n"), daemon=True).start()
        with pytest.raises(ParallelError, match="something else answers"):
            Store("127.0.0.1", other.getsockname()[1], 1, 2, 5)
