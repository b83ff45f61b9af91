"""Decodes a streamed chat completion of any endpoint.

The answer is complete once a chunk has a finish reason. Later chunks still count (usage is sent
there), so calls, sources and `Finished` wait for `[DONE]` or the end of the body. An error takes
precedence over everything, also over an answer that had already finished.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    TextDelta,
    UsageReported,
)
from chatd.providers.completions.calls import Calls
from chatd.providers.completions.chunks import CallDelta, Choice, Chunk, Delta, read_chunk
from chatd.providers.completions.failures import failure_in
from chatd.providers.completions.reasoning import ReasoningBuffer
from chatd.providers.completions.sources import Sources
from chatd.providers.completions.usage import usage_of
from chatd.providers.wire import Failure, ProviderFailed

_DONE = b"[DONE]"

_REASONS = {
    **dict.fromkeys(
        ("stop", "end_turn", "eos", "eos_token", "stop_sequence", "completed"), FinishReason.STOP
    ),
    **dict.fromkeys(
        ("tool_calls", "tool_call", "tool_use", "function_call"), FinishReason.TOOL_CALLS
    ),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length"), FinishReason.LENGTH
    ),
    **dict.fromkeys(
        ("content_filter", "refusal", "safety", "sensitive"), FinishReason.CONTENT_FILTER
    ),
}


class CompletionsDecoder:
    """Decodes one answer."""

    def __init__(self) -> None:
        self._reasoning_buffer = ReasoningBuffer()
        self._calls = Calls()
        self._sources = Sources()
        self._usage: UsageReported | None = None
        self._reason = ""
        self._refusal: list[str] = []
        self._filtered = ""
        self._is_text_open = False
        self._is_over = False
        # Lone surrogates that wait for their second half, by the kind of text.
        self._halves: dict[str, str] = {}
        self._is_damaged = False

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        """Return the model events of one chunk.

        Raises:
            ProviderFailed: It reports an error or cannot be decoded; also while the events that
                came with the error are iterated.
        """
        if self._is_over or not data or data.isspace():
            return ()
        if data.strip() == _DONE:
            return self.end()
        chunk, is_damaged = read_chunk(data)
        self._is_damaged |= is_damaged
        choice = _first_choice(chunk)
        events: list[ModelEvent] = []
        if choice is not None:
            if choice.delta is not None:
                self._take_delta(choice.delta, events)
            if choice.finish_reason:
                self._take_reason(choice)
        self._take_rest(chunk, choice, events)
        failure = failure_in(chunk, choice, data)
        if failure is None:
            return events
        self._is_over = True
        return _then_fail(events, failure)

    def end(self) -> Iterable[ModelEvent]:
        """Return the remaining events once the answer ended.

        Raises:
            ProviderFailed: There was no finish reason.
        """
        if self._is_over:
            return ()
        if not self._reason:
            text = "the stream ended before the model finished"
            raise ProviderFailed(Failure(text, is_cut_off=True))
        self._is_over = True
        events: list[ModelEvent] = []
        for kind, half in self._halves.items():
            if half:
                text = repaired(half)
                events.append(
                    self._reasoning_buffer.show(text) if kind == "reasoning" else TextDelta(text)
                )
        if self._reasoning_buffer.is_pending:
            events.append(self._reasoning_buffer.close())
        events.extend(self._sources.cited())
        events.extend(self._calls.requested())
        detail = repaired(self._filtered or "".join(self._refusal))
        events.append(Finished(self._finish_reason(), detail))
        return events

    def _take_delta(self, delta: Delta, events: list[ModelEvent]) -> None:
        reasoning = self._reasoning_buffer.decode(delta)
        content = delta.content
        if isinstance(content, list):
            content, reasoning_in_parts = _joined_parts(content)
            reasoning = reasoning or reasoning_in_parts
        if reasoning:
            self._add_reasoning(reasoning, events)
        if content:
            self._add_text(content, events)
        if delta.refusal:
            self._refusal.append(delta.refusal)
            self._add_text(delta.refusal, events)
        for call in delta.tool_calls or ():
            self._add_call(call, events)
        if delta.function_call is not None:
            self._add_call(CallDelta(index=0, function=delta.function_call), events)
        if delta.annotations:
            self._sources.take_annotations(delta.annotations)

    def _add_reasoning(self, text: str, events: list[ModelEvent]) -> None:
        text = self._whole("reasoning", text)
        if text:
            self._is_text_open = False
            events.append(self._reasoning_buffer.show(text))

    def _add_text(self, text: str, events: list[ModelEvent]) -> None:
        # A late signature waits for the end of the text, which it would otherwise split.
        reasoning = self._reasoning_buffer
        if reasoning.is_open or (reasoning.is_pending and not self._is_text_open):
            events.append(reasoning.close())
        text = self._whole("text", text)
        if text:
            self._is_text_open = True
            events.append(TextDelta(text))

    def _add_call(self, delta: CallDelta, events: list[ModelEvent]) -> None:
        if self._reasoning_buffer.is_pending:
            events.append(self._reasoning_buffer.close())
        self._is_text_open = False
        shown = self._calls.decode(delta)
        if shown is not None:
            events.append(shown)

    def _take_reason(self, choice: Choice) -> None:
        self._reason = choice.finish_reason or ""
        if isinstance(choice.content_filter_results, Mapping):
            self._filtered = _filtered_categories(choice.content_filter_results) or self._filtered

    def _take_rest(self, chunk: Chunk, choice: Choice | None, events: list[ModelEvent]) -> None:
        if chunk.citations or chunk.search_results:
            self._sources.take_lists(chunk)
        reported = chunk.usage or (choice.usage if choice is not None else None)
        if not reported and chunk.x_groq and isinstance(chunk.x_groq, Mapping):
            reported = chunk.x_groq.get("usage")
        if reported:
            usage = usage_of(reported)
            if usage is not None and usage != self._usage:
                self._usage = usage
                events.append(usage)

    def _finish_reason(self) -> FinishReason:
        reason = _REASONS.get(self._reason.lower(), FinishReason.OTHER)
        if self._calls and reason in (FinishReason.STOP, FinishReason.OTHER):
            return FinishReason.TOOL_CALLS
        if not self._calls and reason is FinishReason.TOOL_CALLS:
            reason = FinishReason.STOP
        if self._refusal and reason is FinishReason.STOP:
            return FinishReason.CONTENT_FILTER
        return reason

    def _whole(self, kind: str, text: str) -> str:
        """Return the text in whole characters; a lone surrogate at its end waits for the next."""
        if not self._is_damaged:
            return text
        text = self._halves.pop(kind, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._halves[kind] = text[-1]
            text = text[:-1]
        return repaired(text)


def _first_choice(chunk: Chunk) -> Choice | None:
    for choice in chunk.choices or ():
        if not choice.index:
            return choice
    return None


def _joined_parts(parts: list[Any]) -> tuple[str, str]:
    """Return text and reasoning of content that is a list."""
    texts: list[str] = []
    reasoning: list[str] = []
    for part in parts:
        match part:
            case str():
                texts.append(part)
            case {"type": "thinking", "thinking": str(text)}:
                reasoning.append(text)
            case {"type": "thinking", "thinking": list(inner)}:
                reasoning.append(_joined_parts(inner)[0])
            case {"text": str(text)}:
                texts.append(text)
    return "".join(texts), "".join(reasoning)


def _filtered_categories(results: Mapping[object, object]) -> str:
    """Return the categories that Azure blocked an answer for."""
    return ", ".join(
        str(category)
        for category, result in results.items()
        if isinstance(result, Mapping) and result.get("filtered") is True
    )


def _then_fail(events: list[ModelEvent], failure: Failure) -> Iterator[ModelEvent]:
    """Yield the events that came along with an error, which may include the billed usage."""
    yield from events
    raise ProviderFailed(failure)
