import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from parley.clock import SystemClock
from parley.identity import CertificateAuthority, CertificateFiles, ServiceName, server_name
from parley.rpc import (
    Address,
    RunningServer,
    TlsFiles,
    connect,
    problem_of,
    serve,
)
from parley.telemetry import InMemoryTelemetry
from support.rpc.echo_service import EchoStub, Identities, echo_registration, make_identities, text

ANY_PORT = Address.parse("tls:127.0.0.1:0")


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path / "authority", clock=SystemClock())


@pytest.fixture
def strict(tmp_path: Path) -> Identities:
    return make_identities(tmp_path, peers_by_certificate=True)


def issue(authority: CertificateAuthority, service: ServiceName, directory: Path) -> TlsFiles:
    authority.issue(service).write(directory)
    return TlsFiles(directory)


@asynccontextmanager
async def serving(identities: Identities, tls: TlsFiles) -> AsyncIterator[RunningServer]:
    async with serve(
        ANY_PORT,
        [echo_registration()],
        guard=identities.guard,
        errors={},
        domain="chatd.parley",
        telemetry=InMemoryTelemetry().telemetry,
        tls=tls,
    ) as server:
        yield server


def dial(
    server: RunningServer,
    identities: Identities,
    tls: TlsFiles,
    audience: ServiceName = ServiceName.CHATD,
) -> grpc.aio.Channel:
    return connect(
        server.address,
        audience=audience,
        signer=identities.signer,
        telemetry=InMemoryTelemetry().telemetry,
        tls=tls,
    )


async def test_two_services_of_one_authority_talk(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    gateway = issue(authority, ServiceName.GATEWAY, tmp_path / "gateway")
    async with (
        asyncio.timeout(10),
        serving(strict, chatd) as server,
        dial(server, strict, gateway) as channel,
    ):
        assert await EchoStub(channel).say(text("x")) == text("x")


async def test_a_token_on_another_services_connection_is_refused(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    toolrunner = issue(authority, ServiceName.TOOLRUNNER, tmp_path / "toolrunner")
    async with (
        asyncio.timeout(10),
        serving(strict, chatd) as server,
        dial(server, strict, toolrunner) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await EchoStub(channel).say(text("x"))
    assert problem_of(raised.value).reason == "PEER_MISMATCH"


async def test_a_server_that_is_another_service_is_not_called(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    toolrunner = issue(authority, ServiceName.TOOLRUNNER, tmp_path / "toolrunner")
    gateway = issue(authority, ServiceName.GATEWAY, tmp_path / "gateway")
    async with (
        asyncio.timeout(10),
        serving(strict, toolrunner) as server,
        dial(server, strict, gateway) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await EchoStub(channel).say(text("x"))
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_of_another_authority_is_not_let_in(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    stranger = CertificateAuthority.create(tmp_path / "other", clock=SystemClock())
    forged = stranger.issue(ServiceName.GATEWAY)
    CertificateFiles(authority.certificate_pem, forged.certificate_pem, forged.key_pem).write(
        tmp_path / "gateway"
    )
    async with (
        asyncio.timeout(10),
        serving(strict, chatd) as server,
        dial(server, strict, TlsFiles(tmp_path / "gateway")) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await EchoStub(channel).say(text("x"))
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def shown_serial(server: RunningServer, tls: TlsFiles) -> int:
    """Return the serial number of the certificate that the server shows a new connection."""
    context = ssl.create_default_context(cafile=str(tls.directory / "ca.pem"))
    context.load_cert_chain(tls.directory / "certificate.pem", tls.directory / "key.pem")
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection(
        "127.0.0.1",
        server.address.port,
        ssl=context,
        server_hostname=server_name(ServiceName.CHATD),
    )
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(shown).serial_number


def serial(files: CertificateFiles) -> int:
    return x509.load_pem_x509_certificate(files.certificate_pem).serial_number


async def test_a_server_shows_its_renewed_certificate_without_a_restart(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    gateway = issue(authority, ServiceName.GATEWAY, tmp_path / "gateway")
    async with (
        asyncio.timeout(10),
        serving(strict, chatd) as server,
        dial(server, strict, gateway) as channel,
    ):
        await EchoStub(channel).say(text("x"))
        first = chatd.read()
        assert await shown_serial(server, gateway) == serial(first)
        renewed = authority.renew(first)
        renewed.write(chatd.directory)
        assert await shown_serial(server, gateway) == serial(renewed)
        assert await EchoStub(channel).say(text("x")) == text("x")


async def test_a_broken_renewal_leaves_the_certificate_in_use(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    gateway = issue(authority, ServiceName.GATEWAY, tmp_path / "gateway")
    first = chatd.read()
    async with asyncio.timeout(10), serving(strict, chatd) as server:
        (chatd.directory / "certificate.pem").write_text("half a certif")
        assert await shown_serial(server, gateway) == serial(first)


def dial_watchfully(
    server: RunningServer, identities: Identities, tls: TlsFiles
) -> grpc.aio.Channel:
    """Return a channel that looks at its files before every call."""
    return connect(
        server.address,
        audience=ServiceName.CHATD,
        signer=identities.signer,
        telemetry=InMemoryTelemetry().telemetry,
        tls=tls,
        certificate_check_s=0,
    )


async def test_a_client_takes_up_its_renewed_certificate(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    gateway = issue(authority, ServiceName.TOOLRUNNER, tmp_path / "gateway")
    async with (
        asyncio.timeout(10),
        serving(strict, chatd) as server,
        dial_watchfully(server, strict, gateway) as channel,
    ):
        echo = EchoStub(channel)
        with pytest.raises(grpc.aio.AioRpcError):
            await echo.say(text("x"))
        issue(authority, ServiceName.GATEWAY, gateway.directory)
        assert await echo.say(text("x")) == text("x")


async def test_a_client_keeps_its_certificate_over_a_broken_renewal(
    authority: CertificateAuthority, strict: Identities, tmp_path: Path
) -> None:
    chatd = issue(authority, ServiceName.CHATD, tmp_path / "chatd")
    gateway = issue(authority, ServiceName.GATEWAY, tmp_path / "gateway")
    async with (
        asyncio.timeout(10),
        serving(strict, chatd) as server,
        dial_watchfully(server, strict, gateway) as channel,
    ):
        echo = EchoStub(channel)
        await echo.say(text("x"))
        (gateway.directory / "key.pem").write_text("half a key")
        assert await echo.say(text("x")) == text("x")
