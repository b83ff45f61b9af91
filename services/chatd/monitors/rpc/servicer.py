"""MonitorService: the monitors of the caller's chats."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import grpc

from chatd.chats.rpc.methods import with_read_only_errors
from chatd.monitors.domain.monitor import CANCELLED, Monitor, MonitorCause, MonitorState, ended
from chatd.monitors.store.monitors import PostgresMonitors
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import time_to_proto
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import monitor_pb2
from parley.api.chat.v1 import monitor_service_pb2 as api
from parley.api.chat.v1.monitor_service_pb2_grpc import MonitorServiceServicer

Context = grpc.aio.ServicerContext

STATE = {
    each: monitor_pb2.MonitorState.Value(f"MONITOR_STATE_{each.name}") for each in MonitorState
}
CAUSE = {
    each: monitor_pb2.MonitorCause.Value(f"MONITOR_CAUSE_{each.name}") for each in MonitorCause
}


@dataclass(frozen=True, slots=True)
class MonitorPorts:
    """The dependencies of MonitorService.

    Attributes:
        require_owner: Raises ChatNotFound unless a user owns a chat.
        is_shared: Returns whether the caller may read a chat of another owner.
    """

    store: PostgresMonitors
    require_owner: Callable[[ChatId, OwnerId], Awaitable[object]]
    is_shared: Callable[[ChatId], Awaitable[bool]]


class MonitorServicer(MonitorServiceServicer):
    """Serves monitors; the server's error table converts errors to problems."""

    def __init__(self, ports: MonitorPorts) -> None:
        self._ports = ports
        self._store = ports.store

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await self._ports.is_shared(chat_id)

    async def ListMonitors(
        self, request: api.ListMonitorsRequest, context: Context
    ) -> api.ListMonitorsResponse:
        """List the monitors of a chat."""
        listed = await self._store.of_chat(*await self._chat_of(request.chat_id))
        return api.ListMonitorsResponse(monitors=map(monitor_to_proto, listed))

    @with_read_only_errors
    async def CancelMonitor(
        self, request: api.CancelMonitorRequest, context: Context
    ) -> api.CancelMonitorResponse:
        """Cancel a monitor."""
        chat_id, owner_id = await self._chat_of(request.chat_id)
        monitor_id = fields.uuid_of(request.monitor_id, "monitor_id")
        cancelled = await self._store.change(
            chat_id, owner_id, monitor_id, partial(ended, reason=CANCELLED)
        )
        return api.CancelMonitorResponse(monitor=monitor_to_proto(cancelled))

    async def _chat_of(self, text: str) -> tuple[ChatId, OwnerId]:
        """Return a chat of the caller and the caller.

        Raises:
            ChatNotFound: The caller has no such chat.
        """
        chat_id, owner_id = fields.chat_id_of(text), caller_as_owner().id
        await self._ports.require_owner(chat_id, owner_id)
        return chat_id, owner_id


def monitor_to_proto(monitor: Monitor) -> monitor_pb2.Monitor:
    """Return a monitor for its owner."""
    return monitor_pb2.Monitor(
        id=monitor.id,
        chat_id=monitor.chat_id,
        process_id=monitor.process_id,
        command=monitor.command,
        pattern=monitor.pattern,
        note=monitor.note,
        state=STATE[monitor.state],
        cause=CAUSE[monitor.cause] if monitor.cause else monitor_pb2.MONITOR_CAUSE_UNSPECIFIED,
        detail=monitor.detail,
        reason=monitor.reason,
        created_at=time_to_proto(monitor.created_at),
        expires_at=time_to_proto(monitor.expires_at),
    )
