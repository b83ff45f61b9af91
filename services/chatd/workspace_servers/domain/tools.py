"""Tools of workspace servers as they are offered to models; what servers say is not trusted."""

import base64
import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chatd.content.domain.tools import Executor, ToolSpec

#: The names of administrators' servers hold no underscore, so these never collide with theirs.
PREFIX: Final = "ws_"
TOOLS_MAX: Final = 64
#: Entries of a listing that are looked at, over all of its pages.
ENTRIES_MAX: Final = 512
NAME_MAX: Final = 64
SUFFIX_MAX: Final = 8
ORIGINAL_NAME_MAX: Final = 128
DESCRIPTION_CHARACTERS_MAX: Final = 2048
SCHEMA_BYTES_MAX: Final = 64 * 1024
SCHEMA_DEPTH_MAX: Final = 32
#: The schemas of one server together.
SCHEMAS_BYTES_MAX: Final = 256 * 1024
INSTRUCTIONS_CHARACTERS_MAX: Final = 2048
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
#: Control, format, surrogate, private and unassigned characters.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that a server lists."""

    name: str
    description: str
    input_schema_json: str


def visible(text: str) -> str:
    """Return a text without characters that a person does not see and a model reads."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        each for each in text if each in "\n\t" or unicodedata.category(each) not in _INVISIBLE
    )


def listed_tools(
    entries: Sequence[Any], earlier: Sequence[ServerTool] = ()
) -> tuple[ServerTool, ...]:
    """Return the tools of a listing that can be offered, each name once.

    Args:
        entries: A page of the listing.
        earlier: The tools of the pages before.
    """
    tools = {tool.name: tool for tool in earlier}
    left_bytes = SCHEMAS_BYTES_MAX - sum(_schema_bytes(tool) for tool in earlier)
    for entry in entries[:ENTRIES_MAX]:
        if len(tools) >= TOOLS_MAX:
            break
        tool = _tool(entry, min(SCHEMA_BYTES_MAX, left_bytes))
        if tool is not None and tool.name not in tools:
            tools[tool.name] = tool
            left_bytes -= _schema_bytes(tool)
    return tuple(tools.values())


def specs_of(
    slug: str, server_id: str, tools: Sequence[ServerTool], digest: str, journal_generation: str
) -> tuple[ToolSpec, ...]:
    """Return the tools of a server as they are offered; every call asks unless a rule allows it."""
    names = _names(slug, [tool.name for tool in tools])
    return tuple(
        ToolSpec(
            name=names[tool.name],
            description=tool.description,
            input_schema_json=tool.input_schema_json,
            executor=Executor.TOOLRUNNER,
            journal_generation=journal_generation,
            server_id=server_id,
            original_name=tool.name,
            digest=digest,
            needs_approval=True,
        )
        for tool in tools
        if tool.name in names
    )


def is_server_tool(tool_name: str) -> bool:
    """Return whether a tool belongs to a workspace server, by its name."""
    return tool_name.startswith(PREFIX) and "__" in tool_name


def server_of(tool_name: str) -> str:
    """Return the name of the workspace server that offers a tool."""
    return tool_name.removeprefix(PREFIX).partition("__")[0]


def _schema_bytes(tool: ServerTool) -> int:
    return len(tool.input_schema_json.encode())


def _tool(entry: Any, schema_bytes_max: int) -> ServerTool | None:
    if not isinstance(entry, dict):
        return None
    name, description, schema = (entry.get(key) for key in ("name", "description", "inputSchema"))
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= ORIGINAL_NAME_MAX
        or not name.isprintable()
    ):
        return None
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return None
    if _is_deeper(schema, SCHEMA_DEPTH_MAX):
        return None
    try:
        text = json.dumps({"type": "object", **schema}, ensure_ascii=False)
    except (RecursionError, ValueError):
        return None
    # Cleaning takes time for each character, so what is too long is dropped or cut before.
    if len(text.encode(errors="replace")) > schema_bytes_max:
        return None
    said = description[:DESCRIPTION_CHARACTERS_MAX] if isinstance(description, str) else ""
    return ServerTool(name, visible(said), visible(text))


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether values are inside each other at more levels than these."""
    inside = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inside)


def _names(slug: str, tools: Sequence[str]) -> Mapping[str, str]:
    """Return the offered name of each tool; one that is not unique is left out."""
    names = {tool: _name(slug, tool) for tool in tools}
    uses = Counter(name.lower() for name in names.values())
    return {tool: name for tool, name in names.items() if uses[name.lower()] == 1}


def _name(slug: str, tool: str) -> str:
    plain = f"{slug}__{_FOREIGN.sub('_', tool)}"
    if len(plain) <= NAME_MAX and _FOREIGN.search(tool) is None:
        return plain
    suffix = base64.b32encode(hashlib.sha256(tool.encode()).digest()).decode().lower()
    return f"{plain[: NAME_MAX - SUFFIX_MAX - 1]}_{suffix[:SUFFIX_MAX]}"
