"""Maps failed exchanges with an MCP server to errors."""

from typing import Final

import httpx2
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
)

from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import CredentialsRefused, UpstreamFailed
from parley.egress.policy import AddressBlocked
from parley.egress.transport import NOT_SENT, Exchange, ResponseEncoded, ResponseTooLarge

RETRY_AFTER_S_MAX: Final = 3600
#: JSON-RPC errors that repeat with the same request. Older servers use -32002 for resources.
REFUSALS: Final = frozenset({INVALID_PARAMS, METHOD_NOT_FOUND, -32002})


def failed_exchange(
    error: BaseException,
    exchange: Exchange,
    *,
    has_session: bool = False,
    is_connecting: bool = False,
) -> UpstreamFailed:
    """Convert `error` to an UpstreamFailed.

    Args:
        error: The exception of the SDK, possibly a group.
        exchange: The record of the HTTP exchange.
        has_session: Whether a 404 means that the server dropped the session.
        is_connecting: Whether no call was in progress.
    """
    if isinstance(error, UpstreamFailed):
        return error
    cause = exchange.error or _innermost(error)
    may_have_executed = exchange.is_sent and not is_connecting
    code = getattr(cause, "code", None)  # Of JSON-RPC errors.
    if code == UNSUPPORTED_PROTOCOL_VERSION:
        return lost_session(is_sent=False)
    if isinstance(cause, httpx2.TransportError):
        return _by_transport(cause, may_have_executed)
    if exchange.status is not None and is_refusal(exchange):
        return _by_status(exchange, exchange.status, has_session, may_have_executed)
    if code == CONNECTION_CLOSED:
        return lost_session(is_sent=may_have_executed)
    if code is not None:
        text = f"the server refuses: {cause}"
        reason = Reason.REQUEST_REFUSED if code in REFUSALS else Reason.PROTOCOL_ERROR
        return UpstreamFailed(reason, text[:1024], may_have_executed=may_have_executed)
    return UpstreamFailed(
        Reason.PROTOCOL_ERROR,
        f"the server does not follow the protocol ({type(cause).__name__})",
        may_have_executed=may_have_executed,
    )


def is_refusal(exchange: Exchange) -> bool:
    """Return whether the HTTP status, not the JSON-RPC body, determines the error."""
    status = exchange.status
    return status is not None and (status in (401, 403, 404, 429) or status >= 500)


def lost_session(*, is_sent: bool) -> UpstreamFailed:
    """Return the error for a lost connection; `is_sent` decides whether it may have executed."""
    return UpstreamFailed(
        Reason.SESSION_LOST, "the connection to the server broke", may_have_executed=is_sent
    )


def _by_transport(cause: httpx2.TransportError, may_have_executed: bool) -> UpstreamFailed:
    match cause:
        case AddressBlocked():
            return UpstreamFailed(Reason.ADDRESS_BLOCKED, str(cause))
        case ResponseTooLarge():
            return UpstreamFailed(
                Reason.RESULT_TOO_LARGE, str(cause), may_have_executed=may_have_executed
            )
        case ResponseEncoded():
            return UpstreamFailed(
                Reason.PROTOCOL_ERROR, str(cause), may_have_executed=may_have_executed
            )
        case _ if isinstance(cause, NOT_SENT):
            return UpstreamFailed(Reason.CONNECT_FAILED, f"the server cannot be reached ({cause})")
        case _:
            return lost_session(is_sent=may_have_executed)


def _by_status(
    exchange: Exchange, status: int, has_session: bool, may_have_executed: bool
) -> UpstreamFailed:
    match status:
        case 401 | 403:
            return CredentialsRefused(status, exchange.challenge)
        case 404 if has_session:
            return lost_session(is_sent=False)
        case 404:
            return UpstreamFailed(Reason.MISCONFIGURED, "no MCP server answers at the URL")
        case 429:
            return UpstreamFailed(
                Reason.RATE_LIMITED,
                "the server asks for fewer calls",
                retry_after_ms=_milliseconds(exchange.retry_after),
            )
        case _:
            return UpstreamFailed(
                Reason.SESSION_LOST if may_have_executed else Reason.CONNECT_FAILED,
                f"the server failed (HTTP {status})",
                may_have_executed=may_have_executed,
                retry_after_ms=_milliseconds(exchange.retry_after),
            )


def _innermost(error: BaseException) -> BaseException:
    """Return the first error inside nested groups, preferably a transport error."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [_innermost(inner) for inner in error.exceptions]
    return next((each for each in found if isinstance(each, httpx2.TransportError)), found[0])


def _milliseconds(retry_after: str | None) -> int:
    """Convert a Retry-After in seconds to milliseconds; 0 for a date or an invalid value."""
    if retry_after is None or not (retry_after.isascii() and retry_after.isdigit()):
        return 0
    return min(int(retry_after), RETRY_AFTER_S_MAX) * 1000
