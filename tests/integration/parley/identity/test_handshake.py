import asyncio
from pathlib import Path

import grpc
import grpc.aio
import pytest

from parley.clock import SystemClock
from parley.identity import (
    CertificateAuthority,
    CertificateFiles,
    ServiceName,
    service_of_names,
)

METHOD = "/parley.tests.Echo/WhoAmI"


async def who_am_i(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    """Answer with the service that the client's certificate names."""
    names = context.auth_context().get("x509_subject_alternative_name", ())
    return str(service_of_names(names)).encode()


def echo_server(files: CertificateFiles) -> tuple[grpc.aio.Server, int]:
    server = grpc.aio.server()
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(who_am_i)
    handlers = grpc.method_handlers_generic_handler("parley.tests.Echo", {"WhoAmI": method})
    server.add_generic_rpc_handlers((handlers,))
    credentials = grpc.ssl_server_credentials(
        [(files.key_pem, files.certificate_pem)],
        root_certificates=files.authority_pem,
        require_client_auth=True,
    )
    return server, server.add_secure_port("127.0.0.1:0", credentials)


async def ask(port: int, files: CertificateFiles) -> str:
    credentials = grpc.ssl_channel_credentials(
        files.authority_pem, files.key_pem, files.certificate_pem
    )
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
        answer = await call(b"", timeout=10)
        return answer.decode()


async def test_services_recognise_each_other_by_their_certificates(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path, clock=SystemClock())
    server, port = echo_server(authority.issue(ServiceName.CHATD, ("127.0.0.1",)))
    gateway = authority.issue(ServiceName.GATEWAY)

    async with asyncio.timeout(15):
        await server.start()
        try:
            assert await ask(port, gateway) == "gateway"
            assert await ask(port, authority.renew(gateway)) == "gateway"
            assert await ask(port, authority.issue_for_client("nightly")) == "None"
        finally:
            await server.stop(None)


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    ours = CertificateAuthority.create(tmp_path / "ours", clock=SystemClock())
    theirs = CertificateAuthority.create(tmp_path / "theirs", clock=SystemClock())
    server, port = echo_server(ours.issue(ServiceName.CHATD, ("127.0.0.1",)))
    stranger = theirs.issue(ServiceName.GATEWAY)
    trusting_us = CertificateFiles(ours.certificate_pem, stranger.certificate_pem, stranger.key_pem)

    async with asyncio.timeout(15):
        await server.start()
        try:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(port, trusting_us)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        finally:
            await server.stop(None)


async def test_a_server_under_a_name_it_was_not_issued_for_is_refused(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path, clock=SystemClock())
    server, port = echo_server(authority.issue(ServiceName.CHATD, ("chatd.example",)))

    async with asyncio.timeout(15):
        await server.start()
        try:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(port, authority.issue(ServiceName.GATEWAY))
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        finally:
            await server.stop(None)
