"""Resources and prompts of servers, which people refer to in messages; all input is untrusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp import Client, MCPError

from mcpgateway.client.content import Part, TextPart, body_of
from mcpgateway.client.error_answers import is_unknown_method
from mcpgateway.client.translation import cut_text, part_of, resource_part, visible_text

ENTRIES_MAX: Final = 1000
PAGES_MAX: Final = 50
PROMPT_BYTES_MAX: Final = 65536


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """A resource or a template of resources.

    Attributes:
        uri: The URI, or a template with variables in braces.
    """

    uri: str
    is_template: bool
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
    """A prompt."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt with its arguments filled in, as one text."""

    description: str
    text: str


async def list_resources(client: Client) -> tuple[ResourceEntry, ...]:
    """Return the resources and templates of a server; none if it has no resources."""
    entries: list[ResourceEntry] = []
    try:
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await client.list_resources(cursor=cursor)
            entries += [_entry(each, str(each.uri), is_template=False) for each in page.resources]
            cursor = page.next_cursor
            if cursor is None or len(entries) >= ENTRIES_MAX:
                break
        templates = await client.list_resource_templates()
        entries += [
            _entry(each, each.uri_template, is_template=True)
            for each in templates.resource_templates
        ]
    except MCPError as error:
        if not is_unknown_method(error):
            raise
    return tuple(entries[:ENTRIES_MAX])


async def read_resource(client: Client, uri: str) -> tuple[Part, ...]:
    """Return the contents of a resource."""
    read = await client.read_resource(uri)
    return tuple(resource_part(each) for each in read.contents)


async def list_prompts(client: Client) -> tuple[PromptEntry, ...]:
    """Return the prompts of a server; none if it has none."""
    entries: list[PromptEntry] = []
    cursor: str | None = None
    try:
        for _ in range(PAGES_MAX):
            page = await client.list_prompts(cursor=cursor)
            for each in page.prompts:
                arguments = tuple(
                    PromptArgument(
                        _line(given.name), _line(given.description), bool(given.required)
                    )
                    for given in each.arguments or ()
                )
                title, description = _line(each.title), _line(each.description)
                entries.append(PromptEntry(each.name[:128], title, description, arguments))
            cursor = page.next_cursor
            if cursor is None or len(entries) >= ENTRIES_MAX:
                break
    except MCPError as error:
        if not is_unknown_method(error):
            raise
    return tuple(entries[:ENTRIES_MAX])


async def get_prompt(client: Client, name: str, arguments: Mapping[str, str]) -> FilledPrompt:
    """Return a prompt with its arguments filled in; parts that are not text are named."""
    filled = await client.get_prompt(name, dict(arguments))
    texts = [_text(part_of(message.content)) for message in filled.messages]
    text = cut_text("\n\n".join(texts), PROMPT_BYTES_MAX)
    return FilledPrompt(_line(filled.description), text)


def _entry(each: object, uri: str, *, is_template: bool) -> ResourceEntry:
    return ResourceEntry(
        uri[:2048],
        is_template,
        _line(getattr(each, "name", "")),
        _line(getattr(each, "title", "")),
        _line(getattr(each, "description", "")),
        (getattr(each, "mime_type", None) or "")[:128],
    )


def _text(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    return f"[{type(part).__name__.removesuffix('Part').lower()}, {len(body_of(part))} bytes]"


def _line(text: str | None) -> str:
    return visible_text(text or "")[:2048]
