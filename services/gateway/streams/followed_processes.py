"""Streams of chats that also contain the output of processes, within limits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from google.protobuf.message import Message
from starlette.types import Receive, Scope, Send

from gateway.api.json_output import to_json
from gateway.api.parameters import uuid_of
from gateway.http import sse
from gateway.http.limits.fair_share import FairShare
from gateway.http.problems.errors import HttpProblem, http_problem_of
from gateway.http.request_body import invalid_parameter
from gateway.streams.event_stream import EventStream
from gateway.streams.output_reader import OutputReader
from gateway.streams.workspace_client import Workspaces
from parley.clock import Clock
from parley.contract.rules import JSON_INTEGER_MAX
from parley.identity import User

PARAMETER: Final = "processes"
#: Of one stream.
PROCESSES_MAX: Final = 8
#: Of this gateway. Each has a waiting call on the stream to a chatd, which has room for 1000.
FOLLOWED_MAX: Final = 512
USER_FOLLOWED_MAX: Final = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FollowedProcess:
    """A process that a client follows, and where its output continues."""

    process_id: str
    cursor: int


def followed_processes(query: Mapping[str, str]) -> tuple[FollowedProcess, ...]:
    """Return the processes that a client wants to follow.

    Raises:
        HttpProblem: One of them is not valid, or there are too many (422).
    """
    entries = list(filter(None, query.get(PARAMETER, "").split(",")))
    if len(entries) > PROCESSES_MAX:
        raise invalid_parameter(PARAMETER, f"Give at most {PROCESSES_MAX} processes.")
    followed = tuple(_followed(entry) for entry in entries)
    if len({each.process_id for each in followed}) < len(followed):
        raise invalid_parameter(PARAMETER, "Give each process once.")
    return followed


def _followed(entry: str) -> FollowedProcess:
    named, colon, at = entry.partition(":")
    process_id = uuid_of(named)
    is_number = at.isascii() and at.isdigit() and len(at) <= 16 and int(at) <= JSON_INTEGER_MAX
    if process_id is None or (colon and not is_number):
        detail = (
            "Give ids of processes, each alone or with a colon and the cursor to continue at, "
            "separated by commas."
        )
        raise invalid_parameter(PARAMETER, detail)
    return FollowedProcess(process_id, int(at or 0))


class FollowedProcesses:
    """The processes that all clients of this gateway follow."""

    def __init__(self, workspaces: Workspaces, clock: Clock) -> None:
        self._workspaces = workspaces
        self._clock = clock
        self._places = FairShare(FOLLOWED_MAX, each_max=USER_FOLLOWED_MAX)

    def stream(
        self, stream: EventStream, user: User, chat_id: str, followed: tuple[FollowedProcess, ...]
    ) -> "FollowingStream":
        """Return the stream of a chat with the output of processes of its workspace."""
        client = _Client(stream, chat_id)
        reader = OutputReader(partial(self._workspaces.wait_output, user), client, self._clock)
        return FollowingStream(
            stream, tuple(partial(self._read, reader, user, chat_id, each) for each in followed)
        )

    async def _read(
        self, reader: OutputReader, user: User, chat_id: str, followed: FollowedProcess
    ) -> None:
        if not self._places.take(user.id):
            reader.refuse(followed.process_id, self._too_many())
            return
        try:
            await reader.read(chat_id, followed.process_id, followed.cursor)
        except Exception as error:
            # The events of the chat, and other processes, must not end with this one.
            _log.exception("the output of a process could not be read")
            reader.refuse(followed.process_id, http_problem_of(error))
        finally:
            self._places.release(user.id)

    def _too_many(self) -> HttpProblem:
        detail = (
            "The output of as many processes is followed as may be "
            f"({self._places.bound()} for each user at the moment); close some, then try again."
        )
        return HttpProblem.of("TOO_MANY_LONG_RUNNING_REQUESTS", detail)


class FollowingStream:
    """The response to a client that follows a chat and some processes.

    Args:
        stream: Writes all events to the client.
        readers: Read the processes while the stream is open.
    """

    def __init__(
        self, stream: EventStream, readers: tuple[Callable[[], Coroutine[Any, Any, None]], ...]
    ) -> None:
        self._stream = stream
        self._readers = readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the client."""
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read())
            await self._stream(scope, receive, send)
            reading.cancel()

    async def _read(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for read in self._readers:
                tasks.create_task(read())


class _Client:
    """The stream of a client, for events about processes."""

    def __init__(self, stream: EventStream, chat_id: str) -> None:
        self._stream = stream
        self._chat_id = chat_id

    def send(self, kind: str, event: Message) -> None:
        """Queue one event; it does not move the reader's position in the chat."""
        document = {"type": kind, "chat_id": self._chat_id, kind: to_json(event)}
        self._stream.take(kind, sse.frame(kind, document))

    async def wait_sent(self) -> None:
        """Wait until everything queued so far has been sent."""
        await self._stream.wait_sent()
