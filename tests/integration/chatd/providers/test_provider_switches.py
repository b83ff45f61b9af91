"""Chats that change their provider: nobody is sent what another one wants back."""

from itertools import permutations

import pytest

from chatd.chats.domain.chat import Status
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import ADD, provider_stage
from support.host.virtual_time import in_virtual_time

BEHAVIOURS = ("reasoning=3,tools=2,preface=2", "redacted,tools=1", "tools=2,ids=missing")


@pytest.mark.parametrize("words", BEHAVIOURS)
@in_virtual_time
async def test_c18_a_chat_goes_from_provider_to_provider_and_back_without_a_refusal(
    words: str,
) -> None:
    async with provider_stage(ADD) as stage:
        turns = 0
        for order in permutations(Way):
            chat = stage.chat()
            for way in (*order, *order):
                await chat.ask(stage.model(way, words))
                assert chat.state.status is Status.WAITING
                turns += 1
        by_status = stage.mock.stats().by_status
        refused = sum(count for status, count in by_status.items() if status >= 400)
        print(f"C18 {words}: {turns} turns, each with another provider, {refused} answers with 4xx")
        assert (refused, by_status) == (0, {200: 2 * turns})


@in_virtual_time
async def test_c18_another_model_of_the_same_provider_reads_what_the_first_one_wrote() -> None:
    async with provider_stage(ADD) as stage:
        for way in Way:
            chat = stage.chat()
            for words in (*BEHAVIOURS, *BEHAVIOURS):
                await chat.ask(stage.model(way, words))
        refused = sum(
            count for status, count in stage.mock.stats().by_status.items() if status >= 400
        )
        print(f"C18 from model to model of each provider: {refused} answers with 4xx")
        assert refused == 0
