"""Tools that a program declares and executes itself, through the typed client."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.client import (
    ChatOptions,
    ChatStatus,
    ClientTool,
    Parley,
    RequiredAction,
    RequiredCall,
    ToolAnswer,
)
from support.client.chat_service import FakeChatd

DEADLINE = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
TOOL = ClientTool("look_up", "Looks something up.", {"type": "object", "maxProperties": 1})
CALLS = (RequiredCall("call-1", "look_up", '{"at": 1}'), RequiredCall("call-2", "look_up", "{}"))


def wait_for_client(chat: chat_pb2.Chat) -> None:
    """Let a chat wait for both calls."""
    chat.status = chat_pb2.CHAT_STATUS_REQUIRES_ACTION
    deadline = Timestamp()
    deadline.FromDatetime(DEADLINE)
    calls = [
        chat_pb2.WaitingCall(
            tool_call_id=call.tool_call_id, tool_name=call.tool_name, args_json=call.args_json
        )
        for call in CALLS
    ]
    chat.required_action.CopyFrom(chat_pb2.RequiredAction(tool_calls=calls, deadline_at=deadline))


async def test_a_program_declares_tools_sees_their_calls_and_answers_them(
    parley: Parley, chatd: FakeChatd
) -> None:
    created = await parley.create_chat("hi", options=ChatOptions(client_tools=(TOOL,)))
    wait_for_client(chatd.chats.chats[created.id])

    waiting = await parley.get_chat(created.id)
    assert waiting.required_action is not None
    first, second = waiting.required_action.calls
    answered = await parley.manage.submit_tool_results(
        created.id,
        ToolAnswer.to(first, {"found": first.arguments["at"] + 1}),
        ToolAnswer.to(second, "nothing", is_error=True),
    )

    creation, _, submission = chatd.chats.requests
    assert list(creation.client_tools) == [
        chat_pb2.ClientTool(
            name="look_up",
            description="Looks something up.",
            input_schema_json='{"type": "object", "maxProperties": 1}',
        )
    ]
    assert (created.required_action, waiting.status) == (None, ChatStatus.REQUIRES_ACTION)
    assert waiting.required_action == RequiredAction(CALLS, DEADLINE)
    assert list(submission.results) == [
        api.ClientToolResult(tool_call_id="call-1", output_json='{"found": 2}'),
        api.ClientToolResult(tool_call_id="call-2", output_json='"nothing"', is_error=True),
    ]
    assert (answered.status, answered.required_action) == (ChatStatus.RUNNING, None)
