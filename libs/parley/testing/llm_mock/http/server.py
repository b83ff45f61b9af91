"""The server: listens, and passes each connection to the request handler."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from parley.clock import Clock
from parley.testing.llm_mock.behaviour.grammar import change
from parley.testing.llm_mock.behaviour.options import Behaviour
from parley.testing.llm_mock.http.connection import Connection
from parley.testing.llm_mock.http.handler import RequestHandler
from parley.testing.llm_mock.http.statistics import RequestCounters, Served, Statistics
from parley.testing.llm_mock.playback.recording import Recording, RecordingQueue
from parley.testing.llm_mock.playback.timers import Timers

REQUESTS_KEPT = 200
BACKLOG = 1024


class MockModels:
    """Model providers on this machine, while `serving` runs."""

    def __init__(self, desk: RequestHandler, url: str) -> None:
        self._desk = desk
        self.url = url

    @classmethod
    @asynccontextmanager
    async def serving(
        cls,
        *,
        clock: Clock,
        seed: int = 0,
        behaviour: str = "",
        recordings: Sequence[Recording] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        requests_kept: int = REQUESTS_KEPT,
    ) -> AsyncIterator["MockModels"]:
        """Serve until the context ends; then every connection is closed immediately.

        Args:
            clock: Times pauses and supplies dates.
            seed: The seed of texts and ids.
            behaviour: Words of the grammar, for models whose names have none, and as defaults for
                those whose names have some.
            recordings: Answers to play in order, instead of generated ones.
            host: Address to listen at.
            port: Port to listen at; 0 for a free one.
            requests_kept: How many requests are kept for inspection.

        Raises:
            BehaviourUnknown: a word is unknown.
            OSError: the address cannot be bound.
        """
        tally = RequestCounters(clock, requests_kept)
        desk = RequestHandler(
            clock, seed, change(Behaviour(), behaviour), RecordingQueue(tuple(recordings)), tally
        )
        open_ones: set[Connection] = set()
        listening = _listen(host, port)
        url = f"http://{_written(host)}:{listening.getsockname()[1]}"
        failure: BaseException | None = None
        async with asyncio.TaskGroup() as tasks:
            schedule = Timers(clock, tasks)
            server = await asyncio.get_running_loop().create_server(
                lambda: Connection(desk, schedule, open_ones), sock=listening, backlog=BACKLOG
            )
            try:
                yield cls(desk, url)
            except BaseException as error:
                failure = error
            finally:
                server.close()
                for connection in tuple(open_ones):
                    connection.abort()
                schedule.stop()
        if failure is not None:
            # Raised outside of the group, which would wrap the caller's own error.
            raise failure

    def stats(self) -> Statistics:
        """Return the counts since the start or the last reset."""
        return self._desk.tally.statistics()

    def requests(self, last: int = REQUESTS_KEPT) -> tuple[Served, ...]:
        """Return the last requests, oldest first."""
        return self._desk.tally.served(last)

    def reset(self) -> None:
        """Reset counts, failures and recordings."""
        self._desk.reset()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host
