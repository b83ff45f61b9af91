"""The events of a streamed answer, as on the wire.

Only the fields that are read. Blocks are decoded in a second step, because a block of an unknown
kind may use any field name for anything.
"""

import msgspec

from chatd.providers.anthropic.metadata import SearchCitation


class StopDetails(msgspec.Struct):
    """Why a model refused."""

    category: str | None = None
    explanation: str | None = None


class Delta(msgspec.Struct):
    """A change of a block, or of the message."""

    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: msgspec.Raw = msgspec.Raw(b"")
    stop_reason: str | None = None
    stop_details: StopDetails | None = None


class OutputDetails(msgspec.Struct):
    """How many of the output tokens were thinking."""

    thinking_tokens: int | None = None


class Usage(msgspec.Struct):
    """Tokens so far; absent counts have not changed."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Message(msgspec.Struct):
    """The message at its start."""

    usage: Usage | None = None


class Event(msgspec.Struct):
    """Any event; which fields it has depends on its type."""

    type: str
    index: int = -1
    delta: Delta | None = None
    content_block: msgspec.Raw = msgspec.Raw(b"null")
    message: Message | None = None
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


class Kind(msgspec.Struct):
    """Only the type of an object."""

    type: str = ""


class Change(msgspec.Struct):
    """A delta of which only the type can be decoded."""

    delta: Kind


class ErrorDetail(msgspec.Struct):
    """The content of an error event."""

    type: str = ""
    message: str = ""


class TextBlock(msgspec.Struct):
    """A text at its start."""

    text: str | None = None


class ThinkingBlock(msgspec.Struct):
    """A thinking block at its start."""

    thinking: str | None = None
    signature: str | None = None


class RedactedBlock(msgspec.Struct):
    """A complete thinking block that only Anthropic can read."""

    data: str


class Caller(msgspec.Struct):
    """What made a call: the model itself or a tool."""

    type: str = "direct"


class CallBlock(msgspec.Struct):
    """A tool call at its start; the arguments normally follow."""

    id: str
    name: str
    input: msgspec.Raw = msgspec.Raw(b"{}")
    caller: Caller | None = None


class ResultBlock(msgspec.Struct):
    """The result of a call that the provider executed, complete."""

    tool_use_id: str
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool | None = None


class Citation(msgspec.Struct):
    """A citation of any kind, as far as it can be shown to users."""

    url: str | None = None
    source: str | None = None
    title: str | None = None
    document_title: str | None = None
    document_index: int | None = None


EVENT = msgspec.json.Decoder(Event)
CHANGE = msgspec.json.Decoder(Change)
KIND = msgspec.json.Decoder(Kind)
ERROR = msgspec.json.Decoder(ErrorDetail)
TEXT = msgspec.json.Decoder(TextBlock)
THINKING = msgspec.json.Decoder(ThinkingBlock)
REDACTED = msgspec.json.Decoder(RedactedBlock)
CALL = msgspec.json.Decoder(CallBlock)
RESULT = msgspec.json.Decoder(ResultBlock)
CITATION = msgspec.json.Decoder(Citation)
SEARCH_CITATION = msgspec.json.Decoder(SearchCitation)
