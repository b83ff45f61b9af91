"""Models that are silent, slow or endless: found out in time, while others go on."""

import asyncio
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.stream import StreamLimits
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import ADD, provider_stage
from support.host.virtual_time import in_virtual_time

EVERY_WAY = pytest.mark.parametrize("way", Way)
LIMITS = StreamLimits()
SHORT_SILENCE = TurnLimits(stream=replace(LIMITS, silence_s=300.0))
CHARACTERS_PER_TOKEN = 4
PIECE_CHARACTERS = 50_000
#: The limit is looked at after each read of the connection, which may hold several pieces.
READ_CHARACTERS_MAX = 256 * 1024
#: Until the engine has seen an event that the network has brought.
SLACK_S = 0.5


@EVERY_WAY
@pytest.mark.parametrize("words", ["wait=10m", "stall=0"], ids=["no head", "head only"])
@in_virtual_time
async def test_c7_a_model_that_does_not_begin_is_found_out_after_a_minute(
    way: Way, words: str
) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(chat.ask(stage.model(way, words)))
            while not chat.retries:
                await stage.clock.sleep(0.1)
            detected_s = stage.clock.monotonic() - stage.asked_at_s()[0]
            asking.cancel()
        print(f"C7 {way} {words}: {detected_s:.1f} s to detect {chat.retries[0].error.kind}")
        assert chat.retries[0].error.kind is ErrorKind.STARTUP_TIMEOUT
        assert LIMITS.startup_s <= detected_s < LIMITS.startup_s + SLACK_S


@EVERY_WAY
@pytest.mark.parametrize("limits", [SHORT_SILENCE, TurnLimits()], ids=["5 minutes", "default"])
@in_virtual_time
async def test_c7_a_model_that_falls_silent_is_found_out_and_asked_again(
    way: Way, limits: TurnLimits
) -> None:
    async with provider_stage(limits=limits) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "stall=5,times=1"))
        first_s, second_s = stage.asked_at_s()
        (retry,) = chat.retries
        detected_s = second_s - first_s - retry.delay_ms / 1000
        print(f"C7 {way}: {detected_s:.1f} s to detect {retry.error.kind}")
        assert retry.error.kind is ErrorKind.STREAM_SILENCE_TIMEOUT
        assert abs(detected_s - limits.stream.silence_s) < SLACK_S
        assert chat.state.status is Status.WAITING


@EVERY_WAY
@in_virtual_time
async def test_c7_a_model_that_shows_that_it_thinks_is_left_alone(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "latency=20m,delay=5m,ping=15s,deltas=3"))
        thought_s = stage.clock.monotonic()
        print(f"C7 {way}: {thought_s:.0f} s of heartbeats, {len(chat.retries)} limits fired")
        assert chat.retries == []
        assert thought_s >= 1800
        assert chat.state.status is Status.WAITING


@pytest.mark.slow
@in_virtual_time
async def test_c8_a_drip_ends_with_the_total_limit_and_delays_nobody() -> None:
    async with provider_stage() as stage, asyncio.TaskGroup() as tasks:
        dripping, others = stage.chat(), [stage.chat() for _ in range(10)]
        drip = stage.model(Way.ANTHROPIC, "drip=1s,deltas=2000")
        tasks.create_task(dripping.ask(drip))
        await stage.ask_all(others, stage.model(Way.ANTHROPIC, "delay=1s"))
        others_s = stage.clock.monotonic()
        assert {chat.state.status for chat in others} == {Status.WAITING}
        assert dripping.state.status is Status.RUNNING
        while dripping.state.status is Status.RUNNING:
            await stage.clock.sleep(1)
        ended_s = stage.clock.monotonic()
        print(f"C8 one byte per second: ended after {ended_s:.0f} s, others after {others_s:.0f} s")
        assert LIMITS.total_s <= ended_s <= LIMITS.total_s + 2
        assert others_s < 15
        assert (dripping.error.kind, dripping.error.is_retryable) == (ErrorKind.TIMEOUT, False)
        assert dripping.error.detail == "3600 s"
        assert dripping.retries == []


@EVERY_WAY
@in_virtual_time
async def test_c9_an_answer_without_end_is_stopped_at_its_cap(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, f"size={PIECE_CHARACTERS},endless"))
        heard = stage.heard.characters
        asked = stage.mock.requests()[0].document()["body"]
        tokens = heard // CHARACTERS_PER_TOKEN
        print(f"C9 {way}: stopped after {tokens} tokens, {stage.mock.stats().requests} call")
        assert LIMITS.characters_max < heard <= LIMITS.characters_max + READ_CHARACTERS_MAX
        assert (chat.error.kind, chat.error.is_retryable) == (ErrorKind.GENERIC, False)
        assert "more than an answer may hold" in chat.error.message
        assert stage.mock.stats().requests == 1
        caps = ("max_tokens", "max_output_tokens", "max_completion_tokens")
        assert [asked[name] for name in caps if name in asked] == [32_000]


@in_virtual_time
async def test_c9_a_turn_without_end_is_stopped_at_its_steps() -> None:
    # Fewer than those after which a person is asked about equal calls.
    async with provider_stage(ADD, limits=TurnLimits(steps_max=5)) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(Way.COMPLETIONS, "tools=1,rounds=1000000"))
        print(f"C9: stopped after {stage.mock.stats().requests} steps of a turn without end")
        assert stage.mock.stats().requests == 5
        assert chat.state.status is Status.WAITING
        assert chat.texts[-1] == ("assistant", "Notice")
