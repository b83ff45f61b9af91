"""How patient a process is with models: what its settings say, and what follows from that."""

from datetime import timedelta

import pytest

from chatd.chats.domain.chat import Retry
from chatd.chats.domain.commands import RecordRetry
from chatd.content.domain.messages import ErrorKind
from chatd.model_limits import retry_policy, silent_s, turn_limits
from chatd.models.domain.language_model import ModelError
from chatd.settings import Settings
from chatd.turns.domain.asking import ActionDeadlines
from chatd.turns.domain.retries import (
    Failed,
    GiveUp,
    RetryIn,
    RetryPolicy,
    after_failure,
    series_of,
)
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.stream import StreamLimits
from parley.clock.fake import EPOCH
from parley.settings import SettingsError, read
from support.chatd.turns.turn_stage import Stage

REQUIRED = {
    "CHATD_LISTEN": "unix:/run/chatd.sock",
    "CHATD_TRUST_FILE": "/trust.json",
    "CHATD_SIGNING_KEY_FILE": "/key.pem",
    "CHATD_DATABASE_URL": "postgresql://chatd@/parley",
    "CHATD_MASTER_KEY_FILE": "/master.json",
    "CHATD_GATEWAY": "unix:/run/gateway.sock",
    "CHATD_TOOLRUNNER": "unix:/run/toolrunner.sock",
    "CHATD_MCPGATEWAY": "unix:/run/mcpgateway.sock",
}
GONE = ModelError(
    ErrorKind.TIMEOUT, "gone", is_retryable=True, provider="Acme", is_unreachable=True
)


def settings(**given: str) -> Settings:
    return settings_of({f"CHATD_MODEL_{name}": given[name] for name in given})


def settings_of(variables: dict[str, str]) -> Settings:
    return read(Settings, {**REQUIRED, **variables}, prefix="CHATD")


def test_the_defaults_are_those_of_the_rules() -> None:
    assert turn_limits(settings()) == TurnLimits()
    assert silent_s(settings()) == 45.0


def test_attempts_backoff_and_silence_can_be_set() -> None:
    given = settings(
        ATTEMPTS_MAX="3",
        BACKOFF_FIRST_S="0.5",
        BACKOFF_MAX_S="4",
        HINT_MAX_S="30",
        UNREACHABLE_MAX_S="10",
        STARTUP_S="8",
        SILENCE_S="20",
        OUTAGE_MAX_S="40",
    )
    policy = RetryPolicy(3, 0.5, 4.0, 10.0, 30.0, 40.0)
    assert retry_policy(given) == policy
    assert turn_limits(given) == TurnLimits(StreamLimits(8.0, 20.0), retries=policy)
    assert silent_s(given) == 6.0


def test_deadlines_of_actions_can_be_set_and_zero_is_none() -> None:
    names = ("CLIENT_TOOL", "QUESTION", "APPROVAL")

    def deadlines(*given: str) -> ActionDeadlines:
        variables = {
            f"CHATD_{name}_DEADLINE_S": value for name, value in zip(names, given, strict=True)
        }
        return turn_limits(settings_of(variables)).deadlines

    assert deadlines("20", "604800", "0") == ActionDeadlines(20.0, 604_800.0, None)
    assert deadlines("1", "0", "60") == ActionDeadlines(1.0, None, 60.0)
    with pytest.raises(SettingsError, match="CHATD_APPROVAL_DEADLINE_S"):
        deadlines("1", "0", "-1")


def test_a_first_wait_that_is_longer_than_the_longest_is_refused() -> None:
    with pytest.raises(SettingsError, match="CHATD_MODEL_BACKOFF_FIRST_S"):
        settings(BACKOFF_FIRST_S="9", BACKOFF_MAX_S="8")


def test_the_last_attempt_is_at_the_end_of_the_time_for_a_dead_provider() -> None:
    policy = RetryPolicy()
    assert after_failure(Failed(GONE, 8, unreachable_s=127), 0.5, policy) == RetryIn(53)
    last = after_failure(Failed(GONE, 9, unreachable_s=180), 0.5, policy)
    assert isinstance(last, GiveUp)
    assert last.error.message.startswith("Acme could not be reached for 3 minutes.")


@pytest.mark.parametrize(
    ("unreachable_max_s", "told"),
    [(1, "1 second"), (30, "30 seconds"), (119, "119 seconds"), (120, "2 minutes")],
)
def test_the_time_for_a_dead_provider_is_told_in_seconds_below_two_minutes(
    unreachable_max_s: float, told: str
) -> None:
    policy = RetryPolicy(unreachable_max_s=unreachable_max_s)
    last = after_failure(Failed(GONE, 9, unreachable_s=unreachable_max_s), 0.5, policy)
    assert isinstance(last, GiveUp)
    assert last.error.message.startswith(f"Acme could not be reached for {told}.")


@pytest.mark.parametrize(
    ("is_unreachable", "told"),
    [
        (
            True,
            "Acme could not be reached for 60 seconds. Check its address and that it runs, then "
            "send the message again.",
        ),
        (
            False,
            "Acme failed for 60 seconds. Wait a while, then send the message again, or choose "
            "another model.",
        ),
    ],
)
def test_a_turn_that_ends_while_its_call_is_held_back_tells_what_failed(
    is_unreachable: bool, told: str
) -> None:
    held_back = ModelError(
        ErrorKind.TIMEOUT,
        "Parley holds this call back",
        is_retryable=True,
        provider="Acme",
        detail="connection refused",
        is_unreachable=is_unreachable,
        is_breaker_open=True,
    )
    policy = RetryPolicy(outage_max_s=60)
    last = after_failure(Failed(held_back, 4, outage_s=60), 0.5, policy)
    assert isinstance(last, GiveUp)
    assert (last.error.message, last.error.detail) == (told, "connection refused")


@pytest.mark.parametrize(
    ("error", "is_counted"),
    [
        (ModelError(ErrorKind.GENERIC, "x", is_retryable=True, status_code=500), True),
        (ModelError(ErrorKind.OVERLOADED, "x", is_retryable=True), True),
        (GONE, True),
        (ModelError(ErrorKind.RATE_LIMIT, "x", is_retryable=True, status_code=429), False),
        (ModelError(ErrorKind.TIMEOUT, "x", is_retryable=True), False),
    ],
)
def test_failures_of_the_provider_are_an_outage_and_others_end_it(
    error: ModelError, is_counted: bool
) -> None:
    now = EPOCH + timedelta(seconds=5)
    before = Retry(1, 0, EPOCH, error.turn_error, outage_since=EPOCH)
    assert series_of(before, error, now).outage_since == (EPOCH if is_counted else None)
    assert series_of(None, error, now).outage_since == (now if is_counted else None)


def test_the_last_attempt_is_at_the_end_of_an_outage_or_when_the_provider_asked_for_it() -> None:
    failing = ModelError(ErrorKind.GENERIC, "x", is_retryable=True, status_code=500)
    assert after_failure(Failed(failing, 8, outage_s=590), 0.5, RetryPolicy()) == RetryIn(10)
    asking = ModelError(
        ErrorKind.OVERLOADED, "x", is_retryable=True, status_code=503, retry_after_s=30
    )
    assert after_failure(Failed(asking, 1, outage_s=590), 0.5, RetryPolicy()) == RetryIn(30)
    last = after_failure(Failed(failing, 9, outage_s=600), 0.5, RetryPolicy())
    assert isinstance(last, GiveUp)
    assert (last.error.status_code, last.error.message.split(". ")[0]) == (
        500,
        "The AI provider failed for 10 minutes",
    )


async def test_attempts_that_reach_somebody_begin_the_time_anew() -> None:
    busy = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
    errors = [GONE, GONE, busy, GONE]

    def play(_: object) -> tuple[()]:
        raise errors.pop(0)

    policy = RetryPolicy(attempts_max=4)
    stage = Stage(play, limits=TurnLimits(retries=policy))
    stage.send()
    async with stage.running():
        for _ in range(3):
            stage.clock.advance(await stage.clock.until_sleeping())
    retries = [each.retry for each in stage.commits.commands if isinstance(each, RecordRetry)]
    assert [retry.unreachable_since for retry in retries] == [EPOCH, EPOCH, None]
    assert stage.clock.now() == EPOCH + timedelta(seconds=1 + 2 + 4)
