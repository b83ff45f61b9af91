"""Content from outside in a chat, and the calls that could carry data out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from chatd.approvals.domain.fetching import (
    files_run_by,
    files_written,
    is_cloning,
    is_fetching,
    is_fetching_file,
    texts_of,
)
from chatd.chats.domain.chat import Message
from chatd.content.domain.parts import ServerTexts, Source, ToolCall, ToolResult
from chatd.content.domain.tools import (
    AGENT_PROCESSES,
    APPLY_CHILD_CHANGES,
    MONITOR_PROCESS,
    Executor,
    ToolSpec,
)

WEB: Final = "the web"
FETCHED: Final = "a download"
REPOSITORY: Final = "files of a repository"
#: Tools whose arguments reach the network of a workspace.
NETWORK_TOOLS: Final = frozenset(("execute", "process_write"))
#: Tools that write files of a workspace, with the text as an argument.
WRITING_TOOLS: Final = frozenset(("apply_patch", "edit_files", "write_file"))
#: Tools whose parameters may be part of the address that a node clones from.
TEMPLATE_TOOLS: Final = frozenset(("create_workspace", "start_workspace"))
#: Fields of results of merges that have parts of files.
MERGE_CONTENTS: Final = ('"patch"', '"preview"')
_MCP_SEPARATOR: Final = "__"


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the judgement has to know of the workspace of a chat.

    Attributes:
        has_egress: Whether its processes reach other hosts.
        has_outside_files: Whether its files count as content from outside. Instruction files and
            descriptions of skills are in every prompt, so they count before any call reads them.
        are_clones_outside: Whether files of repositories count that commands clone into it.
        is_proxied: Whether its processes reach other hosts only through the proxy of its node.
    """

    has_egress: bool = False
    has_outside_files: bool = False
    are_clones_outside: bool = False
    is_proxied: bool = False


CONFINED: Final = Workspace()


@dataclass(frozen=True, slots=True)
class Taint:
    """The origins of content from outside: `WEB` and so on, or MCP servers by id and prefix."""

    origins: frozenset[str] = frozenset()


CLEAN: Final = Taint()


def taint_of(
    messages: Iterable[Message],
    workspace: Workspace = CONFINED,
    fetching_files: frozenset[str] = frozenset(),
) -> Taint:
    """Return the origins of content from outside in a history, summarised messages included.

    Args:
        messages: The history of a chat.
        workspace: Its workspace.
        fetching_files: Names of files that fetch, which other chats wrote into the workspace.
    """
    origins: set[str] = {REPOSITORY} if workspace.has_outside_files else set()
    commands = _Commands(fetching_files)
    for message in messages:
        for part in message.content:
            match part:
                case Source():
                    origins.add(WEB)
                case ServerTexts(server_ids):
                    origins.update(server_ids)
                case ToolCall() if workspace.has_egress:
                    commands.add_call(part)
                case ToolResult():
                    origins.update(_origins_of(part, workspace))
                    commands.add_result(part)
    return Taint(frozenset(origins.union(commands.origins(workspace))))


def fetching_files_of(messages: Iterable[Message]) -> frozenset[str]:
    """Return the names of the files that a history wrote with code that fetches."""
    names = set[str]()
    for message in messages:
        for part in message.content:
            if isinstance(part, ToolCall) and part.tool_name in WRITING_TOOLS:
                written = files_written(part.args_json)
                if not written <= names and is_fetching_file(part.args_json):
                    names |= written
    return frozenset(names)


class _Commands:
    """The commands of a history that have a result, and the files that calls wrote for them.

    Args:
        fetching_files: Names of further files that fetch.
    """

    def __init__(self, fetching_files: frozenset[str]) -> None:
        self._fetching_files = fetching_files
        self._texts: dict[str, list[str]] = {}
        self._ended: list[str] = []
        self._written: list[str] = []

    def add_call(self, call: ToolCall) -> None:
        """Note a call."""
        if call.tool_name in NETWORK_TOOLS:
            self._texts.setdefault(call.tool_call_id, []).extend(texts_of(call.args_json))
        elif call.tool_name in WRITING_TOOLS:
            self._written.append(call.args_json)

    def add_result(self, result: ToolResult) -> None:
        """Note a result: what is typed into a shell may be read by any call after it."""
        self._ended += self._texts.pop(result.tool_call_id, ())

    def origins(self, workspace: Workspace) -> Iterable[str]:
        """Return where their output may come from."""
        if any(map(is_fetching, self._ended)) or self._ran_written_file():
            yield FETCHED
        if workspace.are_clones_outside and any(map(is_cloning, self._ended)):
            yield REPOSITORY

    def _ran_written_file(self) -> bool:
        """Return whether a command ran a file that a call had written and that fetches."""
        if not (self._written or self._fetching_files):
            return False
        ran = frozenset(name for text in self._ended for name in files_run_by(text))
        return not ran.isdisjoint(self._fetching_files) or any(
            not ran.isdisjoint(files_written(args_json)) and is_fetching_file(args_json)
            for args_json in self._written
        )


def _origins_of(result: ToolResult, workspace: Workspace) -> Iterable[str]:
    if result.provider_executed:
        yield WEB
    elif result.mcp_server_id or _MCP_SEPARATOR in result.tool_name:
        # Only tools of MCP servers have such names.
        yield result.mcp_server_id or _prefix(result.tool_name)
    elif workspace.has_egress and result.tool_name == AGENT_PROCESSES:
        # The agent's call that fetches may still run: its own history does not show it yet.
        yield FETCHED
    elif workspace.is_proxied and result.tool_name == MONITOR_PROCESS:
        # The message that wakes the chat has a line of the process, and no record of the proxy.
        yield FETCHED
    elif workspace.is_proxied and result.tool_name == APPLY_CHILD_CHANGES and _shows_files(result):
        # The same: what fetched in the copy may have gone on after the agent's last call.
        yield FETCHED
    if result.reached is not None:
        # Whatever the network of the workspace is by now.
        if result.reached.hosts:
            yield FETCHED
        if workspace.are_clones_outside and result.reached.git_hosts:
            yield REPOSITORY


def _shows_files(result: ToolResult) -> bool:
    """Return whether a result of a merge has parts of files; any text that looks so counts."""
    return any(field in result.result_json for field in MERGE_CONTENTS)


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
    # A node clones from other hosts, whatever network its workspaces have.
    is_cloned_from = spec.executor is Executor.CHATD and spec.name in TEMPLATE_TOOLS
    return taint.origins if is_cloned_from else frozenset()


def _prefix(tool_name: str) -> str:
    return tool_name.partition(_MCP_SEPARATOR)[0] + _MCP_SEPARATOR
