"""Runs inside of a sandbox and tries to reach something over a socket.

Gets JSON of addresses; prints JSON of what came of each.
"""

import ctypes
import json
import os
import socket
import struct
import sys

Address = tuple[str, int] | str

GIVEN = json.loads(sys.argv[1])
TIMEOUT_S = 2.0


def stream(family: int, address: Address) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as each:
        each.settimeout(TIMEOUT_S)
        each.connect(address)
        each.send(b"hacked")
    return "connected"


def datagram(family: int, address: Address) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as each:
        each.settimeout(TIMEOUT_S)
        each.connect(address)
        each.send(b"hacked")
        # Where nobody listens this is refused.
        try:
            each.recv(1)
        except TimeoutError:
            return "sent"
    return "answered"


def fast_open(address: Address) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as each:
        each.settimeout(TIMEOUT_S)
        each.sendto(b"hacked", 0x20000000, address)
    return "sent"


def several_paths(address: Address) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as each:
        each.settimeout(TIMEOUT_S)
        each.connect(address)
    return "connected"


def turned_pair(path: str) -> str:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"hacked", path)
    return "sent"


def bare(family: int, kind: int, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return "made"


def resolve(name: str) -> str:
    return repr(socket.getaddrinfo(name, 80))


def query(server: str, port: int) -> str:
    name = b"\x07example\x03com\x00"
    packet = struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + name + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        each.settimeout(TIMEOUT_S)
        each.sendto(packet, (server, port))
    return "asked"


def uring() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 1, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "io_uring")
    return "made"


def attempts() -> dict[str, object]:
    port, port6, datagrams = GIVEN["tcp"], GIVEN["tcp6"], GIVEN["udp"]
    four, six, unix = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
    tries: dict[str, object] = {
        "TCP loopback": lambda: stream(four, ("127.0.0.1", port)),
        "TCP 127.1.2.3": lambda: stream(four, ("127.1.2.3", port)),
        "TCP 0.0.0.0": lambda: stream(four, ("0.0.0.0", port)),
        "TCP own address": lambda: stream(four, (GIVEN["own"], port)),
        "TCP ::1": lambda: stream(six, ("::1", port6)),
        "TCP mapped": lambda: stream(six, ("::ffff:127.0.0.1", port)),
        "TCP metadata": lambda: stream(four, ("169.254.169.254", 80)),
        "TCP private": lambda: stream(four, ("10.0.0.1", 80)),
        "TCP fast open": lambda: fast_open(("127.0.0.1", port)),
        "MPTCP": lambda: several_paths(("127.0.0.1", port)),
        "UDP loopback": lambda: datagram(four, ("127.0.0.1", datagrams)),
        "UDP own address": lambda: datagram(four, (GIVEN["own"], datagrams)),
        "UDP private": lambda: datagram(four, ("10.0.0.1", 53)),
        "raw": lambda: bare(four, socket.SOCK_RAW, 1),
        "ping": lambda: bare(four, socket.SOCK_DGRAM, 1),
        "packet": lambda: bare(17, socket.SOCK_RAW, 3),
        "netlink": lambda: bare(16, socket.SOCK_RAW),
        "vsock": lambda: bare(40, socket.SOCK_STREAM),
        "alg": lambda: bare(38, socket.SOCK_SEQPACKET),
        "xdp": lambda: bare(44, socket.SOCK_RAW),
        "io_uring": uring,
        "abstract": lambda: stream(unix, "\0" + GIVEN["abstract"]),
        "DNS by name": lambda: resolve("example.com"),
        "DNS to a resolver": lambda: query(GIVEN["own"], datagrams),
    }
    for path in GIVEN["paths"]:
        tries[f"socket {path}"] = lambda path=path: stream(unix, path)
        tries[f"pair to {path}"] = lambda path=path: turned_pair(path)
    return tries


def main() -> None:
    told = {}
    for name, attempt in attempts().items():
        try:
            told[name] = [True, attempt()]  # type: ignore[operator]
        except OSError as error:
            told[name] = [False, str(error) or os.strerror(error.errno or 0)]
    print(json.dumps(told))


main()
