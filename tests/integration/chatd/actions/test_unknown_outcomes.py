"""Calls whose outcome is unknown: listed to their owner until a person's next message."""

import json
import uuid
from typing import Any

from chatd.actions.store.actions import MESSAGES_MAX, ROOTS_MAX, SELECT_UNKNOWN, UNKNOWN_MAX
from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitResults, CommitStep, RevertChat, SendMessage
from chatd.chats.domain.transitions import fence_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import MessageOrigin, Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor
from chatd.errors import ERRORS
from chatd.models.domain.profile import NO_CHOICE
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    QueuedMessageId,
    RevertId,
)
from parley.api.chat.v1 import action_service_pb2 as api
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from support.chatd.chats.chat_people import ANN_ID, text
from support.chatd.chats.served_chats import ServedChats

PUSH = {"command": "git push\u0000"}
MEBIBYTE = 1024 * 1024


async def called(
    served: ServedChats,
    chat_id: str,
    outcome: ToolOutcome,
    *,
    call_id: str = "call-1",
    arguments: str = json.dumps(PUSH),
) -> None:
    """Let a running chat make a call that ends with an outcome."""
    chats = served.stores.chats
    call = ToolCall(call_id, "execute", arguments)
    execution = ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), call_id)))
    state = await served.state(chat_id)
    step = CommitStep(
        fence_of(state),
        (NewMessage(Role.ASSISTANT, (call,)),),
        (Dispatch(execution, call, Executor.TOOLRUNNER, "j"),),
    )
    state = await chats.apply(ChatId(chat_id), step)
    # The text of a result does not say how the call ended.
    result = ToolResult(call_id, "execute", '{"outcome":"unknown"}', outcome)
    await chats.apply(ChatId(chat_id), CommitResults(fence_of(state), (result,)))


async def send_as(served: ServedChats, chat_id: str, origin: MessageOrigin) -> None:
    """Send a message of any origin to a chat at rest, and end its turn."""
    message = NewMessage(Role.USER, (Text("Go on."),), ANN_ID, choice=NO_CHOICE, origin=origin)
    queued_id = QueuedMessageId(str(uuid.uuid5(uuid.UUID(chat_id), origin)))
    await served.stores.chats.apply(ChatId(chat_id), SendMessage(message, queued_id, None))
    await served.finish(chat_id)


async def listed(served: ServedChats) -> list[tuple[str, int, str]]:
    found = await served.ann.ask(api.ListUnknownOutcomesRequest())
    return [(each.chat_id, each.message_id, each.tool_call_id) for each in found.outcomes]


async def test_a_call_that_may_have_run_is_listed_with_its_arguments_to_its_owner_alone(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("push it")
    await called(served, chat.id, ToolOutcome.UNKNOWN)
    await called(served, chat.id, ToolOutcome.DONE, call_id="call-2")
    await called(served, chat.id, ToolOutcome.FAILED, call_id="call-3")

    (found,) = (await served.ann.ask(api.ListUnknownOutcomesRequest())).outcomes

    assert (found.chat_id, found.chat_title, found.message_id) == (chat.id, chat.title, 2)
    assert (found.tool_call_id, found.tool_name) == ("call-1", "execute")
    assert json.loads(found.args_json) == PUSH
    assert found.HasField("ended_at")
    assert found.root_chat_id == chat.id
    assert list((await served.bob.ask(api.ListUnknownOutcomesRequest())).outcomes) == []


async def test_a_persons_next_message_takes_it_off_the_list_and_so_does_the_archive(
    served: ServedChats,
) -> None:
    first, second = await served.ann.create(), await served.ann.create()
    for chat in (first, second):
        await called(served, chat.id, ToolOutcome.UNKNOWN)
        await served.finish(chat.id)
    both = await listed(served)
    await served.ann.send(first.id, "It did run.")
    one = await listed(served)
    archive = chats_api.SetArchivedRequest(request_id="a", chat_id=second.id, archived=True)
    await served.ann.ask(archive)

    assert both == [(second.id, 2, "call-1"), (first.id, 2, "call-1")]
    assert one == [(second.id, 2, "call-1")]
    assert await listed(served) == []


async def test_messages_that_no_person_sent_leave_it_on_the_list(served: ServedChats) -> None:
    chat = await served.ann.create()
    await called(served, chat.id, ToolOutcome.UNKNOWN)
    await served.finish(chat.id)
    found = {}
    for origin in sorted(MessageOrigin, key=lambda each: each is MessageOrigin.PERSON):
        await send_as(served, chat.id, origin)
        found[origin] = await listed(served)

    entry = [(chat.id, 2, "call-1")]
    assert found == {
        origin: [] if origin is MessageOrigin.PERSON else entry for origin in MessageOrigin
    }


async def test_a_call_is_listed_in_a_chat_that_no_person_wrote_to(served: ServedChats) -> None:
    request = chats_api.CreateChatRequest(request_id="c", content=[text("Look.")])
    created = await OwnerCalls(ERRORS).call(
        Owner(ANN_ID, "member"),
        "parley.api.chat.v1.ChatService/CreateChat",
        lambda: served.chat_servicer.create(request, MessageOrigin.SCHEDULE),
    )
    await called(served, created.chat.id, ToolOutcome.UNKNOWN)
    assert await listed(served) == [(created.chat.id, 2, "call-1")]


async def test_a_message_that_was_taken_back_was_written_all_the_same(served: ServedChats) -> None:
    chat = await served.ann.create()
    await called(served, chat.id, ToolOutcome.UNKNOWN)
    await served.finish(chat.id)
    sent = await served.ann.send(chat.id, "I looked.")
    await served.finish(chat.id)
    revert_id = RevertId(str(uuid.uuid5(uuid.UUID(chat.id), "revert")))
    revert = RevertChat(revert_id, MessageId(sent.message.id), False, None)
    await served.stores.chats.apply(ChatId(chat.id), revert)

    assert await listed(served) == []


async def test_calls_of_the_chats_below_count_until_the_next_message_of_their_root(
    served: ServedChats,
) -> None:
    root = await served.ann.create()
    child_id = await served.add_child(root.id, "running")
    await called(served, child_id, ToolOutcome.UNKNOWN)
    await served.finish(root.id)
    await served.finish(child_id)
    await served.ann.send(child_id, "I looked.")
    before = (await served.ann.ask(api.ListUnknownOutcomesRequest())).outcomes
    await served.ann.send(root.id, "I looked.")

    assert [(each.chat_id, each.root_chat_id) for each in before] == [(child_id, root.id)]
    assert await listed(served) == []


async def test_a_call_of_a_message_that_an_edit_replaced_is_not_listed(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await called(served, chat.id, ToolOutcome.UNKNOWN)
    await served.finish(chat.id)
    edit = chats_api.EditMessageRequest(request_id="e", chat_id=chat.id, message_id=1)
    edit.content.add().text.text = "anew"
    await served.ann.ask(edit)

    assert await listed(served) == []


async def test_calls_with_large_arguments_are_listed_without_parts_of_them(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    image = {"type": "image", "data": "A" * MEBIBYTE}
    large = (
        json.dumps({"path": "notes.md", "content": "x" * MEBIBYTE}),
        json.dumps({"content": [image]}),
        json.dumps({"content": [image, image]}),
        "no JSON" * (MEBIBYTE // 7),
    )
    for number, arguments in enumerate(large):
        await called(
            served, chat.id, ToolOutcome.UNKNOWN, call_id=f"large-{number}", arguments=arguments
        )

    outcomes = (await served.ann.ask(api.ListUnknownOutcomesRequest())).outcomes

    assert [len(each.args_json.encode()) <= 16 * 1024 for each in outcomes] == [True] * 4
    *others, written = (json.loads(each.args_json) for each in outcomes)
    assert (written["path"], written["content"][:3]) == ("notes.md", "xxx")
    assert ["left out" in each["output"] for each in others] == [True] * 3


def scans_of(plan: dict[str, Any], alias: str) -> list[dict[str, Any]]:
    """Return the nodes of a plan that read something by this name."""
    below = [each for inner in plan.get("Plans", ()) for each in scans_of(inner, alias)]
    return [plan, *below] if plan.get("Alias") == alias else below


async def test_results_of_calls_whose_outcome_is_known_are_not_split(served: ServedChats) -> None:
    chat = await served.ann.create()
    for number in range(5):
        await called(served, chat.id, ToolOutcome.DONE, call_id=f"done-{number}")
    await called(served, chat.id, ToolOutcome.UNKNOWN)

    query = f"EXPLAIN (ANALYZE, FORMAT JSON) {SELECT_UNKNOWN}"
    bounds = (ROOTS_MAX, UNKNOWN_MAX, MESSAGES_MAX)
    explained = await served.pool.fetchval(query, ANN_ID, *bounds)

    (split,) = scans_of(json.loads(explained)[0]["Plan"], "result")
    assert (split["Actual Loops"], split["Actual Rows"]) == (1, 1)


async def test_only_the_newest_messages_of_a_chat_are_read(served: ServedChats) -> None:
    chat = await served.ann.create()
    await called(served, chat.id, ToolOutcome.UNKNOWN)
    await called(served, chat.id, ToolOutcome.DONE, call_id="call-2")

    found = [
        await served.pool.fetch(SELECT_UNKNOWN, ANN_ID, ROOTS_MAX, UNKNOWN_MAX, messages_max)
        for messages_max in (2, 3)
    ]
    assert [len(each) for each in found] == [0, 1]
