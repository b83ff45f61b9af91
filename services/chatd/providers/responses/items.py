"""The events of a complete item, without the content that was streamed already."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from chatd.content.domain.parts import Source, ToolCall
from chatd.models.domain.language_model import (
    ModelEvent,
    ProviderToolResult,
    ReasoningDelta,
    ReasoningEnded,
    SourceCited,
    TextDelta,
    TextEnded,
    ToolCallRequested,
)
from chatd.providers.responses.events import (
    Annotation,
    FunctionCallItem,
    MessageItem,
    ReasoningItem,
)
from chatd.providers.responses.item_origins import ItemOrigin, encoded_origin
from chatd.providers.responses.provider_calls import Item, call_and_result, is_provider_call

_messages = msgspec.json.Decoder(MessageItem)
_reasoning_decoder = msgspec.json.Decoder(ReasoningItem)
_calls = msgspec.json.Decoder(FunctionCallItem)
_any_items = msgspec.json.Decoder(Item)


@dataclass(slots=True)
class OpenItem:
    """An item while it is being received.

    Attributes:
        index: Its index in the answer.
        type: Its type.
        call_id: The id of a function call.
        name: The tool that is called.
        lengths: How much of each block was streamed.
        sources: The citations of its text, by URL.
        refusal: The text of its refusal.
        is_done: It is complete; later events about it are repetitions.
    """

    index: int
    type: str = ""
    id: str = ""
    call_id: str = ""
    name: str = ""
    lengths: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    refusal: str = ""
    is_done: bool = False

    def cite(self, annotation: Annotation) -> None:
        """Add a source; its first title is kept."""
        if annotation.type == "url_citation" and annotation.url:
            self.sources.setdefault(annotation.url, annotation.title or "")

    def rest(self, block_id: str, text: str) -> str:
        """Return the part of a block that was not streamed."""
        return text[self.lengths.get(block_id, 0) :]


def text_block(index: int, content_index: int) -> str:
    """Return the block id of a text of an item."""
    return f"{index}.{content_index}"


def summary_block(index: int, summary_index: int) -> str:
    """Return the block id of a reasoning summary."""
    return f"{index}.s{summary_index}"


def message_done(item: OpenItem, raw: bytes, *, is_open: bool) -> Iterator[ModelEvent]:
    """Yield the end of a message: the rest of its text, its origin, then its sources."""
    message = _messages.decode(raw)
    for content_index, content in enumerate(message.content or ()):
        for annotation in content.annotations or ():
            item.cite(annotation)
        item.refusal += content.refusal or ""
        block_id = text_block(item.index, content_index)
        if rest := item.rest(block_id, content.refusal or content.text or ""):
            is_open = True
            yield TextDelta(rest, block_id)
    if is_open:
        origin = ItemOrigin(
            message.id or item.id, phase=message.phase or "", is_refusal=bool(item.refusal)
        )
        yield TextEnded(encoded_origin(origin))
    for number, (url, title) in enumerate(item.sources.items()):
        yield SourceCited(Source(f"{message.id or item.id or item.index}_{number}", url, title))


def reasoning_done(item: OpenItem, raw: bytes, *, is_open: bool) -> Iterator[ModelEvent]:
    """Yield the end of reasoning; an empty one is kept, as later items may depend on it."""
    reasoning = _reasoning_decoder.decode(raw)
    for block_id, text in _blocks(item.index, reasoning):
        if rest := item.rest(block_id, text):
            is_open = True
            yield ReasoningDelta(rest, block_id)
    origin = ItemOrigin(reasoning.id or item.id, reasoning.encrypted_content or "")
    if is_open or not item.lengths or origin.encrypted_content:
        yield ReasoningEnded(encoded_origin(origin))


def call_done(item: OpenItem, raw: bytes) -> Iterator[ModelEvent]:
    """Yield a function call, unless the answer ended inside it."""
    call = _calls.decode(raw)
    if call.status == "incomplete":
        return
    item_id = call.id or item.id
    args_json = call.arguments if call.input is None else _custom_arguments(call.input)
    yield ToolCallRequested(
        ToolCall(
            item.call_id or call.call_id or item_id,
            call.name or item.name,
            args_json,
            provider_metadata=encoded_origin(ItemOrigin(item_id)),
        )
    )


def other_done(item: OpenItem, raw: bytes) -> Iterator[ModelEvent]:
    """Yield a provider-executed tool, or an item that only the provider understands."""
    if is_provider_call(item.type):
        call, result = call_and_result(
            item.type, item.id or f"item_{item.index}", _any_items.decode(raw)
        )
        yield ToolCallRequested(call)
        yield ProviderToolResult(result)
    elif item.type == "compaction":
        yield ReasoningEnded(encoded_origin(ItemOrigin(item.id, item=_any_items.decode(raw))))


def _blocks(index: int, reasoning: ReasoningItem) -> Iterator[tuple[str, str]]:
    """Yield the texts of reasoning, each with its block id."""
    for place, content in enumerate(reasoning.summary or ()):
        yield summary_block(index, place), content.text or ""
    for place, content in enumerate(reasoning.content or ()):
        yield text_block(index, place), content.text or ""


def _custom_arguments(text: str) -> str:
    """Return the input of a custom tool, which is plain text, as arguments."""
    return msgspec.json.encode({"input": text}).decode()
