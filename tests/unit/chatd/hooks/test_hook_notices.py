"""Notices of hooks for people: stored once, shown in the chat, and not read by the model."""

from collections.abc import Callable, Iterable

import pytest

from chatd.chats.domain.chat import Message, Status
from chatd.chats.domain.commands import RequestCompaction
from chatd.chats.rpc.convert import content_to_proto
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import Notice, Text, ToolCall
from chatd.hooks.domain.hooks import HookEvent
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from support.chatd.hooks.in_memory_hooks import HookStage, hook, hook_stage
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import ANN, CHAT, WORKER, Stage, tool

LS = ToolCall("b", "execute", '{"command": "ls"}')
TOLD = "This is recorded."
START, PRE = HookEvent.SESSION_START, HookEvent.PRE_TOOL_USE
POST, STOP = HookEvent.POST_TOOL_USE, HookEvent.STOP


def giving(*events: HookEvent, **more: str) -> HookStage:
    """Return hooks of events whose consumer gives a notice."""
    return hook_stage(lambda _: {"notice": TOLD, **more}, hook(*events))


def notice(event: HookEvent) -> Notice:
    return Notice(TOLD, "policy", event.value)


def noticed(stage: Stage) -> list[Message]:
    """Return the stored messages with notices."""
    return [
        message
        for message in stage.messages
        if any(isinstance(part, Notice) for part in message.content)
    ]


def said_to_models(stage: Stage) -> str:
    return repr([request.messages for request in stage.model.requests])


def once(*calls: ToolCall) -> Callable[[ModelRequest], Iterable[ModelEvent]]:
    """Return a play that calls tools once in a chat, and then says that it is done."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if any(message.role is Role.TOOL for message in request.messages):
            yield TextDelta("done")
        else:
            yield from map(ToolCallRequested, calls)
        yield Finished()

    return play


def answering(request: ModelRequest) -> Iterable[ModelEvent]:
    yield TextDelta("answer")
    yield UsageReported(10, 10)
    yield Finished()


@pytest.mark.parametrize("event", [START, PRE, POST])
async def test_people_read_a_notice_once_and_the_model_does_not(event: HookEvent) -> None:
    hooks = giving(event)
    stage = Stage(once(LS), tool("execute"), hooks=hooks.chats)
    await stage.ask()
    assert stage.texts[-1] == ("assistant", "done")
    (row,) = noticed(stage)
    assert row.content[-1] == notice(event)
    if event is not PRE:  # What is added to calls is a part of the answer that makes them.
        assert (row.role, row.visibility) == (Role.SYSTEM, Visibility.USER)
    shown = content_to_proto(row.content)[-1].notice
    assert (shown.text, shown.hook_name, shown.event) == (TOLD, "policy", event.value)
    assert TOLD not in said_to_models(stage)
    assert [each.notice for each in await hooks.log.deliveries(hook().id, 9)] == [TOLD]


async def test_a_notice_to_a_message_is_a_part_of_it() -> None:
    said = (Text("hello"),)
    accepted = await giving(HookEvent.USER_PROMPT_SUBMIT).chats.submitted(CHAT, ANN, "k", said)
    assert accepted == (*said, notice(HookEvent.USER_PROMPT_SUBMIT))
    assert [each.WhichOneof("kind") for each in content_to_proto(accepted)] == ["text", "notice"]


async def test_notices_around_a_summary_follow_it_and_the_chat_rests() -> None:
    stage = Stage(answering, hooks=giving(HookEvent.PRE_COMPACT, HookEvent.POST_COMPACT).chats)
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    await stage.run()
    assert stage.status is Status.WAITING
    assert [row.content for row in stage.messages[-2:]] == [
        (notice(HookEvent.PRE_COMPACT),),
        (notice(HookEvent.POST_COMPACT),),
    ]
    assert len(stage.model.requests) == 2
    assert TOLD not in said_to_models(stage)


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_a_notice_to_an_end_is_stored_with_it(decision: str) -> None:
    stage = Stage(answering, hooks=giving(STOP, decision=decision).chats)
    await stage.ask()
    assert stage.status is Status.WAITING
    # A refused end is one more answer, whose end is announced as well.
    assert [row.content for row in noticed(stage)] == [(notice(STOP),)] * (1 + (decision == "deny"))
    assert stage.messages[-1].content == (notice(STOP),)
    assert TOLD not in said_to_models(stage)


@pytest.mark.parametrize(
    ("event", "dies_after"),
    [(event, commits) for event in (START, PRE, POST) for commits in range(4 - (event is PRE))],
)
async def test_the_next_owner_stores_no_notice_twice(event: HookEvent, dies_after: int) -> None:
    stage = Stage(once(LS), tool("execute"), hooks=giving(event).chats)
    stage.commits.dies_after = dies_after
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    assert stage.texts[-1] == ("assistant", "done")
    assert len(noticed(stage)) == 1
