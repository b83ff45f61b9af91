"""Resources and prompts of workspace servers, which people refer to in messages; untrusted."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspace_servers.domain.tools import visible

ENTRIES_MAX: Final = 1000
#: A listing ends with the entry that reaches so many characters, those of all its pages together.
LISTING_CHARACTERS_MAX: Final = 512 * 1024
NAME_CHARACTERS_MAX: Final = 128
URI_CHARACTERS_MAX: Final = 2048
LINE_CHARACTERS_MAX: Final = 2048
ARGUMENTS_MAX: Final = 32
CONTENTS_MAX: Final = 64
PROMPT_BYTES_MAX: Final = 65536
#: Below the largest message of gRPC, which has other fields too.
CONTENT_JSON_BYTES_MAX: Final = 3 * 1024 * 1024
CUT: Final = " [cut]"
_LINES: Final = ("uri", "name", "title", "description", "mimeType")

Entry = TypeVar("Entry")


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


@dataclass(frozen=True, slots=True)
class Listing(Generic[Entry]):
    """What was read of the pages of a listing.

    Attributes:
        entries: The entries, in the server's order.
        characters: The characters that were read, those that were left out included.
    """

    entries: tuple[Entry, ...] = ()
    characters: int = 0

    @property
    def is_full(self) -> bool:
        """Whether no more is read."""
        return len(self.entries) >= ENTRIES_MAX or self.characters >= LISTING_CHARACTERS_MAX


def listed_resources(
    page: Sequence[Any], earlier: Listing[ResourceEntry]
) -> Listing[ResourceEntry]:
    """Return a listing with the resources of its next page; what has no URI is left out."""
    return _listed(page, earlier, _resource)


def listed_prompts(page: Sequence[Any], earlier: Listing[PromptEntry]) -> Listing[PromptEntry]:
    """Return a listing with the prompts of its next page; what has no name is left out."""
    return _listed(page, earlier, _prompt)


def resource_contents(result: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the contents of a resource as parts of a message; data stays base64."""
    contents = result.get("contents")
    found = contents[:CONTENTS_MAX] if isinstance(contents, list) else []
    return [_content(each) for each in found if isinstance(each, dict)]


def content_json(contents: Sequence[Mapping[str, str]]) -> str:
    """Return the contents of a resource as they are sent.

    Raises:
        ServerFailed: They are too large for that.
    """
    encoded = msgspec.json.encode(contents)
    if len(encoded) > CONTENT_JSON_BYTES_MAX:
        size = f"{CONTENT_JSON_BYTES_MAX // 1024 // 1024} MiB"
        raise ServerFailed(f"the resource is larger than {size}; refer to a smaller one")
    return encoded.decode()


def filled_prompt(result: Mapping[str, Any]) -> FilledPrompt:
    """Return the messages of a prompt as one text; parts that are not text are named."""
    messages = result.get("messages")
    found = messages if isinstance(messages, list) else []
    texts = [_message(each) for each in found if isinstance(each, dict)]
    text = "\n\n".join(texts).encode("utf-8", "replace")
    # Cleaning takes time for each character, so what is too long is cut before.
    if len(text) > PROMPT_BYTES_MAX:
        text = text[: PROMPT_BYTES_MAX - len(CUT)] + CUT.encode()
    return FilledPrompt(_line(result, "description"), visible(text.decode(errors="ignore")))


def _listed(
    page: Sequence[Any],
    earlier: Listing[Entry],
    entry_of: Callable[[Mapping[str, Any]], Entry | None],
) -> Listing[Entry]:
    listing = earlier
    for given in page[:ENTRIES_MAX]:
        if listing.is_full:
            break
        if isinstance(given, dict):
            entry, characters = entry_of(given), listing.characters + _characters(given)
            found = () if entry is None else (entry,)
            listing = Listing((*listing.entries, *found), characters)
    return listing


def _characters(entry: Mapping[str, Any]) -> int:
    """Return how many characters of an entry are read."""
    arguments = entry.get("arguments")
    more = arguments[:ARGUMENTS_MAX] if isinstance(arguments, list) else []
    return sum(
        min(len(text), LINE_CHARACTERS_MAX)
        for each in (entry, *more)
        if isinstance(each, dict)
        for key in _LINES
        if isinstance(text := each.get(key), str)
    )


def _resource(entry: Mapping[str, Any]) -> ResourceEntry | None:
    uri = entry.get("uri")
    if not isinstance(uri, str) or not 0 < len(uri) <= URI_CHARACTERS_MAX:
        return None
    if not uri.isprintable():
        return None
    return ResourceEntry(
        uri,
        _line(entry, "name"),
        _line(entry, "title"),
        _line(entry, "description"),
        _line(entry, "mimeType")[:NAME_CHARACTERS_MAX],
    )


def _prompt(entry: Mapping[str, Any]) -> PromptEntry | None:
    if not (name := _name(entry)):
        return None
    title, description = _line(entry, "title"), _line(entry, "description")
    return PromptEntry(name, title, description, _arguments(entry))


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
