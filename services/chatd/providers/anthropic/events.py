"""The events of a streamed answer as they are on the wire.

Fields are those that are read. Blocks are decoded in a second step, because a block of a kind that
is not known may use any name for anything.
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
    """What part of the output was thought."""

    thinking_tokens: int | None = None


class Usage(msgspec.Struct):
    """Tokens so far; what is absent has not changed."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Message(msgspec.Struct):
    """The message at its beginning."""

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
    """Only what kind of thing it is."""

    type: str = ""


class Change(msgspec.Struct):
    """A change of which only the kind can be read."""

    delta: Kind


class ErrorDetail(msgspec.Struct):
    """What an error event says."""

    type: str = ""
    message: str = ""


class TextBlock(msgspec.Struct):
    """A text at its beginning."""

    text: str | None = None


class ThinkingBlock(msgspec.Struct):
    """A thought at its beginning."""

    thinking: str | None = None
    signature: str | None = None


class RedactedBlock(msgspec.Struct):
    """A thought that only Anthropic can read, complete."""

    data: str


class Caller(msgspec.Struct):
    """Who made a call."""

    type: str = "direct"


class CallBlock(msgspec.Struct):
    """A tool call at its beginning; the arguments normally follow."""

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
    """Anything that a text rests on, as far as readers can be told of it."""

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
