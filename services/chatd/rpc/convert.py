"""Domain values to protos and back, both directions, nothing else."""

from datetime import datetime
from typing import assert_never

from google.protobuf.timestamp_pb2 import Timestamp

from chatd.domain import parts
from chatd.domain.chat import Chat, ChatState, ErrorKind, Message, Role, Status, TurnError
from chatd.domain.errors import InvalidRequest
from chatd.engine.live import LivePart
from parley.api.chat.v1 import chat_pb2, event_pb2, message_pb2

TEXT_BYTES_MAX = 256 * 1024

STATUS = {status: chat_pb2.ChatStatus.Value(f"CHAT_STATUS_{status.name}") for status in Status}
ROLE = {role: message_pb2.Role.Value(f"ROLE_{role.name}") for role in Role}
KIND = {kind: chat_pb2.ErrorKind.Value(f"ERROR_KIND_{kind.name}") for kind in ErrorKind}
OUTCOME = {
    outcome: message_pb2.ToolOutcome.Value(f"TOOL_OUTCOME_{outcome.name}")
    for outcome in parts.ToolOutcome
}


def chat_to_proto(chat: Chat) -> chat_pb2.Chat:
    """Return a chat as its readers see it."""
    state = chat.state
    return chat_pb2.Chat(
        id=state.chat_id,
        owner_id=chat.owner_id,
        title=chat.title,
        status=STATUS[state.status],
        last_error=None if state.last_error is None else error_to_proto(state.last_error),
        versions=versions_to_proto(state),
        root_chat_id=state.chat_id,
        created_at=time_to_proto(chat.created_at),
        updated_at=time_to_proto(chat.updated_at),
    )


def versions_to_proto(state: ChatState) -> chat_pb2.Versions:
    """Return the counters of a chat."""
    return chat_pb2.Versions(
        snapshot=state.snapshot_version,
        history=state.history_version,
        generation_attempt=state.generation_attempt,
    )


def error_to_proto(error: TurnError) -> chat_pb2.ChatError:
    """Return why a turn failed."""
    return chat_pb2.ChatError(
        message=error.message, kind=KIND[error.kind], retryable=error.is_retryable
    )


def message_to_proto(chat_id: str, message: Message) -> message_pb2.Message:
    """Return a committed message."""
    return message_pb2.Message(
        id=message.id,
        chat_id=chat_id,
        role=ROLE[message.role],
        content=[part_to_proto(part) for part in message.content],
        revision=message.revision,
        created_by=message.created_by,
        created_at=time_to_proto(message.created_at),
    )


def live_part_to_proto(live: LivePart) -> event_pb2.MessagePartEvent:
    """Return a piece of an answer that is being written."""
    return event_pb2.MessagePartEvent(
        role=ROLE[live.role],
        part=part_to_proto(live.part),
        history_version=live.history_version,
        generation_attempt=live.generation_attempt,
        seq=live.seq,
        part_index=live.part_index,
    )


def part_to_proto(part: parts.Part) -> message_pb2.Part:
    """Return one part of a message."""
    match part:
        case parts.Text(text):
            return message_pb2.Part(text=message_pb2.TextPart(text=text))
        case parts.Reasoning(text, created_at, completed_at):
            reasoning = message_pb2.ReasoningPart(
                text=text,
                created_at=None if created_at is None else time_to_proto(created_at),
                completed_at=None if completed_at is None else time_to_proto(completed_at),
            )
            return message_pb2.Part(reasoning=reasoning)
        case parts.ToolCall():
            call = message_pb2.ToolCallPart(
                tool_call_id=part.tool_call_id,
                tool_name=part.tool_name,
                args_json=part.args_json,
                mcp_server_id=part.mcp_server_id,
                provider_executed=part.provider_executed,
            )
            return message_pb2.Part(tool_call=call)
        case parts.ToolResult():
            result = message_pb2.ToolResultPart(
                tool_call_id=part.tool_call_id,
                tool_name=part.tool_name,
                result_json=part.result_json,
                outcome=OUTCOME[part.outcome],
                mcp_server_id=part.mcp_server_id,
                provider_executed=part.provider_executed,
            )
            return message_pb2.Part(tool_result=result)
        case parts.Notice(text):
            return message_pb2.Part(notice=message_pb2.NoticePart(text=text))
        case _:
            assert_never(part)


def content_from_proto(content: "list[message_pb2.Part]") -> tuple[parts.Part, ...]:
    """Return what a user wrote.

    Raises:
        InvalidRequest: there is nothing in it, too much, or a kind that users cannot write.
    """
    if not content:
        raise InvalidRequest("content", "needs at least one part")
    written: list[parts.Part] = []
    for index, part in enumerate(content):
        if part.WhichOneof("kind") != "text":
            raise InvalidRequest(f"content[{index}]", "only text parts can be sent")
        if not part.text.text.strip():
            raise InvalidRequest(f"content[{index}].text", "is blank")
        written.append(parts.Text(part.text.text))
    if sum(len(part.text.text.encode()) for part in content) > TEXT_BYTES_MAX:
        raise InvalidRequest("content", f"is longer than {TEXT_BYTES_MAX} bytes")
    return tuple(written)


def time_to_proto(time: datetime) -> Timestamp:
    """Return a point in time."""
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp
