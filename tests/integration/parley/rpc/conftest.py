"""A chatd that serves the echo service over a UNIX socket, and a gateway that calls it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.identity import ServiceName
from parley.rpc import Address, connect, serve
from parley.telemetry import InMemoryTelemetry
from support.rpc.echo_service import (
    Echo,
    EchoStub,
    Identities,
    Served,
    ServeEcho,
    echo_registration,
    make_identities,
)


@pytest.fixture
def identities(tmp_path: Path) -> Identities:
    return make_identities(tmp_path)


@pytest.fixture
def address(tmp_path: Path) -> Address:
    return Address.parse(f"unix:{tmp_path}/echo.sock")


@pytest.fixture
def serve_echo(identities: Identities, address: Address) -> ServeEcho:
    @asynccontextmanager
    async def start(servicer: Echo | None = None, **options: Any) -> AsyncIterator[Served]:
        telemetry = InMemoryTelemetry("chatd")
        options = {"address": address, "errors": {}, **options}
        async with serve(
            registrations=[echo_registration(servicer)],
            guard=identities.guard,
            domain="chatd.parley",
            telemetry=telemetry.telemetry,
            **options,
        ) as server:
            channel = connect(
                server.address,
                audience=ServiceName.CHATD,
                signer=identities.signer,
                telemetry=telemetry.telemetry,
            )
            try:
                yield Served(server, EchoStub(channel), channel, telemetry)
            finally:
                await channel.close()

    return start
