"""Decodes a streamed answer, event by event."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from chatd.providers.anthropic import answer_blocks as blocks
from chatd.providers.anthropic import events
from chatd.providers.wire import Failure, ProviderFailed

BODY_BYTES_MAX = 64 * 1024

STATUS_BY_ERROR: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

REASONS: Mapping[str, FinishReason] = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
    "pause_turn": FinishReason.PAUSED,
}

DETAILS: Mapping[str, str] = {
    "model_context_window_exceeded": "The context window is full.",
}

KNOWN_EVENTS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    }
)
KNOWN_DELTAS = frozenset(
    {"text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta"}
)


class AnthropicDecoder:
    """Converts the events of one answer into model events."""

    def __init__(self) -> None:
        self._blocks: dict[int, blocks.Block] = {}
        self._names: dict[str, str] = {}  # Tool names by ids of provider-executed calls.
        self._usage = UsageReported()
        self._finished = Finished(FinishReason.OTHER)
        self._is_begun = False
        self._is_over = False

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        """Return the model events of one event's data."""
        if self._is_over:
            return ()
        try:
            event = _read(data)
            if event is None:
                return ()
            if event.type == "content_block_delta":
                return self._change(event)
            return self._take_other(event, data)
        except (ValueError, RecursionError):
            raise _unreadable(data) from None

    def end(self) -> Iterable[ModelEvent]:
        """Return nothing if the answer was complete."""
        if not self._is_over:
            text = "the stream ended before message_stop"
            raise ProviderFailed(Failure(text, is_cut_off=True))
        return ()

    def _change(self, event: events.Event) -> Iterable[ModelEvent]:
        block = self._blocks.get(event.index)
        if block is None or event.delta is None:
            raise ValueError("a change of no block")
        return block.decode(event.delta)

    def _take_other(self, event: events.Event, data: bytes) -> Iterable[ModelEvent]:
        match event.type:
            case "message_start":
                self._is_begun = True
                return () if event.message is None else self._count(event.message.usage)
            case "content_block_start":
                return self._begin(event)
            case "content_block_stop":
                block = self._blocks.pop(event.index, None)
                return () if block is None else block.stop()
            case "message_delta":
                if event.delta is not None:
                    self._note_reason(event.delta)
                return self._count(event.usage)
            case "message_stop":
                return self._finish()
            case "error":
                raise _reported(event.error, data)
            case _:
                return ()

    def _begin(self, event: events.Event) -> Iterable[ModelEvent]:
        """Open a block; content in its start event is emitted as a delta."""
        raw, block_id = event.content_block, str(event.index)
        block: blocks.Block
        first: tuple[ModelEvent, ...] = ()
        match events.KIND.decode(raw).type:
            case "text":
                block = blocks.OpenTextBlock(block_id)
                if text := events.TEXT.decode(raw).text:
                    first = (TextDelta(text, block_id),)
            case "thinking":
                thinking = events.THINKING.decode(raw)
                block = blocks.OpenThinkingBlock(block_id, thinking.signature or "")
                if thinking.thinking:
                    first = (ReasoningDelta(thinking.thinking, block_id),)
            case "redacted_thinking":
                block = blocks.Redacted(events.REDACTED.decode(raw).data)
            case "tool_use":
                block = blocks.call_begun(raw, event.index, provider_executed=False)
            case "server_tool_use" | "mcp_tool_use":
                block = blocks.call_begun(raw, event.index, provider_executed=True)
                begun = events.CALL.decode(raw)
                self._names[begun.id] = begun.name
            case kind if kind.endswith(blocks.RESULT_SUFFIX):
                block = blocks.result_given(raw, kind, self._names)
            case _:
                block = blocks.Unknown()
        before = self._blocks.pop(event.index, None)
        self._blocks[event.index] = block
        return first if before is None else (*before.stop(), *first)

    def _count(self, usage: events.Usage | None) -> Iterable[ModelEvent]:
        """Report usage; counts are totals, and absent ones have not changed."""
        if usage is None:
            return ()
        before, details = self._usage, usage.output_tokens_details
        thinking = None if details is None else details.thinking_tokens
        self._usage = replace(
            before,
            input_tokens=_newer(usage.input_tokens, before.input_tokens),
            output_tokens=_newer(usage.output_tokens, before.output_tokens),
            reasoning_tokens=_newer(thinking, before.reasoning_tokens),
            cache_read_tokens=_newer(usage.cache_read_input_tokens, before.cache_read_tokens),
            cache_write_tokens=_newer(usage.cache_creation_input_tokens, before.cache_write_tokens),
        )
        return (self._usage,)

    def _note_reason(self, delta: events.Delta) -> None:
        if delta.stop_reason is None:
            return
        detail = DETAILS.get(delta.stop_reason, "")
        if delta.stop_details is not None:
            said = (delta.stop_details.category, delta.stop_details.explanation)
            detail = ": ".join(each for each in said if each) or detail
        self._finished = Finished(REASONS.get(delta.stop_reason, FinishReason.OTHER), detail)

    def _finish(self) -> Iterable[ModelEvent]:
        """Complete the answer; blocks without a stop event are ended with it."""
        if not self._is_begun:
            raise ValueError("an end without a beginning")
        self._is_over = True
        left = [event for block in self._blocks.values() for event in block.stop()]
        return (*left, self._finished)


def _read(data: bytes) -> events.Event | None:
    """Return an event; None for one of an unknown kind.

    Raises:
        ValueError: It cannot be decoded.
    """
    try:
        return events.EVENT.decode(data)
    except ValueError:
        pass
    kind = events.KIND.decode(whole := _without_half_characters(data)).type
    if kind not in KNOWN_EVENTS:
        return None
    if kind == "content_block_delta" and events.CHANGE.decode(whole).delta.type not in KNOWN_DELTAS:
        return None
    return events.EVENT.decode(whole)


def _without_half_characters(data: bytes) -> bytes:
    """Return JSON with lone surrogates replaced, which some endpoints send."""
    return repaired(json.dumps(json.loads(data), ensure_ascii=False)).encode()


def _reported(error: msgspec.Raw, data: bytes) -> ProviderFailed:
    try:
        detail = events.ERROR.decode(error)
    except msgspec.ValidationError:
        detail = events.ErrorDetail("error", bytes(error)[:1024].decode(errors="replace"))
    return ProviderFailed(
        Failure(
            f"{detail.type}: {detail.message}",
            status_code=STATUS_BY_ERROR.get(detail.type, 0),
            body=data[:BODY_BYTES_MAX],
        )
    )


def _unreadable(data: bytes) -> ProviderFailed:
    text = "the stream holds an event that cannot be read"
    return ProviderFailed(Failure(text, body=data[:BODY_BYTES_MAX], is_garbled=True))


def _newer(reported: int | None, before: int) -> int:
    return before if reported is None else max(0, reported)
