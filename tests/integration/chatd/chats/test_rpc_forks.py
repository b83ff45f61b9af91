"""Forks: a chat copied up to a message, and what becomes of its workspace."""

import json

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitStep
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolCall
from chatd.content.domain.tools import Dispatch, Executor
from chatd.primitives.domain.ids import ChatId, ExecutionId
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from support.chatd.chats.chat_people import BOB_ID, text
from support.chatd.chats.served_chats import ServedChats

EXECUTION = ExecutionId("00000000-0000-0000-0000-0000000000e1")


def fork_of(chat_id: str, key: str = "f", **more: object) -> api.ForkChatRequest:
    return api.ForkChatRequest(request_id=key, chat_id=chat_id, **more)  # type: ignore[arg-type]


async def texts(served: ServedChats, chat_id: str) -> list[tuple[int, str]]:
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat_id))
    return [(each.id, each.content[0].text.text) for each in reversed(page.messages)]


async def two_turns(served: ServedChats) -> str:
    chat = await served.ann.create("one", title="Whales", labels={"k": "v"})
    await served.finish(chat.id, "first")
    await served.ann.send(chat.id, "two")
    await served.finish(chat.id, "second")
    return chat.id


async def test_a_fork_has_the_history_up_to_a_message_and_goes_on_by_itself(
    served: ServedChats,
) -> None:
    chat_id = await two_turns(served)
    fork = (await served.ann.ask(fork_of(chat_id, message_id=2))).chat
    assert (fork.title, fork.status, dict(fork.labels), fork.has_unread) == (
        "Whales",
        chat_pb2.CHAT_STATUS_WAITING,
        {"k": "v"},
        False,
    )
    assert (fork.root_chat_id, fork.parent_chat_id) == (fork.id, "")
    assert await texts(served, fork.id) == [(1, "one"), (2, "first")]
    await served.ann.send(fork.id, "other")
    await served.finish(fork.id, "third")
    assert await texts(served, fork.id) == [
        (1, "one"),
        (2, "first"),
        (3, "other"),
        (4, "third"),
    ]
    assert len(await texts(served, chat_id)) == 4


async def test_a_repeated_fork_is_the_same_chat_and_another_body_is_refused(
    served: ServedChats,
) -> None:
    chat_id = await two_turns(served)
    first = (await served.ann.ask(fork_of(chat_id, title="Copy"))).chat
    again = (await served.ann.ask(fork_of(chat_id, title="Copy"))).chat
    assert (first.id, first.title, len(await texts(served, first.id))) == (again.id, "Copy", 4)
    other = await served.ann.refusal(fork_of(chat_id, title="Other"))
    assert other.reason == "REQUEST_ID_REUSED"


async def test_a_running_chat_is_copied_and_its_open_calls_are_given_up(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("one")
    call = ToolCall("call-1", "execute", "{}")
    step = CommitStep(
        fence_of(await served.state(chat.id)),
        (NewMessage(Role.ASSISTANT, (Text("wait"), call)),),
        (Dispatch(EXECUTION, call, Executor.TOOLRUNNER, "j"),),
    )
    await served.stores.chats.apply(ChatId(chat.id), step)
    fork = (await served.ann.ask(fork_of(chat.id))).chat
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=fork.id))
    result = page.messages[0].content[0].tool_result
    assert (page.messages[0].id, result.tool_call_id, result.is_error) == (3, "call-1", True)
    assert "copied" in json.loads(result.result_json)["error"]
    assert (await served.state(chat.id)).pending
    await served.ann.send(fork.id, "on")
    assert (await served.state(fork.id)).pending == ()


async def test_what_an_edit_replaced_is_not_copied(served: ServedChats) -> None:
    chat_id = await two_turns(served)
    await served.ann.ask(
        api.EditMessageRequest(
            request_id="e", chat_id=chat_id, message_id=3, content=[text("anew")]
        )
    )
    fork = (await served.ann.ask(fork_of(chat_id))).chat
    assert [each for _, each in await texts(served, fork.id)] == ["one", "first", "anew"]
    refused = await served.ann.refusal(fork_of(chat_id, "g", message_id=3))
    assert refused.reason == "MESSAGE_NOT_FOUND"


async def test_only_the_owner_forks(served: ServedChats) -> None:
    chat_id = await two_turns(served)
    assert (await served.bob.refusal(fork_of(chat_id))).reason == "CHAT_NOT_FOUND"
    shares = [api.Share(user_id=BOB_ID)]
    await served.ann.ask(api.SetSharesRequest(request_id="s", chat_id=chat_id, shares=shares))
    assert (await served.bob.refusal(fork_of(chat_id))).reason == "CHAT_READ_ONLY"


async def test_a_fork_without_a_workspace_to_copy_has_none(served: ServedChats) -> None:
    chat_id = await two_turns(served)
    for key, use in (
        ("a", api.FORK_WORKSPACE_USE_NONE),
        ("b", api.FORK_WORKSPACE_USE_SAME),
        ("c", api.FORK_WORKSPACE_USE_COPY),
    ):
        fork = (await served.ann.ask(fork_of(chat_id, key, workspace=use))).chat
        assert fork.workspace_id == ""
