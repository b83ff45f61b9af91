"""Bytes that are no answer: the attempt fails cleanly, memory stays small, neighbours go on."""

import asyncio

import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind
from chatd.turns.domain.retries import RetryPolicy
from chatd.turns.engine.dependencies import TurnLimits
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import provider_stage
from support.host.memory_peak import memory_peak
from support.host.virtual_time import in_virtual_time

EVERY_WAY = pytest.mark.parametrize("way", Way)
# Endpoints of OpenAI's kind are many, and not all of them encode what they send.
REPAIRED = {
    (Way.COMPLETIONS, "bad_utf8"): "\N{REPLACEMENT CHARACTER}",
    (Way.COMPLETIONS, "nul"): "\0",
}
MEBIBYTE = 1024 * 1024
GARBAGE_BYTES_MAX = 96 * MEBIBYTE


@EVERY_WAY
@pytest.mark.parametrize("noise", ["garbage", "bad_json", "bad_utf8", "nul", "huge_line"])
@in_virtual_time
async def test_a_garbled_stream_is_tried_again_as_a_cut_one_is(way: Way, noise: str) -> None:
    async with provider_stage(jitter=lambda: 0.0) as stage:
        cut, garbled = stage.chat(), stage.chat()
        await cut.ask(stage.model(way, "cut=4,times=1"))
        await garbled.ask(stage.model(way, f"{noise}=4,times=1"))
        if (way, noise) in REPAIRED:
            assert garbled.retries == []
            return
        (wanted,), (retry,) = cut.retries, garbled.retries
        assert (retry.attempt, retry.delay_ms) == (wanted.attempt, wanted.delay_ms)
        assert (retry.error.kind, retry.error.is_retryable) == (wanted.error.kind, True)
        assert retry.error.message == "Acme sent an answer that cannot be read."
        assert "cannot be read" in retry.error.detail
        assert garbled.texts == cut.texts


@EVERY_WAY
@pytest.mark.parametrize("noise", ["garbage", "bad_json", "bad_utf8", "nul", "huge_line"])
@in_virtual_time
async def test_c6_what_is_no_answer_fails_its_attempt_and_nothing_else(
    way: Way, noise: str
) -> None:
    limits = TurnLimits(retries=RetryPolicy(attempts_max=2))
    async with provider_stage(limits=limits) as stage, asyncio.TaskGroup() as tasks:
        neighbour = stage.chat()
        tasks.create_task(neighbour.ask(stage.model(way, "deltas=20,delay=1s")))
        chat = stage.chat()
        with memory_peak() as peak:
            await chat.ask(stage.model(way, f"{noise}=4"))
        error = chat.state.last_error
        how = "read and repaired" if error is None else f"{error.kind}, {error.detail}"
        print(f"C6 {way} {noise}: {how}; peak +{peak.added_bytes / MEBIBYTE:.0f} MiB")
        assert peak.added_bytes < GARBAGE_BYTES_MAX
        if (way, noise) in REPAIRED:
            assert REPAIRED[way, noise] in chat.said
        else:
            assert (chat.error.kind, len(chat.retries)) == (ErrorKind.TIMEOUT, 1)
            assert "cannot be read" in chat.error.detail
            assert chat.texts == [("user", "hello")]
        await chat.ask(stage.model(way))
        assert chat.state.status is Status.WAITING
    assert neighbour.state.status is Status.WAITING
    assert neighbour.retries == []
