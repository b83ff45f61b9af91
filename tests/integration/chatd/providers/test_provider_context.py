"""Histories that do not fit, summaries that fail: turns stop with a reason, nothing is lost."""

import json

import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import ADD, provider_stage
from support.host.virtual_time import in_virtual_time

EVERY_WAY = pytest.mark.parametrize("way", Way)
LONG = "word " * 4000
#: Fills most of a window of 6000 tokens.
MUCH = Outcome(ToolOutcome.DONE, json.dumps({"output": "a long line of words\n" * 1000}))


@EVERY_WAY
@in_virtual_time
async def test_c13_a_history_that_is_too_long_is_shortened_and_summarised(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "context=4000"), LONG)
        calls = stage.mock.stats().requests
        print(f"C13 {way}, fits once summarised: {calls} calls")
        assert (calls, chat.state.compactions) == (3, 1)
        assert chat.state.status is Status.WAITING


@EVERY_WAY
@in_virtual_time
async def test_c13_a_window_that_nothing_fits_stops_the_turn_after_three_tries(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "context=100"), LONG)
        calls = stage.mock.stats().requests
        print(f"C13 {way}, nothing fits: {calls} calls, kind {chat.error.kind}")
        assert calls == 4
        assert (chat.error.kind, chat.error.status_code) == (ErrorKind.CONTEXT_OVERFLOW, 400)
        assert chat.texts == [("user", LONG)]


@EVERY_WAY
@pytest.mark.parametrize(
    ("words", "window_tokens"),
    [("tools=1,rounds=100,context=5000", 0), ("tools=1,rounds=100", 6000)],
    ids=["refused by the provider", "known before"],
)
@in_virtual_time
async def test_c13_a_window_that_is_full_again_and_again_stops_after_three_summaries(
    way: Way, words: str, window_tokens: int
) -> None:
    async with provider_stage(ADD) as stage:
        stage.tools.answers["add"] = MUCH
        chat = stage.chat()
        await chat.ask(stage.model(way, words, context_limit_tokens=window_tokens))
        calls = stage.mock.stats().requests
        print(
            f"C13 {way}, full again after each summary: {chat.state.compactions} summaries, "
            f"{calls} calls, kind {chat.error.kind}"
        )
        assert chat.error.kind is ErrorKind.CONTEXT_OVERFLOW
        assert chat.state.compactions == 3
        assert calls <= 12


@EVERY_WAY
@pytest.mark.parametrize(
    ("words", "kind", "calls"),
    [
        ("deltas=0", ErrorKind.GENERIC, 1),
        ("stop=refusal", ErrorKind.CONTENT_FILTER, 1),
        ("stop=filter", ErrorKind.CONTENT_FILTER, 1),
        ("fail=401*", ErrorKind.AUTH, 1),
        ("fail=500*", ErrorKind.GENERIC, 13),  # In the ten minutes of an outage.
    ],
)
@in_virtual_time
async def test_c14_a_summary_that_fails_is_told_and_the_history_kept(
    way: Way, words: str, kind: ErrorKind, calls: int
) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        full = stage.model(way, "input_tokens=900", context_limit_tokens=1000)
        summariser = stage.model(way, words)
        stage.configuration.summarise_with(summariser)
        await chat.ask(full)
        asked = stage.mock.stats().by_model[f"mock:{words}"]
        lost = 2 - len(chat.messages)
        print(f"C14 {way} {words}: kind {chat.error.kind}, {asked} calls, {lost} messages lost")
        assert (chat.error.kind, asked, lost) == (kind, calls, 0)
        assert chat.state.compactions == 0
        stage.configuration.summarise_with(stage.model(way, "text=All is well."))
        await chat.ask(stage.model(way, "text=fine", context_limit_tokens=1000), "again")
        assert chat.said == "fine"
