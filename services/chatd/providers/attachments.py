"""Converts attached files into the form that a wire format accepts."""

import re
from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from chatd.content.domain.parts import File
from chatd.models.domain.language_model import FileData
from chatd.providers.media import image_media_type

INLINE_BYTES_MAX = 128 * 1024

_PASTED = re.compile(r"pasted-text-\d{4}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}\.txt")
_PDF = "application/pdf"
_TEXT_LIKE = frozenset(
    f"application/{name}"
    for name in (
        "csv",
        "ecmascript",
        "graphql",
        "javascript",
        "json",
        "jsonl",
        "ld+json",
        "rtf",
        "sql",
        "toml",
        "typescript",
        "x-httpd-php",
        "x-javascript",
        "x-ndjson",
        "x-python",
        "x-sh",
        "x-shellscript",
        "x-tex",
        "x-toml",
        "x-typescript",
        "x-yaml",
        "xml",
        "yaml",
    )
)


class Accepted(StrEnum):
    """A kind of file that a wire format accepts unchanged."""

    IMAGE = "image"
    PDF = "pdf"
    TEXT = "text"
    AUDIO = "audio"


@dataclass(frozen=True, slots=True)
class InlineText:
    """The file's text, preceded by its name."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image; its type is detected from the bytes."""

    media_type: str
    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class PdfDocument:
    """A PDF."""

    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A plain text that the format accepts as a document."""

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class Audio:
    """A recording."""

    media_type: str
    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A text in place of a file that cannot be sent."""

    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing: the file is empty."""


Attachment = InlineText | Image | PdfDocument | TextDocument | Audio | Placeholder | Dropped


def attachment_of(file: File, data: FileData | None, accepted: Set[Accepted]) -> Attachment:
    """Return a file as the model receives it.

    Args:
        file: The part of the message.
        data: Its bytes; None when they are gone.
        accepted: What the wire format accepts.
    """
    name = file.name or (data.name if data is not None else "")
    if data is None:
        return Placeholder(
            f"[The file {_called(name)} is no longer stored. Ask for it to be uploaded again "
            "if it is needed.]"
        )
    if not data.data:
        return Dropped()
    media_type = (data.media_type or file.media_type).partition(";")[0].strip().lower()
    if _PASTED.fullmatch(name):
        return _inlined(name, data.data)
    return _by_type(media_type, name, data.data, accepted)


def is_text_like(media_type: str) -> bool:
    """Return whether a file of this type can be read as text."""
    return (
        media_type.startswith("text/")
        or media_type in _TEXT_LIKE
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def _by_type(media_type: str, name: str, data: bytes, accepted: Set[Accepted]) -> Attachment:
    if is_text_like(media_type):
        if not data.strip():
            return Placeholder(f"[The file {_called(name)} is blank.]")
        if media_type == "text/plain" and Accepted.TEXT in accepted:
            return TextDocument(_decoded(data), name)
        return _inlined(name, data)
    if media_type.startswith("image/") and Accepted.IMAGE in accepted:
        found = image_media_type(data)
        if found is not None:
            return Image(found, data, name)
    elif media_type == _PDF and Accepted.PDF in accepted:
        return PdfDocument(data, name)
    elif media_type.startswith("audio/") and Accepted.AUDIO in accepted:
        return Audio(media_type, data, name)
    return Placeholder(
        f"[The file {_called(name)} of type {media_type or 'unknown'} cannot be read by this "
        "model. Ask for it in another form if it is needed.]"
    )


def _inlined(name: str, data: bytes) -> InlineText:
    text = _decoded(data)
    encoded = text.encode()
    left_out_bytes = len(encoded) - INLINE_BYTES_MAX
    if left_out_bytes > 0:
        kept = encoded[:INLINE_BYTES_MAX].decode(errors="ignore")
        text = f"{kept}\n[... {left_out_bytes} more bytes were left out ...]"
    return InlineText(f"File {_called(name)}:\n{text}")


def _decoded(data: bytes) -> str:
    """Return bytes as text that no provider rejects: invalid UTF-8 and NUL are replaced."""
    return data.decode(errors="replace").replace("\x00", "\ufffd").removeprefix("\ufeff")


def _called(name: str) -> str:
    return f'"{name}"' if name else "without a name"
