"""Converts events of chats, lists of chats, workspaces and repositories to JSON."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.api.json_output import Json, converter_of, to_json
from gateway.api.user_names import NameFields, NameOf, name_fields
from parley.api.chat.v1 import event_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2, workspace_service_pb2
from parley.contract.json_fields import enum_words, json_fields

_KINDS: Final[Mapping[str, Callable[[Any], Json | None]]] = {
    field.descriptor.name: converter_of(field.message)
    for field in json_fields(event_pb2.ChatEvent.DESCRIPTOR)
}
_NAMES: Final[Mapping[str, NameFields]] = {
    field.descriptor.name: name_fields(field.message)
    for field in json_fields(event_pb2.ChatEvent.DESCRIPTOR)
}
_CHANGES: Final = enum_words(event_pb2.FeedChange.DESCRIPTOR)
#: Events whose fields are members of the event itself.
FLAT_EVENTS: Final = frozenset({"queue_update", "preview_reset", "preview_truncated"})
#: The types of events that each stream sends.
CHAT_EVENTS: Final = tuple(_KINDS)
FEED_EVENTS: Final = tuple(_CHANGES.values())
WORKSPACE_EVENTS: Final = tuple(
    field.name for field in json_fields(workspace_service_pb2.WatchWorkspaceResponse.DESCRIPTOR)
)
_GIT_KINDS: Final[Mapping[str, str]] = {
    field.descriptor.name: field.name
    for field in json_fields(workspace_access_service_pb2.WatchWorkspaceGitResponse.DESCRIPTOR)
}
GIT_EVENTS: Final = tuple(_GIT_KINDS.values())


def event_to_json(
    chat_id: str, event: event_pb2.ChatEvent, name_of: NameOf
) -> tuple[str, Json] | None:
    """Return the type of an event and its JSON; None for a type that is not supported."""
    kind = event.WhichOneof("kind")
    if kind is None or kind not in _KINDS:
        return None
    content = getattr(event, kind)
    _NAMES[kind].fill(content, name_of)
    payload = _KINDS[kind](content)
    if payload is None or (kind == "message_part" and payload["part"] is None):
        return None
    shown: Json = payload if kind in FLAT_EVENTS else {kind: payload}
    return kind, {"type": kind, "chat_id": chat_id, **shown}


def feed_event_to_json(event: event_pb2.FeedEvent, name_of: NameOf) -> tuple[str, Json]:
    """Return the type of a change in a list of chats, and its JSON."""
    kind = _CHANGES.get(event.change, "updated")
    if event.change == event_pb2.FEED_CHANGE_BREAK_GLASS:
        return kind, {"type": kind, "break_glass": to_json(event.break_glass)}
    if event.change == event_pb2.FEED_CHANGE_DELETED:
        return kind, {"type": kind, "chat_id": event.chat.id}
    name_fields(event.chat.DESCRIPTOR).fill(event.chat, name_of)
    return kind, {"type": kind, "chat_id": event.chat.id, "chat": to_json(event.chat)}


def workspace_event(
    event: workspace_service_pb2.WatchWorkspaceResponse,
) -> tuple[str, Json] | None:
    """Return the type of an event of a workspace and its JSON; None for the end."""
    kind = event.WhichOneof("kind")
    if kind is None or kind not in WORKSPACE_EVENTS:
        return None
    return kind, to_json(getattr(event, kind))


def git_event(
    event: workspace_access_service_pb2.WatchWorkspaceGitResponse,
) -> tuple[str, Json] | None:
    """Return the type of an event about repositories and its JSON; None for the end."""
    kind = event.WhichOneof("kind")
    if kind is None or kind not in _GIT_KINDS:
        return None
    if kind == "removed":
        return _GIT_KINDS[kind], {"repository": event.removed}
    return _GIT_KINDS[kind], to_json(getattr(event, kind))
