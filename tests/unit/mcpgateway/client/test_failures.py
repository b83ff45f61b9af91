"""What failed exchanges mean."""

import httpx2
import pytest
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, PARSE_ERROR

from mcpgateway.client.error_answers import CANNOT_BE_READ
from mcpgateway.client.failures import failed_exchange
from mcpgateway.servers.domain import Reason
from parley.egress.policy import AddressBlocked
from parley.egress.transport import Exchange, ResponseEncoded, ResponseTooLarge

#: What the SDK raises for the requests of a session that was closed.
CLOSED = MCPError(CONNECTION_CLOSED, "Connection closed")
#: What it raises for a response with an error status and nothing that it can read.
REFUSED = MCPError(INTERNAL_ERROR, "Server returned an error response")
#: A session that its server does not know, as the SDK for TypeScript says it.
FORGOTTEN = b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}'
UNKNOWN = b'{"jsonrpc":"2.0","error":{"code":-32002,"message":"unknown"},"id":1}'
OTHER_PROTOCOL = UNKNOWN.replace(b"-32002", b"-32600").replace(
    b"unknown", b"Bad Request: Unsupported protocol version: 1"
)


@pytest.mark.parametrize(
    ("error", "reason", "may_have_executed"),
    [
        (httpx2.ConnectError("no"), Reason.CONNECT_FAILED, False),
        (AddressBlocked("x:1", "is private"), Reason.ADDRESS_BLOCKED, False),
        (httpx2.ReadError("gone"), Reason.SESSION_LOST, True),
        (httpx2.RemoteProtocolError("gone"), Reason.SESSION_LOST, True),
        (ResponseTooLarge("big"), Reason.RESULT_TOO_LARGE, True),
        (ResponseEncoded(200, httpx2.Headers()), Reason.PROTOCOL_ERROR, True),
        (CLOSED, Reason.SESSION_LOST, True),
        (MCPError(CONNECTION_CLOSED, "the printer is closed"), Reason.REQUEST_REFUSED, True),
        (MCPError(PARSE_ERROR, CANNOT_BE_READ), Reason.PROTOCOL_ERROR, True),
        (MCPError(PARSE_ERROR, "this is no JSON"), Reason.REQUEST_REFUSED, True),
        (MCPError(0, "unknown"), Reason.REQUEST_REFUSED, True),
        (MCPError(-32603, "unknown"), Reason.REQUEST_REFUSED, True),
        (MCPError(-32602, "unknown"), Reason.REQUEST_REFUSED, True),
        (ValueError("nonsense"), Reason.PROTOCOL_ERROR, True),
    ],
)
def test_what_was_sent_may_have_run(
    error: Exception, reason: Reason, may_have_executed: bool
) -> None:
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [error])])
    failure = failed_exchange(nested, Exchange(is_sent=True))

    assert (failure.reason, failure.may_have_executed) == (reason, may_have_executed)


def test_what_was_never_sent_did_not_run() -> None:
    failure = failed_exchange(CLOSED, Exchange(is_sent=False))

    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, False)


@pytest.mark.parametrize(
    ("status", "has_session", "reason", "may_have_executed"),
    [
        (401, False, Reason.MISCONFIGURED, False),
        (403, True, Reason.MISCONFIGURED, False),
        (404, False, Reason.MISCONFIGURED, False),
        (404, True, Reason.SESSION_LOST, False),
        (429, False, Reason.RATE_LIMITED, False),
        (500, False, Reason.SESSION_LOST, True),
        (502, True, Reason.SESSION_LOST, True),
    ],
)
def test_the_status_decides_where_the_protocol_is_silent(
    status: int, has_session: bool, reason: Reason, may_have_executed: bool
) -> None:
    exchange = Exchange(is_sent=True, status=status)
    failure = failed_exchange(REFUSED, exchange, has_session=has_session)

    assert (failure.reason, failure.may_have_executed) == (reason, may_have_executed)


@pytest.mark.parametrize(
    ("status", "body", "has_session", "reason", "is_of_request"),
    [
        (400, UNKNOWN, True, Reason.REQUEST_REFUSED, True),
        (404, UNKNOWN, True, Reason.REQUEST_REFUSED, True),
        (500, UNKNOWN, False, Reason.REQUEST_REFUSED, True),
        (500, UNKNOWN.replace(b"-32002", b"0"), False, Reason.REQUEST_REFUSED, True),
        (400, UNKNOWN.replace(b"-32002", b"-32603"), True, Reason.REQUEST_REFUSED, True),
        (404, UNKNOWN.replace(b"-32002", b"-32603"), True, Reason.REQUEST_REFUSED, False),
        (400, OTHER_PROTOCOL, True, Reason.REQUEST_REFUSED, False),
        (401, UNKNOWN, True, Reason.MISCONFIGURED, True),
        (429, UNKNOWN, True, Reason.RATE_LIMITED, True),
        (404, FORGOTTEN, True, Reason.SESSION_LOST, False),
        (400, FORGOTTEN, True, Reason.SESSION_LOST, False),
        (400, FORGOTTEN, False, Reason.REQUEST_REFUSED, False),
        (422, FORGOTTEN, True, Reason.REQUEST_REFUSED, True),
        (503, UNKNOWN[:-1], True, Reason.SESSION_LOST, True),
        (400, b"", True, Reason.PROTOCOL_ERROR, False),
        (406, b"", True, Reason.PROTOCOL_ERROR, False),
        (409, b"", True, Reason.PROTOCOL_ERROR, True),
    ],
)
def test_the_body_of_an_error_status_says_whether_it_is_an_answer(
    status: int, body: bytes, has_session: bool, reason: Reason, is_of_request: bool
) -> None:
    exchange = Exchange(is_sent=True, status=status, error_body=bytearray(body))
    failure = failed_exchange(REFUSED, exchange, has_session=has_session)

    assert (failure.reason, failure.is_of_request) == (reason, is_of_request)


def test_what_a_server_refuses_while_a_session_is_opened_is_no_matter_of_a_call() -> None:
    exchange = Exchange(is_sent=True, status=200)
    failure = failed_exchange(MCPError(-32602, "no"), exchange, is_connecting=True)

    assert (failure.reason, failure.may_have_executed) == (Reason.REQUEST_REFUSED, False)
    assert not failure.is_of_request


@pytest.mark.parametrize(
    ("header", "milliseconds"), [("7", 7000), ("999999", 3_600_000), ("tomorrow", 0), (None, 0)]
)
def test_a_server_says_when_to_come_again(header: str | None, milliseconds: int) -> None:
    exchange = Exchange(is_sent=True, status=429, retry_after=header)

    assert failed_exchange(REFUSED, exchange).retry_after_ms == milliseconds
