"""Converts encoded events to frames for clients, once for all readers of an event."""

import msgspec

from gateway.api.events import event_to_json, feed_event_to_json
from gateway.api.user_names import NameOf
from gateway.http import sse
from parley.api.chat.v1 import event_pb2

KEPT_MAX = 512


class Frame(msgspec.Struct, frozen=True):
    """One event as a frame; the kind is empty if this version does not support it."""

    kind: str
    cursor: str
    bytes: bytes


class Frames:
    """Creates frames, and caches the newest ones for other readers of the same chats.

    Args:
        name_of: Returns the names of users that events show.
    """

    def __init__(self, name_of: NameOf) -> None:
        self._name_of = name_of
        self._kept: dict[tuple[str, bytes], Frame] = {}

    def of(self, chat_id: str, encoded: bytes, *, is_shared: bool) -> Frame:
        """Return the frame of an event of a chat."""
        if not is_shared:
            return self._frame(chat_id, encoded)
        key = (chat_id, encoded)
        frame = self._kept.get(key)
        if frame is None:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            frame = self._kept[key] = self._frame(chat_id, encoded)
        return frame

    def of_feed(self, encoded: bytes) -> Frame:
        """Return the frame of a change in a list of chats."""
        event = event_pb2.FeedEvent.FromString(encoded)
        kind, document = feed_event_to_json(event, self._name_of)
        return Frame(kind, event.cursor, sse.frame(kind, document, cursor=event.cursor or None))

    def _frame(self, chat_id: str, encoded: bytes) -> Frame:
        event = event_pb2.ChatEvent.FromString(encoded)
        shown = event_to_json(chat_id, event, self._name_of)
        if shown is None:
            return Frame("", event.cursor, b"")
        kind, document = shown
        return Frame(kind, event.cursor, sse.frame(kind, document, cursor=event.cursor or None))
