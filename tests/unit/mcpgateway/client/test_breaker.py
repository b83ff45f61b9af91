"""When a server is left alone, and when it is tried again."""

import pytest

from mcpgateway.client.breaker import Breakers
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import CredentialsRefused, UpstreamFailed
from parley.clock import FakeClock

SERVER, OTHER = ("server", 1), ("other", 1)
DOWN = UpstreamFailed(Reason.CONNECT_FAILED, "down")


def opened() -> tuple[Breakers, FakeClock]:
    clock = FakeClock()
    breakers = Breakers(clock)
    for _ in range(5):
        breakers.check(SERVER)
        breakers.failed(SERVER, DOWN)
    return breakers, clock


def test_a_server_that_fails_repeatedly_is_left_alone_and_others_are_not() -> None:
    breakers, clock = opened()
    clock.advance(0.5)
    with pytest.raises(UpstreamFailed) as caught:
        breakers.check(SERVER)
    assert (caught.value.reason, caught.value.retry_after_ms) == (Reason.CIRCUIT_OPEN, 4500)
    assert str(caught.value) == (
        "the server failed repeatedly and is left alone for 5 s; `parley mcp probe` asks it at once"
    )
    breakers.check(OTHER)


def test_after_the_pause_one_attempt_decides() -> None:
    breakers, clock = opened()
    clock.advance(5)
    breakers.check(SERVER)
    with pytest.raises(UpstreamFailed):
        breakers.check(SERVER)
    breakers.failed(SERVER, DOWN)
    clock.advance(9.9)
    with pytest.raises(UpstreamFailed):
        breakers.check(SERVER)
    clock.advance(0.1)
    breakers.check(SERVER)
    breakers.succeeded(SERVER)
    breakers.check(SERVER)


def test_failures_far_apart_and_those_of_credentials_do_not_count() -> None:
    clock = FakeClock()
    breakers = Breakers(clock)
    for _ in range(10):
        breakers.failed(SERVER, DOWN)
        clock.advance(10)
    for _ in range(10):
        breakers.failed(SERVER, UpstreamFailed(Reason.MISCONFIGURED, "401"))
    breakers.check(SERVER)


@pytest.mark.parametrize(
    "refusal",
    [
        CredentialsRefused(401, ""),
        UpstreamFailed(Reason.NEEDS_RECONNECT, "log in again"),
        UpstreamFailed(Reason.RATE_LIMITED, "slow down"),
    ],
)
def test_a_server_that_refuses_one_user_is_back_for_all(refusal: UpstreamFailed) -> None:
    breakers, clock = opened()
    clock.advance(5)
    breakers.check(SERVER)
    breakers.failed(SERVER, refusal)
    breakers.check(SERVER)


def test_a_server_that_was_not_reached_stays_left_alone() -> None:
    breakers, clock = opened()
    clock.advance(5)
    breakers.check(SERVER)
    breakers.failed(SERVER, UpstreamFailed(Reason.ADDRESS_BLOCKED, "blocked"))
    with pytest.raises(UpstreamFailed):
        breakers.check(SERVER)
