"""Corrects clock skew: learns the callee's time from a refusal and repeats the call.

A refusal because of time is made before anything ran, so repeating is safe for every method. The
wrapper around grpc's calls costs a successful call one small object.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, Protocol, Self

import grpc

from parley.identity import RefusalReason, ServiceName, User
from parley.rpc.address import Address
from parley.rpc.limits import LIMITS
from parley.rpc.problem import TIME, problem_of

_LOGGER = logging.getLogger(__name__)
_UNTIMELY: Final = frozenset({RefusalReason.TOKEN_EXPIRED, RefusalReason.TOKEN_NOT_YET_VALID})

# Returns the repetition of a refused call, given the refusal and the call; None if there is none.
Again = Callable[[grpc.aio.AioRpcError, Any], Any]


class CallTokens(Protocol):
    """Makes the tokens that authenticate calls; `parley.identity.Signer` implements it."""

    def call_token(self, audience: ServiceName, user: User | None = None, offset_s: int = 0) -> str:
        """Return a token for calls to `audience`, for `user` or for the service itself.

        It must be valid by a clock that is `offset_s` ahead of this process's.
        """
        ...

    def offset_to(self, time_s: int) -> int:
        """Return by how many seconds a clock with this Unix time is ahead of this process's."""
        ...


class Credential:
    """Authenticates calls to the process at one address, by the clock of that process."""

    def __init__(self, tokens: CallTokens, audience: ServiceName, address: Address) -> None:
        self._tokens = tokens
        self._audience = audience
        self._address = address
        self._offset_s = 0

    def authorization(self, user: User | None) -> str:
        """Return the value of the `authorization` metadata."""
        return f"Bearer {self._tokens.call_token(self._audience, user, self._offset_s)}"

    def learn(self, error: grpc.aio.AioRpcError) -> bool:
        """Store the callee's clock offset from a refusal, or reset it.

        Returns:
            Whether a token signed now may be accepted where the last one was not.
        """
        if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
            return False
        problem = problem_of(error)
        if problem.reason not in _UNTIMELY:
            return False
        offset_s = self._offset_to(problem.metadata.get(TIME, ""))
        if offset_s is None:
            self._offset_s = 0
            return False
        if offset_s != self._offset_s:
            clock = f"the clock of {self._audience} at {self._address}"
            _LOGGER.warning("%s is %+d s from this one; set the wrong one", clock, offset_s)
        self._offset_s = offset_s
        return True

    def _offset_to(self, time: str) -> int | None:
        try:
            offset_s = self._tokens.offset_to(int(time))
        except ValueError:
            return None
        return offset_s if abs(offset_s) <= LIMITS.clock_offset_s_max else None


class _Corrected:
    """A call that is replaced by a repetition if its token was refused because of time."""

    __slots__ = ("_again", "_call")

    def __init__(self, call: Any, again: Again) -> None:
        self._call = call
        self._again = again

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


class CorrectedAnswer(_Corrected):
    """A call with a single answer."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        first = self._call
        try:
            return (yield from first.__await__())
        except grpc.aio.AioRpcError as error:
            # If it is awaited a second time, the repetition is already stored.
            if self._call is first:
                repetition = self._again(error, first)
                if repetition is None:
                    raise
                self._call = repetition
        return (yield from self._call.__await__())


class CorrectedStream(_Corrected):
    """A call with a stream of answers; a refused call has sent none yet."""

    __slots__ = ("_has_begun",)

    def __init__(self, call: Any, again: Again) -> None:
        super().__init__(call, again)
        self._has_begun = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[Any]:
        return _next_of(self._call) if self._has_begun else self._begin(_next_of)

    def read(self) -> Awaitable[Any]:
        """Return the next message, or grpc's EOF."""
        return _read_of(self._call) if self._has_begun else self._begin(_read_of)

    async def _begin(self, take: Callable[[Any], Awaitable[Any]]) -> Any:
        self._has_begun = True
        first = self._call
        try:
            return await take(first)
        except grpc.aio.AioRpcError as error:
            repetition = self._again(error, first)
            if repetition is None:
                raise
            self._call = repetition
        return await take(self._call)


def _next_of(call: Any) -> Awaitable[Any]:
    message: Awaitable[Any] = call.__aiter__().__anext__()
    return message


def _read_of(call: Any) -> Awaitable[Any]:
    message: Awaitable[Any] = call.read()
    return message
