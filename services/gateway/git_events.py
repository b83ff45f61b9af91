"""The repositories of a workspace as server-sent events: all of them, then those that change."""

import asyncio
from typing import Any

import grpc
from starlette.types import Receive, Scope, Send

from gateway import sse
from gateway.chat_events import Ending
from gateway.convert_workspaces import repository_to_json
from gateway.event_stream import EventStream
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.api.workspace.v1 import workspace_pb2


async def opened(call: Any) -> tuple[Any, api.WatchWorkspaceGitResponse]:
    """Return a call whose first answer has come, and that answer."""
    first = await call.read()
    if not isinstance(first, api.WatchWorkspaceGitResponse):
        first = api.WatchWorkspaceGitResponse(closed=workspace_pb2.StreamEnd())
    return call, first


class GitEvents:
    """The response to one client that follows repositories.

    There is no cursor: whoever comes back begins with all of them.
    """

    def __init__(
        self, stream: EventStream, call: Any, first: api.WatchWorkspaceGitResponse, chat_id: str
    ) -> None:
        self._stream = stream
        self._call = call
        self._first = first
        self._chat_id = chat_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the client."""
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read())
                await self._stream(scope, receive, send)
                reading.cancel()
        finally:
            self._call.cancel()

    async def _read(self) -> None:
        """Have the stream take everything; it never makes anybody wait."""
        told: Any = self._first
        try:
            while isinstance(told, api.WatchWorkspaceGitResponse) and not told.HasField("closed"):
                self._take(told)
                told = await self._call.read()
        except grpc.aio.AioRpcError:
            # The client comes back, and is told then what is wrong.
            pass
        self._stream.end(Ending.GOING_AWAY)

    def _take(self, told: api.WatchWorkspaceGitResponse) -> None:
        match told.WhichOneof("kind"):
            case "snapshot":
                repositories = [*map(repository_to_json, told.snapshot.repositories)]
                self._tell("git_snapshot", {"repositories": repositories})
            case "changed":
                self._tell("git_changed", repository_to_json(told.changed))
            case "removed":
                self._tell("git_removed", {"repository": told.removed})

    def _tell(self, kind: str, document: object) -> None:
        event = {"type": kind, "chat_id": self._chat_id, kind: document}
        self._stream.take(kind, sse.frame(kind, event))
