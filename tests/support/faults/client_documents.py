"""The events of the client in Python as the documents that the gateway sends for them."""

from typing import Any, assert_never

from parley.client import (
    ActionEnded,
    ActionRequired,
    ChatEvent,
    HistoryReset,
    MessageCommitted,
    PartStreamed,
    PreviewReset,
    PreviewTruncated,
    QueueChanged,
    Resync,
    RetryScheduled,
    StatusChanged,
    Text,
    TurnFailed,
)


def document_of(event: ChatEvent) -> tuple[str, Any]:
    """Return the kind and as much of the document as the check of histories reads."""
    match event:
        case PartStreamed():
            body = {
                "history_version": event.history_version,
                "generation_attempt": event.generation_attempt,
                "seq": event.seq,
                "part": _part(event.part),
            }
            return "message_part", {"message_part": body}
        case MessageCommitted(message=message):
            stored = {
                "id": message.id,
                "revision": message.revision,
                "role": message.role.value,
                "content": [_part(part) for part in message.content],
            }
            return "message", {"message": stored}
        case StatusChanged():
            told = {"status": event.status.value, "place_in_line": event.place_in_line}
            return "status", {"status": told}
        case QueueChanged():
            return "queue_update", {"queued_messages": list(event.queued)}
        case TurnFailed():
            return "error", {}
        case ActionRequired():
            return "action_required", {}
        case ActionEnded():
            return "action_ended", {}
        case RetryScheduled():
            return "retry", {}
        case PreviewReset():
            return "preview_reset", {}
        case PreviewTruncated():
            return "preview_truncated", {}
        case HistoryReset():
            return "history_reset", {}
        case Resync():
            return "resync", {}
        case _:
            assert_never(event)


def _part(part: object) -> dict[str, str]:
    return {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "other"}
