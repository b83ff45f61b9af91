"""The events of a stream, as on the wire: only the fields that are read."""

from collections.abc import Sequence

import msgspec


class Delta(msgspec.Struct, frozen=True):
    """A delta of a text, a refusal, reasoning, its summary, or the arguments of a call."""

    delta: str
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0


class ItemHead(msgspec.Struct, frozen=True):
    """Type and ids of an item."""

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
    """A citation of a text."""

    type: str = ""
    url: str | None = None
    title: str | None = None


class AnnotationAdded(msgspec.Struct, frozen=True):
    """A citation is added to a text that is being received."""

    annotation: Annotation
    output_index: int = 0


class Content(msgspec.Struct, frozen=True):
    """One part of a message or of reasoning."""

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
    """Complete reasoning: its summary, its text, or only encrypted content."""

    id: str | None = None
    summary: Sequence[Content] | None = None
    content: Sequence[Content] | None = None
    encrypted_content: str | None = None


class FunctionCallItem(msgspec.Struct, frozen=True):
    """A complete function call; a custom tool gets its input as plain text."""

    id: str | None = None
    call_id: str | None = None
    name: str = ""
    arguments: str = ""
    input: str | None = None
    status: str | None = None


class InputDetails(msgspec.Struct, frozen=True):
    """How many of the input tokens were read from or written to a cache."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct, frozen=True):
    """How many of the output tokens were reasoning."""

    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """The usage of an answer."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Error(msgspec.Struct, frozen=True):
    """An error; some endpoints put the status into the code."""

    code: str | int | None = None
    type: str | None = None
    message: str | None = None
    status: str | int | None = None
    status_code: int | None = None


class Incomplete(msgspec.Struct, frozen=True):
    """Why an answer is incomplete."""

    reason: str | None = None


class Response(msgspec.Struct, frozen=True):
    """The final response, which repeats the whole answer."""

    status: str | None = None
    output: Sequence[msgspec.Raw] | None = None
    usage: Usage | None = None
    error: Error | None = None
    incomplete_details: Incomplete | None = None


class Ended(msgspec.Struct, frozen=True):
    """The answer ended, successfully or not."""

    response: Response


class Anything(msgspec.Struct, frozen=True):
    """An event whose type is not known yet."""

    type: str = ""
    code: str | int | None = None
    message: str | None = None
    status: str | int | None = None
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def has_error(self) -> bool:
        """Return whether it reports an error."""
        return bytes(self.error) not in (b"", b"null")
