"""Converts domain values to protos.

The protos have no fields for internal data: metadata of providers, bodies of context files,
directories of skills.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from chatd.chats.domain.break_glass import BreakGlassAccess
from chatd.chats.domain.chat import ChatState, Message, QueuedMessage, Retry, Status
from chatd.chats.domain.diffs import DiffStatus
from chatd.chats.domain.views import ChatView, EndedAction, OpenAction, Share
from chatd.chats.domain.writes import ActionOutcome
from chatd.chats.rpc.bounding import MESSAGE_BYTES_MAX, QUEUED_BYTES_MAX, bounded
from chatd.content.domain import parts
from chatd.content.domain.messages import (
    ChatMode,
    ErrorKind,
    FinishReason,
    MessageOrigin,
    Role,
    TurnError,
)
from chatd.content.domain.next_steps import WAIT, next_step_of
from chatd.content.domain.tools import PendingKind
from chatd.content.domain.truncation import without_large_bytes
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import NO_CHOICE
from chatd.models.rpc.convert import EFFORT
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.rpc.times import optional_time, time_to_proto
from chatd.users.domain.grantees import GranteeKind
from parley.api.chat.v1 import action_pb2, break_glass_pb2, chat_pb2, event_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api

STATUS = {status: chat_pb2.ChatStatus.Value(f"CHAT_STATUS_{status.name}") for status in Status}
ROLE = {role: message_pb2.Role.Value(f"ROLE_{role.name}") for role in Role}
ORIGIN: Mapping[MessageOrigin | None, message_pb2.MessageOrigin.ValueType] = {
    origin: message_pb2.MessageOrigin.Value(
        "MESSAGE_ORIGIN_UNSPECIFIED" if origin is None else f"MESSAGE_ORIGIN_{origin.name}"
    )
    for origin in (None, *MessageOrigin)
}
FINISH_REASON: Mapping[FinishReason | None, message_pb2.FinishReason.ValueType] = {
    reason: message_pb2.FinishReason.Value(
        "FINISH_REASON_UNSPECIFIED" if reason is None else f"FINISH_REASON_{reason.name}"
    )
    for reason in (None, *FinishReason)
}
KIND = {kind: chat_pb2.ErrorKind.Value(f"ERROR_KIND_{kind.name}") for kind in ErrorKind}
OUTCOME = {
    outcome: message_pb2.ToolOutcome.Value(f"TOOL_OUTCOME_{outcome.name}")
    for outcome in parts.ToolOutcome
}
MODE = {
    ChatMode.ORDINARY: chat_pb2.CHAT_MODE_UNSPECIFIED,
    ChatMode.PLAN: chat_pb2.CHAT_MODE_PLAN,
    ChatMode.EXPLORE: chat_pb2.CHAT_MODE_EXPLORE,
}
ACTION_KIND = {
    PendingKind.CLIENT: action_pb2.ACTION_KIND_CLIENT_TOOL,
    PendingKind.QUESTION: action_pb2.ACTION_KIND_QUESTION,
    PendingKind.PLAN: action_pb2.ACTION_KIND_PLAN,
    PendingKind.APPROVAL: action_pb2.ACTION_KIND_APPROVAL,
    PendingKind.LOOP: action_pb2.ACTION_KIND_LOOP,
    PendingKind.LOGIN: action_pb2.ACTION_KIND_LOGIN,
    PendingKind.ELICITATION: action_pb2.ACTION_KIND_ELICITATION,
    PendingKind.AGENTS: action_pb2.ACTION_KIND_AGENTS,
}

ACTION_STATE: Mapping[ActionOutcome | None, action_pb2.ActionState.ValueType] = {
    None: action_pb2.ACTION_STATE_OPEN,
    ActionOutcome.ANSWERED: action_pb2.ACTION_STATE_ANSWERED,
    ActionOutcome.EXPIRED: action_pb2.ACTION_STATE_EXPIRED,
    ActionOutcome.CANCELLED: action_pb2.ACTION_STATE_CANCELLED,
}


def access_to_proto(access: BreakGlassAccess) -> break_glass_pb2.BreakGlassAccess:
    """Return a break-glass access."""
    return break_glass_pb2.BreakGlassAccess(
        access_id=access.id,
        administrator_id=access.administrator_id,
        user_id=access.owner_id,
        reason=access.reason,
        opened_at=time_to_proto(access.opened_at),
        expires_at=time_to_proto(access.expires_at),
        ended_at=optional_time(access.ended_at),
        is_open=access.is_open,
    )


def chat_to_proto(chat: ChatView) -> chat_pb2.Chat:
    """Return a chat as its readers see it."""
    state = chat.state
    return chat_pb2.Chat(
        id=state.chat_id,
        owner_id=chat.owner.id,
        title=chat.title,
        status=STATUS[state.status],
        archived=state.archived,
        last_error=None if state.last_error is None else error_to_proto(state.last_error),
        retry=None if state.retry is None else retry_to_proto(state.retry),
        versions=versions_to_proto(state),
        queue_length=state.queue_length,
        place_in_line=chat.place_in_line,
        parent_chat_id=chat.parent_chat_id or "",
        root_chat_id=chat.root_chat_id,
        model_id=chat.model_id,
        fallback_model_id=chat.fallback_model_id,
        reasoning_effort=EFFORT[chat.reasoning_effort],
        mode=MODE[chat.mode],
        workspace_id=chat.workspace_id,
        mcp_server_ids=chat.mcp_server_ids or (),
        uses_default_mcp_servers=chat.mcp_server_ids is None,
        labels=chat.labels,
        pin_order=chat.pin_order,
        summary=chat.summary,
        last_turn_summary=chat.last_turn_summary,
        has_unread=chat.has_unread,
        shared=chat.is_shared,
        break_glass_open=chat.is_break_glass_open,
        created_at=time_to_proto(chat.created_at),
        updated_at=time_to_proto(chat.updated_at),
        client_tools=[
            chat_pb2.ClientTool(
                name=tool.name,
                description=tool.description,
                input_schema_json=tool.input_schema_json,
            )
            for tool in chat.client_tools
        ],
        diff_status=None if chat.diff_status is None else diff_status_to_proto(chat.diff_status),
        instructions_drifted=chat.instructions_drifted,
        etag=chat.etag,
        archives_at=optional_time(chat.archives_at),
        purges_at=optional_time(chat.purges_at),
        required_action=(required_action_to_proto(state, chat.asking) if chat.asking else None),
        child_count=chat.child_count,
        last_read_message_id=chat.last_read_message_id,
    )


def required_action_to_proto(
    state: ChatState, asking: tuple[OpenAction, ...]
) -> chat_pb2.RequiredAction:
    """Return what a chat waits for, and when the first of it expires."""
    waiting = [
        chat_pb2.WaitingCall(
            tool_call_id=call.tool_call_id, tool_name=call.tool_name, args_json=call.args_json
        )
        for call in client_calls_of(asking)
    ]
    return chat_pb2.RequiredAction(
        tool_calls=waiting,
        deadline_at=optional_time(state.deadline_at),
        actions=[open_action_to_proto(state.chat_id, each) for each in asking],
    )


def client_calls_of(asking: tuple[OpenAction, ...]) -> list[parts.ToolCall]:
    """Return the calls that the client executes."""
    return [each.call for each in asking if each.pending.kind is PendingKind.CLIENT]


def open_action_to_proto(chat_id: ChatId, action: OpenAction) -> action_pb2.Action:
    """Return something that a chat waits for."""
    pending = action.pending
    return action_pb2.Action(
        id=pending.action_id or "",
        chat_id=chat_id,
        kind=ACTION_KIND[pending.kind],
        tool_call_id=pending.tool_call_id,
        tool_name=pending.tool_name,
        args_json=action.call.args_json,
        reason=pending.reason,
        state=action_pb2.ACTION_STATE_OPEN,
        deadline_at=optional_time(action.deadline_at),
    )


def ended_action_to_proto(action: EndedAction) -> event_pb2.EndedAction:
    """Return how an action ended."""
    return event_pb2.EndedAction(
        id=action.id,
        kind=ACTION_KIND[action.kind],
        tool_call_id=action.tool_call_id,
        tool_name=action.tool_name,
        state=ACTION_STATE[action.outcome],
        ended_at=time_to_proto(action.ended_at),
        ended_by=action.ended_by,
    )


def diff_status_to_proto(status: DiffStatus) -> chat_pb2.DiffStatus:
    """Return the diff status of a workspace."""
    return chat_pb2.DiffStatus(
        branch=status.branch,
        origin_url=status.origin_url,
        repositories=status.repositories,
        changed_files=status.changed_files,
        added_lines=status.added_lines,
        deleted_lines=status.deleted_lines,
        refreshed_at=time_to_proto(status.refreshed_at),
    )


def state_to_proto(state: ChatState) -> chat_pb2.Chat:
    """Return a chat with only the fields of its execution."""
    return chat_pb2.Chat(
        id=state.chat_id,
        status=STATUS[state.status],
        archived=state.archived,
        versions=versions_to_proto(state),
        queue_length=state.queue_length,
    )


def versions_to_proto(state: ChatState) -> chat_pb2.Versions:
    """Return the counters of a chat."""
    return chat_pb2.Versions(
        snapshot=state.snapshot_version,
        history=state.history_version,
        queue=state.queue_version,
        retry=state.retry_version,
        generation_attempt=state.generation_attempt,
    )


def error_to_proto(error: TurnError, next_step: str = "") -> chat_pb2.ChatError:
    """Return the error of a turn; what to do next follows from its kind unless it is given."""
    return chat_pb2.ChatError(
        message=error.message,
        detail=error.detail,
        kind=KIND[error.kind],
        provider=error.provider,
        status_code=error.status_code,
        retryable=error.is_retryable,
        attempts=error.attempts,
        next_step=next_step or next_step_of(error),
    )


def retry_to_proto(retry: Retry) -> chat_pb2.RetryState:
    """Return the wait for a retry."""
    return chat_pb2.RetryState(
        attempt=retry.attempt,
        delay_ms=retry.delay_ms,
        retrying_at=time_to_proto(retry.retrying_at),
        error=error_to_proto(retry.error, WAIT),
        fallback_model_id="" if retry.fallback is None else retry.fallback.model_id,
    )


def message_to_proto(
    chat_id: str, message: Message, bytes_max: int = MESSAGE_BYTES_MAX
) -> message_pb2.Message:
    """Return a committed message, with its longest parts truncated to `bytes_max` in all."""
    use, reason = message.use, message.finish_reason
    asked = (message.choice or NO_CHOICE).model_id
    return message_pb2.Message(
        id=message.id,
        chat_id=chat_id,
        role=ROLE[message.role],
        content=content_to_proto(bounded(message.content, bytes_max)),
        revision=message.revision,
        created_by=message.created_by,
        model_id=asked if use is None else use.model_id,
        created_at=time_to_proto(message.created_at),
        usage=None if use is None else usage_to_proto(use),
        runtime_ms=0 if use is None else use.runtime_ms,
        model_runtime_ms=0 if use is None else use.model_runtime_ms,
        compressed=message.is_compressed,
        finish_reason=FINISH_REASON[reason],
        origin=ORIGIN[message.origin],
    )


def usage_to_proto(use: ModelUse) -> message_pb2.Usage:
    """Return the usage and cost of a model call."""
    return message_pb2.Usage(
        input_tokens=use.input_tokens,
        output_tokens=use.output_tokens,
        reasoning_tokens=use.reasoning_tokens,
        cache_read_tokens=use.cache_read_tokens,
        cache_write_tokens=use.cache_write_tokens,
        context_limit_tokens=use.context_limit_tokens,
        cost_micros=use.cost_micros,
        is_estimate=use.is_estimate,
        is_fallback=use.is_fallback,
    )


def queued_to_proto(queued: QueuedMessage) -> chat_pb2.QueuedMessage:
    """Return a queued message."""
    choice = queued.choice or NO_CHOICE
    return chat_pb2.QueuedMessage(
        id=queued.id,
        content=content_to_proto(bounded(queued.content, QUEUED_BYTES_MAX)),
        model_id=choice.model_id,
        reasoning_effort=EFFORT[choice.reasoning_effort],
        created_by=queued.created_by,
        created_at=time_to_proto(queued.created_at),
        origin=ORIGIN[queued.origin],
    )


def share_to_proto(share: Share) -> api.Share:
    """Return a share."""
    created_at = time_to_proto(share.created_at)
    if share.grantee.kind is GranteeKind.USER:
        return api.Share(user_id=share.grantee.id, created_at=created_at)
    return api.Share(group_id=share.grantee.id, created_at=created_at)


def content_to_proto(content: Sequence[parts.Part]) -> list[message_pb2.Part]:
    """Return the parts of a message, without those that no user is shown."""
    inner = parts.HookContext | parts.ServerTexts
    return [part_to_proto(part) for part in content if not isinstance(part, inner)]


def part_to_proto(part: parts.Part) -> message_pb2.Part:
    """Return one part of a message."""
    match part:
        case parts.Text(text):
            return message_pb2.Part(text=message_pb2.TextPart(text=text))
        case parts.Reasoning(text, created_at, completed_at):
            reasoning = message_pb2.ReasoningPart(
                text=text,
                created_at=optional_time(created_at),
                completed_at=optional_time(completed_at),
            )
            return message_pb2.Part(reasoning=reasoning)
        case parts.ToolCall():
            return message_pb2.Part(tool_call=call_to_proto(part))
        case parts.ToolResult():
            return message_pb2.Part(tool_result=_result(part))
        case parts.Source(source_id, url, title):
            source = message_pb2.SourcePart(source_id=source_id, url=url, title=title)
            return message_pb2.Part(source=source)
        case parts.File():
            return message_pb2.Part(file=_file(part))
        case parts.FileReference(file_name, start_line, end_line, content):
            reference = message_pb2.FileReferencePart(
                file_name=file_name, start_line=start_line, end_line=end_line, content=content
            )
            return message_pb2.Part(file_reference=reference)
        case parts.ContextFile(path, _, truncated):
            context_file = message_pb2.ContextFilePart(path=path, truncated=truncated)
            return message_pb2.Part(context_file=context_file)
        case parts.Skill(name, description):
            skill = message_pb2.SkillPart(name=name, description=description)
            return message_pb2.Part(skill=skill)
        case parts.Notice(text, hook_name, event):
            notice = message_pb2.NoticePart(text=text, hook_name=hook_name, event=event)
            return message_pb2.Part(notice=notice)
        case parts.Fallback(failed_model_id, model_id, kind, text):
            fallback = message_pb2.FallbackPart(
                failed_model_id=failed_model_id, model_id=model_id, kind=kind, text=text
            )
            return message_pb2.Part(fallback=fallback)
        case parts.HookContext() | parts.ServerTexts():
            return message_pb2.Part()
        case _:
            assert_never(part)


def call_to_proto(call: parts.ToolCall) -> message_pb2.ToolCallPart:
    """Return a tool call as a proto."""
    return message_pb2.ToolCallPart(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        args_json=call.args_json,
        mcp_server_id=call.mcp_server_id,
        provider_executed=call.provider_executed,
        created_at=optional_time(call.created_at),
    )


def _result(result: parts.ToolResult) -> message_pb2.ToolResultPart:
    return message_pb2.ToolResultPart(
        tool_call_id=result.tool_call_id,
        tool_name=result.tool_name,
        result_json=without_large_bytes(result.result_json),
        outcome=OUTCOME[result.outcome],
        is_error=result.outcome is not parts.ToolOutcome.DONE,
        mcp_server_id=result.mcp_server_id,
        provider_executed=result.provider_executed,
        created_at=optional_time(result.created_at),
        files=map(_file, result.files),
    )


def _file(file: parts.File) -> message_pb2.FilePart:
    return message_pb2.FilePart(file_id=file.file_id, media_type=file.media_type, name=file.name)
