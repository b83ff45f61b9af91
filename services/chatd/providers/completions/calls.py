"""Assembles tool calls from deltas, and decides when a call is shown.

A delta is matched by index, else by id, else by order. Endpoints deviate: one index for all calls
(a new id starts a call), one id for two calls (a new index with a name starts a call), no index and
no id (a name starts a call), ids that arrive late or never. Nothing can follow complete arguments,
so a delta with a name or an id and more arguments then starts a call as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from chatd.content.domain.parts import ToolCall
from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import ToolCallRequested, ToolInputDelta
from chatd.providers.completions.chunks import CallDelta, FunctionDelta, to_json

# A call without a name is answered like one of an unknown tool, so that the model can correct it.
NAMELESS = "unknown_tool"
_NO_ARGUMENTS = frozenset({"", "null", '""'})


@dataclass(slots=True)
class _Call:
    """One call while it is received."""

    place: int
    id: str
    name: str
    extra_content: object = None
    pieces: list[str] = field(default_factory=list)
    is_shown: bool = False

    @property
    def args_json(self) -> str:
        return "".join(self.pieces)

    def is_complete(self) -> bool:
        """Return whether the arguments are complete JSON, so that nothing can follow."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            msgspec.json.decode(self.args_json)
        except (ValueError, RecursionError):
            return False
        return True


class Calls:
    """Assembles the calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int | str, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._shown_ids: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def decode(self, delta: CallDelta) -> ToolInputDelta | None:
        """Apply a delta; return the event that shows it, if any."""
        function = delta.function or FunctionDelta()
        provider_id = repaired(str(delta.id)) if delta.id is not None else ""
        name = repaired(function.name or "")
        piece = _piece(function.arguments)
        call = self._find(delta.index, provider_id, name)
        if call is None or ((provider_id or name) and piece.strip() and call.is_complete()):
            call = _Call(len(self._calls), provider_id, name)
            self._calls.append(call)
        elif name and name != call.name and not (call.name and call.pieces):
            call.name += name
        call.id = call.id or provider_id
        call.extra_content = delta.extra_content or call.extra_content
        if piece:
            call.pieces.append(piece)
        if delta.index is not None:
            self._by_index[delta.index] = call
        if call.id:
            self._by_id[call.id] = call
        return self._shown(call, piece)

    def requested(self) -> Sequence[ToolCallRequested]:
        """Return the calls of the complete answer."""
        return [
            ToolCallRequested(
                ToolCall(
                    call.id,
                    call.name or NAMELESS,
                    _arguments(call.args_json),
                    provider_metadata=_metadata(call.extra_content),
                )
            )
            for call in self._calls
        ]

    def _find(self, index: int | str | None, provider_id: str, name: str) -> _Call | None:
        """Return the call that a delta continues; None if it starts one."""
        at_index = None if index is None else self._by_index.get(index)
        if at_index is not None:
            is_same = not provider_id or not at_index.id or at_index.id == provider_id
            return at_index if is_same else self._by_id.get(provider_id)
        if provider_id:
            same_id = self._by_id.get(provider_id)
            if same_id is None or not name or not same_id.name:
                return same_id
            is_repeated = index is None and name == same_id.name
            return same_id if is_repeated else None
        if name or not self._calls:
            return None
        return self._calls[-1]

    def _shown(self, call: _Call, piece: str) -> ToolInputDelta | None:
        """Return the event that shows a delta.

        The engine identifies calls by their ids and orders them as they are shown, so a call
        without an id, with the id of another, or after such a call, waits for the end.
        """
        if call.is_shown:
            return ToolInputDelta(call.id, call.name, piece) if piece else None
        is_next = call.place == len(self._shown_ids)
        if not is_next or not call.id or not call.name or call.id in self._shown_ids:
            return None
        self._shown_ids.add(call.id)
        call.is_shown = True
        return ToolInputDelta(call.id, call.name, call.args_json)


def _piece(arguments: object) -> str:
    match arguments:
        case None:
            return ""
        case str():
            return repaired(arguments)
        case _:
            return repaired(to_json(arguments))


def _arguments(text: str) -> str:
    return "{}" if text.strip() in _NO_ARGUMENTS else text


def _metadata(extra_content: object) -> str:
    if not extra_content:
        return ""
    return repaired(to_json({"chat": {"extra_content": extra_content}}))
