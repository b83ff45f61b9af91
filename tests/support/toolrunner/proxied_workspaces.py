"""Workspaces of a node that reach one server of its network through the proxy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import sandbox_pb2
from support.toolrunner.hosted_workspaces import scratch
from support.toolrunner.node import Client, House

HOST = "127.0.0.2"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"


@asynccontextmanager
async def running_origin() -> AsyncIterator[int]:
    """Run a server of the node's network, on an address that no program takes for its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        writer.close()

    server = await asyncio.start_server(answer, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def house_of(directory: Path, origin: int, level: str) -> House:
    """Return a node whose operator opened the server."""
    house = House.build(directory)
    house.settings["TOOLRUNNER_EGRESS_PRIVATE_HOSTS"] = f"{HOST}:{origin}"
    house.settings["TOOLRUNNER_SANDBOX_LEVEL"] = level
    return house


def proxied(origin: int, setup_script: str = "") -> api.WorkspaceSpec:
    """Return a workspace that may reach the server."""
    spec = scratch(setup_script)
    spec.network.access = sandbox_pb2.NETWORK_ACCESS_PROXY
    spec.network.allowed_hosts.append(f"{HOST}:{origin}")
    return spec


async def check_level(client: Client, level: str) -> None:
    """Skip where commands are not confined as far as that."""
    used = (await client.run("true")).process.sandbox.level
    if used != sandbox_pb2.SandboxLevel.Value(f"SANDBOX_LEVEL_{level.upper()}"):
        pytest.skip(f"this machine does not offer level {level}")
