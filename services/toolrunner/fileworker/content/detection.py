"""Detection of file contents: kind, media type, encoding, lines and etag."""

import codecs
import hashlib
import re
from dataclasses import dataclass
from typing import Final

SAMPLE_BYTES: Final = 4096
CONTROL_SHARE_MAX: Final = 0.3

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
)
_CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\b\x1b")
_MULTIBYTE: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
_SVG: Final = re.compile(
    r"\A\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>]", re.S
)


@dataclass(frozen=True, slots=True)
class FileType:
    """The type of a file, detected from its first bytes.

    Attributes:
        kind: `text`, `image`, `pdf`, `binary` or `empty`; names are those of the proto.
        media_type: From the bytes, never from the name.
        encoding: Of text; empty otherwise.
    """

    kind: str
    media_type: str
    encoding: str = ""


def etag_of(content: bytes) -> str:
    """Return the etag of a content."""
    return hashlib.sha256(content).hexdigest()


def file_type_of(sample: bytes) -> FileType:
    """Detect the type of a file from its beginning."""
    if not sample:
        return FileType("empty", "application/x-empty")
    media_type = _media_type(sample)
    if media_type.startswith("image/"):
        return FileType("image", media_type)
    if media_type == "application/pdf":
        return FileType("pdf", media_type)
    if media_type:
        return FileType("binary", media_type)
    encoding = _marked_encoding(sample)
    if not encoding and _is_binary(sample[:SAMPLE_BYTES]):
        return FileType("binary", "application/octet-stream")
    is_svg = _SVG.match(sample.decode(errors="replace")) is not None
    media_type = "image/svg+xml" if is_svg else "text/plain"
    return FileType("text", media_type, encoding or _guessed_encoding(sample))


def _media_type(sample: bytes) -> str:
    for magic, media_type in _MAGIC:
        if sample.startswith(magic):
            return media_type
    if sample[:4] == b"RIFF" and sample[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _marked_encoding(sample: bytes) -> str:
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if sample.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    return ""


def _is_binary(sample: bytes) -> bool:
    if b"\0" in sample:
        return True
    return sum(byte in _CONTROL for byte in sample) > CONTROL_SHARE_MAX * len(sample)


def _guessed_encoding(sample: bytes) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        # Not final: the sample may end inside of a character.
        decoder.decode(sample)
    except UnicodeDecodeError:
        # Invalid bytes among valid multibyte characters are damage; only invalid ones are another
        # encoding.
        return "utf-8" if _MULTIBYTE.search(sample) else "iso-8859-1"
    return "utf-8"


_MARKS: Final = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text and its encoding, so that unchanged parts are written back unchanged."""

    text: str
    encoding: str

    def encoded(self, text: str) -> bytes:
        """Return another text in the same encoding.

        Raises:
            UnicodeEncodeError: It has characters that the encoding lacks.
        """
        return mark_of(self.encoding) + text.encode(codec_of(self.encoding), "surrogateescape")


def mark_of(encoding: str) -> bytes:
    """Return the byte order mark of an encoding."""
    return _MARKS.get(encoding, b"")


def codec_of(encoding: str) -> str:
    """Return the codec for the bytes after the byte order mark."""
    return "utf-8" if encoding == "utf-8-sig" else encoding


def text_of(content: bytes) -> Text | None:
    """Return the text of a file, or None if it cannot be written back unchanged."""
    looks = file_type_of(content)
    if looks.kind == "empty":
        return Text("", "utf-8")
    if looks.kind != "text":
        return None
    body = content[len(mark_of(looks.encoding)) :]
    try:
        text = Text(body.decode(codec_of(looks.encoding), "surrogateescape"), looks.encoding)
        return text if text.encoded(text.text) == content else None
    except UnicodeError:
        return None
