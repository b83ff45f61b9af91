"""A workspace as server-sent events: what it is, its setup log, and the warning before it stops."""

import asyncio
from typing import Any

import grpc
from starlette.types import Receive, Scope, Send

from gateway import sse
from gateway.chat_events import Ending
from gateway.convert_catalogue import workspace_to_json
from gateway.convert_parts import time_of
from gateway.event_stream import EventStream
from parley.api.workspace.v1 import workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api


async def opened(call: Any) -> tuple[Any, api.WatchWorkspaceResponse]:
    """Return a call whose first answer has come, and that answer."""
    first = await call.read()
    if not isinstance(first, api.WatchWorkspaceResponse):
        first = api.WatchWorkspaceResponse(closed=workspace_pb2.StreamEnd())
    return call, first


class WorkspaceEvents:
    """The response to one client that follows a workspace.

    There is no cursor: whoever comes back is told what the workspace is, and says itself after
    which line of the log to go on.
    """

    def __init__(
        self,
        stream: EventStream,
        call: Any,
        first: api.WatchWorkspaceResponse,
        workspace_id: str,
    ) -> None:
        self._stream = stream
        self._call = call
        self._first = first
        self._workspace_id = workspace_id

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
            while isinstance(told, api.WatchWorkspaceResponse) and not told.HasField("closed"):
                self._take(told)
                told = await self._call.read()
        except grpc.aio.AioRpcError:
            # The client comes back, and is told then what is wrong.
            pass
        self._stream.end(Ending.GOING_AWAY)

    def _take(self, told: api.WatchWorkspaceResponse) -> None:
        match told.WhichOneof("kind"):
            case "workspace":
                self._tell("workspace", workspace_to_json(told.workspace))
            case "log_line":
                line = told.log_line
                document = {
                    "sequence": line.sequence,
                    "logged_at": time_of(line, "logged_at"),
                    "stage": line.stage,
                    "text": line.text,
                }
                self._tell("log_line", document)
            case "autostop_warning":
                deadline = time_of(told.autostop_warning, "deadline")
                self._tell("autostop_warning", {"deadline": deadline})

    def _tell(self, kind: str, document: object) -> None:
        event = {"type": kind, "workspace_id": self._workspace_id, kind: document}
        self._stream.take(kind, sse.frame(kind, event))
