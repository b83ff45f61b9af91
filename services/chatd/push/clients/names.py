"""The addresses of push services, looked up on a few threads of their own.

Users choose the names, so that a look-up may take as long as a name server of theirs likes. The
threads of the event loop, which model providers need, are not used for them.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Final

from parley.egress import AddressBlocked

LOOK_UPS_MAX: Final = 4

#: Returns the addresses of a host and port, none if there are none; blocks its thread.
LookUp = Callable[[str, int], tuple[str, ...]]


class PushNames:
    """Looks up the hosts of push services.

    Args:
        executor: Has the threads.
        look_up: Looks up one host.
    """

    def __init__(self, executor: Executor, look_up: LookUp) -> None:
        self._executor = executor
        self._look_up = look_up

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host.

        Raises:
            AddressBlocked: It has none; names inside of the network look no different to users.
        """
        if _is_address(host):
            return (host,)
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._executor, self._look_up, host, port)
        if not found:
            raise AddressBlocked(f"{host}:{port}", "cannot be resolved")
        return found


@contextmanager
def look_up_threads() -> Iterator[Executor]:
    """Yield an executor whose threads look up names; a look-up under way is not waited for."""
    executor = ThreadPoolExecutor(LOOK_UPS_MAX, "push-names")
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


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
