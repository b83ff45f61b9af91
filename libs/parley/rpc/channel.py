"""The client side: a channel that adds identity, trace and deadline to every call.

grpc's client interceptors start a task per call; wrapping the multi-callables costs a function call
instead. The wrapper also lets the grpc channel be replaced while stubs keep theirs, which is how a
renewed certificate or a stub of one more service takes effect. A call that was refused because of
clock skew is repeated once, with a token signed for the other clock. Long calls use connections of
their own: streams, and calls with a longer timeout than an ordinary answer.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor

from parley.identity import CertificateUnreadable, ServiceName, User, server_name
from parley.rpc.address import Address, Scheme
from parley.rpc.call import ACTING_FOR, CLIENT_ADDRESS, CLIENT_ADDRESS_HEADER, SERVED_CALL
from parley.rpc.clock_correction import CallTokens, CorrectedAnswer, CorrectedStream, Credential
from parley.rpc.errors import AddressUnusable
from parley.rpc.limits import LIMITS
from parley.rpc.long_calls import LongCalls
from parley.rpc.options import channel_options
from parley.rpc.tls import TlsFiles, channel_credentials
from parley.telemetry import Telemetry

_LOGGER = logging.getLogger(__name__)
_AUTHORIZATION = "authorization"

_Pairs = tuple[tuple[str, str | bytes], ...]


def connect(
    address: Address,
    *,
    audience: ServiceName,
    signer: CallTokens | None,
    telemetry: Telemetry,
    tls: TlsFiles | None = None,
    certificate_check_s: float = LIMITS.certificate_check_s,
) -> grpc.aio.Channel:
    """Return a channel to the service at `address`; it connects at its first call.

    Args:
        address: The address of the service.
        audience: The expected service.
        signer: Signs the calls; None allows open methods only, such as health.
        telemetry: The source of the trace context that is sent with the calls.
        tls: The certificate files that a tls: address needs.
        certificate_check_s: How often to check whether they were renewed.

    Raises:
        AddressUnusable: It is a tls: address and no files are given.
    """
    if address.scheme is Scheme.TLS and tls is None:
        problem = "a tls: address needs certificate files; set the TLS directory"
        raise AddressUnusable(str(address), problem)
    credential = None if signer is None else Credential(signer, audience, address)
    files = tls if address.scheme is Scheme.TLS else None
    opener = _Opener(address, audience, files, certificate_check_s)
    return _Channel(opener, credential, telemetry)


def call_headers(channel: grpc.aio.Channel) -> dict[str, str]:
    """Return the metadata of a call made now over a channel from `connect`."""
    assert isinstance(channel, _Channel)
    return channel.headers(ACTING_FOR.get())


class _Opener:
    """Opens the grpc channels, and checks when a new one is needed."""

    def __init__(
        self, address: Address, audience: ServiceName, tls: TlsFiles | None, check_s: float
    ) -> None:
        self._address = address
        self._audience = audience
        self._tls = tls
        self._check_s = check_s
        self._stamp: tuple[int, ...] = ()
        self._looked_at = 0.0

    def open(
        self, services: Iterable[ServiceDescriptor], *, is_alone: bool = False
    ) -> grpc.aio.Channel:
        """Open a channel for stubs of `services`, with or without a connection of its own."""
        options = channel_options(services, is_alone=is_alone)
        if self._tls is None:
            return grpc.aio.insecure_channel(self._address.target, options)
        name = ("grpc.ssl_target_name_override", server_name(self._audience))
        if not is_alone:
            # A renewal is detected by the certificate of the channel for ordinary calls.
            self._stamp = self._tls.stamp()
            self._looked_at = asyncio.get_running_loop().time()
        return grpc.aio.secure_channel(
            self._address.target, channel_credentials(self._tls), (*options, name)
        )

    def is_due(self) -> bool:
        """Return whether the certificate was renewed; the files are checked at intervals."""
        if self._tls is None:
            return False
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < self._check_s:
            return False
        self._looked_at = now
        return self._tls.stamp() != self._stamp


class _Channel(grpc.aio.Channel):
    """The channel that stubs are made from; the grpc channel below it may be replaced."""

    def __init__(
        self, opener: _Opener, credential: Credential | None, telemetry: Telemetry
    ) -> None:
        self._opener = opener
        self.credential = credential
        self._telemetry = telemetry
        self._services: dict[str, ServiceDescriptor] = {}
        self._inner: grpc.aio.Channel | None = None
        self._retired: list[grpc.aio.Channel] = []
        self._long_calls = LongCalls(lambda: opener.open(self._services.values(), is_alone=True))
        self._is_closed = False

    def long_calls(self) -> LongCalls:
        """Return the connections for new long calls; they are replaced together with `current`."""
        self.current()
        return self._long_calls

    def current(self) -> grpc.aio.Channel:
        """Return the channel for new calls."""
        if self._inner is None:
            return self._replace()
        if self._opener.is_due():
            try:
                return self._replace()
            except CertificateUnreadable as error:
                _LOGGER.warning("keeping the certificate in use: %s", error)
        return self._inner

    def headers(self, user: User | None) -> dict[str, str]:
        """Return the metadata of a call on behalf of `user`."""
        carrier: dict[str, str] = {}
        if self.credential is not None:
            carrier[_AUTHORIZATION] = self.credential.authorization(user)
        address = CLIENT_ADDRESS.get()
        if address:
            carrier[CLIENT_ADDRESS_HEADER] = address
        self._telemetry.inject(carrier)
        return carrier

    def _replace(self) -> grpc.aio.Channel:
        if self._is_closed:
            raise grpc.aio.UsageError("the channel is closed; open another one")
        fresh = self._opener.open(self._services.values())
        self._retire()
        self._inner = fresh
        return fresh

    def _retire(self) -> None:
        """Start no more calls; running ones go on, and an idle channel drops its connection."""
        self._long_calls.retire()
        if self._inner is not None:
            self._retired.append(self._inner)
            self._inner = None

    def _learn(self, path: str) -> None:
        """Store the service of a stub being made, so that its retry policy is configured."""
        name = path.removeprefix("/").partition("/")[0]
        if name in self._services:
            return
        try:
            self._services[name] = descriptor_pool.Default().FindServiceByName(name)
        except KeyError:
            return
        self._retire()

    def unary_unary(self, method: str, *codecs: Any, **options: Any) -> Any:
        """Return the callable of a unary-unary method."""
        self._learn(method)
        return _SingleRequest(self, "unary_unary", (method, *codecs), options)

    def unary_stream(self, method: str, *codecs: Any, **options: Any) -> Any:
        """Return the callable of a unary-stream method."""
        self._learn(method)
        return _SingleRequest(self, "unary_stream", (method, *codecs), options)

    def stream_unary(self, method: str, *codecs: Any, **options: Any) -> Any:
        """Return the callable of a stream-unary method."""
        self._learn(method)
        return _RequestStream(self, "stream_unary", (method, *codecs), options)

    def stream_stream(self, method: str, *codecs: Any, **options: Any) -> Any:
        """Return the callable of a stream-stream method."""
        self._learn(method)
        return _RequestStream(self, "stream_stream", (method, *codecs), options)

    async def close(self, grace: float | None = None) -> None:
        """Close after `grace` seconds for the running calls."""
        self._is_closed = True
        inner, self._inner = self._inner, None
        retired, self._retired = self._retired, []
        async with asyncio.TaskGroup() as tasks:
            for channel in (
                *retired,
                *(() if inner is None else (inner,)),
                *self._long_calls.release(),
            ):
                tasks.create_task(channel.close(grace))

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return the state of the connection."""
        return self.current().get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the connection is in another state."""
        await self.current().wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the connection is established."""
        await self.current().channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()


class _Headers(grpc.aio.Metadata):
    """The metadata of one call; grpc only takes its length and iterates it once.

    grpc converts a plain tuple into a mapping of lists first, which costs more than the rest here.
    """

    def __init__(self, pairs: _Pairs) -> None:
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[str, str | bytes]]:
        return iter(self._pairs)


class _OutgoingMethod:
    """One method of a stub, bound to the current channel."""

    _is_repeatable: ClassVar[bool]

    def __init__(
        self, channel: _Channel, kind: str, codecs: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._channel = channel
        self._kind = kind
        self._codecs = codecs
        self._options = options
        self._inner: grpc.aio.Channel | None = None
        self._call: Any = None
        is_unary = kind == "unary_unary"
        self._deadline_s = LIMITS.unary_deadline_s if is_unary else LIMITS.stream_deadline_s
        self._corrected = CorrectedStream if kind.endswith("stream") else CorrectedAnswer

    def _start(
        self, request: Any, timeout: float | None, metadata: Any, options: dict[str, Any]
    ) -> Any:
        user = ACTING_FOR.get()
        headers = (*self._channel.headers(user).items(), *(metadata or ()))
        send = self._send_long if self._lasts(timeout) else self._send
        call = send(request, self._bounded(timeout), headers, options)
        if self._channel.credential is None:
            return call
        return self._corrected(call, partial(self._again, send, request, user, headers, options))

    def _lasts(self, timeout: float | None) -> bool:
        """Return whether a call may take longer than an ordinary answer."""
        limit_s = self._deadline_s if timeout is None else timeout
        return self._kind != "unary_unary" or limit_s > LIMITS.unary_deadline_s

    def _send(
        self, request: Any, timeout_s: float, headers: _Pairs, options: dict[str, Any]
    ) -> Any:
        inner = self._channel.current()
        if inner is not self._inner:
            self._call = self._bound(inner)
            self._inner = inner
        return self._call(request, timeout=timeout_s, metadata=_Headers(headers), **options)

    def _send_long(
        self, request: Any, timeout_s: float, headers: _Pairs, options: dict[str, Any]
    ) -> Any:
        return self._channel.long_calls().start(
            self, self._bound, request, timeout=timeout_s, metadata=_Headers(headers), **options
        )

    def _bound(self, channel: grpc.aio.Channel) -> Any:
        return getattr(channel, self._kind)(*self._codecs, **self._options)

    def _again(
        self,
        send: Callable[[Any, float, _Pairs, dict[str, Any]], Any],
        request: Any,
        user: User | None,
        headers: _Pairs,
        options: dict[str, Any],
        error: grpc.aio.AioRpcError,
        refused: Any,
    ) -> Any:
        """Return the repetition of a call refused for clock skew; None if that cannot help."""
        credential = self._channel.credential
        if credential is None or not credential.learn(error) or not self._is_repeatable:
            return None
        authorization = (_AUTHORIZATION, credential.authorization(user))
        if authorization in headers:
            return None
        others = [pair for pair in headers if pair[0] != _AUTHORIZATION]
        return send(request, refused.time_remaining(), (authorization, *others), options)

    def _bounded(self, timeout: float | None) -> float:
        """Return the timeout or its default, limited by the deadline of the call being served."""
        limit_s = self._deadline_s if timeout is None else timeout
        served = SERVED_CALL.get()
        if served is None:
            return limit_s
        remaining_s = served.deadline_at - asyncio.get_running_loop().time()
        return max(0.0, min(limit_s, remaining_s))


class _SingleRequest(_OutgoingMethod):
    """A method with one request message."""

    _is_repeatable = True

    def __call__(
        self, request: Any, *, timeout: float | None = None, metadata: Any = None, **options: Any
    ) -> Any:
        """Start the call."""
        return self._start(request, timeout, metadata, options)


class _RequestStream(_OutgoingMethod):
    """A method with a request stream, which is given or written to, and is never repeated."""

    _is_repeatable = False

    def __call__(
        self,
        request_iterator: Any = None,
        timeout: float | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> Any:
        """Start the call."""
        return self._start(request_iterator, timeout, metadata, options)
