"""Host names: simultaneous lookups of a name share one query, and the result is cached."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

# How long a result is cached; a provider may change its addresses.
REMEMBERED_S = 10.0

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
LookUp = Callable[[str, int], Awaitable[Sequence[AddressInfo]]]


@dataclass(slots=True)
class _Known:
    """The cached result of one name."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    found: Sequence[AddressInfo] = ()
    failure: OSError | None = None
    learned_s: float = float("-inf")


class Names:
    """Looks up host names; a burst of calls costs one DNS query, not one per call.

    Args:
        look_up: Makes the query; None for getaddrinfo of the event loop, which has few threads.
    """

    def __init__(self, look_up: LookUp | None = None) -> None:
        self._look_up = look_up or _by_loop
        self._known: dict[tuple[str, int], _Known] = {}

    async def addresses(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Return the addresses of a host.

        Raises:
            OSError: the lookup failed; raised in all calls that waited for it, and not cached.
        """
        if (number := _number(host, port)) is not None:
            return (number,)
        clock_s = asyncio.get_running_loop().time
        asked_s = clock_s()
        known = self._known.setdefault((host, port), _Known())
        async with known.turn:
            if known.learned_s < asked_s - (REMEMBERED_S if known.failure is None else 0):
                known.failure = None
                try:
                    known.found = await self._look_up(host, port)
                except OSError as error:
                    known.failure = error
                known.learned_s = clock_s()
        if known.failure is not None:
            raise known.failure
        return known.found


def _number(host: str, port: int) -> AddressInfo | None:
    """Return a host that is an IP address as an address, which needs no DNS query."""
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        return None
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))


async def _by_loop(host: str, port: int) -> Sequence[AddressInfo]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
