"""Converts protos to this package's values and back.

A kind or an enum value unknown to this client is left out or becomes UNSPECIFIED, so that a newer
server never breaks an older caller.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar, assert_never

from parley.api.chat.v1 import chat_pb2, chat_service_pb2, event_pb2, message_pb2
from parley.client import events, parts
from parley.client.action_conversion import action_of, ended_action_of, time_of
from parley.client.chats import (
    Chat,
    ChatPage,
    ChatStatus,
    ClientTool,
    ErrorKind,
    FinishReason,
    Message,
    MessageOrigin,
    MessagePage,
    QueuedMessage,
    RequiredAction,
    RequiredCall,
    Role,
    SentMessage,
    TurnError,
    Usage,
)

Word = TypeVar("Word", bound=StrEnum)


def _by_number(words: type[Word], numbers: Any, prefix: str) -> Mapping[int, Word]:
    return {numbers.Value(f"{prefix}_{word.name}"): word for word in words}


_STATUS: Final = _by_number(ChatStatus, chat_pb2.ChatStatus, "CHAT_STATUS")
_KIND: Final = _by_number(ErrorKind, chat_pb2.ErrorKind, "ERROR_KIND")
_ROLE: Final = _by_number(Role, message_pb2.Role, "ROLE")
_FINISH_REASON: Final = _by_number(FinishReason, message_pb2.FinishReason, "FINISH_REASON")
_ORIGIN: Final = _by_number(MessageOrigin, message_pb2.MessageOrigin, "MESSAGE_ORIGIN")
_OUTCOME: Final = _by_number(parts.ToolOutcome, message_pb2.ToolOutcome, "TOOL_OUTCOME")


def content_to_proto(content: str | Sequence[parts.UserPart]) -> list[message_pb2.Part]:
    """Return the content as parts; plain text is one part."""
    written = (parts.Text(content),) if isinstance(content, str) else content
    return [_user_part(part) for part in written]


def _user_part(part: parts.UserPart) -> message_pb2.Part:
    match part:
        case parts.Text(text):
            return message_pb2.Part(text=message_pb2.TextPart(text=text))
        case parts.File(file_id, media_type, name):
            file = message_pb2.FilePart(file_id=file_id, media_type=media_type, name=name)
            return message_pb2.Part(file=file)
        case parts.FileReference(file_name, start_line, end_line, content):
            reference = message_pb2.FileReferencePart(
                file_name=file_name, start_line=start_line, end_line=end_line, content=content
            )
            return message_pb2.Part(file_reference=reference)
        case _:
            assert_never(part)


def client_tool_to_proto(tool: ClientTool) -> chat_pb2.ClientTool:
    """Return a tool that the caller executes itself."""
    return chat_pb2.ClientTool(
        name=tool.name,
        description=tool.description,
        input_schema_json=json.dumps(tool.input_schema),
    )


def chat_of(chat: chat_pb2.Chat) -> Chat:
    """Return a chat."""
    return Chat(
        id=chat.id,
        owner_id=chat.owner_id,
        title=chat.title,
        status=_STATUS.get(chat.status, ChatStatus.UNSPECIFIED),
        snapshot_version=chat.versions.snapshot,
        is_archived=chat.archived,
        last_error=_turn_error(chat.last_error) if chat.HasField("last_error") else None,
        required_action=(
            RequiredAction(
                _required_calls(chat.required_action.tool_calls),
                time_of(chat.required_action, "deadline_at"),
                tuple(map(action_of, chat.required_action.actions)),
            )
            if chat.HasField("required_action")
            else None
        ),
        queue_length=chat.queue_length,
        place_in_line=chat.place_in_line,
        model_id=chat.model_id,
        workspace_id=chat.workspace_id,
        labels=dict(chat.labels),
        created_at=time_of(chat, "created_at"),
        updated_at=time_of(chat, "updated_at"),
    )


def chat_page_of(response: chat_service_pb2.ListChatsResponse) -> ChatPage:
    """Return a page of chats."""
    return ChatPage(tuple(map(chat_of, response.chats)), response.next_page_token)


def message_of(message: message_pb2.Message) -> Message:
    """Return a committed message."""
    return Message(
        id=message.id,
        chat_id=message.chat_id,
        role=_ROLE.get(message.role, Role.UNSPECIFIED),
        content=_content(message.content),
        revision=message.revision,
        created_by=message.created_by,
        model_id=message.model_id,
        created_at=time_of(message, "created_at"),
        usage=_usage(message.usage) if message.HasField("usage") else None,
        is_compressed=message.compressed,
        finish_reason=_FINISH_REASON.get(message.finish_reason, FinishReason.UNSPECIFIED),
        origin=_ORIGIN.get(message.origin, MessageOrigin.UNSPECIFIED),
    )


def page_of(response: chat_service_pb2.ListMessagesResponse) -> MessagePage:
    """Return a page of history."""
    return MessagePage(
        messages=tuple(message_of(message) for message in response.messages),
        has_more=response.has_more,
        queued=tuple(_queued(entry) for entry in response.queued_messages),
    )


def sent_of(response: chat_service_pb2.SendMessageResponse) -> SentMessage:
    """Return the result of sending a message."""
    return SentMessage(
        chat=chat_of(response.chat),
        message=message_of(response.message) if response.HasField("message") else None,
        queued=_queued(response.queued_message) if response.HasField("queued_message") else None,
        is_replay=response.replayed,
    )


def event_of(event: event_pb2.ChatEvent) -> events.ChatEvent | None:
    """Return an event; None for a kind unknown to this client, or that only HTTP clients get."""
    cursor = event.cursor
    match event.WhichOneof("kind"):
        case "message_part":
            return _part_streamed(cursor, event.message_part)
        case "message":
            return events.MessageCommitted(cursor, message_of(event.message))
        case "status":
            status = _STATUS.get(event.status.status, ChatStatus.UNSPECIFIED)
            return events.StatusChanged(cursor, status, event.status.place_in_line)
        case "error":
            return events.TurnFailed(cursor, _turn_error(event.error))
        case "queue_update":
            entries = event.queue_update.queued_messages
            return events.QueueChanged(cursor, tuple(_queued(entry) for entry in entries))
        case "action_required":
            return _action_required(cursor, event.action_required)
        case "action_ended":
            ended = tuple(map(ended_action_of, event.action_ended.actions))
            return events.ActionEnded(cursor, ended)
        case "retry":
            return _retry_scheduled(cursor, event.retry)
        case "preview_reset":
            return events.PreviewReset(cursor)
        case "preview_truncated":
            return events.PreviewTruncated(cursor)
        case "history_reset":
            return events.HistoryReset(cursor, event.history_reset.truncated)
        case "process_output" | "process_ended" | None:
            return None
        case unexpected:
            assert_never(unexpected)


def part_of(part: message_pb2.Part) -> parts.Part | None:
    """Return a part; None for a kind unknown to this client."""
    match part.WhichOneof("kind"):
        case "text":
            return parts.Text(part.text.text)
        case "reasoning":
            began, ended = (
                time_of(part.reasoning, "created_at"),
                time_of(part.reasoning, "completed_at"),
            )
            return parts.Reasoning(part.reasoning.text, began, ended)
        case "tool_call":
            return _tool_call(part.tool_call)
        case "tool_result":
            return _tool_result(part.tool_result)
        case "source":
            return parts.Source(part.source.source_id, part.source.url, part.source.title)
        case "file":
            return _file(part.file)
        case "file_reference":
            it = part.file_reference
            return parts.FileReference(it.file_name, it.start_line, it.end_line, it.content)
        case "context_file":
            return parts.ContextFile(part.context_file.path, part.context_file.truncated)
        case "skill":
            return parts.Skill(part.skill.name, part.skill.description)
        case "notice":
            return parts.Notice(part.notice.text, part.notice.hook_name, part.notice.event)
        case "fallback":
            given = part.fallback
            return parts.Fallback(given.failed_model_id, given.model_id, given.kind, given.text)
        case None:
            return None
        case unexpected:
            assert_never(unexpected)


def _content(content: Iterable[message_pb2.Part]) -> tuple[parts.Part, ...]:
    return tuple(known for part in content if (known := part_of(part)) is not None)


def _reasoning(reasoning: message_pb2.ReasoningPart) -> parts.Reasoning:
    return parts.Reasoning(
        reasoning.text, time_of(reasoning, "created_at"), time_of(reasoning, "completed_at")
    )


def _tool_call(call: message_pb2.ToolCallPart) -> parts.ToolCall:
    return parts.ToolCall(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        args_json=call.args_json,
        args_delta=call.args_delta,
        mcp_server_id=call.mcp_server_id,
        is_provider_executed=call.provider_executed,
    )


def _tool_result(result: message_pb2.ToolResultPart) -> parts.ToolResult:
    return parts.ToolResult(
        tool_call_id=result.tool_call_id,
        tool_name=result.tool_name,
        result_json=result.result_json,
        result_delta=result.result_delta,
        is_reset=result.result_reset,
        outcome=_OUTCOME.get(result.outcome, parts.ToolOutcome.UNSPECIFIED),
        mcp_server_id=result.mcp_server_id,
        is_provider_executed=result.provider_executed,
        files=tuple(map(_file, result.files)),
        process_id=result.process_id,
        progress=_progress(result.progress) if result.HasField("progress") else None,
    )


def _progress(told: message_pb2.CallProgress) -> parts.CallProgress:
    total = told.total if told.HasField("total") else None
    return parts.CallProgress(told.progress, total, told.message)


def _file(file: message_pb2.FilePart) -> parts.File:
    return parts.File(file.file_id, file.media_type, file.name)


def _part_streamed(cursor: str, event: event_pb2.MessagePartEvent) -> events.PartStreamed | None:
    part = part_of(event.part)
    if part is None:
        return None
    return events.PartStreamed(
        cursor=cursor,
        role=_ROLE.get(event.role, Role.UNSPECIFIED),
        part=part,
        part_index=event.part_index,
        history_version=event.history_version,
        generation_attempt=event.generation_attempt,
        seq=event.seq,
    )


def _action_required(cursor: str, event: event_pb2.ActionRequiredEvent) -> events.ActionRequired:
    calls = _required_calls(event.tool_calls)
    actions = tuple(map(action_of, event.actions))
    return events.ActionRequired(cursor, calls, time_of(event, "deadline_at"), actions)


def _required_calls(
    calls: Iterable[event_pb2.RequiredCall | chat_pb2.WaitingCall],
) -> tuple[RequiredCall, ...]:
    return tuple(RequiredCall(call.tool_call_id, call.tool_name, call.args_json) for call in calls)


def _retry_scheduled(cursor: str, retry: chat_pb2.RetryState) -> events.RetryScheduled:
    return events.RetryScheduled(
        cursor=cursor,
        attempt=retry.attempt,
        delay_s=retry.delay_ms / 1000,
        retrying_at=time_of(retry, "retrying_at"),
        error=_turn_error(retry.error) if retry.HasField("error") else None,
    )


def _turn_error(error: chat_pb2.ChatError) -> TurnError:
    return TurnError(
        kind=_KIND.get(error.kind, ErrorKind.UNSPECIFIED),
        message=error.message,
        detail=error.detail,
        provider=error.provider,
        is_retryable=error.retryable,
    )


def _usage(usage: message_pb2.Usage) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        context_limit_tokens=usage.context_limit_tokens,
        cost_micros=usage.cost_micros if usage.HasField("cost_micros") else None,
        is_estimate=usage.is_estimate,
        is_fallback=usage.is_fallback,
    )


def _queued(entry: chat_pb2.QueuedMessage) -> QueuedMessage:
    return QueuedMessage(
        entry.id,
        _content(entry.content),
        entry.created_by,
        time_of(entry, "created_at"),
        _ORIGIN.get(entry.origin, MessageOrigin.UNSPECIFIED),
    )
