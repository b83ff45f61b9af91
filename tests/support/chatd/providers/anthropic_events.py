"""Answers in the wire format of Anthropic Messages, written by hand, and how tests read them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from chatd.content.domain.parts import Part
from chatd.models.domain.language_model import ModelEvent
from chatd.providers.anthropic import AnthropicDecoder
from chatd.providers.wire import Decoder
from chatd.turns.engine.answer import Answer, ignore_part
from parley.clock import FakeClock

JsonObject = dict[str, Any]


def event(type_: str, **fields: object) -> bytes:
    """Return the data of one event."""
    return json.dumps({"type": type_, **fields}).encode()


def message_start(**usage: int) -> bytes:
    return event("message_start", message={"id": "msg_1", "role": "assistant", "usage": usage})


def block(
    index: int, content_block: Mapping[str, object], *deltas: Mapping[str, object]
) -> list[bytes]:
    """Return the events of one block from its start to its stop."""
    return [
        event("content_block_start", index=index, content_block=content_block),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text_block(index: int, *texts: str) -> list[bytes]:
    deltas = ({"type": "text_delta", "text": text} for text in texts)
    return block(index, {"type": "text", "text": ""}, *deltas)


def call_block(index: int, call_id: str, name: str, *pieces: str) -> list[bytes]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    begun = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, begun, *deltas)


def ending(stop_reason: str | None = "end_turn", **usage: int) -> list[bytes]:
    """Return the last two events of an answer."""
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [event("message_delta", delta=delta, usage=usage), event("message_stop")]


def decoded(datas: Iterable[bytes], decoder: Decoder | None = None) -> list[ModelEvent]:
    """Return all events of a whole answer."""
    reader = decoder or AnthropicDecoder()
    events = [event for data in datas for event in reader.decode(data)]
    return [*events, *reader.end()]


def parts_of(events: Iterable[ModelEvent]) -> tuple[Part, ...]:
    """Return the parts that the engine makes of a model's events."""
    answer = Answer(ignore_part, FakeClock())
    for each in events:
        answer.on_event(each)
    return answer.content


def data_of(body: str) -> list[bytes]:
    """Return the data of all events of a body, read as plainly as can be."""
    return [line[5:].strip().encode() for line in body.splitlines() if line.startswith("data:")]


def answer(*events: list[bytes], stop_reason: str = "end_turn") -> list[bytes]:
    """Return an answer with its beginning and its end around some events."""
    inner = [each for some in events for each in some]
    return [
        message_start(input_tokens=3, output_tokens=1),
        *inner,
        *ending(stop_reason, output_tokens=7),
    ]
