"""Finds which of several advertised addresses is this process's own.

Replicas of one service share one configuration, which lists the addresses of all of them. A replica
finds its own by the host, which is this machine's or container's, and by its port.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

import psutil

from parley.clock import Clock
from parley.process.service_settings import ServiceSettings
from parley.settings import ConfigurationError

#: Names of containers can be resolved only a short time after their start.
PATIENCE_S: Final = 30.0
RETRY_S: Final = 0.5

S = TypeVar("S", bound=ServiceSettings)
Resolve = Callable[[str], Awaitable[frozenset[str]]]


async def with_own_address(settings: S, clock: Clock, resolve: Resolve | None = None) -> S:
    """Return the settings with this process's own address as the only one advertised.

    Raises:
        ConfigurationError: several are advertised, and not exactly one of them is its own.
    """
    if len(settings.advertise) < 2:
        return settings
    candidates = [each for each in settings.advertise if each.port == settings.listen.port]
    own_hosts = _own_hosts()
    give_up_at = clock.monotonic() + PATIENCE_S
    while True:
        resolved = [(each, await (resolve or _resolved)(each.host)) for each in candidates]
        found = [each for each, hosts in resolved if hosts & own_hosts]
        if len(found) == 1:
            return replace(settings, advertise=(found[0],))
        if len(found) > 1 or clock.monotonic() >= give_up_at:
            break
        await clock.sleep(RETRY_S)
    listed = ", ".join(map(str, settings.advertise))
    problem = "several are" if found else "none is"
    raise ConfigurationError(
        f"of the addresses to advertise ({listed}) {problem} this machine's on port "
        f"{settings.listen.port}: name all replicas by host names of their own"
    )


def _own_hosts() -> frozenset[str]:
    return frozenset(
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    )


async def _resolved(host: str) -> frozenset[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(str(entry[4][0]) for entry in found)
