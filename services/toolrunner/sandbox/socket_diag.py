"""The kernel memory that the sockets of a network namespace use.

Data in socket buffers belongs to no process: it is sent and not yet received, maybe by a process
that has exited. The kernel reports it for each socket, through a netlink socket that was created in
the same namespace, to any process that holds that socket.
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
#: Indexes of the counted values in the kernel's memory info of a socket.
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
#: A socket with empty buffers: the socket, its file and its inode.
SOCKET_BYTES = 2560
#: The kernel memory of a message of one byte.
MESSAGE_BYTES = 768
#: Used where the kernel does not report the maximum send buffer.
SENT_BYTES_MAX = 8 * 1024 * 1024
#: Reading so many takes some tenths of a second; the rest is estimated from their average.
SOCKETS_MAX = 20_000


Look = Callable[[bytes, int, int], tuple[int, int]]


@dataclass
class SocketUse:
    """The memory use of sockets.

    Attributes:
        total_bytes: The sum.
        by_inode: Sockets with data in their buffers, by the inode of the socket.
    """

    total_bytes: int = 0
    by_inode: dict[int, int] = field(default_factory=dict)

    def largest(self, count: int) -> dict[int, int]:
        """Return the sockets that use most."""
        order = sorted(self.by_inode.items(), key=lambda item: item[1], reverse=True)
        return dict(order[:count])


def open_diag() -> socket.socket:
    """Return a sock_diag socket of this process's network namespace.

    Raises:
        OSError: This kernel does not support it.
    """
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    return socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG)


def socket_use(diag: socket.socket) -> SocketUse:
    """Return the memory use of the sockets in the namespace of `diag`."""
    use, count = SocketUse(), 0
    for request, look in _requests():
        # Not every kernel supports every kind.
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
    attributes = _attributes(data, start + UNIX_MESSAGE_BYTES, end)
    held_bytes = waiting_bytes = peer = 0
    if (at := attributes.get(UNIX_MEMORY)) is not None:
        held_bytes = MEMORY.unpack_from(data, at)[ON_THE_WAY]
    if (at := attributes.get(UNIX_QUEUES)) is not None:
        waiting_bytes = QUEUES.unpack_from(data, at)[0]
    if (at := attributes.get(UNIX_PEER)) is not None:
        peer = INODE.unpack_from(data, at)[0]
    if waiting_bytes and not peer:
        held_bytes += min(waiting_bytes * MESSAGE_BYTES, _sent_bytes_max())
    return UNIX_INODE.unpack_from(data, start)[0], held_bytes


def _inet_socket(data: bytes, start: int, end: int) -> tuple[int, int]:
    at = _attributes(data, start + INET_MESSAGE_BYTES, end).get(INET_MEMORY)
    held_bytes = 0
    if at is not None:
        figures = MEMORY.unpack_from(data, at)
        sent_bytes = max(figures[ON_THE_WAY], figures[QUEUED])
        held_bytes = figures[RECEIVED] + sent_bytes + figures[BACKLOG]
    return INET_INODE.unpack_from(data, start)[0], held_bytes


@cache
def _sent_bytes_max() -> int:
    """Return how much one sender may have in flight.

    For data of a sender that has exited, the kernel reports only the payload size.
    """
    with suppress(OSError, ValueError), open("/proc/sys/net/core/wmem_max") as file:
        return 2 * int(file.read())
    return SENT_BYTES_MAX


def _dumped(diag: socket.socket, request: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield every message of an answer, as a buffer with start and end offsets.

    Raises:
        OSError: The kernel does not support that kind.
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
    """Return the offsets of the values of a message, by attribute type."""
    attributes: dict[int, int] = {}
    while start + ATTRIBUTE.size <= end:
        length, kind = ATTRIBUTE.unpack_from(data, start)
        if length < ATTRIBUTE.size:
            break
        attributes[kind] = start + ATTRIBUTE.size
        start += (length + 3) & ~3
    return attributes
