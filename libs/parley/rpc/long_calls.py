"""Connections for long calls, so that they do not use up the concurrency of short ones.

A connection carries a bounded number of calls and further ones queue for it. Calls that wait for
something, and streams, may last minutes or hours, so they have connections of their own: another
one is opened when all open ones carry `calls_max` calls.
"""

from collections.abc import Callable, Iterator
from typing import Any

import grpc

from parley.rpc.limits import LIMITS


class _Connection:
    """One channel and its number of running calls."""

    __slots__ = ("calls", "channel", "methods")

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.calls = 0
        #: The multi-callables of this channel, by the object that represents the method.
        self.methods: dict[object, Any] = {}

    def ended(self, call: object) -> None:
        """Decrement the count when a call ended."""
        self.calls -= 1


class LongCalls:
    """Starts long calls.

    Args:
        open: Opens a channel that shares its connection with no other channel.
        calls_max: How many calls one of them carries.
    """

    def __init__(
        self,
        open: Callable[[], grpc.aio.Channel],
        calls_max: int = LIMITS.long_calls_per_connection_max,
    ) -> None:
        self._open = open
        self._calls_max = calls_max
        self._connections: list[_Connection] = []
        self._retired: list[_Connection] = []

    def start(
        self,
        method: object,
        bind: Callable[[grpc.aio.Channel], Any],
        request: Any,
        **options: Any,
    ) -> Any:
        """Start a call of `method`; `bind` makes its multi-callable for a channel."""
        connection = self._with_room()
        callable_here = connection.methods.get(method)
        if callable_here is None:
            callable_here = connection.methods[method] = bind(connection.channel)
        call = callable_here(request, **options)
        connection.calls += 1
        call.add_done_callback(connection.ended)
        return call

    def retire(self) -> None:
        """Start no more calls on the open connections; running ones go on."""
        self._retired = [each for each in self._retired if each.calls] + self._connections
        self._connections = []

    def release(self) -> Iterator[grpc.aio.Channel]:
        """Yield every channel, for its owner to close."""
        retired, self._retired = self._retired, []
        connections, self._connections = self._connections, []
        return (each.channel for each in (*retired, *connections))

    def _with_room(self) -> _Connection:
        for connection in self._connections:
            if connection.calls < self._calls_max:
                return connection
        connection = _Connection(self._open())
        self._connections.append(connection)
        return connection
