"""Types of agents that a workspace describes: files with fields and a text for such agents."""

import re
from typing import Final

import msgspec

from chatd.content.domain.front_matter import parsed_file

#: Directories of a workspace with types of agents; of equal names the first one counts.
AGENT_TYPE_DIRECTORIES: Final = (".parley/agents", ".agents/agents", ".claude/agents")
AGENT_TYPE_BYTES_MAX: Final = 64 * 1024
AGENT_TYPES_MAX: Final = 30
DESCRIPTION_CHARACTERS_MAX: Final = 1024
NAME_CHARACTERS_MAX: Final = 64
TOOLS_MAX: Final = 100
BUILT_IN_TYPES: Final = ("general", "explore")
INHERITED: Final = "inherit"
MODES: Final = ("", "general", "explore")
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_BETWEEN_TOOLS: Final = re.compile(r"[,\s\[\]'\"]+")


class AgentType(msgspec.Struct, frozen=True, omit_defaults=True):
    """A type of agents as it is pinned: all but the text, which is read when it is used.

    Attributes:
        path: Its file in the workspace.
        tool_names: The only tools of such agents; None for those of their parent.
        model: The name or id of their model; empty for that of their parent.
        is_explorer: Whether such agents only read.
    """

    name: str
    description: str
    path: str
    tool_names: tuple[str, ...] | None = None
    model: str = ""
    is_explorer: bool = False


class AgentTypeRefused(Exception):
    """A file that is no type of agents; the message says what to change."""


class AgentTypeText(msgspec.Struct, frozen=True):
    """A type of agents with its text."""

    type: AgentType
    body: str


def parsed_agent_type(path: str, content: str) -> AgentTypeText:
    """Return the type of agents in the content of a file, which is named as the type.

    Raises:
        AgentTypeRefused: It is none.
    """
    if len(content.encode()) > AGENT_TYPE_BYTES_MAX:
        raise AgentTypeRefused(f"has more than {AGENT_TYPE_BYTES_MAX} bytes")
    found = parsed_file(content)
    if found is None:
        raise AgentTypeRefused("does not begin with its description between lines of ---")
    name = path.rpartition("/")[2].removesuffix(".md")
    if found.fields.get("name", name) != name:
        raise AgentTypeRefused("has another name than its file")
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS_MAX or name in BUILT_IN_TYPES:
        raise AgentTypeRefused(
            f"needs a name of at most {NAME_CHARACTERS_MAX} small letters, digits and -, "
            f"which is not {' or '.join(BUILT_IN_TYPES)}"
        )
    description = found.fields.get("description", "")
    if not 1 <= len(description) <= DESCRIPTION_CHARACTERS_MAX:
        raise AgentTypeRefused(
            f"needs a description of 1 to {DESCRIPTION_CHARACTERS_MAX} characters"
        )
    if not found.body:
        raise AgentTypeRefused("has no text after the description")
    mode = found.fields.get("mode", "")
    if mode not in MODES:
        raise AgentTypeRefused("has another mode than general or explore")
    model = found.fields.get("model", "")
    return AgentTypeText(
        AgentType(
            name,
            description,
            path,
            _tool_names(found.fields.get("tools")),
            "" if model == INHERITED else model,
            mode == "explore",
        ),
        found.body,
    )


def _tool_names(value: str | None) -> tuple[str, ...] | None:
    """Return the names in a list of YAML or between commas; None if there is no list.

    Raises:
        AgentTypeRefused: There are none in the list, or too many.
    """
    if value is None or value == "*":
        return None
    names = [name for name in _BETWEEN_TOOLS.split(value) if name.strip("-")]
    if not 1 <= len(names) <= TOOLS_MAX:
        raise AgentTypeRefused(
            f"needs 1 to {TOOLS_MAX} tools, indented or between commas; leave tools out for all"
        )
    return tuple(dict.fromkeys(names))
