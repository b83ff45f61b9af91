"""Encodes the content of a user message."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from chatd.content.domain.parts import File, Part, Text
from chatd.models.domain.language_model import FileData
from chatd.providers.attachments import (
    Audio,
    Dropped,
    Image,
    InlineText,
    PdfDocument,
    Placeholder,
    TextDocument,
    attachment_of,
)
from chatd.providers.completions.options import Options

WirePart = dict[str, object]

_AUDIO_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
    "audio/vnd.wave": "wav",
}


def user_content(
    content: Sequence[Part], files: Mapping[str, FileData], options: Options
) -> str | list[WirePart]:
    """Return the content: one string if it is only text, because all endpoints accept that."""
    parts = [made for part in content for made in _parts(part, files, options)]
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(str(part["text"]) for part in parts)
    return parts


def image_part(media_type: str, data_base64: str, options: Options) -> WirePart:
    """Return an image part."""
    image: WirePart = {"url": f"data:{media_type};base64,{data_base64}"}
    if options.image_detail is not None:
        image["detail"] = options.image_detail
    return {"type": "image_url", "image_url": image}


def _parts(part: Part, files: Mapping[str, FileData], options: Options) -> Iterator[WirePart]:
    if isinstance(part, Text):
        yield _text_part(part.text)
    elif isinstance(part, File):
        yield from _file_parts(part, files.get(part.file_id), options)


def _file_parts(file: File, data: FileData | None, options: Options) -> Iterator[WirePart]:
    attachment = attachment_of(file, data, options.accepted_files or frozenset())
    match attachment:
        case InlineText(text) | Placeholder(text):
            yield _text_part(text)
        case TextDocument(text, name):
            yield _text_part(f'File "{name}":\n{text}' if name else text)
        case Image(media_type, content):
            yield image_part(media_type, _base64(content), options)
        case PdfDocument(content, name):
            url = f"data:application/pdf;base64,{_base64(content)}"
            yield {"type": "file", "file": {"filename": name or "file.pdf", "file_data": url}}
        case Audio():
            yield _audio_part(attachment)
        case Dropped():
            return
        case _:
            assert_never(attachment)


def _audio_part(audio: Audio) -> WirePart:
    audio_format = _AUDIO_FORMATS.get(audio.media_type)
    if audio_format is None:
        name = f'"{audio.name}"' if audio.name else "without a name"
        return _text_part(
            f"[The recording {name} of type {audio.media_type} cannot be heard by this model. Ask "
            "for it as WAV or MP3 if it is needed.]"
        )
    sound = {"data": _base64(audio.data), "format": audio_format}
    return {"type": "input_audio", "input_audio": sound}


def _text_part(text: str) -> WirePart:
    return {"type": "text", "text": text}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
