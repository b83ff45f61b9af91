"""The fields of events that the load test needs; all others are skipped without decoding."""

from typing import Any

import msgspec
from msgspec import Raw, Struct


class Piece(Struct, frozen=True):
    """A piece of a part."""

    type: str = ""
    text: str = ""


class LivePart(Struct, frozen=True):
    """A piece of the answer that is being generated."""

    role: str
    part: Piece
    history_version: int
    generation_attempt: int
    seq: int

    @property
    def episode(self) -> tuple[int, int]:
        """The attempt it belongs to."""
        return self.history_version, self.generation_attempt


class Message(Struct, frozen=True):
    """A committed message; its content is kept undecoded."""

    id: int
    role: str
    revision: int
    content: Raw

    def parts(self) -> Any:
        """Return its content, decoded."""
        return msgspec.json.decode(self.content)

    def text(self) -> str:
        """Return its text."""
        return "".join(piece.text for piece in _pieces(self.content) if piece.type == "text")


class Status(Struct, frozen=True):
    """The status of a chat."""

    status: str
    place_in_line: int = 0


class Problem(Struct, frozen=True):
    """An error."""

    message: str = ""
    detail: str | None = None


class Document(Struct, frozen=True):
    """The document of any event; it has the field of its kind."""

    message_part: LivePart | None = None
    message: Message | None = None
    status: Status | None = None
    error: Problem | None = None


class MessagePage(Struct, frozen=True):
    """A page of a chat's history, newest first."""

    messages: list[Message]
    has_more: bool = False


_pieces = msgspec.json.Decoder(list[Piece]).decode
decode = msgspec.json.Decoder(Document).decode
decode_page = msgspec.json.Decoder(MessagePage).decode
