"""Limits of open connections, and the closing of idle ones.

When the limit is reached, the connection that has been idle for longest is closed; only when all
are in use, a new one is refused. Some refused connections stay open for a short time, so that the
client can read the response.
"""

import logging
from enum import StrEnum
from typing import Final, Protocol

from opentelemetry.metrics import Meter, Observation

from gateway.http.limits.client_address import ClientAddresses
from gateway.http.limits.fair_share import FairShare

#: An address may have three times the remaining connections, so at most three quarters of all:
#: behind a proxy that is not configured as trusted all users have one address, and one user has at
#: most half.
ADDRESS_MULTIPLE: Final = 3
REFUSED_OPEN_MAX: Final = 100
OPEN: Final = "gateway.connections.open"
REFUSED: Final = "gateway.connections.refused"

_log = logging.getLogger(__name__)


class ConnectionRefusal(StrEnum):
    """Why a new connection is refused."""

    FULL = "There are as many connections as this server takes; try again shortly."
    ADDRESS_FULL = (
        "There are as many connections from this address as one address may have; close some, or "
        "try again shortly."
    )


class Connection(Protocol):
    """A connection that can be closed while it is idle."""

    def close_idle(self) -> None:
        """Close it."""
        ...


class OpenConnections:
    """All connections of one server.

    Args:
        connections_max: The limit of connections.
        address_max: The limit of connections of one address.
        addresses: Detects trusted proxies, for which only `connections_max` applies.
    """

    def __init__(
        self, connections_max: int, *, address_max: int, addresses: ClientAddresses | None = None
    ) -> None:
        self._connections_max = connections_max
        self._shares = FairShare(connections_max, each_max=address_max, multiple=ADDRESS_MULTIPLE)
        self._addresses = addresses or ClientAddresses()
        #: The open connections with the addresses that they are counted for; empty for proxies.
        self._open: dict[Connection, str] = {}
        #: The idle connections, the longest idle first, in all and by address.
        self._idle: dict[Connection, None] = {}
        self._idle_at: dict[str, dict[Connection, None]] = {}
        self._refused_open = 0
        self._refused = 0
        self._is_full_told = False

    def enter(self, connection: Connection, peer: str) -> ConnectionRefusal | None:
        """Count a new, idle connection; return the reason if it is refused."""
        address = "" if self._addresses.is_proxy(peer) else self._addresses.of(peer, ())
        if len(self._open) >= self._connections_max and not self._close_one_of(self._idle):
            self._tell_full()
            return self._refuse(ConnectionRefusal.FULL)
        while address and not self._shares.take(address):
            if not self._close_one_of(self._idle_at.get(address, {})):
                return self._refuse(ConnectionRefusal.ADDRESS_FULL)
        self._open[connection] = address
        self.idle(connection)
        return None

    def leave(self, connection: Connection) -> None:
        """Stop counting a connection, if it was counted."""
        address = self._open.pop(connection, None)
        if address is None:
            return
        self._not_idle(connection, address)
        if address:
            self._shares.release(address)
        if self._is_full_told and len(self._open) < 0.9 * self._connections_max:
            self._is_full_told = False

    def busy(self, connection: Connection) -> None:
        """Mark a connection as busy."""
        address = self._open.get(connection)
        if address is not None:
            self._not_idle(connection, address)

    def idle(self, connection: Connection) -> None:
        """Mark a connection as idle."""
        address = self._open.get(connection)
        if address is not None:
            self._idle[connection] = None
            self._idle_at.setdefault(address, {})[connection] = None

    def may_linger(self) -> bool:
        """Count a refused connection that stays open to send the response, if the limit allows."""
        if self._refused_open >= REFUSED_OPEN_MAX:
            return False
        self._refused_open += 1
        return True

    def lingered(self) -> None:
        """Stop counting a refused connection that stayed open."""
        self._refused_open -= 1

    def measure(self, meter: Meter) -> None:
        """Register the metrics, which are computed when they are read."""
        meter.create_observable_gauge(
            OPEN,
            callbacks=[lambda _: [Observation(len(self._open))]],
            unit="{connection}",
            description="Connections of clients that are open.",
        )
        meter.create_observable_counter(
            REFUSED,
            callbacks=[lambda _: [Observation(self._refused)]],
            unit="{connection}",
            description="Connections of clients that were refused because there were too many.",
        )

    def _close_one_of(self, idle: dict[Connection, None]) -> bool:
        connection = next(iter(idle), None)
        if connection is None:
            return False
        self.leave(connection)
        connection.close_idle()
        return True

    def _not_idle(self, connection: Connection, address: str) -> None:
        if self._idle.pop(connection, connection) is connection:
            return
        here = self._idle_at[address]
        del here[connection]
        if not here:
            del self._idle_at[address]

    def _refuse(self, why: ConnectionRefusal) -> ConnectionRefusal:
        self._refused += 1
        return why

    def _tell_full(self) -> None:
        if not self._is_full_told:
            self._is_full_told = True
            _log.error(
                "all %d connections are in use, so that new ones are refused; see "
                "GATEWAY_HTTP_CONNECTIONS_MAX and the limit of open files",
                self._connections_max,
            )
