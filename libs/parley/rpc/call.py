"""The call being served, for the code that a servicer's method calls."""

import asyncio
import contextvars
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext

from parley.identity import Caller, User
from parley.rpc.errors import NoCall


class ServedCall(NamedTuple):
    """The data of an admitted call; a tuple, because one is made for every call.

    Attributes:
        caller: The identity of the caller.
        deadline_at: Its deadline, by the event loop's clock.
        method: The called method, as `package.Service/Method`.
    """

    caller: Caller
    deadline_at: float
    method: str


#: Metadata with the address of the client, which only the gateway is believed.
CLIENT_ADDRESS_HEADER = "parley-client-address"
ADDRESS_CHARACTERS_MAX = 64


class CallOrigin(NamedTuple):
    """Where a call comes from, for records of it.

    Attributes:
        user_id: The user on whose behalf it is made; None for a service's own calls.
        token_id: The id of the service token; None for Parley services.
        address: The address of the client; empty if it is not known.
    """

    user_id: str | None
    token_id: str | None
    address: str


SERVED_CALL: ContextVar[ServedCall | None] = ContextVar("parley_served_call", default=None)
ACTING_FOR: ContextVar[User | None] = ContextVar("parley_acting_for", default=None)
CLIENT_ADDRESS: ContextVar[str] = ContextVar("parley_client_address", default="")


def current_caller() -> Caller:
    """Return the caller of the call being served.

    Raises:
        NoCall: No call is being served here.
    """
    call = SERVED_CALL.get()
    if call is None:
        raise NoCall
    return call.caller


def current_origin() -> CallOrigin:
    """Return where the call being served comes from; without any call the user is None."""
    call, address = SERVED_CALL.get(), CLIENT_ADDRESS.get()
    if call is None:
        return CallOrigin(None, None, address)
    user = call.caller.user
    return CallOrigin(None if user is None else user.id, call.caller.token_id, address)


def set_client_address(address: str) -> None:
    """Set the address of the client whose request this task answers; calls carry it on."""
    CLIENT_ADDRESS.set(address)


def current_method() -> str:
    """Return the method being served, empty outside of any call."""
    call = SERVED_CALL.get()
    return "" if call is None else call.method


def remaining_s() -> float | None:
    """Return the seconds until the deadline of the call being served; None outside of any."""
    call = SERVED_CALL.get()
    if call is None:
        return None
    return max(0.0, call.deadline_at - asyncio.get_running_loop().time())


@contextmanager
def serving(caller: Caller, *, method: str, timeout_s: float) -> Iterator[None]:
    """Serve a call of this process itself, as if `caller` had made it.

    Args:
        caller: The identity that the method sees.
        method: The method, as `package.Service/Method`.
        timeout_s: The time until its deadline.
    """
    deadline_at = asyncio.get_running_loop().time() + timeout_s
    token = SERVED_CALL.set(ServedCall(caller, deadline_at, method))
    try:
        yield
    finally:
        SERVED_CALL.reset(token)


@contextmanager
def acting_for(user: User) -> Iterator[None]:
    """Make calls in this context on behalf of `user`; otherwise a service calls for itself."""
    token = ACTING_FOR.set(user)
    try:
        yield
    finally:
        ACTING_FOR.reset(token)


def detached() -> contextvars.Context:
    """Return a context for a task that outlives the call being served.

    A task inherits the context it is created in, and with it this call's deadline, user and
    address. Start
    longer work with `tasks.create_task(work(), context=detached())`.
    """
    context = contextvars.copy_context()
    context.run(SERVED_CALL.set, None)
    context.run(ACTING_FOR.set, None)
    context.run(CLIENT_ADDRESS.set, "")
    return context


EMPTY: Final = Context()

Read = Callable[[Mapping[str, Any]], SpanContext]

# The last digit of W3C's trace flags is even when the caller does not sample.
_EVEN: Final = frozenset("02468aceACE")


def is_unsampled(metadata: Mapping[str, Any]) -> bool:
    """Return whether the caller sent a trace that is not sampled."""
    traceparent = metadata.get("traceparent")
    return traceparent is not None and traceparent[-1:] in _EVEN


class RemoteSpan(NonRecordingSpan):
    """The caller's span, parsed from the metadata only when its ids are needed.

    Logs, errors and outgoing calls need them; most calls have none of these and save the parsing.
    """

    def __init__(self, read: Read, metadata: Mapping[str, Any]) -> None:
        # The base class only stores the ids, which are not parsed yet.
        self._read = read
        self._metadata = metadata
        self._ids: SpanContext | None = None

    def get_span_context(self) -> SpanContext:
        """Return the ids, parsed at the first call."""
        if self._ids is None:
            self._ids = self._read(self._metadata)
        return self._ids
