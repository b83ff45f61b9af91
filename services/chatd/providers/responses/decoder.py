"""Decodes a stream of Responses, event by event.

Most events are deltas, so their type is read from the first bytes and only the needed fields are
decoded; the large ones that repeat the request are not decoded at all. Content of an item's last
event, or of the final response, that was not streamed is still emitted.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from chatd.content.domain.messages import FinishReason
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    ToolInputDelta,
    UsageReported,
)
from chatd.providers.responses import items
from chatd.providers.responses.events import (
    AnnotationAdded,
    Anything,
    Delta,
    Ended,
    ItemAdded,
    ItemDone,
    ItemHead,
    Response,
    Usage,
)
from chatd.providers.responses.failures import (
    cut_off,
    failed_response,
    reported_error,
    unreadable,
)
from chatd.providers.responses.items import OpenItem, summary_block, text_block

_NOTHING: Final[tuple[ModelEvent, ...]] = ()

_FAILED: Final = frozenset({b"response.failed", b"response.cancelled"})
_OUR_CALLS: Final = frozenset({"function_call", "custom_tool_call"})

_delta = msgspec.json.Decoder(Delta).decode
_added = msgspec.json.Decoder(ItemAdded).decode
_done = msgspec.json.Decoder(ItemDone).decode
_head = msgspec.json.Decoder(ItemHead).decode
_annotation = msgspec.json.Decoder(AnnotationAdded).decode
_ended = msgspec.json.Decoder(Ended).decode
_anything = msgspec.json.Decoder(Anything).decode


class ResponsesDecoder:
    """Reads one answer."""

    def __init__(self) -> None:
        self._items: dict[int, OpenItem] = {}
        self._open: tuple[type[ModelEvent], int] | None = None  # Open deltas and their item.
        self._has_called = False
        self._refusal = ""
        self._is_over = False
        self._readers = {
            b"response.output_text.delta": self._text,
            b"response.refusal.delta": self._text,
            b"response.reasoning_summary_text.delta": self._summary,
            b"response.reasoning_text.delta": self._reasoning_text,
            b"response.function_call_arguments.delta": self._arguments,
            b"response.custom_tool_call_input.delta": self._arguments,
            b"response.output_text.annotation.added": self._cited,
            b"response.output_item.added": self._item_added,
            b"response.output_item.done": self._item_done,
            b"response.completed": self._over,
            b"response.incomplete": self._over,
            b"response.failed": self._over,
            b"response.cancelled": self._over,
            b"error": self._error,
        }

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        """Return the model events of one event's data."""
        if self._is_over or not data or data == b"[DONE]":
            return _NOTHING
        try:
            reader = self._readers.get(_kind(data))
            return _NOTHING if reader is None else reader(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise unreadable(data, str(error)) from error

    def end(self) -> Iterable[ModelEvent]:
        """Return nothing: the final event completes an answer."""
        if not self._is_over:
            raise cut_off()
        return _NOTHING

    def _item(self, index: int) -> OpenItem:
        item = self._items.get(index)
        if item is None:
            item = self._items[index] = OpenItem(index)
        return item

    def _text(self, data: bytes) -> Iterable[ModelEvent]:
        event = _delta(data)
        index = event.output_index
        block_id = text_block(index, event.content_index)
        self._count(index, block_id, event.delta)
        self._open = (TextDelta, index)
        return (TextDelta(event.delta, block_id),)

    def _summary(self, data: bytes) -> Iterable[ModelEvent]:
        event = _delta(data)
        return self._reasoning(event, summary_block(event.output_index, event.summary_index))

    def _reasoning_text(self, data: bytes) -> Iterable[ModelEvent]:
        event = _delta(data)
        return self._reasoning(event, text_block(event.output_index, event.content_index))

    def _reasoning(self, event: Delta, block_id: str) -> Iterable[ModelEvent]:
        self._count(event.output_index, block_id, event.delta)
        self._open = (ReasoningDelta, event.output_index)
        return (ReasoningDelta(event.delta, block_id),)

    def _count(self, index: int, block_id: str, text: str) -> None:
        lengths = self._item(index).lengths
        lengths[block_id] = lengths.get(block_id, 0) + len(text)

    def _arguments(self, data: bytes) -> Iterable[ModelEvent]:
        event = _delta(data)
        item = self._item(event.output_index)
        if item.type != "function_call":
            return _NOTHING
        self._open = None
        return (ToolInputDelta(item.call_id, item.name, event.delta),)

    def _cited(self, data: bytes) -> Iterable[ModelEvent]:
        event = _annotation(data)
        self._item(event.output_index).cite(event.annotation)
        return _NOTHING

    def _item_added(self, data: bytes) -> Iterable[ModelEvent]:
        event = _added(data)
        self._name(self._item(event.output_index), event.item)
        return _NOTHING

    def _item_done(self, data: bytes) -> Iterable[ModelEvent]:
        event = _done(data)
        return self._completed_item(self._item(event.output_index), event.item)

    def _name(self, item: OpenItem, head: ItemHead) -> None:
        item.type = head.type
        item.id = head.id or ""
        item.call_id = head.call_id or item.id
        item.name = head.name or ""

    def _completed_item(self, item: OpenItem, raw: msgspec.Raw) -> list[ModelEvent]:
        """Return the events for the unstreamed content of a complete item."""
        if item.is_done:
            return []
        if not item.type:
            self._name(item, _head(raw))
        item.is_done = True
        if item.type == "message":
            is_open = self._open == (TextDelta, item.index)
            events = list(items.message_done(item, raw, is_open=is_open))
            self._refusal += item.refusal
        elif item.type == "reasoning":
            is_open = self._open == (ReasoningDelta, item.index)
            events = [*self._closing(item), *items.reasoning_done(item, raw, is_open=is_open)]
        elif item.type in _OUR_CALLS:
            events = list(items.call_done(item, raw))
            self._has_called = self._has_called or bool(events)
        else:
            events = [*self._closing(item), *items.other_done(item, raw)]
        self._open = None
        return events

    def _closing(self, item: OpenItem) -> Iterator[ModelEvent]:
        """Yield the end of another item's reasoning, which would receive this item's metadata."""
        match self._open:
            case (kind, index) if kind is ReasoningDelta and index != item.index:
                yield ReasoningEnded()

    def _over(self, data: bytes) -> Iterable[ModelEvent]:
        response = _ended(data).response
        kind = _kind(data)
        if kind in _FAILED or response.status in ("failed", "cancelled"):
            return self._failed(response)
        events = self._never_streamed(response)
        if response.usage is not None:
            events.append(_usage(response.usage))
        events.append(self._finished(response, is_whole=kind == b"response.completed"))
        self._is_over = True
        return events

    def _failed(self, response: Response) -> Iterator[ModelEvent]:
        """Yield the usage, which is billed all the same, then fail."""
        if response.usage is not None:
            yield _usage(response.usage)
        raise failed_response(response)

    def _never_streamed(self, response: Response) -> list[ModelEvent]:
        """Return the events for content of the final response that was not streamed.

        Items are identified by index, because some endpoints assign new ids at the end; if as many
        were completed as there are, none is missing, even if the indexes differ.
        """
        outputs = response.output or ()
        if sum(item.is_done for item in self._items.values()) >= len(outputs):
            return []
        return [
            event
            for index, raw in enumerate(outputs)
            for event in self._completed_item(self._item(index), raw)
        ]

    def _finished(self, response: Response, *, is_whole: bool) -> Finished:
        if is_whole and response.status != "incomplete":
            if self._refusal and not self._has_called:
                return Finished(FinishReason.CONTENT_FILTER, self._refusal)
            return Finished(FinishReason.TOOL_CALLS if self._has_called else FinishReason.STOP)
        details = response.incomplete_details
        reason = "" if details is None else details.reason or ""
        match reason:
            case "max_output_tokens":
                return Finished(FinishReason.LENGTH)
            case "content_filter":
                return Finished(FinishReason.CONTENT_FILTER, self._refusal)
            case _:
                return Finished(FinishReason.OTHER, reason)

    def _error(self, data: bytes) -> Iterable[ModelEvent]:
        raise reported_error(_anything(data))


def _kind(data: bytes) -> bytes:
    """Return the type of an event, nearly always without decoding it.

    Raises:
        ProviderFailed: It has no type and reports an error.
    """
    for opening in (b'{"type":"', b'{"type": "'):
        if data.startswith(opening):
            return data[len(opening) : data.find(b'"', len(opening))]
    event = _anything(data)
    if not event.type and event.has_error:
        raise reported_error(event)
    return event.type.encode()


def _usage(usage: Usage) -> UsageReported:
    read = written = reasoning = 0
    if usage.input_tokens_details is not None:
        read = max(usage.input_tokens_details.cached_tokens or 0, 0)
        written = max(usage.input_tokens_details.cache_write_tokens or 0, 0)
    if usage.output_tokens_details is not None:
        reasoning = max(usage.output_tokens_details.reasoning_tokens or 0, 0)
    return UsageReported(
        input_tokens=max((usage.input_tokens or 0) - read - written, 0),
        output_tokens=max(usage.output_tokens or 0, 0),
        reasoning_tokens=reasoning,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
