"""The events of a stream as they lie on the wire: only what we read of them."""

from collections.abc import Sequence

import msgspec


class Delta(msgspec.Struct, frozen=True):
    """More of a text, a refusal, a thought, its summary, or the arguments of a call."""

    delta: str
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0


class ItemHead(msgspec.Struct, frozen=True):
    """What an item is."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None


class ItemAdded(msgspec.Struct, frozen=True):
    """An item of the answer begins."""

    item: ItemHead
    output_index: int = 0


class ItemDone(msgspec.Struct, frozen=True):
    """An item of the answer is complete."""

    item: msgspec.Raw
    output_index: int = 0


class Annotation(msgspec.Struct, frozen=True):
    """Something that a text refers to."""

    type: str = ""
    url: str | None = None
    title: str | None = None


class AnnotationAdded(msgspec.Struct, frozen=True):
    """A text that is being written refers to something."""

    annotation: Annotation
    output_index: int = 0


class Content(msgspec.Struct, frozen=True):
    """One piece of a message or of a thought."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: Sequence[Annotation] | None = None


class MessageItem(msgspec.Struct, frozen=True):
    """A complete message."""

    id: str | None = None
    content: Sequence[Content] | None = None
    phase: str | None = None


class ReasoningItem(msgspec.Struct, frozen=True):
    """A complete thought: a summary of it, its text, or only what the provider can read."""

    id: str | None = None
    summary: Sequence[Content] | None = None
    content: Sequence[Content] | None = None
    encrypted_content: str | None = None


class FunctionCallItem(msgspec.Struct, frozen=True):
    """A complete call of a tool of ours; a custom tool gets its input as it is."""

    id: str | None = None
    call_id: str | None = None
    name: str = ""
    arguments: str = ""
    input: str | None = None
    status: str | None = None


class InputDetails(msgspec.Struct, frozen=True):
    """Which part of the input a cache had to do with."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct, frozen=True):
    """Which part of the output were thoughts."""

    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """What an answer cost."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Error(msgspec.Struct, frozen=True):
    """What went wrong; some endpoints give the status as code."""

    code: str | int | None = None
    type: str | None = None
    message: str | None = None
    status: str | int | None = None
    status_code: int | None = None


class Incomplete(msgspec.Struct, frozen=True):
    """Why an answer ends before its end."""

    reason: str | None = None


class Response(msgspec.Struct, frozen=True):
    """A whole answer, once more."""

    status: str | None = None
    output: Sequence[msgspec.Raw] | None = None
    usage: Usage | None = None
    error: Error | None = None
    incomplete_details: Incomplete | None = None


class Ended(msgspec.Struct, frozen=True):
    """The answer is over, one way or another."""

    response: Response


class Anything(msgspec.Struct, frozen=True):
    """An event of which nothing is known yet."""

    type: str = ""
    code: str | int | None = None
    message: str | None = None
    status: str | int | None = None
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def has_error(self) -> bool:
        """Return whether it says that something went wrong."""
        return bytes(self.error) not in (b"", b"null")
