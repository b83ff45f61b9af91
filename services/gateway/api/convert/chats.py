"""Converts chatd's protos to the JSON of the API, field by field.

A field that is not named here is not returned: this is the allow-list. Names are snake_case, enums
are lower-case words without their prefix, times are RFC 3339, absent values are null.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from gateway.api.convert.parts import (
    Json,
    embedded_json,
    enum_names,
    part_to_json,
    parts_to_json,
    time_of,
)
from gateway.identity.domain import GroupRecord, ServiceTokenRecord, UserRecord
from parley.api.chat.v1 import chat_pb2, chat_service_pb2, event_pb2, message_pb2

STATUS = enum_names(chat_pb2.ChatStatus, "CHAT_STATUS_")
ERROR_KIND = enum_names(chat_pb2.ErrorKind, "ERROR_KIND_")
EFFORT = enum_names(chat_pb2.ReasoningEffort, "REASONING_EFFORT_")
MODE = enum_names(chat_pb2.ChatMode, "CHAT_MODE_")
ROLE = enum_names(message_pb2.Role, "ROLE_")
FINISH_REASON = enum_names(message_pb2.FinishReason, "FINISH_REASON_")
FEED_CHANGE = enum_names(event_pb2.FeedChange, "FEED_CHANGE_")
#: The types of events that each stream sends.
CHAT_EVENTS = tuple(
    field.name for field in event_pb2.ChatEvent.DESCRIPTOR.oneofs_by_name["kind"].fields
)
FEED_EVENTS = tuple(word for word in FEED_CHANGE.values() if word is not None)


def chat_to_json(chat: chat_pb2.Chat, children: Iterable[chat_pb2.Chat] = ()) -> Json:
    """Convert a chat for its readers, with its child chats."""
    return {
        "id": chat.id,
        "etag": chat.etag or None,
        "owner_id": chat.owner_id,
        "title": chat.title,
        "status": STATUS.get(chat.status),
        "archived": chat.archived,
        "last_error": error_to_json(chat.last_error) if chat.HasField("last_error") else None,
        "retry": retry_to_json(chat.retry) if chat.HasField("retry") else None,
        "required_action": (
            _action_to_json(chat.required_action) if chat.HasField("required_action") else None
        ),
        "versions": {
            "snapshot": chat.versions.snapshot,
            "history": chat.versions.history,
            "queue": chat.versions.queue,
            "retry": chat.versions.retry,
            "generation_attempt": chat.versions.generation_attempt,
        },
        "queue_length": chat.queue_length,
        "place_in_line": chat.place_in_line,
        "parent_chat_id": chat.parent_chat_id or None,
        "root_chat_id": chat.root_chat_id or chat.id,
        "model_id": chat.model_id or None,
        "reasoning_effort": EFFORT.get(chat.reasoning_effort),
        "mode": MODE.get(chat.mode),
        "workspace_id": chat.workspace_id or None,
        "mcp_server_ids": list(chat.mcp_server_ids),
        "labels": dict(chat.labels),
        "pin_order": chat.pin_order,
        "summary": chat.summary or None,
        "last_turn_summary": chat.last_turn_summary or None,
        "has_unread": chat.has_unread,
        "shared": chat.shared,
        "created_at": time_of(chat, "created_at"),
        "updated_at": time_of(chat, "updated_at"),
        "client_tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": embedded_json(tool.input_schema_json),
            }
            for tool in chat.client_tools
        ],
        "diff_status": (
            diff_status_to_json(chat.diff_status) if chat.HasField("diff_status") else None
        ),
        "children": [chat_to_json(child) for child in children],
    }


def diff_status_to_json(status: chat_pb2.DiffStatus) -> Json:
    """Convert the diff status of a chat's workspace."""
    return {
        "branch": status.branch or None,
        "origin_url": status.origin_url or None,
        "repositories": status.repositories,
        "changed_files": status.changed_files,
        "added_lines": status.added_lines,
        "deleted_lines": status.deleted_lines,
        "refreshed_at": time_of(status, "refreshed_at"),
    }


def message_to_json(message: message_pb2.Message) -> Json:
    """Convert a committed message."""
    return {
        "id": message.id,
        "chat_id": message.chat_id,
        "role": ROLE.get(message.role),
        "content": parts_to_json(message.content),
        "revision": message.revision,
        "created_by": message.created_by or None,
        "model_id": message.model_id or None,
        "created_at": time_of(message, "created_at"),
        "usage": _usage_to_json(message.usage) if message.HasField("usage") else None,
        "runtime_ms": message.runtime_ms,
        "model_runtime_ms": message.model_runtime_ms,
        "compressed": message.compressed,
        "finish_reason": FINISH_REASON.get(message.finish_reason),
    }


def queued_to_json(queued: chat_pb2.QueuedMessage) -> Json:
    """Convert a queued message."""
    return {
        "id": queued.id,
        "content": parts_to_json(queued.content),
        "model_id": queued.model_id or None,
        "reasoning_effort": EFFORT.get(queued.reasoning_effort),
        "created_by": queued.created_by or None,
        "created_at": time_of(queued, "created_at"),
    }


def share_to_json(share: chat_service_pb2.Share) -> Json:
    """Convert a share of a chat."""
    return {
        "user_id": share.user_id or None,
        "group_id": share.group_id or None,
        "created_at": time_of(share, "created_at"),
    }


def error_to_json(error: chat_pb2.ChatError) -> Json:
    """Convert the error of a turn."""
    return {
        "message": error.message,
        "detail": error.detail or None,
        "kind": ERROR_KIND.get(error.kind),
        "provider": error.provider or None,
        "status_code": error.status_code or None,
        "retryable": error.retryable,
    }


def retry_to_json(retry: chat_pb2.RetryState) -> Json:
    """Convert the pending retry of a model call."""
    failed = retry.error
    return {
        "attempt": retry.attempt,
        "delay_ms": retry.delay_ms,
        "retrying_at": time_of(retry, "retrying_at"),
        "error": failed.message,
        "kind": ERROR_KIND.get(failed.kind),
        "provider": failed.provider or None,
        "status_code": failed.status_code or None,
        "retryable": failed.retryable,
    }


def event_to_json(chat_id: str, event: event_pb2.ChatEvent) -> tuple[str, Json] | None:
    """Return the type of an event and its JSON; None for a type that is not supported."""
    kind = event.WhichOneof("kind")
    payload = _event_payload(kind, event)
    if kind is None or payload is None:
        return None
    return kind, {"type": kind, "chat_id": chat_id, **payload}


def feed_event_to_json(event: event_pb2.FeedEvent) -> tuple[str, Json]:
    """Return the type of a change in a list of chats, and its JSON."""
    kind = FEED_CHANGE.get(event.change) or "updated"
    if event.change == event_pb2.FEED_CHANGE_DELETED:
        return kind, {"type": kind, "chat_id": event.chat.id}
    return kind, {"type": kind, "chat_id": event.chat.id, "chat": chat_to_json(event.chat)}


def token_to_json(record: ServiceTokenRecord) -> Json:
    """Convert a service token, without its text."""
    return {
        "id": record.id,
        "name": record.name,
        "user_id": record.user_id,
        "scopes": list(record.scopes),
        "issued_by_user_id": record.issued_by_user_id,
        "issued_at": rfc3339(record.issued_at),
        "expires_at": rfc3339(record.expires_at),
        "revoked_at": None if record.revoked_at is None else rfc3339(record.revoked_at),
    }


def user_to_json(user: UserRecord) -> Json:
    """Convert a user for themselves."""
    return {
        "id": user.id,
        "login": user.login,
        "display_name": user.display_name,
        "email": user.email or None,
        "role": user.role,
        "created_at": rfc3339(user.created_at),
    }


def managed_user_to_json(user: UserRecord) -> Json:
    """Convert a user for administrators of users."""
    gone_at = user.deactivated_at
    return user_to_json(user) | {
        "state": user.state,
        "version": user.version,
        "updated_at": rfc3339(user.updated_at),
        "deactivated_at": None if gone_at is None else rfc3339(gone_at),
    }


def group_to_json(group: GroupRecord) -> Json:
    """Convert a group."""
    return {
        "id": group.id,
        "name": group.name,
        "member_count": group.member_count,
        "version": group.version,
        "created_at": rfc3339(group.created_at),
        "updated_at": rfc3339(group.updated_at),
    }


def rfc3339(moment: datetime) -> str:
    """Format a time as RFC 3339."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _event_payload(kind: str | None, event: event_pb2.ChatEvent) -> Json | None:
    match kind:
        case "message_part":
            return _message_part_to_json(event.message_part)
        case "message":
            return {"message": message_to_json(event.message)}
        case "status":
            status = event.status
            shown = {"status": STATUS.get(status.status), "place_in_line": status.place_in_line}
            return {"status": shown}
        case "error":
            return {"error": error_to_json(event.error)}
        case "queue_update":
            queue = event.queue_update.queued_messages
            return {"queued_messages": [queued_to_json(queued) for queued in queue]}
        case "action_required":
            return {"action_required": _action_to_json(event.action_required)}
        case "retry":
            return {"retry": retry_to_json(event.retry)}
        case "history_reset":
            return {"history_reset": {"truncated": event.history_reset.truncated}}
        case "preview_reset" | "preview_truncated":
            return {}
        case _:
            return None


def _message_part_to_json(event: event_pb2.MessagePartEvent) -> Json | None:
    part = part_to_json(event.part)
    if part is None:
        return None
    shown: Json = {
        "role": ROLE.get(event.role),
        "part": part,
        "history_version": event.history_version,
        "generation_attempt": event.generation_attempt,
        "seq": event.seq,
        "part_index": event.part_index,
    }
    return {"message_part": shown}


def _action_to_json(action: event_pb2.ActionRequiredEvent | chat_pb2.RequiredAction) -> Json:
    return {
        "tool_calls": [
            {
                "tool_call_id": call.tool_call_id,
                "tool_name": call.tool_name,
                "args": embedded_json(call.args_json),
            }
            for call in action.tool_calls
        ],
        "deadline_at": time_of(action, "deadline_at"),
    }


def _usage_to_json(usage: message_pb2.Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "context_limit_tokens": usage.context_limit_tokens or None,
        "cost_micros": usage.cost_micros if usage.HasField("cost_micros") else None,
        "is_estimate": usage.is_estimate,
    }
