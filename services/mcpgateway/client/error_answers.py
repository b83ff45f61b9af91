"""JSON-RPC error responses of a server, apart from the errors that the SDK makes in their place.

The SDK raises one kind of error for both. Where a response has an error status, its own body says
whether it is a JSON-RPC error; the other errors of the SDK are known by their texts.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)

from parley.egress.transport import EXCHANGE, Exchange

#: The status is the answer: who asks may not do so, or not now.
STATUS_DECIDES: Final = frozenset({401, 403, 429})
#: Codes that repeat with the same request. Older servers use -32002 for resources.
OF_REQUEST: Final = frozenset({INVALID_PARAMS, METHOD_NOT_FOUND, -32002})
#: Codes by which servers say with status 400 or 404 that they do not know the session.
OF_SESSION: Final = frozenset({INVALID_REQUEST, -32000, -32001})
#: How servers say with status 400 that they do not know the session, for example after a restart.
FORGOTTEN: Final = re.compile(
    r"not initiali[sz]ed"
    r"|session.{0,20}(not found|unknown|invalid|expired|terminated|required)"
    r"|(no valid|missing|invalid|unknown).{0,12}session( id)?",
    re.IGNORECASE,
)
#: What such errors name if they can only be about sessions of the protocol, not of a tool.
NAMES_SESSION: Final = re.compile(
    r"session[ _-]?id\b|(server|session|client) not initiali[sz]ed", re.IGNORECASE
)
#: How servers say with status 400 that they do not speak the protocol of the session.
OF_PROTOCOL: Final = re.compile(r"protocol.{0,3}version", re.IGNORECASE)
#: The text of our own transports for a response that they cannot read.
CANNOT_BE_READ: Final = "the server's answer cannot be read"
#: How errors about a response that cannot be read begin, by their codes.
UNREADABLE: Final = (
    (INVALID_REQUEST, "Unexpected content type: "),
    (PARSE_ERROR, CANNOT_BE_READ),
)
#: The text of the SDK's error for requests of a session that is closed.
CLOSED: Final = "Connection closed"


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A JSON-RPC error as a server answered it, or the SDK in its place; the text is untrusted."""

    code: int
    message: str


class NoAnswer(Exception):
    """The response to a request has none, for example because it is a redirect."""


class _Error(msgspec.Struct):
    code: int
    message: str = ""


class _ErrorResponse(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    error: _Error


def served_error(error: MCPError, exchange: Exchange) -> ErrorAnswer | None:
    """Return what the server answered; None if it gave no JSON-RPC response to the request."""
    status = exchange.status
    if not exchange.is_sent or exchange.error is not None or status in STATUS_DECIDES:
        return None
    if status is not None and status >= 300:
        return _of_body(exchange.error_body)
    return None if is_connection_closed(error) else ErrorAnswer(error.code, error.message)


def is_connection_closed(error: MCPError) -> bool:
    """Return whether the SDK says that the session was closed before an answer came."""
    return error.code == CONNECTION_CLOSED and error.message == CLOSED


def is_unreadable(answer: ErrorAnswer) -> bool:
    """Return whether the SDK or our transport says that it cannot read the response."""
    return any(
        answer.code == code and answer.message.startswith(begin) for code, begin in UNREADABLE
    )


def lost_its_session(answer: ErrorAnswer, exchange: Exchange) -> bool:
    """Return whether the server does not know the session of the request."""
    if answer.code not in OF_SESSION:
        return False
    return exchange.status == 404 or (
        exchange.status == 400 and FORGOTTEN.search(answer.message) is not None
    )


def is_of_no_tool(answer: ErrorAnswer, exchange: Exchange) -> bool:
    """Return whether an error about the session is certainly not one of a tool that was called."""
    return exchange.status == 404 or NAMES_SESSION.search(answer.message) is not None


def kept_session(answer: ErrorAnswer, exchange: Exchange) -> bool:
    """Return whether the error concerns the request alone, not its session or the protocol."""
    match exchange.status:
        case 404:
            return answer.code in OF_REQUEST
        case 400:
            is_of_protocol = answer.code == HEADER_MISMATCH or OF_PROTOCOL.search(answer.message)
            return not is_of_protocol and not lost_its_session(answer, exchange)
        case _:
            return True


def is_unknown_method(error: MCPError) -> bool:
    """Return whether the server answered that it does not have the method of the request."""
    exchange = EXCHANGE.get()
    if exchange is None:
        return error.code == METHOD_NOT_FOUND
    answer = served_error(error, exchange)
    return answer is not None and answer.code == METHOD_NOT_FOUND


def _of_body(body: bytearray) -> ErrorAnswer | None:
    try:
        error = msgspec.json.decode(body, type=_ErrorResponse).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return ErrorAnswer(error.code, error.message)
