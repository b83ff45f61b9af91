"""The port of the lifecycle tools to the control plane, and the type of a lifecycle tool."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from chatd.content.domain.tools import Execution, Executor, Outcome, ToolSpec
from chatd.primitives.domain.ids import ChatId, OwnerClaim, OwnerId
from chatd.tools.workspace.arguments import BadArguments, Input, schema_of
from chatd.workspaces.domain.commands import NewWorkspace
from chatd.workspaces.domain.ports import ChatWorkspace, LogLine
from chatd.workspaces.domain.ranking import Ranking
from chatd.workspaces.domain.templates import Template
from chatd.workspaces.domain.workspace import Workspace, WorkspaceId


class Control(Protocol):
    """The operations of the control plane that the lifecycle tools use."""

    async def list_templates(self, owner_id: OwnerId, query: str, *, for_agents: bool) -> Ranking:
        """Return the templates that a user may use, best first."""
        ...

    async def template(self, owner_id: OwnerId, template_id: str) -> Template:
        """Return a template that a user may use."""
        ...

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return the workspace of a chat."""
        ...

    def id_for(self, owner_id: OwnerId, key: str) -> WorkspaceId:
        """Return the id of the workspace that a request creates."""
        ...

    async def create(
        self, asked: NewWorkspace, *, claim: OwnerClaim | None = None
    ) -> tuple[Workspace, bool]:
        """Create a workspace."""
        ...

    async def start(
        self,
        workspace: Workspace,
        parameters: Mapping[str, str],
        claim: OwnerClaim | None = None,
    ) -> tuple[Workspace, Workspace]:
        """Start a workspace."""
        ...

    async def stop_for(self, workspace_id: str, claim: OwnerClaim) -> tuple[Workspace, Workspace]:
        """Stop a workspace for a chat."""
        ...

    async def settled(self, workspace_id: str) -> Workspace:
        """Return a workspace once it has settled, or its current state after a timeout."""
        ...

    async def lines(self, workspace: Workspace) -> tuple[LogLine, ...]:
        """Return the log of a workspace's preparation."""
        ...


@dataclass(frozen=True)
class LifecycleTool:
    """A tool that chatd executes itself."""

    name: str
    description: str
    takes: type[Input]
    run: Callable[[Control, Execution, Any], Awaitable[Outcome]]
    moves_tools: bool = False
    is_serial: bool = False

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as offered to a model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema_json=schema_of(self.takes),
            executor=Executor.CHATD,
            is_serial=self.is_serial,
            moves_tools=self.moves_tools,
        )


def template_id_of(text: str) -> str:
    """Return the id of a template as a model passed it.

    Raises:
        BadArguments: It is not an id.
    """
    plain = text.strip().lower()
    digits = plain.replace("-", "")
    if len(digits) != 32 or any(each not in "0123456789abcdef" for each in digits):
        raise BadArguments("template_id is not an id", "use one from list_templates")
    return plain


def stated(name: str, value: object) -> dict[str, object]:
    """Return a field of a result, an empty dict if the value is empty."""
    return {name: value} if value else {}
