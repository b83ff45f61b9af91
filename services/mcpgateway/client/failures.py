"""Maps failed exchanges with an MCP server to errors.

A JSON-RPC error response is an answer of a server that runs, whatever its code and HTTP status. It
is passed on in the server's words and never repeated. Only a request without an answer is an
outage.
"""

import logging
from typing import Final

import httpx2
from mcp import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from mcpgateway.client.error_answers import (
    ErrorAnswer,
    NoAnswer,
    is_connection_closed,
    is_of_no_tool,
    is_unreadable,
    kept_session,
    lost_its_session,
    served_error,
)
from mcpgateway.client.translation import visible_text
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import CredentialsRefused, UpstreamFailed
from parley.egress.policy import AddressBlocked
from parley.egress.transport import NOT_SENT, Exchange, ResponseEncoded, ResponseTooLarge

RETRY_AFTER_S_MAX: Final = 3600
REFUSAL_CHARACTERS_MAX: Final = 1024
#: Without an error that says more, these may concern the session or the protocol.
MAY_BE_OF_SESSION: Final = frozenset({400, 405, 406, 415})

logger = logging.getLogger(__name__)


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
    if isinstance(cause, httpx2.TransportError):
        return _by_transport(cause, may_have_executed)
    answer = served_error(cause, exchange) if isinstance(cause, MCPError) else None
    if answer is not None and not is_unreadable(answer):
        return _by_answer(answer, exchange, has_session, may_have_executed)
    if exchange.status is not None and exchange.status >= 400:
        return _by_status(exchange, exchange.status, has_session, may_have_executed)
    if isinstance(cause, MCPError) and is_connection_closed(cause):
        return lost_session(is_sent=may_have_executed)
    logger.debug("an answer of an MCP server cannot be used", exc_info=cause)
    text = f"the server does not follow the protocol ({_problem(cause, answer)})"
    return UpstreamFailed(
        Reason.PROTOCOL_ERROR,
        text[:REFUSAL_CHARACTERS_MAX],
        may_have_executed=may_have_executed,
        is_of_request=may_have_executed,
    )


def lost_session(*, is_sent: bool) -> UpstreamFailed:
    """Return the error for a lost connection; `is_sent` decides whether it may have executed."""
    return UpstreamFailed(
        Reason.SESSION_LOST, "the connection to the server broke", may_have_executed=is_sent
    )


def _problem(cause: BaseException, answer: ErrorAnswer | None) -> str:
    """Return what is wrong, without the texts of the libraries that noticed it."""
    if answer is not None or isinstance(cause, NoAnswer):
        return visible_text(str(cause))
    if isinstance(cause, ValidationError):
        return "its answer does not have the required form"
    return "its answer cannot be used"


def _by_transport(cause: httpx2.TransportError, may_have_executed: bool) -> UpstreamFailed:
    match cause:
        case AddressBlocked():
            return UpstreamFailed(Reason.ADDRESS_BLOCKED, str(cause))
        case _ if isinstance(cause, NOT_SENT):
            return UpstreamFailed(Reason.CONNECT_FAILED, f"the server cannot be reached ({cause})")
        case ResponseTooLarge():
            reason, text = Reason.RESULT_TOO_LARGE, str(cause)
        case ResponseEncoded():
            reason, text = Reason.PROTOCOL_ERROR, str(cause)
        case _:
            # One response was cut off; other requests of the session have connections of their own.
            reason, text = Reason.SESSION_LOST, "the connection to the server broke"
    return UpstreamFailed(
        reason, text, may_have_executed=may_have_executed, is_of_request=may_have_executed
    )


def _by_answer(
    answer: ErrorAnswer, exchange: Exchange, has_session: bool, may_have_executed: bool
) -> UpstreamFailed:
    if answer.code == UNSUPPORTED_PROTOCOL_VERSION:
        return lost_session(is_sent=False)
    if has_session and lost_its_session(answer, exchange):
        return lost_session(is_sent=may_have_executed and not is_of_no_tool(answer, exchange))
    text = f"the server refuses: {visible_text(answer.message)}"
    return UpstreamFailed(
        Reason.REQUEST_REFUSED,
        text[:REFUSAL_CHARACTERS_MAX],
        may_have_executed=may_have_executed,
        is_of_request=may_have_executed and kept_session(answer, exchange),
    )


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
                is_of_request=True,
            )
        case _ if status < 500:
            return UpstreamFailed(
                Reason.PROTOCOL_ERROR,
                f"the server refuses the request (HTTP {status})",
                may_have_executed=may_have_executed,
                is_of_request=may_have_executed and status not in MAY_BE_OF_SESSION,
            )
        case _:
            return UpstreamFailed(
                Reason.SESSION_LOST if may_have_executed else Reason.CONNECT_FAILED,
                f"the server failed (HTTP {status})",
                may_have_executed=may_have_executed,
                retry_after_ms=_milliseconds(exchange.retry_after),
                is_of_request=may_have_executed,
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
