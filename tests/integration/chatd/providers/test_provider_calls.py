"""Models that call tools oddly, too often or in circles: they are told, histories stay valid."""

import pytest

from chatd.audit.pairing import paired
from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import Interrupt
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.calls import CALLS_MAX
from chatd.turns.domain.loops import ASK_AFTER
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.provider_stage import ADD, ProviderStage, StagedChat, provider_stage
from support.host.virtual_time import in_virtual_time

EVERY_WAY = pytest.mark.parametrize("way", Way)


def results_of(chat: StagedChat) -> list[ToolResult]:
    parts = (part for message in chat.messages for part in message.content)
    return [part for part in parts if isinstance(part, ToolResult)]


def violations(stage: ProviderStage, chat: StagedChat) -> int:
    """Count what does not fit together in a history, and what the provider refused of it."""
    pairing = paired(chat.messages)
    unfit = len(pairing.open) + len(pairing.passed_over)
    unfit += len(pairing.repeated) + len(pairing.uncalled)
    refused = sum(count for status, count in stage.mock.stats().by_status.items() if status >= 400)
    return unfit + refused


@EVERY_WAY
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("tools=3,ids=duplicate", ""),
        ("tools=3,ids=missing", ""),
        ("tool=fly_to_the_moon", "there is no tool fly_to_the_moon"),
        ("tools=2,args={%22a%22:", "not valid JSON"),
        ("tools=2,args=[1]", "must be a JSON object"),
        ("tools=1,args_bytes=5MB", "larger than 2 MiB"),
        ("tools=1,args_depth=5000", "not valid JSON"),
        ("tools=1,args_depth=200", "nested"),
    ],
)
@in_virtual_time
async def test_c10_an_odd_call_is_told_to_the_model_and_spoils_nothing(
    way: Way, words: str, problem: str
) -> None:
    async with provider_stage(ADD) as stage:
        chat = stage.chat()
        model = stage.model(way, words)
        await chat.ask(model)
        await chat.ask(model, "go on")
        found = violations(stage, chat)
        print(f"C10 {way} {words}: {found} violations")
        assert found == 0
        assert chat.state.status is Status.WAITING
        results = results_of(chat)
        assert results
        for result in results:
            outcome = ToolOutcome.FAILED if problem else ToolOutcome.DONE
            assert (result.outcome, problem in result.result_json) == (outcome, True)
        assert len(stage.tools.order) == (0 if problem else len(results))


@EVERY_WAY
@in_virtual_time
async def test_c11_of_very_many_calls_a_hundred_run_and_all_are_answered_in_order(way: Way) -> None:
    async with provider_stage(ADD) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "tools=130"))
        results = results_of(chat)
        ran = [result for result in results if result.outcome is ToolOutcome.DONE]
        print(f"C11 {way}: 130 calls, {len(stage.tools.order)} ran, {len(results)} results")
        assert (len(stage.tools.order), len(ran), len(results)) == (CALLS_MAX, CALLS_MAX, 130)
        assert violations(stage, chat) == 0
        made = [part for part in chat.messages[1].content if isinstance(part, ToolCall)]
        assert ids_sent_back(stage, way) == [call.tool_call_id for call in made]


def ids_sent_back(stage: ProviderStage, way: Way) -> list[str]:
    """Return the ids of the results in the order in which the provider was told them."""
    body = stage.mock.requests()[-1].document()["body"]
    match way:
        case Way.ANTHROPIC:
            blocks = body["messages"][-1]["content"]
            return [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        case Way.RESPONSES:
            items = [item for item in body["input"] if "output" in item]
            return [item["call_id"] for item in items]
        case Way.COMPLETIONS:
            messages = body["messages"]
            return [each["tool_call_id"] for each in messages if each["role"] == "tool"]


@pytest.mark.slow
@EVERY_WAY
@in_virtual_time
async def test_c15_a_model_that_goes_in_circles_is_stopped_and_its_user_asked(way: Way) -> None:
    async with provider_stage(ADD) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, "tools=1,rounds=1000"))
        calls = len(stage.tools.order)
        print(f"C15 {way}: stopped after {calls} equal calls, {stage.mock.stats().requests} steps")
        # The next call is not made but asked about.
        assert (calls, stage.mock.stats().requests) == (ASK_AFTER, ASK_AFTER + 1)
        assert chat.state.status is Status.REQUIRES_ACTION
        assert [call.kind for call in chat.state.pending] == [PendingKind.LOOP]
        await chat.do(Interrupt(MessageId(0), None))
        await chat.ask(stage.model(way, "text=fine"), "do something else")
        assert chat.said == "fine"
        assert violations(stage, chat) == 0
