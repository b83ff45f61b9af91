"""Maps errors to problems: by the service's own table, then by the one shared by all services."""

from collections.abc import Callable, Mapping
from typing import Any

import grpc

from parley.identity import Forbidden, RefusalReason, Unauthenticated
from parley.rpc.errors import NoAddress
from parley.rpc.problem import TIME, Problem, Refusal

ErrorTable = Mapping[type[Exception], Callable[[Any], Problem]]
Describe = Callable[[Any], Problem | None]

INTERNAL = "INTERNAL"
DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
UPSTREAM_UNAVAILABLE = "UPSTREAM_UNAVAILABLE"
DRAINING = Problem.of(
    "DRAINING", "this process is stopping; call another replica", retry_after_s=1.0
)
UNIMPLEMENTED = Problem.of("UNIMPLEMENTED", "this version does not serve the method yet")
OVERDUE = Problem.of(
    DEADLINE_EXCEEDED, "the call took longer than a call without a deadline may; send a deadline"
)


class Problems:
    """The mapping of one service's errors to problems."""

    def __init__(self, table: ErrorTable) -> None:
        self._table: Mapping[type[Exception], Describe] = {**_SHARED, **table}
        self._found: dict[type[Exception], Describe] = {}

    def of(self, error: Exception) -> Problem | None:
        """Return the problem of `error` or of its nearest base in the tables; None if unknown."""
        kind = type(error)
        if kind not in self._found:
            known = (self._table[base] for base in kind.__mro__ if base in self._table)
            self._found[kind] = next(known, _nothing)
        return self._found[kind](error)


def unknown_problem(trace_id: str) -> Problem:
    """Return the problem for an unexpected error: it contains only the trace id for the logs."""
    return Problem.of(
        INTERNAL,
        f"internal error; the operator finds it in the logs under trace {trace_id}",
        {"trace_id": trace_id},
    )


def _unauthenticated(error: Unauthenticated) -> Problem:
    if error.reason is RefusalReason.REVOCATIONS_UNKNOWN:
        return Problem.of(error.reason, str(error), retry_after_s=1.0)
    metadata = {} if error.time is None else {TIME: str(int(error.time.timestamp()))}
    return Problem.of(error.reason, str(error), metadata)


# The problem of a stream whose service token expired.
TOKEN_ENDED = _unauthenticated(Unauthenticated(RefusalReason.TOKEN_EXPIRED))


def _forbidden(error: Forbidden) -> Problem:
    return Problem.of(error.reason, str(error), {"method": error.method})


def _no_address(error: NoAddress) -> Problem:
    return Problem.of(UPSTREAM_UNAVAILABLE, str(error), retry_after_s=1.0)


def _upstream(error: grpc.aio.AioRpcError) -> Problem | None:
    """Pass on that another service was unavailable or late; its other errors are internal."""
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            message = "a service this one needs does not answer; try again"
            return Problem.of(UPSTREAM_UNAVAILABLE, message, retry_after_s=1.0)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            message = "a service this one needs took too long; allow the call more time"
            return Problem.of(DEADLINE_EXCEEDED, message)
        case _:
            return None


def _nothing(error: Exception) -> None:
    """Return no problem."""


_SHARED: Mapping[type[Exception], Describe] = {
    Refusal: lambda refusal: refusal.problem,
    Unauthenticated: _unauthenticated,
    Forbidden: _forbidden,
    NoAddress: _no_address,
    # Raised by the methods of generated servicers that are not implemented.
    NotImplementedError: lambda _: UNIMPLEMENTED,
    grpc.aio.AioRpcError: _upstream,
}
