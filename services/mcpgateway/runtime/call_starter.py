"""Starts calls in their turn, with the server as it is configured now."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from mcpgateway.client.call import CallRequest
from mcpgateway.runtime.call_executor import CallExecutor, JournaledCall
from mcpgateway.runtime.running_call import Prepare, PreparedCall
from mcpgateway.runtime.start_queue import StartQueue
from mcpgateway.servers.domain import Server
from mcpgateway.servers.errors import Overloaded, ServerChanged
from mcpgateway.servers.known_servers import KnownServers
from parley.rpc import remaining_s

#: Longer than statements take; preparing may also ask the server for its tools.
PREPARE_S: Final = 1.0


class CallStarter:
    """Starts the calls of this process.

    Args:
        executor: Journals and makes them.
        queue: Where they wait for their turn.
        servers: Where their servers are read.
        prepare_s: How long preparing a call may keep its place from calls of other users.
    """

    def __init__(
        self,
        executor: CallExecutor,
        queue: StartQueue,
        servers: KnownServers,
        prepare_s: float = PREPARE_S,
    ) -> None:
        self._prepare_s = prepare_s
        self._executor = executor
        self._queue = queue
        self._servers = servers

    async def start(
        self,
        call_request: CallRequest,
        prepare: Prepare,
        request_for: Callable[[Server], CallRequest],
        *,
        may_ask: bool,
    ) -> JournaledCall:
        """Prepare a call that is not journaled yet, journal it, and make it.

        Args:
            call_request: The call, without the limits of its server.
            prepare: Prepares it.
            request_for: Returns the call within the limits of its server.
            may_ask: Whether somebody is there to answer what it asks.

        Raises:
            Overloaded: Its turn did not come before the deadline of its caller, and no other
                request started it.
            McpError: It may not be made.
        """
        async with AsyncExitStack() as held:
            place = self._queue.place(call_request.user_id, remaining_s())
            try:
                free_place = await held.enter_async_context(place)
            except Overloaded:
                # The same call may have got its turn by an earlier request, whose caller left.
                started = await self._executor.attach_to_starting(call_request)
                if started is None:
                    raise
                return started
            for is_last in (False, True):
                freeing = asyncio.get_running_loop().call_later(self._prepare_s, free_place)
                try:
                    prepared = await prepare()
                finally:
                    freeing.cancel()
                limited = request_for(prepared.target.server)
                try:
                    again = self._prepares_anew(limited.server_id, prepare)
                    # While its server is full it keeps no place from calls of other servers.
                    return await self._executor.start(
                        limited, prepared, again if may_ask else None, free_place
                    )
                except ServerChanged:
                    self._servers.forget(limited.server_id)
                    if is_last:
                        raise
        raise AssertionError("the last attempt returns or raises")

    def _prepares_anew(self, server_id: str, prepare: Prepare) -> Prepare:
        """Return what prepares a call after a login, with the stored server.

        The call is journaled by then, so that no statement refuses a server that changed since.
        """

        async def prepare_anew() -> PreparedCall:
            self._servers.forget(server_id)
            return await prepare()

        return prepare_anew
