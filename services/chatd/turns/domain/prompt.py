"""The prompt of a model call, built from the live history: always complete and well-formed.

Every call has exactly one result, directly after the message that made it, regardless of
interruptions and summaries. Call ids are rewritten: providers reject some characters, and some
endpoints return the same id twice. Parts that are left out here stay stored.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import is_

import msgspec

from chatd.chats.domain.call_decisions import INTERRUPTED
from chatd.chats.domain.chat import Message
from chatd.chats.domain.pieces import given_up
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import (
    ContextFile,
    Fallback,
    File,
    FileReference,
    HookContext,
    Notice,
    Part,
    Reasoning,
    ServerTexts,
    Skill,
    Source,
    Text,
    ToolCall,
    ToolResult,
)
from chatd.content.domain.prompts import PromptMessage, hook_context_text, reference_text
from chatd.turns.domain.compaction import boundary_place
from chatd.turns.domain.system_prompt import (
    SystemPrompt,
    blocks_of,
    context_file_text,
)

_ODD = re.compile(r"[^A-Za-z0-9_-]")


class PromptBuilder:
    """Builds the prompt of one chat; while messages are only appended, only those are processed."""

    def __init__(self) -> None:
        self._seen: list[Message] = []
        self._pairing = _Pairing()

    def of(
        self, history: Sequence[Message], system_prompt: SystemPrompt
    ) -> tuple[PromptMessage, ...]:
        """Return the prompt of a live history."""
        added = history[len(self._seen) :]
        is_continued = len(history) >= len(self._seen) and all(map(is_, history, self._seen))
        if not is_continued or any(message.is_compressed for message in added):
            self._pairing, added = _Pairing(), prompt_rows(history)
        else:
            added = [message for message in added if message.visibility is not Visibility.USER]
        for row in added:
            self._pairing.add(row)
        self._seen = list(history)
        return _with_system_prompt(self._pairing.messages(), system_prompt)


def _with_system_prompt(
    messages: Sequence[PromptMessage], system_prompt: SystemPrompt
) -> tuple[PromptMessage, ...]:
    """Insert the briefing after the leading system messages."""
    leading = 0
    while leading < len(messages) and messages[leading].role is Role.SYSTEM:
        leading += 1
    blocks = (PromptMessage(Role.SYSTEM, (Text(block),)) for block in blocks_of(system_prompt))
    house = (
        (Text(system_prompt.default_instructions),) if system_prompt.default_instructions else ()
    )
    first = (PromptMessage(Role.SYSTEM, house),) if house else ()
    return (*first, *messages[:leading], *blocks, *messages[leading:])


def prompt_rows(history: Sequence[Message]) -> list[Message]:
    """Return the rows of a prompt: system rows, the newest boundary and the rows after it."""
    boundary = boundary_place(history)
    first = -1 if boundary is None else boundary
    return [
        message
        for place, message in enumerate(history)
        if message.visibility is not Visibility.USER
        and (
            place == boundary
            or (not message.is_compressed and (place > first or message.role is Role.SYSTEM))
        )
    ]


def shown(part: Part, *, is_from_user: bool) -> Part | None:
    """Return a part as a model reads it; None if it is not for models."""
    match part:
        case Text(text):
            return part if text.strip() else None
        case Reasoning(text, provider_metadata=metadata):
            return part if text.strip() or metadata else None
        case FileReference():
            return Text(reference_text(part))
        case HookContext():
            return Text(hook_context_text(part))
        case ContextFile():
            return Text(context_file_text(part))
        case File():
            return part if is_from_user else None
        case Source() | Notice() | Skill() | Fallback() | ServerTexts():
            return None
        case ToolCall() | ToolResult():
            return part


def without_foreign_parts(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return a prompt for another provider's model, without provider-specific parts."""
    return tuple(
        PromptMessage(message.role, tuple(_neutral(part) for part in kept), message.model_id)
        for message in messages
        if (kept := tuple(part for part in message.content if not isinstance(part, Reasoning)))
    )


def _neutral(part: Part) -> Part:
    match part:
        case ToolCall(provider_executed=True, tool_name=name, args_json=args_json):
            return Text(f"[the provider ran {name} with {args_json}]")
        case ToolResult(provider_executed=True, tool_name=name, result_json=result_json):
            return Text(f"[{name} gave {result_json}]")
        case File(media_type=media_type, name=name):
            return Text(f"[a file of type {media_type}, {name or 'without a name'}]")
        case Text() | ToolCall() | ToolResult():
            return msgspec.structs.replace(part, provider_metadata="")
        case _:
            return part


@dataclass(slots=True)
class _Exchange:
    """A model's message with its calls, and the results that were found for them."""

    content: tuple[Part, ...]
    model_id: str
    calls: list[ToolCall]  # The local ones, with the ids of the prompt.
    stored_ids: list[str]
    results: dict[int, ToolResult] = field(default_factory=dict)
    added: list[Text] = field(default_factory=list)  # What hooks add to the calls.

    def answer(self, result: ToolResult) -> None:
        """Assign a result to the first matching call that has none."""
        for place, stored_id in enumerate(self.stored_ids):
            if stored_id == result.tool_call_id and place not in self.results:
                prompt_id = self.calls[place].tool_call_id
                self.results[place] = msgspec.structs.replace(result, tool_call_id=prompt_id)
                return

    @property
    def is_complete(self) -> bool:
        """Whether every call has its result, so that the exchange is final."""
        return len(self.results) == len(self.calls)

    def messages(self) -> Iterator[PromptMessage]:
        """Yield the message, in the order of the calls one result for each, and what hooks add."""
        yield PromptMessage(Role.ASSISTANT, self.content, self.model_id)
        if self.calls:
            results = (
                self.results.get(place) or given_up(call, INTERRUPTED)
                for place, call in enumerate(self.calls)
            )
            yield PromptMessage(Role.TOOL, tuple(results))
        if self.added:
            yield PromptMessage(Role.USER, tuple(self.added))


def _messages_of(entry: PromptMessage | _Exchange) -> Iterable[PromptMessage]:
    return entry.messages() if isinstance(entry, _Exchange) else (entry,)


class _Pairing:
    """Assigns every result to its call while rows are added in order."""

    def __init__(self) -> None:
        self._entries: list[PromptMessage | _Exchange] = []
        self._finished: list[PromptMessage] = []  # Messages of the first entries, which are final.
        self._finished_count = 0
        self._ids: set[str] = set()
        # Exchanges by the stored ids of their calls, once for each call without a result.
        self._waiting: dict[str, list[_Exchange]] = {}

    def add(self, row: Message) -> None:
        """Add the next row."""
        results = [
            part
            for part in row.content
            if isinstance(part, ToolResult) and not part.provider_executed
        ]
        if row.role is Role.ASSISTANT:
            self._add_answer(row)
        elif row.role is not Role.TOOL:
            is_from_user = row.role is Role.USER
            parts = (shown(part, is_from_user=is_from_user) for part in row.content)
            content = tuple(
                part
                for part in parts
                if part is not None and not isinstance(part, ToolCall | ToolResult)
            )
            if content:
                self._entries.append(PromptMessage(row.role, content))
        for result in results:
            self._add_result(result)

    def messages(self) -> list[PromptMessage]:
        """Return the prompt of the rows added so far."""
        entries = self._entries[self._finished_count :]
        for entry in entries:
            if isinstance(entry, _Exchange) and not entry.is_complete:
                break
            self._finished.extend(_messages_of(entry))
            self._finished_count += 1
        rest = self._entries[self._finished_count :]
        return [*self._finished, *(message for entry in rest for message in _messages_of(entry))]

    def _add_answer(self, row: Message) -> None:
        content: list[Part] = []
        exchange = _Exchange((), "" if row.use is None else row.use.model_id, [], [])
        for part in row.content:
            match part:
                case ToolCall(provider_executed=False):
                    call = self._renamed(part)
                    exchange.calls.append(call)
                    exchange.stored_ids.append(part.tool_call_id)
                    content.append(call)
                case ToolResult(provider_executed=False):
                    continue
                case HookContext():
                    exchange.added.append(Text(hook_context_text(part)))
                case _:
                    readable = shown(part, is_from_user=False)
                    if readable is not None:
                        content.append(readable)
        if content:
            exchange.content = tuple(content)
            self._entries.append(exchange)
        for stored_id in exchange.stored_ids:
            self._waiting.setdefault(stored_id, []).append(exchange)

    def _add_result(self, result: ToolResult) -> None:
        """Assign a result to the newest call that waits for it; add a call for one without."""
        is_known = result.tool_call_id in self._waiting
        waiting = self._waiting.get(result.tool_call_id)
        if waiting:
            waiting.pop().answer(result)
        if is_known or not result.tool_name:
            return
        call = self._renamed(ToolCall(result.tool_call_id, result.tool_name, "{}"))
        orphan = _Exchange((call,), "", [call], [result.tool_call_id])
        orphan.answer(result)
        self._entries.append(orphan)
        self._waiting[result.tool_call_id] = []

    def _renamed(self, call: ToolCall) -> ToolCall:
        clean = _ODD.sub("_", call.tool_call_id) or "call"
        prompt_id, number = clean, 1
        while prompt_id in self._ids:
            number += 1
            prompt_id = f"{clean}_{number}"
        self._ids.add(prompt_id)
        args_json = call.args_json if _is_object(call.args_json) else "{}"
        return msgspec.structs.replace(call, tool_call_id=prompt_id, args_json=args_json)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
