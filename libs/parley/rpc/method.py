"""The steps around a servicer's method, composed once per method.

A call passes, in this order: trace, drain, identity, deadline, the handler; then errors, metrics
and the end of the trace. grpc would run five interceptors for it, each of which looks the method up
and wraps it again on every call. Here one coroutine function per method does it all, and grpc.aio
calls that function as if it were the servicer's. grpc.aio serves each call in a task of its own, so
the context variables set here need no resetting.

A stream may outlive the service token that opened it: it ends when the token expires, and before
each message it writes the token is checked against the revoked ones.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from inspect import isasyncgen
from typing import Any, NamedTuple
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError
from opentelemetry.context import attach
from opentelemetry.trace import (
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
)

from parley.contract.validation import violations_of
from parley.identity import Caller, Guard, ServiceName
from parley.rpc.call import (
    ADDRESS_CHARACTERS_MAX,
    CLIENT_ADDRESS,
    CLIENT_ADDRESS_HEADER,
    EMPTY,
    SERVED_CALL,
    RemoteSpan,
    ServedCall,
    current_caller,
    is_unsampled,
)
from parley.rpc.limits import LIMITS
from parley.rpc.metrics import CallMetrics
from parley.rpc.problem import Problem, Refusal, Violation, message_of, trailers
from parley.rpc.problem_table import DRAINING, OVERDUE, TOKEN_ENDED, Problems, unknown_problem
from parley.rpc.user_calls import Gate, UserCalls
from parley.telemetry import Telemetry

_LOGGER = logging.getLogger(__name__)
_OK = grpc.StatusCode.OK
#: How long a refused client may go on sending before the refusal is sent.
REQUEST_DRAIN_S = 5.0
INVALID_REQUEST = "INVALID_REQUEST"
_SERVER_FAULTS = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS)

Behaviour = Callable[[Any, Any], Any]
# Returns the handler of a call, given its metadata.
Incoming = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class MethodDependencies:
    """The dependencies that all methods of one server share.

    Attributes:
        guard: Admits calls.
        problems: Maps errors to problems.
        domain: The domain of the error reasons.
        telemetry: Traces.
        measures: Counts.
        gate: Counts the running calls and refuses new ones while draining.
        user_calls: Bounds the running calls of each user of service tokens.
        peer: Reads the service from a connection's certificate.
    """

    guard: Guard
    problems: Problems
    domain: str
    telemetry: Telemetry
    measures: CallMetrics
    gate: Gate
    user_calls: UserCalls
    peer: Callable[[Any], ServiceName | None]


def wrap(path: str, handler: Any, around: MethodDependencies) -> Incoming:
    """Return the handler of "/pkg.Service/Method" with all steps around it."""
    return _Method(path, around).incoming(handler)


class _Limit(NamedTuple):
    """A time limit that grpc does not enforce, and the problem that it ends the call with."""

    limit_s: float
    problem: Problem


def _behaviour(handler: Any, guard: Guard) -> tuple[Behaviour, float]:
    """Return the coroutine function that serves a call, and the default deadline."""
    match handler.request_streaming, handler.response_streaming:
        case False, False:
            return handler.unary_unary, LIMITS.unary_deadline_s
        case True, False:
            return handler.stream_unary, LIMITS.stream_deadline_s
        case False, True:
            return _written(handler.unary_stream, guard), LIMITS.stream_deadline_s
        case _:
            return _written(handler.stream_stream, guard), LIMITS.stream_deadline_s


def _written(behaviour: Behaviour, guard: Guard) -> Callable[[Any, Any], Awaitable[None]]:
    """Return a handler that writes what a generator yields, or lets a coroutine write by itself."""

    async def write(request: Any, context: Any) -> None:
        caller = current_caller()
        if caller.token_id is not None:
            context = _CheckedContext(context, guard, caller)
        answer = behaviour(request, context)
        if not isasyncgen(answer):
            await answer
            return
        async with aclosing(answer):
            async for message in answer:
                await context.write(message)

    return write


class _CheckedContext:
    """A call's context that checks before each write that the caller is still admitted."""

    __slots__ = ("_caller", "_context", "_guard")

    def __init__(self, context: Any, guard: Guard, caller: Caller) -> None:
        self._context = context
        self._guard = guard
        self._caller = caller

    async def write(self, message: Any) -> None:
        """Write the message, or raise the guard's refusal."""
        self._guard.check_again(self._caller)
        await self._context.write(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _Method:
    """The steps around one method."""

    def __init__(self, path: str, around: MethodDependencies) -> None:
        self._path = path
        self._name = path.removeprefix("/")
        self._around = around
        self._record = around.measures.of(self._name)
        self._attributes = {"rpc.system.name": "grpc", "rpc.method": self._name}

    def incoming(self, handler: Any) -> Incoming:
        """Return a function that makes a handler, in grpc's form, from a call's metadata.

        grpc has the metadata when it looks for the handler; requesting it again is slow.
        """
        behaviour, deadline_s = _behaviour(handler, self._around.guard)
        default = _Limit(deadline_s, OVERDUE)
        is_stream = handler.request_streaming or handler.response_streaming
        is_upload = handler.request_streaming and not handler.response_streaming
        check = _accept if handler.request_streaming else check_request
        method, gate, user_calls = self, self._around.gate, self._around.user_calls

        class Handler:
            __slots__ = ("_metadata",)

            request_streaming = handler.request_streaming
            response_streaming = handler.response_streaming
            request_deserializer = staticmethod(handler.request_deserializer or _as_it_is)
            response_serializer = staticmethod(handler.response_serializer or _as_it_is)

            def __init__(self, metadata: Any) -> None:
                self._metadata = dict(metadata)

            async def answer(self, request: Any, context: Any) -> Any:
                started_at = time.perf_counter()
                span = method.trace(self._metadata)
                gate.running += 1
                holder = None
                try:
                    limit = method.admit(context, self._metadata, default, is_stream)
                    holder = user_calls.begin(current_caller())
                    check(request)
                    if limit is None:
                        response = await behaviour(request, context)
                    else:
                        response = await _within(behaviour(request, context), limit)
                except BaseException as error:
                    await method.fail(error, span, context, started_at, is_upload=is_upload)
                    raise
                finally:
                    gate.leave()
                    if holder is not None:
                        user_calls.end(holder)
                method.finish(span, _OK, started_at)
                return response

            unary_unary = unary_stream = stream_unary = stream_stream = answer

        return Handler

    def trace(self, metadata: dict[str, Any]) -> Span:
        """Continue the caller's trace."""
        if is_unsampled(metadata):
            span: Span = RemoteSpan(self._ids, metadata)
        else:
            span = self._started(metadata)
        attach(set_span_in_context(span, EMPTY))
        return span

    def _started(self, metadata: Mapping[str, Any]) -> Span:
        telemetry = self._around.telemetry
        return telemetry.tracer.start_span(
            self._name,
            telemetry.extract(metadata),
            SpanKind.SERVER,
            attributes=self._attributes,
        )

    def _ids(self, metadata: Mapping[str, Any]) -> SpanContext:
        """Return the caller's trace ids, or new ones if its header is invalid."""
        ids = get_current_span(self._around.telemetry.extract(metadata)).get_span_context()
        return ids if ids.is_valid else self._started({}).get_span_context()

    def admit(
        self, context: Any, metadata: dict[str, Any], default: _Limit, is_stream: bool
    ) -> _Limit | None:
        """Admit the call, or raise; return its limit unless the client's deadline applies."""
        around = self._around
        if around.gate.is_draining:
            raise Refusal(DRAINING)
        caller = around.guard.admit(self._path, metadata.get("authorization"), around.peer(context))
        remaining_s = context.time_remaining()
        limit = default if remaining_s is None else None
        if limit is not None:
            remaining_s = limit.limit_s
        if is_stream and caller.expires_at is not None:
            token_s = around.guard.remaining_s(caller)
            if token_s is not None and token_s < remaining_s:
                limit, remaining_s = _Limit(token_s, TOKEN_ENDED), token_s
        loop_now = asyncio.get_running_loop().time()
        SERVED_CALL.set(ServedCall(caller, loop_now + remaining_s, self._name))
        CLIENT_ADDRESS.set(_client_address(caller, metadata, context))
        return limit

    async def fail(
        self,
        error: BaseException,
        span: Span,
        context: Any,
        started_at: float,
        *,
        is_upload: bool,
    ) -> None:
        """Answer with the problem of `error`; if this returns, `error` must be raised again."""
        status, problem = self._judge(error, span, context)
        self.finish(span, status, started_at)
        if problem is not None:
            if is_upload:
                await _drain_requests(context)
            details = trailers(problem, domain=self._around.domain)
            await context.abort(status, message_of(problem), details)

    def _judge(
        self, error: BaseException, span: Span, context: Any
    ) -> tuple[grpc.StatusCode, Problem | None]:
        """Return the status to record, and the problem to answer unless grpc answers itself."""
        if isinstance(error, asyncio.CancelledError):
            return _status_of_cancellation(), None
        if isinstance(error, grpc.aio.AbortError):
            return context.code() or grpc.StatusCode.UNKNOWN, None
        if isinstance(error, grpc.aio.InternalError):
            # The connection failed during a write: no client is left to answer.
            return grpc.StatusCode.CANCELLED, None
        if not isinstance(error, Exception):
            return grpc.StatusCode.UNKNOWN, None
        problem = self._around.problems.of(error)
        if problem is None:
            trace_id = f"{span.get_span_context().trace_id:032x}"
            _LOGGER.error("%s failed, trace %s", self._name, trace_id, exc_info=error)
            problem = unknown_problem(trace_id)
        return problem.status, problem

    def finish(self, span: Span, status: grpc.StatusCode, started_at: float) -> None:
        """Count the call and end its span."""
        self._record(status, time.perf_counter() - started_at)
        if span.is_recording():
            span.set_attribute("rpc.response.status_code", status.name)
            if status in _SERVER_FAULTS:
                span.set_status(Status(StatusCode.ERROR))
        span.end()


def check_request(request: Any) -> None:
    """Refuse a request that breaks the rules of its fields.

    Raises:
        Refusal: Some fields are invalid.
    """
    found = violations_of(request)
    if found:
        violations = tuple(Violation(each.field, each.description) for each in found)
        listed = "; ".join(f"{each.field} {each.description}" for each in found[:3])
        metadata = {"field": found[0].field}
        raise Refusal(Problem.of(INVALID_REQUEST, listed, metadata, violations=violations))


def _accept(request: Any) -> None:
    """Check nothing: the messages of a stream of requests are checked by its servicer."""


def _client_address(caller: Caller, metadata: Mapping[str, Any], context: Any) -> str:
    """Return the address of the client behind the gateway, or of a program with a token."""
    if caller.service is ServiceName.GATEWAY:
        return str(metadata.get(CLIENT_ADDRESS_HEADER, ""))[:ADDRESS_CHARACTERS_MAX]
    if caller.token_id is None:
        return ""
    scheme, _, address = unquote(context.peer()).partition(":")
    return address.rpartition(":")[0].strip("[]") if scheme.startswith("ipv") else ""


async def _within(answer: Awaitable[Any], limit: _Limit) -> Any:
    """Await the answer for at most `limit`, where the client's own deadline is not the limit."""
    scope = asyncio.timeout(limit.limit_s)
    try:
        async with scope:
            return await answer
    except TimeoutError:
        if scope.expired():
            raise Refusal(limit.problem) from None
        raise


async def _drain_requests(context: Any) -> None:
    """Read the rest of a client's requests: an answer during its write is an internal error there.

    For that error, clients of grpc.aio drop the answer.
    """
    with suppress(TimeoutError, DecodeError, grpc.aio.BaseError):
        async with asyncio.timeout(REQUEST_DRAIN_S):
            while await context.read() is not grpc.aio.EOF:
                pass


def _status_of_cancellation() -> grpc.StatusCode:
    """Return whether a deadline or the client ended the call; grpc cancels the task for both."""
    call = SERVED_CALL.get()
    is_late = call is not None and asyncio.get_running_loop().time() >= call.deadline_at
    return grpc.StatusCode.DEADLINE_EXCEEDED if is_late else grpc.StatusCode.CANCELLED


def _as_it_is(message: bytes) -> bytes:
    """Return the message: the service handles encoded bytes."""
    return message
