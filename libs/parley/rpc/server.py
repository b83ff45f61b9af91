"""The server side: a bound address, the wrapped methods, health, reflection, and draining."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1.health_pb2_grpc import (
    add_HealthServicer_to_server,
)
from grpc_reflection.v1alpha import (
    reflection,
    reflection_pb2_grpc,
)

from parley.identity import Guard
from parley.rpc.address import Address, Scheme, claim_path, close_to_others, release_path
from parley.rpc.errors import AddressUnusable, MethodsMissing
from parley.rpc.health import HEALTH, Health
from parley.rpc.limits import LIMITS
from parley.rpc.method import Incoming, MethodDependencies, wrap
from parley.rpc.metrics import CallMetrics
from parley.rpc.options import server_options
from parley.rpc.problem_table import ErrorTable, Problems
from parley.rpc.tls import TlsFiles, peer_service, server_credentials
from parley.rpc.tunnelled import TunnelledMethods
from parley.rpc.user_calls import Gate, UserCalls
from parley.telemetry import Telemetry

Method = TypeVar("Method", bound=Callable[..., Any])
ENCODED = "parley_answers_encoded"


@dataclass(frozen=True, slots=True)
class Registration:
    """One service and its servicer.

    Attributes:
        service_descriptor: The service, as in `chat_service_pb2.DESCRIPTOR.services_by_name`.
        add_to_server: The generated `add_...Servicer_to_server`.
        servicer: The object with its methods, all of them coroutines or async generators.
    """

    service_descriptor: ServiceDescriptor
    add_to_server: Callable[[Any, Any], None]
    servicer: object

    @classmethod
    def of(cls, servicer: object) -> "Registration":
        """Return the registration of a servicer whose class derives from a generated one.

        Raises:
            TypeError: It does not derive from a generated servicer.
        """
        for base in type(servicer).__mro__:
            if base.__module__.endswith("_pb2_grpc") and base.__name__.endswith("Servicer"):
                generated = sys.modules[base.__module__]
                messages = sys.modules[base.__module__.removesuffix("_grpc")]
                name = base.__name__.removesuffix("Servicer")
                descriptor = messages.DESCRIPTOR.services_by_name[name]
                return cls(
                    descriptor, getattr(generated, f"add_{name}Servicer_to_server"), servicer
                )
        raise TypeError(f"{type(servicer).__name__} derives from no generated servicer")


def answers_encoded(method: Method) -> Method:
    """Mark a servicer's method that returns encoded answers: bytes are passed to grpc."""
    setattr(method, ENCODED, True)
    return method


class RunningServer:
    """A server that accepts calls until it is drained.

    Attributes:
        address: Where it listens, with the port that the system chose for port 0.
    """

    def __init__(
        self, server: grpc.aio.Server, address: Address, health: Health, gate: Gate, drain_s: float
    ) -> None:
        self.address = address
        self._server = server
        self._health = health
        self._gate = gate
        self._drain_s = drain_s

    def set_serving(self, is_serving: bool, reason: str = "") -> None:
        """Set the status of the health service, and the reason if it does not serve.

        A draining server stays NOT_SERVING.
        """
        self._health.set_serving(is_serving and not self._gate.is_draining, reason)

    async def drain(self, *, is_waiting: bool = True) -> None:
        """Report NOT_SERVING, refuse new calls, let running ones end in time, cancel the rest.

        Without waiting they are cancelled at once.
        """
        self._health.set_serving(False)
        self._gate.close()
        is_empty = False
        try:
            is_empty = await self._gate.wait_until_empty(self._drain_s if is_waiting else 0.0)
        finally:
            self._health.finish()
            # The last answers may still be in transit; a handler that did not end has none.
            await self._server.stop(LIMITS.flush_s if is_empty else None)


@asynccontextmanager
async def serve(
    address: Address,
    registrations: Sequence[Registration],
    *,
    guard: Guard,
    errors: ErrorTable,
    domain: str,
    telemetry: Telemetry,
    tls: TlsFiles | None = None,
    is_development: bool = False,
    drain_s: float = LIMITS.drain_s,
    user_calls_max: int = LIMITS.user_calls_max,
    tunnelled: TunnelledMethods | None = None,
) -> AsyncIterator[RunningServer]:
    """Serve the registered services at `address` until the context ends, then drain.

    If the context ends with an error, running calls are cancelled at once.

    Args:
        address: Where to listen; port 0 lets the system choose.
        registrations: The services; health is added, in development reflection too.
        guard: Admits or refuses calls.
        errors: The service's own errors and their problems.
        domain: The domain of the error reasons, for example "chatd.parley".
        telemetry: Traces and counts the calls.
        tls: The certificate files that a tls: address needs.
        is_development: Whether to serve reflection and allow plain TCP from other machines.
        drain_s: How long running calls may go on at the end.
        user_calls_max: The most calls of one user of service tokens that may run.
        tunnelled: Is given the methods, for calls tunnelled through a stream of this server.

    Raises:
        AddressUnusable: The address cannot be bound.
        MethodsMissing: A servicer lacks methods of its service.
        CertificateUnreadable: The TLS files cannot be used.
    """
    services = [each.service_descriptor.full_name for each in registrations]
    health = Health(services, domain=domain)
    gate, measures = Gate(), CallMetrics()
    around = MethodDependencies(
        guard=guard,
        problems=Problems(errors),
        domain=domain,
        telemetry=telemetry,
        measures=measures,
        gate=gate,
        user_calls=UserCalls(user_calls_max),
        peer=peer_service if address.scheme is Scheme.TLS else _no_peer,
    )
    methods = _guarded_methods(registrations, around)
    if tunnelled is not None:
        tunnelled.know(dict(methods))
    methods |= _open_methods(services, health, is_development=is_development)
    server = grpc.aio.server(handlers=[_Methods(methods)], options=server_options())
    bound = _bind(server, address, tls, is_development=is_development)
    unpublish = measures.publish(telemetry)
    try:
        await server.start()
        running = RunningServer(server, bound, health, gate, drain_s)
        is_waiting = True
        try:
            yield running
        except Exception:
            is_waiting = False  # What the calls depend on has failed.
            raise
        finally:
            await running.drain(is_waiting=is_waiting)
    finally:
        unpublish()
        if address.scheme is Scheme.UNIX:
            release_path(address)


class _Methods(grpc.GenericRpcHandler):
    """Finds a method's handler by one look-up.

    grpc.aio waits on one future per registered method and renews that wait on every call, so a
    server with many methods is faster when it registers none of them.
    """

    def __init__(self, methods: Mapping[str, Incoming]) -> None:
        self._methods = methods

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of the method that is called, if there is one."""
        method = self._methods.get(handler_call_details.method)
        return None if method is None else method(handler_call_details.invocation_metadata)


class _Collector:
    """A substitute for the server in generated code that collects the handlers."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Ignore these: they are the same handlers as the registered ones."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Store a service's handlers under their full names."""
        self.handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}


def _guarded_methods(
    registrations: Sequence[Registration], around: MethodDependencies
) -> dict[str, Incoming]:
    collector = _Collector()
    for each in registrations:
        each.add_to_server(each.servicer, collector)
        service = each.service_descriptor
        missing = tuple(
            method.name
            for method in service.methods
            if f"/{service.full_name}/{method.name}" not in collector.handlers
        )
        if missing:
            raise MethodsMissing(service.full_name, missing)
        for method in service.methods:
            if getattr(getattr(each.servicer, method.name, None), ENCODED, False):
                path = f"/{service.full_name}/{method.name}"
                collector.handlers[path] = _encoded(collector.handlers[path])
    return {path: wrap(path, handler, around) for path, handler in collector.handlers.items()}


def _encoded(handler: Any) -> Any:
    return handler._replace(response_serializer=None)


def _open_methods(
    services: Sequence[str], health: Health, *, is_development: bool
) -> dict[str, Incoming]:
    """Return the open methods, which need no authentication and are not wrapped."""
    collector = _Collector()
    add_HealthServicer_to_server(health, collector)
    if is_development:
        names = (*services, HEALTH, reflection.SERVICE_NAME)
        servicer = reflection.aio.ReflectionServicer(names)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, collector)
    return {path: _always(handler) for path, handler in collector.handlers.items()}


def _always(handler: Any) -> Incoming:
    return lambda metadata: handler


def _bind(
    server: grpc.aio.Server, address: Address, tls: TlsFiles | None, *, is_development: bool
) -> Address:
    match address.scheme:
        case Scheme.UNIX:
            path = claim_path(address)
            _listening(address, lambda: server.add_insecure_port(address.target))
            close_to_others(path)
            return address
        case Scheme.TCP:
            if not (address.is_local or is_development):
                problem = "plain TCP would carry tokens in the clear; use tls: with certificates"
                raise AddressUnusable(str(address), problem)
            port = _listening(address, lambda: server.add_insecure_port(address.target))
            return address.with_port(port)
        case Scheme.TLS:
            if tls is None:
                problem = "a tls: address needs certificate files; set the TLS directory"
                raise AddressUnusable(str(address), problem)
            credentials = server_credentials(tls)
            port = _listening(address, lambda: server.add_secure_port(address.target, credentials))
            return address.with_port(port)


def _listening(address: Address, bind: Callable[[], int]) -> int:
    try:
        return bind()
    except RuntimeError as error:
        problem = "cannot listen there; is it in use, or not an address of this machine?"
        raise AddressUnusable(str(address), problem) from error


def _no_peer(context: Any) -> None:
    """Return None: the connection has no certificate."""
