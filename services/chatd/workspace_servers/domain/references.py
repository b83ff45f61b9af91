"""Resources and prompts of workspace servers, which people refer to in messages; untrusted."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chatd.workspace_servers.domain.tools import visible

ENTRIES_MAX: Final = 1000
NAME_CHARACTERS_MAX: Final = 128
URI_CHARACTERS_MAX: Final = 2048
LINE_CHARACTERS_MAX: Final = 2048
ARGUMENTS_MAX: Final = 32
CONTENTS_MAX: Final = 64
PROMPT_BYTES_MAX: Final = 65536
CUT: Final = " [cut]"


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """A resource that a server lists."""

    uri: str
    name: str
    title: str
    description: str
    media_type: str


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    description: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """A prompt that a server lists."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt with its arguments filled in, as one text."""

    description: str
    text: str


def listed_resources(entries: Sequence[Any]) -> tuple[ResourceEntry, ...]:
    """Return the resources of a listing; what has no URI is left out."""
    return tuple(
        ResourceEntry(
            uri,
            _line(entry, "name"),
            _line(entry, "title"),
            _line(entry, "description"),
            _line(entry, "mimeType")[:NAME_CHARACTERS_MAX],
        )
        for entry in entries[:ENTRIES_MAX]
        if isinstance(entry, dict)
        and isinstance(uri := entry.get("uri"), str)
        and 0 < len(uri) <= URI_CHARACTERS_MAX
        and uri.isprintable()
    )


def listed_prompts(entries: Sequence[Any]) -> tuple[PromptEntry, ...]:
    """Return the prompts of a listing; what has no name is left out."""
    return tuple(
        PromptEntry(name, _line(entry, "title"), _line(entry, "description"), _arguments(entry))
        for entry in entries[:ENTRIES_MAX]
        if isinstance(entry, dict) and (name := _name(entry))
    )


def resource_contents(result: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the contents of a resource as parts of a message; data stays base64."""
    contents = result.get("contents")
    found = contents[:CONTENTS_MAX] if isinstance(contents, list) else []
    return [_content(each) for each in found if isinstance(each, dict)]


def filled_prompt(result: Mapping[str, Any]) -> FilledPrompt:
    """Return the messages of a prompt as one text; parts that are not text are named."""
    messages = result.get("messages")
    found = messages if isinstance(messages, list) else []
    texts = [_message(each) for each in found if isinstance(each, dict)]
    text = visible("\n\n".join(texts)).encode("utf-8", "replace")
    if len(text) > PROMPT_BYTES_MAX:
        text = text[: PROMPT_BYTES_MAX - len(CUT)] + CUT.encode()
    return FilledPrompt(_line(result, "description"), text.decode(errors="ignore"))


def _arguments(entry: Mapping[str, Any]) -> tuple[PromptArgument, ...]:
    given = entry.get("arguments")
    found = given[:ARGUMENTS_MAX] if isinstance(given, list) else []
    return tuple(
        PromptArgument(name, _line(each, "description"), each.get("required") is True)
        for each in found
        if isinstance(each, dict) and (name := _name(each))
    )


def _content(content: Mapping[str, Any]) -> dict[str, str]:
    media_type = _line(content, "mimeType")[:NAME_CHARACTERS_MAX]
    told = {"type": "resource", "uri": _line(content, "uri"), "media_type": media_type}
    blob = content.get("blob")
    if not isinstance(blob, str):
        return {**told, "text": _text(content)}
    try:
        base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        return {**told, "text": "[data that is not valid base64 was left out]"}
    return {**told, "data": blob}


def _message(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if not isinstance(content, dict):
        return ""
    if content.get("type") == "text":
        return _text(content)
    resource = content.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return _text(resource)
    return f"[{_line(content, 'type')[:NAME_CHARACTERS_MAX] or 'a part'} was left out]"


def _name(entry: Mapping[str, Any]) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not name.isprintable():
        return ""
    return name if len(name) <= NAME_CHARACTERS_MAX else ""


def _text(content: Mapping[str, Any]) -> str:
    text = content.get("text")
    text = text if isinstance(text, str) else ""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _line(entry: Mapping[str, Any], key: str) -> str:
    text = entry.get(key)
    return visible(text[:LINE_CHARACTERS_MAX]) if isinstance(text, str) else ""
