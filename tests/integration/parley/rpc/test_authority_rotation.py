"""Services talk over mutual TLS at every stage of the rotation of their certificate authority."""

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.cli.home.layout import Home
from parley.cli.keys.signing import (
    authority_of,
    believe_both,
    believe_new_authority,
    use_new_authority,
)
from parley.clock import SystemClock
from parley.identity import CertificateAuthority, ServiceName
from parley.rpc import Address, TlsFiles, connect, serve
from parley.telemetry import InMemoryTelemetry
from support.rpc.echo_service import EchoStub, echo_registration, make_identities, text

CLOCK = SystemClock()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    home.prepare()
    authority = CertificateAuthority.create(home.tls, clock=CLOCK)
    for service in (ServiceName.CHATD, ServiceName.GATEWAY):
        authority.issue(service).write(home.tls / service)
    return home


def kept(home: Home, name: str) -> Path:
    """Return a copy of the certificates as they are now, as services that run apart have it."""
    copy = home.root / name
    shutil.copytree(home.tls, copy)
    return copy


@asynccontextmanager
async def called(server_files: Path, client_files: Path, keys: Path) -> AsyncIterator[EchoStub]:
    identities = make_identities(keys, peers_by_certificate=True)
    telemetry = InMemoryTelemetry().telemetry
    async with (
        asyncio.timeout(20),
        serve(
            Address.parse("tls:127.0.0.1:0"),
            [echo_registration()],
            guard=identities.guard,
            errors={},
            domain="chatd.parley",
            telemetry=telemetry,
            tls=TlsFiles(server_files / ServiceName.CHATD),
        ) as server,
        connect(
            server.address,
            audience=ServiceName.CHATD,
            signer=identities.signer,
            telemetry=telemetry,
            tls=TlsFiles(client_files / ServiceName.GATEWAY),
        ) as channel,
    ):
        yield EchoStub(channel)


async def test_neighbouring_stages_talk_and_the_old_authority_is_refused_at_the_end(
    home: Home, tmp_path: Path
) -> None:
    old = authority_of(home)
    stages = [kept(home, "before")]
    believe_both(home, old, CLOCK)
    stages.append(kept(home, "known"))
    use_new_authority(home, old, CLOCK)
    stages.append(kept(home, "used"))
    believe_new_authority(home)
    stages.append(kept(home, "removed"))
    for earlier, later in itertools.pairwise(stages):
        for server, client in ((earlier, later), (later, earlier)):
            async with called(server, client, tmp_path) as stub:
                assert await stub.say(text("x")) == text("x"), (server.name, client.name)
    for server, client in ((stages[-1], stages[0]), (stages[0], stages[-1])):
        async with called(server, client, tmp_path) as stub:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.say(text("x"))
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
