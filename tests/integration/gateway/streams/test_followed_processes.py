"""The output of processes on the stream of a chat, over the stream that gateways share."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from gateway.streams.chatd_client import WAIT_OUTPUT
from gateway.streams.followed_processes import PROCESSES_MAX, USER_FOLLOWED_MAX
from parley.api.chat.v1 import chat_pb2, event_pb2
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from support.gateway.chats import new_chat
from support.gateway.stack import GatewayStack
from support.net.http_client import HttpClient

OUTPUT = "one\ntwo\n"


def process_id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012x}"


def ended(request: api.WaitWorkspaceOutputRequest) -> api.WaitWorkspaceOutputResponse:
    """Answer as a node does for a process that has written everything and exited."""
    return api.WaitWorkspaceOutputResponse(
        process=process_pb2.Process(
            process_id=request.process_id,
            state=process_pb2.PROCESS_STATE_EXITED,
            exit=process_pb2.ProcessExit(exit_code=3),
        ),
        output=process_pb2.ProcessOutput(
            text=OUTPUT[request.since_cursor :], next_cursor=len(OUTPUT)
        ),
        reason=process_pb2.WAIT_REASON_EXITED,
    )


async def test_output_and_exit_are_events_between_those_of_the_chat(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.answers["WaitWorkspaceOutput"] = ended
    path = f"/api/v1/chats/{chat_id}/events?processes={process_id(1)}:4"
    async with asyncio.timeout(10), stack.owner.stream(path) as stream:
        subscription = await stack.chatd.subscriptions.get()
        output, end = await stream.event(), await stream.event()
        status = event_pb2.StatusEvent(status=chat_pb2.CHAT_STATUS_WAITING)
        subscription.send(event_pb2.ChatEvent(cursor="1.1.2.1.1.0", status=status))
        waiting = await stream.event()

    assert output is not None
    assert (output.event, output.id) == ("process_output", None)
    assert output.data == {
        "type": "process_output",
        "chat_id": chat_id,
        "process_output": {
            "process_id": process_id(1),
            "cursor": 4,
            "text": "two\n",
            "next_cursor": 8,
            "truncation": None,
        },
    }
    assert end is not None
    assert (end.event, end.id) == ("process_ended", None)
    shown = end.data["process_ended"]
    assert (shown["process"]["exit"]["exit_code"], shown["error"]) == (3, None)
    assert waiting is not None
    assert waiting.event == "status"
    assert stack.chatd.tunnelled == [WAIT_OUTPUT]
    ((user, request),) = [
        each for each in stack.chatd.calls if isinstance(each[1], api.WaitWorkspaceOutputRequest)
    ]
    assert user == stack.chatd.calls[0][0]
    assert (request.workspace_id, request.since_cursor) == (chat_id, 4)
    assert request.budget.keep_escapes


async def test_waits_end_with_the_client_and_all_share_one_stream(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    held = stack.chatd.hold("WaitWorkspaceOutput")
    followed = ",".join(process_id(number) for number in range(PROCESSES_MAX))
    async with asyncio.timeout(10):
        async with stack.owner.stream(f"/api/v1/chats/{chat_id}/events?processes={followed}"):
            subscription = await stack.chatd.subscriptions.get()
            await held.until_came(PROCESSES_MAX)
        await held.ended.wait()
        await subscription.ended.wait()
    assert stack.chatd.tunnelled == [WAIT_OUTPUT] * PROCESSES_MAX


async def test_a_user_follows_so_many_processes_and_the_chat_goes_on(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    held = stack.chatd.hold("WaitWorkspaceOutput")
    async with asyncio.timeout(20), AsyncExitStack() as streams:
        for begin in range(0, USER_FOLLOWED_MAX, PROCESSES_MAX):
            numbers = range(begin, begin + PROCESSES_MAX)
            followed = ",".join(process_id(number) for number in numbers)
            path = f"/api/v1/chats/{chat_id}/events?processes={followed}"
            await streams.enter_async_context(stack.owner.stream(path))
        await held.until_came(USER_FOLLOWED_MAX)
        path = f"/api/v1/chats/{chat_id}/events?processes={process_id(999)}"
        last = await streams.enter_async_context(stack.owner.stream(path))
        refused = await last.event()
    assert refused is not None
    error = refused.data["process_ended"]["error"]
    assert (refused.event, error["code"]) == ("process_ended", "TOO_MANY_LONG_RUNNING_REQUESTS")


@pytest.mark.parametrize(
    "followed",
    [
        "here",
        f"{process_id(1)}:x",
        f"{process_id(1)}:-1",
        f"{process_id(1)}:",
        f"{process_id(1)},{process_id(1)}:5",
        ",".join(process_id(number) for number in range(PROCESSES_MAX + 1)),
    ],
)
async def test_processes_that_cannot_be_followed_are_refused(
    stack: GatewayStack, followed: str
) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/events?processes={followed}"
    reply = await stack.owner.request("GET", path)
    assert (reply.status, reply.json()["errors"][0]["parameter"]) == (422, "processes")


async def test_a_key_that_may_only_read_chats_follows_no_process(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    body = {"name": "reader", "scopes": ["chat:read"]}
    made = await stack.owner.request("POST", "/api/v1/me/api-keys", body)
    key = made.json()["key"]
    reader = HttpClient(stack.gateway.http.port, {"Authorization": f"Bearer {key}"})
    path = f"/api/v1/chats/{chat_id}/events?processes={process_id(1)}"
    reply = await reader.request("GET", path)
    assert (reply.status, reply.json()["code"]) == (403, "SCOPE_MISSING")
    assert reply.json()["scope"] == "workspace:read"
