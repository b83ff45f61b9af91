"""The content blocks of a streamed answer, and the events of each kind."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from chatd.content.domain.parts import Source, ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.language_model import (
    ModelEvent,
    ProviderToolResult,
    ReasoningDelta,
    ReasoningEnded,
    SourceCited,
    TextDelta,
    TextEnded,
    ToolCallRequested,
    ToolInputDelta,
)
from chatd.providers.anthropic import events
from chatd.providers.anthropic.metadata import (
    AnthropicMetadata,
    SearchCitation,
    SearchError,
    SearchHit,
    written,
)

RESULT_SUFFIX = "_tool_result"
_SEARCH = msgspec.json.Decoder(tuple[SearchHit, ...] | SearchError)


class Block(Protocol):
    """A block that is being received."""

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Return the events of a delta."""
        ...

    def stop(self) -> Iterable[ModelEvent]:
        """Return the events of the complete block."""
        ...


class OpenTextBlock:
    """A text, with its citations."""

    def __init__(self, block_id: str) -> None:
        self._block_id = block_id
        self._citations: list[SearchCitation] = []
        self._sources: dict[str, Source] = {}

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Return the text delta; keep a citation until the text is complete."""
        if delta.text:
            return (TextDelta(delta.text, self._block_id),)
        if delta.type == "citations_delta":
            self._cite(delta.citation)
        return ()

    def stop(self) -> Iterable[ModelEvent]:
        """End the text and emit its sources; between its deltas they would split it."""
        own = AnthropicMetadata(citations=tuple(self._citations))
        sources = (SourceCited(source) for source in self._sources.values())
        return (TextEnded(written(own)), *sources)

    def _cite(self, raw: msgspec.Raw) -> None:
        cited = events.CITATION.decode(raw)
        source = _source(cited)
        if source is not None:
            self._sources.setdefault(source.source_id, source)
        try:
            self._citations.append(events.SEARCH_CITATION.decode(raw))
        except msgspec.ValidationError:
            return  # It refers to the prompt, which may be a different one later.


class OpenThinkingBlock:
    """A thinking block, signed at its end."""

    def __init__(self, block_id: str, signature: str) -> None:
        self._block_id = block_id
        self._signature = signature

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Return the thinking delta; keep the signature."""
        if delta.thinking:
            return (ReasoningDelta(delta.thinking, self._block_id),)
        if delta.signature:
            self._signature = delta.signature
        return ()

    def stop(self) -> Iterable[ModelEvent]:
        """End the thinking block."""
        return (ReasoningEnded(written(AnthropicMetadata(signature=self._signature))),)


class Redacted:
    """A redacted thinking block: it arrives complete and only Anthropic can read it."""

    def __init__(self, data: str) -> None:
        self._data = data

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Ignore the delta; this kind has none."""
        return ()

    def stop(self) -> Iterable[ModelEvent]:
        """Keep the block."""
        return (ReasoningEnded(written(AnthropicMetadata(redacted_data=self._data))),)


class OpenCallBlock:
    """A tool call; its arguments arrive as text deltas."""

    def __init__(self, call: ToolCall, given: bytes) -> None:
        self._call = call
        self._given = given.decode()
        self._pieces: list[str] = []

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Return the argument delta, unless the provider executes the call itself."""
        if not delta.partial_json:
            return ()
        self._pieces.append(delta.partial_json)
        if self._call.provider_executed:
            return ()
        call = self._call
        return (ToolInputDelta(call.tool_call_id, call.tool_name, delta.partial_json),)

    def stop(self) -> Iterable[ModelEvent]:
        """Emit the call; no arguments are an empty object."""
        args_json = "".join(self._pieces).strip() or self._given
        return (ToolCallRequested(msgspec.structs.replace(self._call, args_json=args_json)),)


class Result:
    """The result of a call that the provider executed; it arrives complete."""

    def __init__(self, result: ToolResult) -> None:
        self._result = result

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Ignore the delta; this kind has none."""
        return ()

    def stop(self) -> Iterable[ModelEvent]:
        """Emit the result."""
        return (ProviderToolResult(self._result),)


class Unknown:
    """A block of a kind that is newer than this code."""

    def decode(self, delta: events.Delta) -> Iterable[ModelEvent]:
        """Ignore the delta."""
        return ()

    def stop(self) -> Iterable[ModelEvent]:
        """Emit nothing."""
        return ()


def call_begun(raw: msgspec.Raw, index: int, *, provider_executed: bool) -> OpenCallBlock:
    """Return a call at its start.

    Raises:
        ValueError: The block cannot be decoded.
    """
    begun = events.CALL.decode(raw)
    caller = "direct" if begun.caller is None else begun.caller.type
    own = AnthropicMetadata(caller="" if caller == "direct" or not provider_executed else caller)
    call = ToolCall(
        begun.id or f"call_{index}",
        begun.name,
        "{}",
        provider_executed=provider_executed,
        provider_metadata=written(own),
    )
    given = bytes(begun.input)
    return OpenCallBlock(call, given if given.startswith(b"{") else b"{}")


def result_given(raw: msgspec.Raw, kind: str, names: dict[str, str]) -> Result:
    """Return a result; its tool name is that of the call it answers.

    Raises:
        ValueError: The block cannot be decoded.
    """
    given = events.RESULT.decode(raw)
    content = bytes(given.content)
    own, shown = (
        _search(content) if kind == "web_search_tool_result" else (AnthropicMetadata(), content)
    )
    is_failed = bool(given.is_error) or _kind(content).endswith("_error")
    return Result(
        ToolResult(
            given.tool_use_id,
            names.get(given.tool_use_id, kind.removesuffix(RESULT_SUFFIX)),
            shown.decode(),
            ToolOutcome.FAILED if is_failed else ToolOutcome.DONE,
            provider_executed=True,
            provider_metadata=written(own),
        )
    )


def _search(content: bytes) -> tuple[AnthropicMetadata, bytes]:
    """Return the metadata to send back of a web search, and its result for users."""
    try:
        search = _SEARCH.decode(content)
    except msgspec.ValidationError:
        return AnthropicMetadata(), content
    if isinstance(search, SearchError):
        return AnthropicMetadata(search=search), content
    pages = [{"title": hit.title, "url": hit.url} for hit in search]
    return AnthropicMetadata(search=search), msgspec.json.encode(pages)


def _kind(content: bytes) -> str:
    try:
        return events.KIND.decode(content).type
    except msgspec.ValidationError:
        return ""


def _source(cited: events.Citation) -> Source | None:
    title = cited.title or cited.document_title or ""
    url = cited.url or cited.source or ""
    if url:
        return Source(url, url, title)
    if cited.document_index is None:
        return None
    return Source(f"document-{cited.document_index}", "", title)
