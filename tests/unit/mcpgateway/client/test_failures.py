"""What failed exchanges mean."""

import httpx2
import pytest
from mcp_types import CONNECTION_CLOSED

from mcpgateway.client.failures import failed_exchange
from mcpgateway.servers.domain import Reason
from parley.egress.policy import AddressBlocked
from parley.egress.transport import Exchange, ResponseEncoded, ResponseTooLarge


class ProtocolFault(Exception):
    """Looks like the SDK's own error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@pytest.mark.parametrize(
    ("error", "reason", "may_have_executed"),
    [
        (httpx2.ConnectError("no"), Reason.CONNECT_FAILED, False),
        (AddressBlocked("x:1", "is private"), Reason.ADDRESS_BLOCKED, False),
        (httpx2.ReadError("gone"), Reason.SESSION_LOST, True),
        (httpx2.RemoteProtocolError("gone"), Reason.SESSION_LOST, True),
        (ResponseTooLarge("big"), Reason.RESULT_TOO_LARGE, True),
        (ResponseEncoded(200, httpx2.Headers()), Reason.PROTOCOL_ERROR, True),
        (ProtocolFault(CONNECTION_CLOSED), Reason.SESSION_LOST, True),
        (ProtocolFault(-32603), Reason.PROTOCOL_ERROR, True),
        (ProtocolFault(-32602), Reason.REQUEST_REFUSED, True),
        (ProtocolFault(-32002), Reason.REQUEST_REFUSED, True),
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
    failure = failed_exchange(ProtocolFault(CONNECTION_CLOSED), Exchange(is_sent=False))

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
    failure = failed_exchange(ProtocolFault(-32603), exchange, has_session=has_session)

    assert (failure.reason, failure.may_have_executed) == (reason, may_have_executed)


@pytest.mark.parametrize(
    ("header", "milliseconds"), [("7", 7000), ("999999", 3_600_000), ("tomorrow", 0), (None, 0)]
)
def test_a_server_says_when_to_come_again(header: str | None, milliseconds: int) -> None:
    exchange = Exchange(is_sent=True, status=429, retry_after=header)

    assert failed_exchange(ProtocolFault(-32603), exchange).retry_after_ms == milliseconds
