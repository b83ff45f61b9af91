"""An answer while it is being received: published piece by piece, and readable at any time."""

from collections.abc import Callable, Mapping
from typing import assert_never

import msgspec

from chatd.chats.domain.pieces import Piece, joined
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Fallback, Part, Reasoning, Text, ToolCall
from chatd.models.domain.estimates import text_bytes, tokens_of_bytes
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
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
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import ModelProfile
from chatd.spend.domain.metering import Metered, metered, model_use
from parley.clock import Clock

Show = Callable[[Role, int, Part], None]


def ignore_part(role: Role, part_index: int, part: Part) -> None:
    """Discard the piece."""


class Answer:
    """Accumulates a model's events.

    Call ids are unique within an answer, regardless of those that the provider sends.

    Args:
        show: Publishes each piece.
        clock: The clock.
        server_ids: MCP servers by the names of their tools; a provider does not know them.
        fallback: Comes before the answer if it is the first one of a fallback model.
    """

    def __init__(
        self,
        show: Show,
        clock: Clock,
        server_ids: Mapping[str, str] | None = None,
        fallback: Fallback | None = None,
    ) -> None:
        self._show = show
        self._server_ids = server_ids or {}
        self._clock = clock
        self._opened_s = clock.monotonic()
        self._pieces: list[Piece] = []
        self.parts_count = 0
        self.length = 0  # Characters received so far.
        self._open: tuple[type[Part], str] | None = None  # Kind and block of the open deltas.
        self._inputs: dict[str, tuple[int, str]] = {}  # Index and id of calls by provider's id.
        self._call_ids: set[str] = set()
        self._written_bytes = 0  # Output of the model, from which its tokens are estimated.
        self.is_sent = False  # Whether the prompt was sent to the provider.
        self.usage: UsageReported | None = None
        self.finished: Finished | None = None
        self._fallback = fallback
        if fallback is not None:
            self._add(self._next_place(), fallback)

    @property
    def content(self) -> tuple[Part, ...]:
        """All parts received so far."""
        return joined(self._pieces)

    @property
    def has_begun(self) -> bool:
        """Whether the model produced anything that its provider will charge for."""
        return len(self._pieces) > (self._fallback is not None) or self.usage is not None

    @property
    def output_tokens(self) -> int:
        """An estimate of the tokens received so far."""
        return tokens_of_bytes(self._written_bytes)

    def on_event(self, event: ModelEvent) -> None:
        """Apply the next event."""
        match event:
            case TextDelta(text, block_id):
                self._append(Text(text), block_id)
            case TextEnded(metadata):
                if metadata and self._is_open(Text):
                    self.length += len(metadata)
                    self._add(self.parts_count - 1, Text("", metadata))
                self._open = None
            case ReasoningDelta(text, block_id):
                is_new = self._open != (Reasoning, block_id)
                began_at = self._clock.now() if is_new else None
                self._append(Reasoning(text, began_at), block_id)
            case ReasoningEnded(metadata):
                self._end_reasoning(metadata)
            case ToolInputDelta(provider_id, tool_name, args_delta):
                place, call_id = self._input(provider_id)
                self.length += len(args_delta)
                self._written_bytes += text_bytes(args_delta)
                server_id = self._server_ids.get(tool_name, "")
                self._add(place, ToolCall(call_id, tool_name, args_delta, server_id))
            case ToolCallRequested(call):
                self._complete_call(call)
            case SourceCited(source):
                self._add(self._next_place(), source)
            case ProviderToolResult(result):
                self.length += len(result.result_json)
                self._add(self._next_place(), result)
            case UsageReported():
                self.usage = event
            case RequestSent():
                self.is_sent = True
            case Heartbeat():
                pass
            case Finished():
                self._close_deltas()
                self.finished = event
            case _:
                assert_never(event)

    def use(
        self, profile: ModelProfile, input_tokens: Callable[[], int], alive_ms: int
    ) -> ModelUse:
        """Return the usage of the call, as it is stored with its message.

        Args:
            profile: The model that was called.
            input_tokens: Returns an estimate of the prompt's tokens; called only if needed.
            alive_ms: The time that the step took so far.
        """
        model_ms = round((self._clock.monotonic() - self._opened_s) * 1000)
        return model_use(profile, self._metered(input_tokens), alive_ms=alive_ms, model_ms=model_ms)

    def _metered(self, input_tokens: Callable[[], int]) -> Metered:
        return metered(
            self.usage,
            is_complete=self.finished is not None,
            estimated=lambda: UsageReported(input_tokens(), self.output_tokens),
        )

    def _append(self, delta: Text | Reasoning, block_id: str) -> None:
        """Append to the open part, or open one."""
        if not delta.text:
            return
        if self._open != (type(delta), block_id):
            self._next_place()
            self._open = (type(delta), block_id)
        self.length += len(delta.text)
        self._written_bytes += text_bytes(delta.text)
        self._add(self.parts_count - 1, delta)

    def _end_reasoning(self, metadata: str) -> None:
        now = self._clock.now()
        self.length += len(metadata)
        if self._is_open(Reasoning):
            self._add(self.parts_count - 1, Reasoning("", None, now, metadata))
        elif metadata:
            self._add(self._next_place(), Reasoning("", now, now, metadata))
        self._open = None

    def _complete_call(self, call: ToolCall) -> None:
        if call.tool_call_id not in self._inputs:
            self._written_bytes += text_bytes(call.args_json)  # No delta counted them before.
        place, call_id = self._input(call.tool_call_id)
        del self._inputs[call.tool_call_id]
        self.length += len(call.args_json)
        server_id = "" if call.provider_executed else self._server_ids.get(call.tool_name, "")
        self._add(
            place,
            msgspec.structs.replace(
                call,
                tool_call_id=call_id,
                mcp_server_id=server_id,
                created_at=self._clock.now(),
            ),
        )

    def _input(self, provider_id: str) -> tuple[int, str]:
        """Return index and id of the call that is being received under a provider's id."""
        if provider_id not in self._inputs:
            place = self._next_place()
            call_id = provider_id or f"call_{place}"
            if call_id in self._call_ids:
                call_id = f"{call_id}_{place}"
            self._call_ids.add(call_id)
            self._inputs[provider_id] = (place, call_id)
        return self._inputs[provider_id]

    def _is_open(self, kind: type[Part]) -> bool:
        return self._open is not None and self._open[0] is kind

    def _next_place(self) -> int:
        self._close_deltas()
        self.parts_count += 1
        return self.parts_count - 1

    def _close_deltas(self) -> None:
        if self._is_open(Reasoning):
            self._end_reasoning("")
        self._open = None

    def _add(self, place: int, part: Part) -> None:
        self._pieces.append(Piece(Role.ASSISTANT, place, part))
        self._show(Role.ASSISTANT, place, part)
