"""The addresses of push services, looked up on a few threads of their own.

Users choose the names, so that a look-up may take as long as a name server of theirs likes. The
threads of the event loop, which model providers need, are not used for them, and those that are
used do not hold up the end of the process. While other look-ups hold all threads, a host keeps the
addresses that it had; otherwise a few users with slow name servers could keep all others from being
told. They are not used at other times: how long an answer takes would tell which hosts are known.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from threading import Thread
from typing import Final

import httpx2

from chatd.primitives.domain.ids import OwnerId
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.egress import AddressBlocked

LOOK_UPS_MAX: Final = 4
#: How long a look-up waits for others to end; shorter than a request may take.
WAIT_S_MAX: Final = 5.0

#: For how long the addresses of a host are used while it cannot be looked up.
KNOWN_S: Final = 3600.0
HOSTS_MAX: Final = 1000

#: The user whose device a request is for.
OWNER: ContextVar[OwnerId] = ContextVar("push_owner")

#: Returns the addresses of a host and port, none if there are none; blocks its thread.
LookUp = Callable[[str, int], tuple[str, ...]]


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class PushNames:
    """Looks up the hosts of push services, one at a time for each user.

    Args:
        look_up: Looks up one host.
        clock: The clock by which addresses become too old.
        wait_s_max: How long others are waited for.
    """

    def __init__(self, look_up: LookUp, clock: Clock, *, wait_s_max: float = WAIT_S_MAX) -> None:
        self._known: BoundedCache[str, tuple[str, ...]] = BoundedCache(
            HOSTS_MAX, clock=clock, ttl_of=lambda _: KNOWN_S
        )
        self._look_up = look_up
        self._wait_s_max = wait_s_max
        self._threads = asyncio.Semaphore(LOOK_UPS_MAX)
        self._turns: dict[OwnerId, _Turn] = {}

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host for a device of `OWNER`.

        Raises:
            AddressBlocked: It has none; names inside of the network look no different to users.
            PoolTimeout: It was not looked up, because other look-ups take long, and is not known.
        """
        if _is_address(host):
            return (host,)
        owner_id = OWNER.get()
        turn = self._turns.setdefault(owner_id, _Turn())
        turn.users += 1
        try:
            await self._begin(turn)
        except httpx2.PoolTimeout:
            self._leave(owner_id, turn)
            if (known := self._known.get(host)) is None:
                raise
            return known
        except BaseException:
            self._leave(owner_id, turn)
            raise
        looking = _on_thread(self._look_up, host, port)
        # A thread cannot be cancelled: it counts until it ends, also if the request ended before.
        looking.add_done_callback(lambda _: self._end(owner_id, turn))
        found = await asyncio.shield(looking)
        if not found:
            raise AddressBlocked(f"{host}:{port}", "cannot be resolved")
        self._known.put(host, found)
        return found

    async def _begin(self, turn: _Turn) -> None:
        """Take the turn of a user, and a thread."""
        try:
            async with asyncio.timeout(self._wait_s_max):
                await turn.lock.acquire()
                try:
                    await self._threads.acquire()
                except BaseException:
                    turn.lock.release()
                    raise
        except TimeoutError:
            raise httpx2.PoolTimeout("too many names are being looked up") from None

    def _end(self, owner_id: OwnerId, turn: _Turn) -> None:
        self._threads.release()
        turn.lock.release()
        self._leave(owner_id, turn)

    def _leave(self, owner_id: OwnerId, turn: _Turn) -> None:
        turn.users -= 1
        if not turn.users:
            del self._turns[owner_id]


def _on_thread(look_up: LookUp, host: str, port: int) -> asyncio.Future[tuple[str, ...]]:
    """Look up a host on a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[tuple[str, ...]] = loop.create_future()

    def work() -> None:
        found: tuple[str, ...] = ()
        try:
            found = look_up(host, port)
        finally:
            with suppress(RuntimeError):  # The loop may be closed by now.
                loop.call_soon_threadsafe(result.set_result, found)

    Thread(target=work, name="push-names", daemon=True).start()
    return result


def looked_up(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host, none if there are none; blocks."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
