import asyncio
import socket
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import (
    reflection_pb2,
    reflection_pb2_grpc,
)

from parley.rpc import (
    Address,
    AddressUnusable,
    MethodsMissing,
    Registration,
    problem_of,
    serve,
)
from parley.telemetry import InMemoryTelemetry
from support.rpc.echo_service import ECHO, ECHO_SERVICE, Echo, Identities, ServeEcho, text

SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)


def ask_about(service: str) -> Any:
    return health_pb2.HealthCheckRequest(service=service)


class Held:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.has_started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.was_cancelled = False

    async def say(self, request: StringValue, context: Any) -> StringValue:
        self.has_started.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return request


async def test_health_answers_per_service(serve_echo: ServeEcho) -> None:
    async with (
        asyncio.timeout(10),
        serve_echo() as served,
        grpc.aio.insecure_channel(served.server.address.target) as stranger,
    ):
        health = health_pb2_grpc.HealthStub(stranger)
        assert await health.Check(ask_about("")) == SERVING
        assert await health.Check(ask_about(ECHO)) == SERVING
        statuses = (await health.List(health_pb2.HealthListRequest())).statuses
        assert dict(statuses) == {"": SERVING, ECHO: SERVING}
        served.server.set_serving(False)
        assert await health.Check(ask_about(ECHO)) == NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await health.Check(ask_about("no.such.Service"))
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert problem_of(raised.value).reason == "SERVICE_UNKNOWN"


async def test_a_watcher_hears_of_every_change_and_of_the_end(serve_echo: ServeEcho) -> None:
    async with (
        asyncio.timeout(10),
        serve_echo() as served,
        grpc.aio.insecure_channel(served.server.address.target) as stranger,
    ):
        watch = health_pb2_grpc.HealthStub(stranger).Watch(ask_about(ECHO))
        assert await watch.read() == SERVING
        served.server.set_serving(False)
        assert await watch.read() == NOT_SERVING
        served.server.set_serving(True)
        assert await watch.read() == SERVING
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(served.server.drain())
            assert await watch.read() == NOT_SERVING
            assert await watch.read() == grpc.aio.EOF


async def reflected(channel: grpc.aio.Channel) -> list[str]:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="*")
    call = stub.ServerReflectionInfo(iter([request]), timeout=5)
    answer = await call.read()
    call.cancel()
    return [service.name for service in answer.list_services_response.service]


async def test_reflection_lists_the_services_in_development(serve_echo: ServeEcho) -> None:
    async with (
        asyncio.timeout(10),
        serve_echo(is_development=True) as served,
        grpc.aio.insecure_channel(served.server.address.target) as stranger,
    ):
        assert sorted(await reflected(stranger)) == [
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
            ECHO,
        ]


async def test_reflection_is_absent_otherwise(serve_echo: ServeEcho) -> None:
    async with (
        asyncio.timeout(10),
        serve_echo() as served,
        grpc.aio.insecure_channel(served.server.address.target) as stranger,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await reflected(stranger)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_draining_server_refuses_new_calls_and_lets_the_running_end(
    serve_echo: ServeEcho,
) -> None:
    held = Held()
    async with (
        asyncio.timeout(10),
        serve_echo(Echo(say=held.say), drain_s=8) as served,
        grpc.aio.insecure_channel(served.server.address.target) as stranger,
        asyncio.TaskGroup() as tasks,
    ):
        running = served.echo.say(text("x"))
        await held.has_started.wait()
        watch = health_pb2_grpc.HealthStub(stranger).Watch(ask_about(""))
        assert await watch.read() == SERVING
        tasks.create_task(served.server.drain())
        assert await watch.read() == NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await served.echo.say(text("y"))
        held.may_end.set()
        assert await running == text("x")
    problem = problem_of(raised.value)
    assert (problem.status, problem.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")


async def test_a_call_that_outlasts_the_drain_is_cancelled(serve_echo: ServeEcho) -> None:
    held = Held()
    async with asyncio.timeout(10), serve_echo(Echo(say=held.say), drain_s=0.05) as served:
        running = served.echo.say(text("x"))
        await held.has_started.wait()
        await served.server.drain()
        with pytest.raises((grpc.aio.AioRpcError, asyncio.CancelledError)):
            await running
    assert held.was_cancelled


async def test_a_drained_server_stays_not_serving(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        await served.server.drain()
        served.server.set_serving(True)
        await served.server.drain()


async def test_the_socket_is_its_owners_alone_and_gone_afterwards(
    serve_echo: ServeEcho, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "echo.sock"
    async with asyncio.timeout(10), serve_echo(address=Address.parse(f"unix:{path}")) as served:
        assert await served.echo.say(text("x")) == text("x")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


async def test_a_socket_nobody_serves_is_taken_over(
    serve_echo: ServeEcho, address: Address
) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(address.place)
    async with asyncio.timeout(10), serve_echo() as served:
        assert await served.echo.say(text("x")) == text("x")


async def test_a_socket_somebody_serves_is_left_alone(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        with pytest.raises(AddressUnusable, match="another process serves there"):
            await serve_echo().__aenter__()
        assert await served.echo.say(text("x")) == text("x")


async def test_a_file_that_is_no_socket_is_left_alone(
    serve_echo: ServeEcho, tmp_path: Path
) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(AddressUnusable, match="not a socket"):
        await serve_echo(address=Address.parse(f"unix:{path}")).__aenter__()
    assert path.read_text() == "mine"


async def test_a_directory_open_to_others_is_refused(serve_echo: ServeEcho, tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o755)
    with pytest.raises(AddressUnusable, match="chmod 700"):
        await serve_echo(address=Address.parse(f"unix:{directory}/echo.sock")).__aenter__()


async def test_a_port_in_use_is_refused(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo(address=Address.parse("tcp:127.0.0.1:0")) as served:
        with pytest.raises(AddressUnusable) as raised:
            await serve_echo(address=served.server.address).__aenter__()
    assert raised.value.address == str(served.server.address)


async def test_plain_tcp_beyond_the_machine_is_refused_in_production(
    serve_echo: ServeEcho,
) -> None:
    with pytest.raises(AddressUnusable, match="use tls:"):
        await serve_echo(address=Address.parse("tcp:0.0.0.0:0")).__aenter__()


async def test_a_tls_address_needs_its_files(serve_echo: ServeEcho) -> None:
    with pytest.raises(AddressUnusable, match="TLS directory"):
        await serve_echo(address=Address.parse("tls:127.0.0.1:0")).__aenter__()


async def test_a_servicer_that_lacks_methods_is_refused(
    identities: Identities, address: Address
) -> None:
    registration = Registration(ECHO_SERVICE, lambda servicer, server: None, Echo())
    with pytest.raises(MethodsMissing) as raised:
        await serve(
            address,
            [registration],
            guard=identities.guard,
            errors={},
            domain="chatd.parley",
            telemetry=InMemoryTelemetry().telemetry,
        ).__aenter__()
    assert raised.value.methods == ("Say", "Look", "Repeat", "Join", "Chat")
