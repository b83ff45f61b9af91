"""The state of a workspace server, as people see it."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.workspace_servers.domain.definition import ServerDefinition


class ServerState(StrEnum):
    """Where a server is; the names are those of the proto."""

    INVALID = "invalid"  # Its definition cannot be used.
    UNTRUSTED = "untrusted"  # The owner has not trusted its definition.
    TRUSTED = "trusted"  # It is started when a turn needs it.
    RUNNING = "running"
    FAILED = "failed"  # It could not be started, or ended; it is started again later.


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server of a workspace, with its state.

    Attributes:
        reason: Why it is invalid or failed; empty otherwise.
        tool_names: The tools that it offered last.
        is_changed: Whether another definition of the name was trusted, and this one is not.
    """

    definition: ServerDefinition
    state: ServerState
    reason: str = ""
    tool_names: tuple[str, ...] = ()
    is_changed: bool = False


class WorkspaceServerNotFound(Exception):
    """A workspace defines no server of that name that can be trusted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the workspace has no MCP server {name} that can be started")
        self.name = name


class DefinitionChanged(Exception):
    """The definition of a server is another one than the person has seen."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the definition of the MCP server {name} has changed; look at it again")
        self.name = name


class ServerFailed(Exception):
    """A server cannot be used now; the text is for people and models.

    Attributes:
        retry_s: Seconds after which it is started again; 0 if that is not known.
    """

    def __init__(self, problem: str, retry_s: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_s = retry_s
