"""A service with a method of each kind, and everything needed to serve and call it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodOptions
from google.protobuf.wrappers_pb2 import StringValue

from parley.api.identity.v1 import access_pb2
from parley.clock import Clock, SystemClock
from parley.identity import (
    Guard,
    InMemoryRevocations,
    Role,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
    User,
    UserId,
)
from parley.rpc import Registration, RunningServer
from parley.telemetry import InMemoryTelemetry

ECHO = "parley.test.echo.v1.EchoService"
ECHO_SCOPE = "echo:use"
MEMBER = User(UserId("u-1"), Role.MEMBER)


def _describe() -> Any:
    package, _, name = ECHO.rpartition(".")
    file = FileDescriptorProto(
        name="parley/test/echo/v1/echo_service.proto",
        package=package,
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto", "parley/api/identity/v1/access.proto"],
    )
    service = file.service.add(name=name)
    for method, (takes_stream, gives_stream) in KINDS.items():
        added = service.method.add(
            name=method,
            input_type=".google.protobuf.StringValue",
            output_type=".google.protobuf.StringValue",
            client_streaming=takes_stream,
            server_streaming=gives_stream,
        )
        rule = added.options.Extensions[access_pb2.callers]
        rule.services.append(access_pb2.SERVICE_GATEWAY)
        rule.for_users.append(access_pb2.SERVICE_GATEWAY)
        rule.scope = ECHO_SCOPE
        if method == "Look":
            added.options.idempotency_level = MethodOptions.NO_SIDE_EFFECTS
    pool = descriptor_pool.Default()
    return pool.AddSerializedFile(file.SerializeToString()).services_by_name[name]


# Whether requests and responses are streams.
KINDS = {
    "Say": (False, False),
    "Look": (False, False),
    "Repeat": (False, True),
    "Join": (True, False),
    "Chat": (True, True),
}
ECHO_SERVICE = _describe()

Say = Callable[[StringValue, Any], Awaitable[StringValue]]
Repeat = Callable[[StringValue, Any], Any]


class Echo:
    """Answers what it is told, unless a test gives it something better to do."""

    def __init__(self, say: Say | None = None, repeat: Repeat | None = None) -> None:
        self._say = say or _say_it
        self._repeat = repeat or _repeat_it

    async def say(self, request: StringValue, context: Any) -> StringValue:
        return await self._say(request, context)

    def repeat(self, request: StringValue, context: Any) -> Any:
        return self._repeat(request, context)

    async def join(self, requests: AsyncIterator[StringValue], context: Any) -> StringValue:
        return StringValue(value=" ".join([request.value async for request in requests]))

    async def chat(
        self, requests: AsyncIterator[StringValue], context: Any
    ) -> AsyncIterator[StringValue]:
        async for request in requests:
            yield await self._say(request, context)


async def _say_it(request: StringValue, context: Any) -> StringValue:
    return request


async def _repeat_it(request: StringValue, context: Any) -> AsyncIterator[StringValue]:
    for word in request.value.split():
        yield StringValue(value=word)


def _add_to_server(servicer: Echo, server: Any) -> None:
    codecs = (StringValue.FromString, StringValue.SerializeToString)
    handlers = {
        "Say": grpc.unary_unary_rpc_method_handler(servicer.say, *codecs),
        "Look": grpc.unary_unary_rpc_method_handler(servicer.say, *codecs),
        "Repeat": grpc.unary_stream_rpc_method_handler(servicer.repeat, *codecs),
        "Join": grpc.stream_unary_rpc_method_handler(servicer.join, *codecs),
        "Chat": grpc.stream_stream_rpc_method_handler(servicer.chat, *codecs),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(ECHO, handlers),))
    server.add_registered_method_handlers(ECHO, handlers)


def echo_registration(servicer: Echo | None = None) -> Registration:
    return Registration(ECHO_SERVICE, _add_to_server, servicer or Echo())


class EchoStub:
    """What generated code would make of the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        untyped: Any = channel
        codecs = {
            "request_serializer": StringValue.SerializeToString,
            "response_deserializer": StringValue.FromString,
            "_registered_method": True,
        }
        self.say = untyped.unary_unary(f"/{ECHO}/Say", **codecs)
        self.look = untyped.unary_unary(f"/{ECHO}/Look", **codecs)
        self.repeat = untyped.unary_stream(f"/{ECHO}/Repeat", **codecs)
        self.join = untyped.stream_unary(f"/{ECHO}/Join", **codecs)
        self.chat = untyped.stream_stream(f"/{ECHO}/Chat", **codecs)


@dataclass(frozen=True, slots=True)
class Identities:
    """A gateway that may call, and the guard of a chatd that lets it in."""

    signer: Signer
    guard: Guard
    revocations: InMemoryRevocations


def make_identities(
    directory: Path,
    *,
    clock: Clock | None = None,
    callers_clock: Clock | None = None,
    peers_by_certificate: bool = False,
) -> Identities:
    clock = clock or SystemClock()
    key = SigningKey.generate()
    trust_file = directory / "trust.json"
    TrustFile(trust_file).add_key(ServiceName.GATEWAY, key)
    revocations = InMemoryRevocations(())
    guard = Guard(
        ServiceName.CHATD,
        Trust(trust_file, clock),
        revocations,
        clock,
        peers_by_certificate,
    )
    signer = Signer(ServiceName.GATEWAY, key, callers_clock or clock)
    return Identities(signer, guard, revocations)


@dataclass(frozen=True, slots=True)
class Served:
    """One running echo service and a stub that may call it."""

    server: RunningServer
    echo: EchoStub
    channel: grpc.aio.Channel
    telemetry: InMemoryTelemetry


ServeEcho = Callable[..., AbstractAsyncContextManager[Served]]


def text(value: str) -> StringValue:
    return StringValue(value=value)
