"""Streams of Responses, written event by event, and what our decoder makes of them."""

import json
from collections.abc import Iterable
from typing import Any

from chatd.content.domain.parts import Part
from chatd.models.domain.language_model import ModelEvent
from chatd.providers.responses import ResponsesDecoder
from chatd.turns.engine.answer import Answer, ignore_part
from parley.clock import FakeClock

USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 19,
}


def event(kind: str, /, **fields: Any) -> bytes:
    """Return the data of one event."""
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()


def added(index: int, **item: Any) -> bytes:
    """Return the event that begins an item."""
    return event("response.output_item.added", output_index=index, item=item)


def done(index: int, **item: Any) -> bytes:
    """Return the event that completes an item."""
    return event("response.output_item.done", output_index=index, item=item)


def text_delta(index: int, delta: str, content_index: int = 0) -> bytes:
    """Return the event with more of a text."""
    return event(
        "response.output_text.delta", output_index=index, content_index=content_index, delta=delta
    )


def completed(*output: Any, usage: Any = USAGE, **response: Any) -> bytes:
    """Return the event that ends an answer well."""
    whole = {"status": "completed", "output": list(output), "usage": usage, **response}
    return event("response.completed", response=whole)


def message(item_id: str, *texts: str, **fields: Any) -> dict[str, Any]:
    """Return a complete message."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": item_id, "role": "assistant", "content": content, **fields}


def taken(*datas: bytes) -> list[ModelEvent]:
    """Return what our decoder says to a whole stream."""
    decoder = ResponsesDecoder()
    events = [each for data in datas for each in decoder.decode(data)]
    return [*events, *decoder.end()]


def stored(events: Iterable[ModelEvent]) -> tuple[Part, ...]:
    """Return the parts that are stored of an answer."""
    answer = Answer(ignore_part, FakeClock())
    for each in events:
        answer.on_event(each)
    return answer.content
