"""Providers that refuse, hold back their answer, or count wrongly."""

from decimal import Decimal

import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind, FinishReason
from chatd.models.domain.price import Price
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import provider_stage
from support.host.virtual_time import in_virtual_time

EVERY_WAY = pytest.mark.parametrize("way", Way)
PRICE = Price(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"))


@EVERY_WAY
@pytest.mark.parametrize(
    ("failing", "kind"),
    [
        ("401", ErrorKind.AUTH),
        ("403", ErrorKind.AUTH),
        ("400", ErrorKind.GENERIC),
        ("404", ErrorKind.CONFIG),
        ("quota", ErrorKind.USAGE_LIMIT),
    ],
)
@in_virtual_time
async def test_c3_what_will_not_pass_is_asked_once(way: Way, failing: str, kind: ErrorKind) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, f"fail={failing}*"))
        attempts = stage.mock.stats().requests
        print(f"C3 {way} {failing}: {attempts} attempt, kind {chat.error.kind}")
        assert (attempts, chat.retries) == (1, [])
        assert (chat.error.kind, chat.error.is_retryable) == (kind, False)
        assert chat.error.provider == "Acme"
        if failing.isdecimal():
            assert chat.error.status_code == int(failing)
        assert "sk-0123" not in f"{chat.error}"


@EVERY_WAY
@in_virtual_time
async def test_c16_a_refusal_with_words_is_stored_and_ends_the_turn(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "stop=refusal"))
        assert chat.texts == [("user", "hello"), ("assistant", "I cannot help with that.")]
        await chat.ask(stage.model(way, "stop=filter,text=Half an"))
        assert chat.texts[2:] == [("user", "hello"), ("assistant", "Half an")]
        assert chat.state.status is Status.WAITING
        print(f"C16 {way}: {stage.mock.stats().requests} requests for 2 held back answers")
        assert stage.mock.stats().by_status == {200: 2}


@EVERY_WAY
@in_virtual_time
async def test_c16_a_refusal_without_a_word_is_told_as_an_error(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "stop=filter,deltas=0"))
        assert (chat.error.kind, chat.error.is_retryable) == (ErrorKind.CONTENT_FILTER, False)
        assert chat.texts == [("user", "hello")]
        assert stage.mock.stats().requests == 1


@EVERY_WAY
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("text=All of it", FinishReason.STOP),
        ("stop=length,text=Half an", FinishReason.LENGTH),
        ("stop=filter,text=Half an", FinishReason.CONTENT_FILTER),
        ("stop=refusal", FinishReason.CONTENT_FILTER),
    ],
)
@in_virtual_time
async def test_why_an_answer_ended_is_stored_with_it(
    way: Way, words: str, reason: FinishReason
) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, words))
        assert [message.finish_reason for message in chat.messages] == [None, reason]


@EVERY_WAY
@pytest.mark.parametrize("usage", ["missing", "negative", "huge"])
@in_virtual_time
async def test_c12_tokens_that_cannot_be_true_are_estimated(way: Way, usage: str) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        model = stage.model(way, f"usage={usage}", price=PRICE, context_limit_tokens=1000)
        await chat.ask(model)
        await chat.ask(model)
        uses = [entry.bill.use for entry in chat.ledger]
        costs = [use.cost_micros for use in uses]
        print(f"C12 {way} {usage}: cost in micros {costs}")
        assert len(uses) == 2
        for use in uses:
            assert use.is_estimate
            assert 0 < use.input_tokens < 1000
            assert 0 < use.output_tokens < 1000
            assert use.cost_micros == use.input_tokens * 3 + use.output_tokens * 15
        assert chat.state.status is Status.WAITING
        assert chat.state.compactions == 0


@EVERY_WAY
@in_virtual_time
async def test_c12_tokens_that_can_be_true_cost_what_they_cost(way: Way) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        words = "input_tokens=1000,output_tokens=100,cache_read=500"
        await chat.ask(stage.model(way, words, price=PRICE))
        (entry,) = chat.ledger
        print(f"C12 {way}: {entry.bill.use.cost_micros} micros for 1000+100+500 tokens")
        assert entry.bill.use.cost_micros == 1000 * 3 + 100 * 15 + 150
