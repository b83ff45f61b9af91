"""Encoded events: the body is encoded once, each reader's cursor is put before it."""

from chatd.chats.domain.chat import ChatState, Message, QueuedMessage, Retry
from chatd.chats.domain.views import EndedAction, OpenAction
from chatd.chats.rpc.bounding import bounded
from chatd.chats.rpc.convert import (
    ROLE,
    STATUS,
    call_to_proto,
    client_calls_of,
    ended_action_to_proto,
    error_to_proto,
    message_to_proto,
    open_action_to_proto,
    part_to_proto,
    queued_to_proto,
    retry_to_proto,
)
from chatd.content.domain.messages import TurnError
from chatd.content.domain.parts import Part, Text, ToolCall, ToolResultDelta
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.rpc.times import optional_time
from chatd.streams.engine.live import LivePart
from parley.api.chat.v1 import event_pb2, message_pb2
from parley.api.chat.v1.event_pb2 import (
    ActionEndedEvent,
    ActionRequiredEvent,
    ChatEvent,
    HistoryResetEvent,
    PreviewResetEvent,
    PreviewTruncatedEvent,
    QueueEvent,
    RequiredCall,
    StatusEvent,
)

CURSOR_TAG = (
    b"\x0a"  # Field 1 of ChatEvent, a string; shorter than 128 bytes, so one byte of length.
)
PREVIEW_RESET = ChatEvent(preview_reset=PreviewResetEvent()).SerializeToString()
PREVIEW_TRUNCATED = ChatEvent(preview_truncated=PreviewTruncatedEvent()).SerializeToString()


def fill_live_part(shown: event_pb2.MessagePartEvent, live: LivePart) -> None:
    """Put a live part into an event.

    Filling the message in place is twice as fast as building nested messages, and parts are
    frequent.
    """
    if isinstance(live.part, ToolResultDelta):
        _fill_delta(shown.part.tool_result, live.part)
    else:
        _fill_part(shown.part, live.part)
    shown.role = ROLE[live.role]
    shown.history_version = live.history_version
    shown.generation_attempt = live.generation_attempt
    shown.seq = live.seq
    shown.part_index = live.part_index


def _fill_part(shown: message_pb2.Part, live: Part) -> None:
    (part,) = bounded((live,))
    match part:
        case Text(text):
            shown.text.text = text
        case ToolCall(created_at=None):
            # The arguments are incomplete, and so not valid JSON.
            call = shown.tool_call
            call.CopyFrom(call_to_proto(part))
            call.args_delta, call.args_json = call.args_json, ""
        case _:
            shown.CopyFrom(part_to_proto(part))


def _fill_delta(shown: message_pb2.ToolResultPart, delta: ToolResultDelta) -> None:
    shown.tool_call_id = delta.tool_call_id
    shown.tool_name = delta.tool_name
    shown.mcp_server_id = delta.mcp_server_id
    shown.result_delta = delta.text
    shown.result_reset = delta.is_reset
    shown.process_id = delta.process_id
    if delta.progress is not None:
        shown.progress.CopyFrom(
            message_pb2.CallProgress(
                progress=delta.progress.progress,
                total=delta.progress.total,
                message=delta.progress.message,
            )
        )


def with_cursor(cursor: str, body: bytes) -> bytes:
    """Return the event with its cursor."""
    text = cursor.encode()
    assert len(text) < 128
    return CURSOR_TAG + bytes((len(text),)) + text + body


def part_body(part: LivePart) -> bytes:
    """Return the body of a live part."""
    event = ChatEvent()
    fill_live_part(event.message_part, part)
    return event.SerializeToString()


def message_body(chat_id: ChatId, message: Message) -> bytes:
    """Return the body of a committed message."""
    return ChatEvent(message=message_to_proto(chat_id, message)).SerializeToString()


def status_body(state: ChatState, place_in_line: int) -> bytes:
    """Return the body of a status event."""
    status = StatusEvent(status=STATUS[state.status], place_in_line=place_in_line)
    return ChatEvent(status=status).SerializeToString()


def error_body(error: TurnError) -> bytes:
    """Return the body of a turn's error."""
    return ChatEvent(error=error_to_proto(error)).SerializeToString()


def queue_body(queue: tuple[QueuedMessage, ...]) -> bytes:
    """Return the body with the whole queue."""
    queued = QueueEvent(queued_messages=[queued_to_proto(each) for each in queue])
    return ChatEvent(queue_update=queued).SerializeToString()


def action_body(state: ChatState, asking: tuple[OpenAction, ...]) -> bytes:
    """Return the body with everything that a client or a person is asked for."""
    required = [
        RequiredCall(
            tool_call_id=call.tool_call_id, tool_name=call.tool_name, args_json=call.args_json
        )
        for call in client_calls_of(asking)
    ]
    action = ActionRequiredEvent(
        tool_calls=required,
        deadline_at=optional_time(state.deadline_at),
        actions=[open_action_to_proto(state.chat_id, each) for each in asking],
    )
    return ChatEvent(action_required=action).SerializeToString()


def action_ended_body(ended: tuple[EndedAction, ...]) -> bytes:
    """Return the body with how actions ended."""
    told = ActionEndedEvent(actions=map(ended_action_to_proto, ended))
    return ChatEvent(action_ended=told).SerializeToString()


def retry_body(retry: Retry) -> bytes:
    """Return the body of a wait for the next attempt."""
    return ChatEvent(retry=retry_to_proto(retry)).SerializeToString()


def history_reset_body(*, truncated: bool) -> bytes:
    """Return the body of a history reset: the reader must drop all messages."""
    reset = HistoryResetEvent(truncated=truncated)
    return ChatEvent(history_reset=reset).SerializeToString()
