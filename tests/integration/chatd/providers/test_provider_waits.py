"""Providers that say when to come back or cannot cope: who waits, how long, how many at once."""

import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.turns.domain.retries import RetryPolicy
from chatd.turns.engine.dependencies import TurnLimits
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import provider_stage
from support.host.virtual_time import in_virtual_time

OUTAGE_S = 300
CHATS_IN_OUTAGE = 50
CHATS_TOLD_TO_WAIT = 200


@contextmanager
def refusing_port() -> Iterator[int]:
    """Give a port of this machine at which nobody listens, and which nobody else gets."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def peak_per_s(moments_s: Iterable[float]) -> int:
    """Return the most that came within one second of the clock."""
    return max(Counter(int(moment_s) for moment_s in moments_s).values())


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize(
    ("words", "hint_s"),
    [("retry_after=7", 7.0), ("retry_after_ms=1500", 1.5), ("retry_date=90", 90.0)],
)
@in_virtual_time
async def test_c1_a_provider_is_asked_again_when_it_said(
    way: Way, words: str, hint_s: float
) -> None:
    async with provider_stage(jitter=lambda: 0.0) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, f"fail=429,{words}"))
        first_s, second_s = stage.asked_at_s()
        (retry,) = chat.retries
    error_s = second_s - first_s - hint_s
    print(f"C1 {way} {words}: came back {error_s:+.3f} s from the moment that was named")
    assert 0 <= error_s < 0.05
    assert (retry.attempt, retry.delay_ms) == (1, hint_s * 1000)
    assert (retry.error.kind, retry.error.is_retryable) == (ErrorKind.RATE_LIMIT, True)
    assert (retry.error.provider, retry.error.status_code) == ("Acme", 429)
    assert chat.state.status is Status.WAITING


@in_virtual_time
async def test_c1_a_wait_that_nobody_would_wait_for_ends_the_turn_and_says_so() -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(Way.ANTHROPIC, "fail=429*,retry_after=1e9"))
        print(f"C1 retry-after: 1e9: {stage.mock.stats().requests} request, 0 s waited")
        assert stage.mock.stats().requests == 1
        assert chat.error == TurnError(
            "Acme asks to wait 16666667 minutes. Send the message again then, or choose another "
            "model.",
            ErrorKind.RATE_LIMIT,
            detail="mock: failing with 429 as asked",
            provider="Acme",
            status_code=429,
            is_retryable=True,
            attempts=1,
        )


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("chats", [1, 10])
@in_virtual_time
async def test_a_dead_provider_is_told_after_minutes(way: Way, jitter: float, chats: int) -> None:
    with refusing_port() as port:
        url = f"http://127.0.0.1:{port}"
        async with provider_stage(jitter=lambda: jitter, url=url) as stage:
            began_s = stage.clock.monotonic()
            asking = [stage.chat() for _ in range(chats)]
            await stage.ask_all(asking, stage.model(way))
            took_s = stage.clock.monotonic() - began_s
    first = asking[0]
    print(
        f"dead provider, {way}, chance {jitter:g}, {chats} chats: told after {took_s:.0f} s and "
        f"{len(first.retries) + 1} attempts"
    )
    assert 120 <= took_s <= 240
    for chat in asking:
        assert chat.error.message == (
            "Acme could not be reached for 3 minutes. Check its address and that it runs, then "
            "send the message again."
        )
        assert chat.error.is_retryable
        for told in (*(retry.error for retry in chat.retries), chat.error):
            assert "Connection refused" in told.detail
            assert told.kind is ErrorKind.TIMEOUT
        assert chat.ledger == []


@pytest.mark.parametrize("jitter", [0.0, 1.0])
@pytest.mark.parametrize("chats", [1, 10])
@in_virtual_time
async def test_a_provider_that_always_fails_is_told_after_minutes(
    jitter: float, chats: int
) -> None:
    async with provider_stage(jitter=lambda: jitter) as stage:
        began_s = stage.clock.monotonic()
        asking = [stage.chat() for _ in range(chats)]
        await stage.ask_all(asking, stage.model(Way.ANTHROPIC, "fail=503*"))
        took_s = stage.clock.monotonic() - began_s
    print(f"503 for ever, chance {jitter:g}, {chats} chats: told after {took_s:.0f} s")
    assert 600 <= took_s <= 660
    for chat in asking:
        assert chat.error.message == (
            "Acme failed for 10 minutes. Wait a while, then send the message again, or choose "
            "another model."
        )
        assert chat.error.is_retryable


@in_virtual_time
async def test_a_provider_that_never_answers_is_told_after_minutes() -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        began_s = stage.clock.monotonic()
        await chat.ask(stage.model(Way.ANTHROPIC, "wait=3600s"))
        took_s = stage.clock.monotonic() - began_s
    print(f"a provider that takes requests and says nothing: told after {took_s:.0f} s")
    assert 180 <= took_s <= 360
    assert chat.error.kind is ErrorKind.STARTUP_TIMEOUT


@in_virtual_time
async def test_a_provider_that_comes_back_in_between_is_not_given_up() -> None:
    limits = TurnLimits(retries=RetryPolicy(unreachable_max_s=20.0))
    async with provider_stage(jitter=lambda: 0.0, limits=limits) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(Way.ANTHROPIC, "fail=503*5"))
        assert [retry.unreachable_since for retry in chat.retries] == [None] * 5
        assert chat.state.status is Status.WAITING


@pytest.mark.slow
@pytest.mark.parametrize("status", [529, 503])
@in_virtual_time
async def test_c2_an_outage_of_five_minutes_is_waited_out_without_a_storm(status: int) -> None:
    async with provider_stage() as stage:
        chats = [stage.chat() for _ in range(CHATS_IN_OUTAGE)]
        await stage.ask_all(chats, stage.model(Way.ANTHROPIC, f"fail={status}@{OUTAGE_S}s"))
        moments_s = stage.asked_at_s()
        held_back = sum(
            "was not made" in retry.error.detail for chat in chats for retry in chat.retries
        )
    during = [at_s for at_s in moments_s if 1 <= at_s < OUTAGE_S]
    after = [at_s for at_s in moments_s if at_s >= OUTAGE_S]
    print(
        f"C2 {status} for {OUTAGE_S} s on {CHATS_IN_OUTAGE} chats: first second "
        f"{len(moments_s) - len(during) - len(after)}, then {len(during) / OUTAGE_S:.3f} req/s "
        f"until it ended ({held_back} held back here); after it at most {peak_per_s(after)} req/s, "
        f"all answered {moments_s[-1] - OUTAGE_S:.0f} s after its end"
    )
    assert len(during) / OUTAGE_S < 0.1
    assert held_back > 0
    assert len(after) == CHATS_IN_OUTAGE
    assert peak_per_s(after) <= CHATS_IN_OUTAGE / 5
    for chat in chats:
        assert chat.state.status is Status.WAITING
        # A call that was held back is repeated as the same attempt.
        attempts = accumulate(
            (int("was not made" not in retry.error.detail) for retry in chat.retries), initial=1
        )
        assert [retry.attempt for retry in chat.retries] == [*attempts][:-1]


@pytest.mark.slow
@pytest.mark.parametrize("way", Way)
@in_virtual_time
async def test_c17_chats_that_are_told_the_same_moment_come_back_one_by_one(way: Way) -> None:
    async with provider_stage() as stage:
        chats = [stage.chat() for _ in range(CHATS_TOLD_TO_WAIT)]
        words = f"fail=429*{CHATS_TOLD_TO_WAIT},retry_after=7,latency=1s"
        await stage.ask_all(chats, stage.model(way, words))
        again = [at_s for at_s in stage.asked_at_s() if at_s > 1]
    spread_s = again[-1] - again[0]
    print(
        f"C17 {way}, {len(chats)} chats told to come back after 7 s: spread over {spread_s:.1f} s, "
        f"at most {peak_per_s(again)} req/s"
    )
    assert len(again) == CHATS_TOLD_TO_WAIT
    assert again[0] >= 7
    assert 30 <= spread_s <= 120
    assert peak_per_s(again) <= CHATS_TOLD_TO_WAIT / 10
    assert {chat.state.status for chat in chats} == {Status.WAITING}
