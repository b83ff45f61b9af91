"""Ports of this machine that a test may keep, however many tests run beside it."""

import secrets
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

HOST = "127.0.0.1"
LOWEST = 10_240
RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
RANGE_BEGIN = 32_768


def free_ports(count: int) -> list[int]:
    """Return ports that are free now and all different.

    They lie below those that the kernel gives to whoever connects: a port of its choice is free
    only until somebody else happens to get it, such as while the server that had it starts again.
    """
    begin = RANGE_BEGIN
    with suppress(OSError):
        begin = int(RANGE_FILE.read_text().split()[0])
    if begin <= LOWEST:
        return _chosen_by_kernel(count)
    found: set[int] = set()
    with ExitStack() as held:
        while len(found) < count:
            port = LOWEST + secrets.randbelow(begin - LOWEST)
            with suppress(OSError):
                held.enter_context(socket.create_server((HOST, port)))
                found.add(port)
    return list(found)


def free_port() -> int:
    """Return one such port."""
    (port,) = free_ports(1)
    return port


def _chosen_by_kernel(count: int) -> list[int]:
    with ExitStack() as held:
        taken = [held.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in taken]
