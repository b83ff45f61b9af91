"""How much memory of the kernel the sockets of a network namespace have.

What lies in the buffers of a socket belongs to no process: it is sent and not yet received, maybe
by a process that is long gone. The kernel tells it for each socket, by a netlink socket that was
made in the same namespace, to anybody who holds that.
"""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
ALL_STATES = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
#: Places of what is counted in the kernel's figures of a socket.
MEMORY = struct.Struct("=9I")
RECEIVED, ON_THE_WAY, QUEUED, BACKLOG = 0, 2, 5, 7

UNIX_REQUEST = struct.Struct("=BBHIIIII")
UNIX_MESSAGE_BYTES, UNIX_INODE = 16, struct.Struct("=4xI")
UNIX_PEER, UNIX_QUEUES, UNIX_MEMORY = 2, 4, 5
SHOW_PEER, SHOW_QUEUES, SHOW_MEMORY = 0x4, 0x10, 0x20
QUEUES, INODE = struct.Struct("=II"), struct.Struct("=I")

INET_REQUEST = struct.Struct("=BBBxI48x")
INET_MESSAGE_BYTES, INET_INODE = 72, struct.Struct("=68xI")
INET_MEMORY = 7

RECEIVE_BYTES = 64 * 1024
#: A socket without anything in it: the socket, its file and its inode.
SOCKET_BYTES = 2560
#: What the kernel takes for a message of one byte.
MESSAGE_BYTES = 768
#: Where the kernel does not say how much a sender may have on the way.
SENT_BYTES_MAX = 8 * 1024 * 1024
#: Looking at so many takes some tenths of a second; more count as these do on average.
SOCKETS_MAX = 20_000


Look = Callable[[bytes, int, int], tuple[int, int]]


@dataclass
class SocketUse:
    """What sockets have.

    Attributes:
        total_bytes: All of them together.
        by_inode: Those that have something in their buffers, by the inode of the socket.
    """

    total_bytes: int = 0
    by_inode: dict[int, int] = field(default_factory=dict)

    def largest(self, count: int) -> dict[int, int]:
        """Return those that have most."""
        order = sorted(self.by_inode.items(), key=lambda item: item[1], reverse=True)
        return dict(order[:count])


def open_diag() -> socket.socket:
    """Return what asks for the sockets of the namespace that this process is in.

    Raises:
        OSError: This kernel does not tell.
    """
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    return socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG)


def socket_use(diag: socket.socket) -> SocketUse:
    """Return what the sockets of the namespace of `diag` have."""
    use, count = SocketUse(), 0
    for request, look in _requests():
        # Not every kernel tells of every kind.
        with suppress(OSError):
            for data, start, end in _dumped(diag, request):
                count += 1
                if count > SOCKETS_MAX:
                    continue
                inode, held_bytes = look(data, start, end)
                use.total_bytes += SOCKET_BYTES + held_bytes
                if held_bytes:
                    use.by_inode[inode] = held_bytes
    if count > SOCKETS_MAX:
        use.total_bytes = use.total_bytes * count // SOCKETS_MAX
    return use


def _requests() -> Iterator[tuple[bytes, Look]]:
    shown = SHOW_PEER | SHOW_QUEUES | SHOW_MEMORY
    yield UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, ALL_STATES, 0, shown, 0, 0), _unix_socket
    for family in (socket.AF_INET, socket.AF_INET6):
        for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
            shown = 1 << (INET_MEMORY - 1)
            yield INET_REQUEST.pack(family, protocol, shown, ALL_STATES), _inet_socket


def _unix_socket(data: bytes, start: int, end: int) -> tuple[int, int]:
    told = _attributes(data, start + UNIX_MESSAGE_BYTES, end)
    held_bytes = waiting_bytes = peer = 0
    if (place := told.get(UNIX_MEMORY)) is not None:
        held_bytes = MEMORY.unpack_from(data, place)[ON_THE_WAY]
    if (place := told.get(UNIX_QUEUES)) is not None:
        waiting_bytes = QUEUES.unpack_from(data, place)[0]
    if (place := told.get(UNIX_PEER)) is not None:
        peer = INODE.unpack_from(data, place)[0]
    if waiting_bytes and not peer:
        held_bytes += min(waiting_bytes * MESSAGE_BYTES, _sent_bytes_max())
    return UNIX_INODE.unpack_from(data, start)[0], held_bytes


def _inet_socket(data: bytes, start: int, end: int) -> tuple[int, int]:
    place = _attributes(data, start + INET_MESSAGE_BYTES, end).get(INET_MEMORY)
    held_bytes = 0
    if place is not None:
        figures = MEMORY.unpack_from(data, place)
        sent_bytes = max(figures[ON_THE_WAY], figures[QUEUED])
        held_bytes = figures[RECEIVED] + sent_bytes + figures[BACKLOG]
    return INET_INODE.unpack_from(data, start)[0], held_bytes


@cache
def _sent_bytes_max() -> int:
    """Return how much one sender may have on the way.

    Of what a sender left behind who is gone, the kernel tells only how much was said with it.
    """
    with suppress(OSError, ValueError), open("/proc/sys/net/core/wmem_max") as file:
        return 2 * int(file.read())
    return SENT_BYTES_MAX


def _dumped(diag: socket.socket, request: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield every message of an answer, as bytes and where in them it begins and ends.

    Raises:
        OSError: The kernel has nothing of that kind.
    """
    head = HEADER.pack(
        HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0
    )
    diag.send(head + request)
    while True:
        data = diag.recv(RECEIVE_BYTES)
        start = 0
        while start + HEADER.size <= len(data):
            length, kind, _, _, _ = HEADER.unpack_from(data, start)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR or length < HEADER.size:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            yield data, start + HEADER.size, start + length
            start += (length + 3) & ~3


def _attributes(data: bytes, start: int, end: int) -> dict[int, int]:
    """Return where the values of a message are, by their kinds."""
    told: dict[int, int] = {}
    while start + ATTRIBUTE.size <= end:
        length, kind = ATTRIBUTE.unpack_from(data, start)
        if length < ATTRIBUTE.size:
            break
        told[kind] = start + ATTRIBUTE.size
        start += (length + 3) & ~3
    return told
