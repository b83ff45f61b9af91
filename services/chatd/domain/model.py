"""The language model as the engine sees it: a request out, a closed union of events in."""

from dataclasses import dataclass

from chatd.domain.chat import Message
from chatd.domain.parts import ToolCall
from chatd.domain.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """All that a model is asked with."""

    model: str
    history: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of what the model thinks."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """A complete tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete; a stream that ends without this one failed."""


ModelEvent = TextDelta | ReasoningDelta | ToolCallRequested | Finished
