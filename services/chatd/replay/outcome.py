"""The accumulated events of one answer."""

import json
from dataclasses import dataclass, field
from typing import Any, assert_never

from chatd.content.domain.parts import Source, ToolCall
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ProviderToolResult,
    ReasoningDelta,
    ReasoningEnded,
    RequestSent,
    SourceCited,
    TextDelta,
    TextEnded,
    ToolCallRequested,
    ToolInputDelta,
    UsageReported,
)


@dataclass(slots=True)
class Outcome:
    """The accumulated events so far, and the error that ended the stream, if any."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    usage: UsageReported = field(default_factory=UsageReported)
    finish_reason: str | None = None
    error: ModelError | None = None
    events: int = 0

    def on_event(self, event: ModelEvent) -> None:
        """Add one event."""
        self.events += 1
        match event:
            case TextDelta():
                self.text += event.text
            case ReasoningDelta():
                self.reasoning += event.text
            case ToolCallRequested():
                self.calls.append(event.call)
            case SourceCited():
                self.sources.append(event.source)
            case UsageReported():
                self.usage = event
            case Finished():
                self.finish_reason = event.reason.value
            case Heartbeat() | RequestSent():
                self.events -= 1  # Not sent by the provider: their number depends on timing.
            case TextEnded() | ReasoningEnded() | ToolInputDelta() | ProviderToolResult():
                pass
            case _:
                assert_never(event)

    def document(self, file: str) -> dict[str, Any]:
        """Return the outcome as a JSON value."""
        return {
            "file": file,
            "text": self.text,
            "reasoning": self.reasoning,
            "tool_calls": [
                _call_document(call) for call in self.calls if not call.provider_executed
            ],
            "provider_tool_calls": [
                _call_document(call) for call in self.calls if call.provider_executed
            ],
            "sources": [{"url": each.url, "title": each.title} for each in self.sources],
            "usage": {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "reasoning_tokens": self.usage.reasoning_tokens,
                "cache_read_tokens": self.usage.cache_read_tokens,
                "cache_write_tokens": self.usage.cache_write_tokens,
            },
            "finish_reason": self.finish_reason,
            "error": None if self.error is None else _failure(self.error),
            "events": self.events,
        }


def _call_document(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.args_json, parse_constant=_refuse)
    except (ValueError, RecursionError):
        arguments = call.args_json
    return {"id": call.tool_call_id, "name": call.tool_name, "arguments": arguments}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _failure(error: ModelError) -> dict[str, Any]:
    return {
        "kind": error.kind.value,
        "retryable": error.is_retryable,
        "status_code": error.status_code,
        "message": error.message,
    }
