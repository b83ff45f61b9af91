"""Encodes a model's earlier answer as input items, by the provider's rules for stored items.

The provider rejects an item that it made after reasoning and that is sent without it, and reasoning
that is sent without the item after it. It identifies both by their ids. So where answers are
stored, no reasoning is sent (the provider has it), nor the id of any item that followed it; where
they are not, the encrypted reasoning is sent directly before the item after it, both with their
ids. Tools that the provider executed have no other form than their item: they are sent with their
reasoning or not at all.
"""

from collections.abc import Iterator
from enum import Enum, auto

from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.providers.responses.item_origins import ItemOrigin, item_origin_of
from chatd.providers.responses.provider_calls import Item, item_of


class _ReasoningState(Enum):
    """Whether the last reasoning is sent."""

    NONE = auto()
    KEPT = auto()
    LEFT_OUT = auto()


class AnswerItems:
    """Makes the items of one answer.

    Args:
        store: Whether the provider stores answers.
        sent_ids: The ids of items that are in the request already; none is sent twice.
    """

    def __init__(self, message: PromptMessage, *, store: bool, sent_ids: set[str]) -> None:
        self._content = message.content
        self._store = store
        self._sent_ids = sent_ids
        self._reasoning_state = _ReasoningState.NONE
        self._waiting: list[Item] = []  # Reasoning without a following item yet.
        self._summary: list[str] = []  # Of the reasoning whose last part is still to come.
        self._texts: list[str] = []  # Of the message whose last part is still to come.

    def __iter__(self) -> Iterator[Item]:
        for part in self._content:
            if self._texts and not isinstance(part, Text):
                yield from self._unmarked_texts()
            yield from self._part(part)
        yield from self._unmarked_texts()

    def _part(self, part: Part) -> Iterator[Item]:
        match part:
            case Text(text, metadata):
                self._texts.append(text)
                if (origin := item_origin_of(metadata)) is not None:
                    yield from self._message(origin)
            case Reasoning(text, provider_metadata=metadata):
                yield from self._reasoning(text, item_origin_of(metadata))
            case ToolCall(provider_executed=True):
                yield from self._provider_call(part)
            case ToolCall():
                yield from self._call(part)
            case _:
                return

    def _reasoning(self, text: str, origin: ItemOrigin | None) -> Iterator[Item]:
        if text.strip():
            self._summary.append(text)
        if origin is None:
            self._reasoning_state = (
                _ReasoningState.LEFT_OUT
            )  # Unless it continues in the next part.
            return
        if origin.item is not None:
            if self._is_new(origin.id):
                yield origin.item
        elif self._store or not origin.encrypted_content or not self._is_new(origin.id):
            self._reasoning_state = _ReasoningState.LEFT_OUT
            self._waiting.clear()
        else:
            self._reasoning_state = _ReasoningState.KEPT
            self._waiting.append(
                {
                    "type": "reasoning",
                    "id": origin.id,
                    "summary": [{"type": "summary_text", "text": each} for each in self._summary],
                    "encrypted_content": origin.encrypted_content,
                }
            )
        self._summary.clear()

    def _message(self, origin: ItemOrigin) -> Iterator[Item]:
        """Yield a whole message; where it may not have its id, only its text."""
        is_wanted = self._reasoning_state is (
            _ReasoningState.NONE if self._store else _ReasoningState.KEPT
        )
        if not (is_wanted and self._is_new(origin.id)):
            yield from self._unmarked_texts(origin.phase)
            return
        kind, field = ("refusal", "refusal") if origin.is_refusal else ("output_text", "text")
        annotations: Item = {} if origin.is_refusal else {"annotations": []}
        item: Item = {
            "type": "message",
            "id": origin.id,
            "role": "assistant",
            "status": "completed",
            "content": [{"type": kind, field: text, **annotations} for text in self._texts],
        }
        self._texts.clear()
        yield from self._with_reasoning(item | _phase(origin.phase))

    def _unmarked_texts(self, phase: str = "") -> Iterator[Item]:
        if self._texts:
            self._leave_reasoning_out()
        for text in self._texts:
            yield {"role": "assistant", "content": text} | _phase(phase)
        self._texts.clear()

    def _call(self, call: ToolCall) -> Iterator[Item]:
        item: Item = {
            "type": "function_call",
            "call_id": call.tool_call_id,
            "name": call.tool_name,
            "arguments": call.args_json,
        }
        origin = item_origin_of(call.provider_metadata)
        if (
            self._reasoning_state is _ReasoningState.KEPT
            and origin is not None
            and self._is_new(origin.id)
        ):
            yield from self._with_reasoning(item | {"id": origin.id})
        else:
            self._leave_reasoning_out()
            yield item

    def _provider_call(self, call: ToolCall) -> Iterator[Item]:
        origin = item_origin_of(call.provider_metadata)
        item = None
        if origin is not None and self._reasoning_state is not _ReasoningState.LEFT_OUT:
            item = item_of(origin, self._result_of(call), is_stored=self._store)
        if origin is not None and item is not None and self._is_new(origin.id):
            yield from self._with_reasoning(item)
        else:
            self._leave_reasoning_out()

    def _result_of(self, call: ToolCall) -> ToolResult | None:
        for part in self._content:
            if isinstance(part, ToolResult) and part.tool_call_id == call.tool_call_id:
                return part
        return None

    def _with_reasoning(self, item: Item) -> Iterator[Item]:
        yield from self._waiting
        self._waiting.clear()
        yield item

    def _leave_reasoning_out(self) -> None:
        """Drop reasoning whose next item is not sent, or is sent without its id."""
        if self._waiting:
            self._waiting.clear()
            self._reasoning_state = _ReasoningState.LEFT_OUT

    def _is_new(self, item_id: str) -> bool:
        """Return whether an item may be sent with its id, and record that it is."""
        if not item_id or item_id in self._sent_ids:
            return False
        self._sent_ids.add(item_id)
        return True


def _phase(phase: str) -> Item:
    return {"phase": phase} if phase else {}
