"""What must not be reached from inside of a sandbox, and what counts whether it was."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECRET = "hunter2"


@dataclass
class Service:
    """Something that listens everywhere, and a process that has a secret in its environment."""

    pid: int
    tcp: int
    tcp6: int
    udp: int
    own: str
    abstract: str
    paths: list[str]
    reached: list[str] = field(default_factory=list)

    def addresses(self) -> str:
        """Return where it listens, for an attacker."""
        given = {
            "tcp": self.tcp,
            "tcp6": self.tcp6,
            "udp": self.udp,
            "own": self.own,
            "abstract": self.abstract,
            "paths": self.paths,
        }
        return json.dumps(given)


class _Calls(asyncio.Protocol):
    def __init__(self, name: str, reached: list[str]) -> None:
        self._name, self._reached = name, reached

    def connection_made(self, transport: object) -> None:
        self._reached.append(self._name)


class _Letters(asyncio.DatagramProtocol):
    def __init__(self, name: str, reached: list[str]) -> None:
        self._name, self._reached = name, reached

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._reached.append(self._name)


@asynccontextmanager
async def service(directory: Path) -> AsyncIterator[Service]:
    """Listen on everything there is, in a directory that everybody may enter."""
    loop = asyncio.get_running_loop()
    reached: list[str] = []

    def counting(name: str) -> _Calls:
        return _Calls(name, reached)

    place = directory / "service"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    path, dgram_path = str(place / "s.sock"), str(place / "d.sock")
    abstract = f"parley-victim-{os.getpid()}"
    async with AsyncExitStack() as stack:
        tcp = await loop.create_server(lambda: counting("tcp"), "0.0.0.0", 0)
        unix = await loop.create_unix_server(lambda: counting("unix"), path)
        named = await loop.create_unix_server(lambda: counting("abstract"), "\0" + abstract)
        servers = [tcp, unix, named]
        tcp6_port = 0
        try:
            tcp6 = await loop.create_server(lambda: counting("tcp6"), "::1", 0)
            servers.append(tcp6)
            tcp6_port = tcp6.sockets[0].getsockname()[1]
        except OSError:
            tcp6_port = tcp.sockets[0].getsockname()[1]
        for server in servers:
            stack.callback(server.close)
        udp, _ = await loop.create_datagram_endpoint(
            lambda: _Letters("udp", reached), local_addr=("0.0.0.0", 0)
        )
        stack.callback(udp.close)
        letters = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        letters.bind(dgram_path)
        box, _ = await loop.create_datagram_endpoint(
            lambda: _Letters("unix dgram", reached), sock=letters
        )
        stack.callback(box.close)
        for each in (path, dgram_path):
            os.chmod(each, 0o777)
        victim = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-c", "import time; time.sleep(600)"),
            env={"SECRET": SECRET},
        )
        try:
            yield Service(
                victim.pid,
                tcp.sockets[0].getsockname()[1],
                tcp6_port,
                udp.get_extra_info("sockname")[1],
                own_address(),
                abstract,
                [path, dgram_path],
                reached,
            )
        finally:
            victim.kill()
            await victim.wait()


def own_address() -> str:
    """Return an address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        try:
            each.connect(("192.0.2.1", 9))
            return str(each.getsockname()[0])
        except OSError:
            return "127.0.0.1"
