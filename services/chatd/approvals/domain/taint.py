"""Content from outside in a chat, and the calls that could carry data out."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from chatd.chats.domain.chat import Message
from chatd.content.domain.parts import Source, ToolCall, ToolResult
from chatd.content.domain.tools import AGENT_PROCESSES, Executor, ToolSpec

WEB: Final = "the web"
FETCHED: Final = "a download"
REPOSITORY: Final = "files of a repository"
#: Tools that read files of a workspace, its skills and changes included, or run commands in it.
WORKSPACE_TOOLS: Final = frozenset(
    (
        AGENT_PROCESSES,
        "apply_child_changes",
        "execute",
        "find_files",
        "list_files",
        "process_output",
        "read_file",
        "read_skill",
        "read_skill_file",
        "search_files",
    )
)
#: Tools whose arguments reach the network of a workspace.
NETWORK_TOOLS: Final = frozenset(("execute", "process_write"))
_MCP_SEPARATOR: Final = "__"
_FETCH: Final = re.compile(
    r"\b(?:aria2c|curl|elinks|ftp|gh|https?|links|lynx|nc|ncat|rsync|scp|sftp|ssh|w3m|wget|xh)\b"
)


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the judgement has to know of the workspace of a chat.

    Attributes:
        has_egress: Whether its processes reach other hosts.
        has_outside_files: Whether its files count as content from outside.
    """

    has_egress: bool = False
    has_outside_files: bool = False


CONFINED: Final = Workspace()


@dataclass(frozen=True, slots=True)
class Taint:
    """The origins of content from outside: `WEB` and so on, or MCP servers by id and prefix."""

    origins: frozenset[str] = frozenset()


CLEAN: Final = Taint()


def taint_of(messages: Iterable[Message], workspace: Workspace = CONFINED) -> Taint:
    """Return the origins of content from outside in a history, summarised messages included."""
    origins: set[str] = set()
    fetching: set[str] = set()
    for message in messages:
        for part in message.content:
            match part:
                case Source():
                    origins.add(WEB)
                case ToolCall() if workspace.has_egress and part.tool_name in NETWORK_TOOLS:
                    # What is typed into a shell may be read by any later call: the first counts.
                    if any(map(_FETCH.search, _texts_of(part.args_json))):
                        fetching.add(part.tool_call_id)
                case ToolResult():
                    origins.update(_origins_of(part, workspace))
                    if part.tool_call_id in fetching:
                        origins.add(FETCHED)
    return Taint(frozenset(origins))


def _texts_of(args_json: str) -> Iterator[str]:
    """Return the texts in arguments, without escapes, which would hide the beginnings of words."""
    try:
        found: list[object] = [json.loads(args_json)]
    except (ValueError, RecursionError):
        found = [args_json]
    while found:
        match found.pop():
            case str() as text:
                yield text
            case list() as items:
                found.extend(items)
            case dict() as fields:
                found.extend(fields.values())


def _origins_of(result: ToolResult, workspace: Workspace) -> Iterable[str]:
    if result.provider_executed:
        yield WEB
    elif result.mcp_server_id or _MCP_SEPARATOR in result.tool_name:
        # Only tools of MCP servers have such names.
        yield result.mcp_server_id or _prefix(result.tool_name)
    else:
        if workspace.has_outside_files and result.tool_name in WORKSPACE_TOOLS:
            yield REPOSITORY
        if workspace.has_egress and result.tool_name == AGENT_PROCESSES:
            # The agent's call that fetches may still run: its own history does not show it yet.
            yield FETCHED


def outside_origins(spec: ToolSpec, taint: Taint, workspace: Workspace) -> frozenset[str]:
    """Return the origins of content that a call of this tool could be following, if it sends data.

    An MCP server may get its own content back, and a tool that only reads may be called.
    """
    if spec.executor is Executor.MCPGATEWAY:
        own = {spec.server_id, _prefix(spec.name)}
        return frozenset() if spec.is_read_only else taint.origins - own
    if spec.executor is Executor.TOOLRUNNER and (spec.name in NETWORK_TOOLS or spec.server_id):
        # A server inside the workspace reaches what the workspace reaches.
        own = {spec.server_id, _prefix(spec.name)} if spec.server_id else set()
        return taint.origins - own if workspace.has_egress else frozenset()
    return frozenset()


def _prefix(tool_name: str) -> str:
    return tool_name.partition(_MCP_SEPARATOR)[0] + _MCP_SEPARATOR
