"""The formats of a chat export, written incrementally.

Each format ends with the number of messages, so that a reader can check that it is complete.
"""

from enum import StrEnum
from typing import Any, Protocol

import msgspec

from gateway.api.json_output import Json, to_json
from parley.api.chat.v1 import chat_pb2, message_pb2

# Why an answer is incomplete, as text.
CUT = {
    message_pb2.FINISH_REASON_LENGTH: "Cut: the length limit was reached.",
    message_pb2.FINISH_REASON_CONTENT_FILTER: "Cut: the provider's content policy.",
    message_pb2.FINISH_REASON_INTERRUPTED: "Cut: the turn was interrupted.",
}

_encode = msgspec.json.Encoder().encode


class ExportFormat(StrEnum):
    """A format of an export."""

    JSON = "json"
    JSON_LINES = "jsonl"
    MARKDOWN = "md"


class ExportWriter(Protocol):
    """Encodes the pieces of a chat in their order."""

    media_type: str

    def head(self, chat: chat_pb2.Chat) -> bytes:
        """Return the beginning of the document."""
        ...

    def message(self, message: message_pb2.Message) -> bytes:
        """Encode one message."""
        ...

    def end(self, message_count: int) -> bytes:
        """Return the end of the document."""
        ...


def writer_for(wanted: ExportFormat) -> ExportWriter:
    """Return a new writer of a format."""
    match wanted:
        case ExportFormat.JSON:
            return JsonWriter()
        case ExportFormat.JSON_LINES:
            return JsonLinesWriter()
        case ExportFormat.MARKDOWN:
            return MarkdownWriter()


class JsonWriter:
    """One JSON document: the chat, its messages, their number."""

    media_type = "application/json"

    def __init__(self) -> None:
        self._is_first = True

    def head(self, chat: chat_pb2.Chat) -> bytes:
        """Return the document up to its messages."""
        return b'{"chat":' + _encode(to_json(chat)) + b',"messages":['

    def message(self, message: message_pb2.Message) -> bytes:
        """Return one element of the list."""
        comma = b"" if self._is_first else b","
        self._is_first = False
        return comma + _encode(to_json(message))

    def end(self, message_count: int) -> bytes:
        """Return the rest of the document."""
        return b'],"message_count":%d}\n' % message_count


class JsonLinesWriter:
    """One line of JSON for each piece, an object with one member that names its type."""

    media_type = "application/jsonl"

    def head(self, chat: chat_pb2.Chat) -> bytes:
        """Return the line of the chat."""
        return self._line({"chat": to_json(chat)})

    def message(self, message: message_pb2.Message) -> bytes:
        """Return the line of a message."""
        return self._line({"message": to_json(message)})

    def end(self, message_count: int) -> bytes:
        """Return the last line."""
        return self._line({"complete": {"message_count": message_count}})

    def _line(self, piece: Json) -> bytes:
        return _encode(piece) + b"\n"


class MarkdownWriter:
    """The conversation as Markdown."""

    media_type = "text/markdown; charset=utf-8"

    def head(self, chat: chat_pb2.Chat) -> bytes:
        """Return the title."""
        title = " ".join(chat.title.split())
        return f"# {title}\n".encode()

    def message(self, message: message_pb2.Message) -> bytes:
        """Return a section for one message; parts that are not text are quoted as JSON."""
        shown: dict[str, Any] = to_json(message)
        role = (shown["role"] or "unknown").capitalize()
        blocks = "".join(_block(part) for part in shown["content"])
        cut = CUT.get(message.finish_reason)
        ending = f"\n*{cut}*\n" if cut else ""
        sender = "" if shown["origin"] in (None, "person") else f"\n*Origin: {shown['origin']}*\n"
        return f"\n## {role} ({message.id})\n{sender}{blocks}{ending}".encode()

    def end(self, message_count: int) -> bytes:
        """Return the number of messages."""
        return f"\n---\n\n{message_count} messages\n".encode()


def _block(part: Json) -> str:
    if part["type"] == "text":
        return f"\n{part['text']}\n"
    if part["type"] == "reasoning":
        lines = str(part["text"]).splitlines() or [""]
        return "\n" + "".join(f"> {line}\n" for line in lines)
    shown = msgspec.json.format(_encode(part), indent=2).decode()
    # A fence inside a JSON text would end this code block; JSON can escape it.
    return "\n```json\n" + shown.replace("```", "\\u0060" * 3) + "\n```\n"
