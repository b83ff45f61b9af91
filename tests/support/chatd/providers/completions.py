"""Chat completions as endpoints stream them, written by hand, and what is decoded from them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chatd.content.domain.parts import Part
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import Finished, ModelEvent
from chatd.models.engine.target import Target
from chatd.providers.completions import CompletionsDecoder
from chatd.providers.wire import Failure, ProviderFailed
from chatd.turns.engine.answer import Answer, ignore_part
from parley.clock import FakeClock
from parley.settings import Secret

DONE = b"[DONE]"


def data(value: object) -> bytes:
    """Return an event's data."""
    return json.dumps(value).encode()


def chunk(finish_reason: str | None = None, **delta: Any) -> bytes:
    """Return a chunk in OpenAI's manner with one delta."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return data(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_760_000_000,
            "model": "a-model",
            "choices": [choice],
        }
    )


def piece(
    arguments: object = None, *, name: str | None = None, **fields: object
) -> dict[str, object]:
    """Return one entry of `tool_calls`."""
    function = {"name": name, "arguments": arguments}
    told = {key: value for key, value in function.items() if value is not None}
    return {**fields, "function": told}


def usage(**counts: Any) -> bytes:
    """Return the chunk without choices that tells the usage."""
    return data({"id": "chatcmpl-1", "choices": [], "usage": counts})


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came of a stream: events, and then perhaps a failure."""

    events: tuple[ModelEvent, ...]
    failure: Failure | None = None

    @property
    def content(self) -> tuple[Part, ...]:
        """Return the parts that the engine makes of the events."""
        answer = Answer(ignore_part, FakeClock())
        for event in self.events:
            answer.on_event(event)
        return answer.content

    @property
    def finished(self) -> Finished | None:
        """Return the last event of an answer that is complete."""
        ends = [event for event in self.events if isinstance(event, Finished)]
        assert len(ends) <= 1
        assert not ends or self.events[-1] is ends[0]
        return ends[0] if ends else None


def decoded(*events: bytes) -> Decoded:
    """Return what the decoder makes of these events and the end of the body."""
    return decoded_from(events)


def decoded_from(events: Iterable[bytes]) -> Decoded:
    """Return what the decoder makes of these events and the end of the body."""
    decoder = CompletionsDecoder()
    made: list[ModelEvent] = []
    try:
        for event in events:
            for each in decoder.decode(event):
                made.append(each)
        made.extend(decoder.end())
    except ProviderFailed as failed:
        return Decoded(tuple(made), failed.failure)
    return Decoded(tuple(made))


def target(
    provider_type: ProviderType = ProviderType.OPENAI_COMPATIBLE,
    *,
    model_name: str = "a-model",
    base_url: str = "https://llm.example/v1",
    **options: object,
) -> Target:
    """Return where a request of a test goes."""
    base_url = "" if provider_type is ProviderType.OPENAI else base_url
    return Target(
        "provider-1", provider_type, "Example", model_name, base_url, Secret("sk-1"), options
    )
