"""Converts tools and results of the MCP protocol to domain values; all input is untrusted."""

import base64
import binascii
import logging
import unicodedata
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_types import Tool as ProtocolTool

from mcpgateway.client.content import (
    BlobPart,
    LinkPart,
    Part,
    ResourcePart,
    StructuredPart,
    TextPart,
    ToolAnswer,
    UnknownPart,
)
from mcpgateway.client.tool_names import ORIGINAL_NAME_MAX, canonical_json, definition_digest
from mcpgateway.servers.domain import Tool, ToolHints
from parley.tool_schemas import Budget, check_schema

DESCRIPTION_BYTES_MAX: Final = 2048
SCHEMA_BYTES_MAX: Final = 65536
SCHEMA_DEPTH_MAX: Final = 32
#: Control, format, surrogate, private and unassigned characters.
INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
DESCRIPTION_CUT: Final = " [description cut]"
MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
)

logger = logging.getLogger(__name__)


def usable_tool(tool: ProtocolTool, budget: Budget) -> Tool | None:
    """Convert a tool; None if its name or schemas cannot be given to models.

    Args:
        tool: The tool as its server lists it.
        budget: How much of the schemas of a whole listing is read.
    """
    schemas: list[bytes] = []
    try:
        schema = {"type": "object", **visible_schema(tool.input_schema)}
        schemas.append(canonical_json(schema))
        if tool.output_schema is not None:
            schemas.append(canonical_json(visible_schema(tool.output_schema)))
        is_usable = (
            0 < len(tool.name) <= ORIGINAL_NAME_MAX
            and "\0" not in tool.name
            and all(len(each) <= SCHEMA_BYTES_MAX for each in schemas)
        )
        if is_usable:
            check_schema(schema, budget)
    except (RecursionError, ArithmeticError, ValueError):
        # ArithmeticError: a number that JSON of ours cannot have; SchemaUnusable is a ValueError.
        is_usable = False
    if not is_usable:
        logger.info("a tool was left out: its name or its schema cannot be used")
        return None
    description = cut_text(tool.description or "", DESCRIPTION_BYTES_MAX)
    hints = _hints(tool)
    annotated_title = tool.annotations.title if tool.annotations else None
    return Tool(
        name=tool.name,
        title=visible_text(tool.title or annotated_title or "")[:256],
        description=description,
        input_schema_json=schemas[0],
        output_schema_json=schemas[1] if len(schemas) > 1 else b"",
        hints=hints,
        digest=definition_digest(tool.name, description, schemas, hints),
    )


def visible_schema(schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return a schema whose texts have no invisible characters.

    Raises:
        RecursionError: It is deeper than a definition may be.
    """
    return {visible_text(key): _visible(value, depth + 1) for key, value in schema.items()}


def _visible(value: Any, depth: int) -> Any:
    if depth > SCHEMA_DEPTH_MAX:
        raise RecursionError
    match value:
        case str():
            return visible_text(value)
        case dict():
            return visible_schema(value, depth)
        case list():
            return [_visible(each, depth + 1) for each in value]
        case _:
            return value


def _hints(tool: ProtocolTool) -> ToolHints:
    said = tool.annotations
    if said is None:
        return ToolHints()
    return ToolHints(
        read_only=said.read_only_hint,
        destructive=said.destructive_hint,
        idempotent=said.idempotent_hint,
        open_world=said.open_world_hint,
    )


def tool_answer(result: CallToolResult) -> ToolAnswer:
    """Convert all parts of a result, in order."""
    parts = [_part(block) for block in result.content]
    if result.structured_content is not None:
        structured = canonical_json(result.structured_content)
        if not any(_is_same_content(part, structured) for part in parts):
            parts.append(StructuredPart(structured))
    return ToolAnswer(result.is_error, tuple(parts))


def _is_same_content(part: Part, structured: bytes) -> bool:
    if not isinstance(part, TextPart):
        return False
    try:
        return canonical_json(msgspec.json.decode(part.text)) == structured
    except msgspec.MsgspecError:
        return False


def _part(block: ContentBlock) -> Part:
    try:
        match block:
            case TextContent():
                return TextPart(clean_text(block.text))
            case ImageContent():
                data = base64.b64decode(block.data, validate=True)
                return BlobPart("image", _media_type(data, block.mime_type), data)
            case AudioContent():
                data = base64.b64decode(block.data, validate=True)
                return BlobPart("audio", _media_type(data, block.mime_type), data)
            case EmbeddedResource(resource=TextResourceContents() as resource):
                text = clean_text(resource.text).encode()
                return ResourcePart(str(resource.uri), resource.mime_type or "", text, True)
            case EmbeddedResource(resource=BlobResourceContents() as resource):
                data = base64.b64decode(resource.blob, validate=True)
                return ResourcePart(str(resource.uri), resource.mime_type or "", data, False)
            case ResourceLink():
                return LinkPart(
                    uri=str(block.uri)[:2048],
                    name=clean_text(block.name)[:256],
                    description=clean_text(block.description or "")[:2048],
                    media_type=(block.mime_type or "")[:128],
                )
            case _:
                return UnknownPart(str(block.type)[:128])
    except binascii.Error:
        return UnknownPart(f"{block.type} that is not base64")


def resource_part(resource: TextResourceContents | BlobResourceContents) -> Part:
    """Convert the content of a resource."""
    return _part(EmbeddedResource(type="resource", resource=resource))


def part_of(block: ContentBlock) -> Part:
    """Convert one block of a message."""
    return _part(block)


def _media_type(data: bytes, said: str) -> str:
    """Return the media type detected from the bytes, otherwise the one that the server declares."""
    if data[:4] == b"RIFF" and data[8:12] in (b"WEBP", b"WAVE"):
        return "image/webp" if data[8:12] == b"WEBP" else "audio/wav"
    found = next((kind for magic, kind in MAGIC if data.startswith(magic)), None)
    return found or said[:128]


def clean_text(text: str) -> str:
    """Return `text` as valid UTF-8 without NUL, which PostgreSQL does not store."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def visible_text(text: str) -> str:
    """Return `text` without characters that a person does not see and a model reads.

    These are control characters except for line breaks and tabs, zero-width and bidirectional
    format characters, tags and unassigned or private ones.
    """
    # Most texts have nothing of it, which is found out much faster.
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        character
        for character in clean_text(text)
        if character in "\n\t" or unicodedata.category(character) not in INVISIBLE
    )


def cut_text(text: str, bytes_max: int) -> str:
    """Return `text`, visible, in at most `bytes_max`; truncated text ends with a marker."""
    encoded = visible_text(text).encode()
    if len(encoded) <= bytes_max:
        return encoded.decode()
    return encoded[: bytes_max - len(DESCRIPTION_CUT)].decode(errors="ignore") + DESCRIPTION_CUT


TOOLS_MAX: Final = 2000
#: Of names, descriptions and schemas of all tools of a server, as they are kept.
CATALOGUE_BYTES_MAX: Final = 8 * 1024 * 1024
#: Of the schemas of all tools of a server with their references resolved, also of dropped ones.
CATALOGUE_NODES_MAX: Final = 500_000


class KeptTools:
    """Collects the tools of a listing, page by page.

    Attributes:
        tools: The tools that are kept, by name, in the order of the server.
        dropped: How many others it listed.
        is_full: Whether a limit is reached: of further tools none would be kept.
    """

    def __init__(
        self, bytes_max: int = CATALOGUE_BYTES_MAX, nodes_max: int = CATALOGUE_NODES_MAX
    ) -> None:
        self.tools: dict[str, Tool] = {}
        self.dropped = 0
        self.is_full = False
        self._room = bytes_max
        self._budget = Budget(nodes_max)

    def add(self, listed: Iterable[ProtocolTool]) -> None:
        """Keep the tools of a page that can be offered, up to the first beyond a limit."""
        for each in listed:
            tool = None if self.is_full else self._fitting(each)
            if tool is None:
                self.dropped += 1
            else:
                self.tools[tool.name] = tool
                self._room -= tool.size_bytes

    def _fitting(self, listed: ProtocolTool) -> Tool | None:
        """Return a tool that can be offered and is not beyond a limit."""
        if len(self.tools) + self.dropped >= TOOLS_MAX or self._budget.is_spent:
            self.is_full = True
            return None
        tool = usable_tool(listed, self._budget)
        if tool is None or tool.name in self.tools:
            return None
        if tool.size_bytes > self._room:
            self.is_full = True
            return None
        return tool
