"""The tools by which a model finds, makes, starts and stops the workspace of its chat.

chatd carries them out itself. Each can be repeated: what a call makes has an id that follows from
the call, so after a crash the same call finds what it made and waits for it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Protocol

from msgspec import Meta, field

from chatd.clients.sites import not_ready
from chatd.clients.workspace.arguments import BadArguments, Input, read, schema_of
from chatd.clients.workspace.results import failed, misused, succeeded
from chatd.domain.chat import ChatId, Owner, OwnerId
from chatd.domain.errors import ChatError, InvalidRequest
from chatd.domain.tools import (
    Execution,
    Executor,
    Found,
    Outcome,
    StillRunning,
    ToolSpec,
)
from chatd.domain.workspaces.errors import TemplateNotFound
from chatd.domain.workspaces.ports import ChatWorkspace, LogLine
from chatd.domain.workspaces.ranking import Ranked, Ranking
from chatd.domain.workspaces.requests import NewWorkspace
from chatd.domain.workspaces.templates import Parameter, Template
from chatd.domain.workspaces.workspace import State, Workspace, WorkspaceId

TEMPLATES_PER_PAGE: Final = 10
DESCRIPTION_CHARACTERS: Final = 200
EXCERPT_CHARACTERS: Final = 1000
README_CHARACTERS: Final = 8000
LOG_LINES: Final = 20

LIST_DESCRIPTION: Final = (
    "List the templates that workspaces can be made from, best match first. Follow next_step of "
    "the result. Only needed when the work needs a repository or a prepared environment."
)
READ_DESCRIPTION: Final = (
    "Read one template: its readme, the parameters it takes and its presets. Do this before "
    "create_workspace unless it has no parameters."
)
CREATE_DESCRIPTION: Final = (
    "Create a workspace from a template for this chat and wait until it is ready; from then on all "
    "tools work there. If the chat has a workspace already, that one is returned."
)
START_DESCRIPTION: Final = (
    "Start the workspace of this chat if it is stopped, or make it again if it failed, and wait "
    "until it is ready. One that runs is left alone."
)
STOP_DESCRIPTION: Final = (
    "Stop the workspace of this chat: everything that runs in it ends, its files are kept. Do this "
    "only when the user asks, or before start_workspace to get out of trouble."
)


class Control(Protocol):
    """What these tools ask of the control plane."""

    async def list_templates(self, owner_id: OwnerId, query: str, *, for_agents: bool) -> Ranking:
        """Return the templates that a user may use, best first."""
        ...

    async def template(self, owner_id: OwnerId, template_id: str) -> Template:
        """Return a template that a user may use."""
        ...

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return where a chat's tools work."""
        ...

    def id_for(self, owner_id: OwnerId, key: str) -> WorkspaceId:
        """Return the id of the workspace that a request makes."""
        ...

    async def create(self, asked: NewWorkspace) -> tuple[Workspace, bool]:
        """Accept a new workspace."""
        ...

    async def start(
        self, workspace: Workspace, parameters: Mapping[str, str]
    ) -> tuple[Workspace, Workspace]:
        """Start a workspace."""
        ...

    async def stop(self, workspace_id: str) -> tuple[Workspace, Workspace]:
        """Stop a workspace."""
        ...

    async def settled(self, workspace_id: str) -> Workspace:
        """Return a workspace once nothing is being done about it, or as it is after a while."""
        ...

    async def lines(self, workspace: Workspace) -> tuple[LogLine, ...]:
        """Return what preparing a workspace printed."""
        ...


Values = Annotated[
    dict[str, str],
    Meta(description="Values of the template's parameters by their names, all as text."),
]


class ListTemplatesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `list_templates`."""

    query: Annotated[str, Meta(max_length=200, description="Words to look for; left out: all.")] = (
        ""
    )
    page: Annotated[int, Meta(ge=1, le=1000, description="Page of ten, from 1.")] = 1


class ReadTemplateInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `read_template`."""

    template_id: Annotated[str, Meta(max_length=64, description="Id from list_templates.")]


class CreateWorkspaceInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `create_workspace`."""

    template_id: Annotated[str, Meta(max_length=64, description="Id from list_templates.")]
    name: Annotated[
        str, Meta(max_length=64, description="Name of a-z, 0-9 and -; left out: one is made.")
    ] = ""
    parameters: Values = field(default_factory=dict)
    preset_id: Annotated[
        str, Meta(max_length=64, description="Preset from read_template; left out: the default.")
    ] = ""


class StartWorkspaceInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `start_workspace`."""

    parameters: Values = field(default_factory=dict)


class StopWorkspaceInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `stop_workspace`."""


@dataclass(frozen=True)
class LifecycleTool:
    """A tool that chatd carries out."""

    name: str
    description: str
    takes: type[Input]
    run: Callable[[Control, Execution, Any], Awaitable[Outcome]]
    moves_tools: bool = False
    is_serial: bool = False

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema_json=schema_of(self.takes),
            executor=Executor.CHATD,
            is_serial=self.is_serial,
            moves_tools=self.moves_tools,
        )


class ChatFacts(Protocol):
    """What is known of a chat beside its history."""

    @property
    def is_child(self) -> bool:
        """Whether another chat started it."""
        ...


class LifecycleTools:
    """Offers these tools to root chats; a child works where its root works.

    Args:
        control: Carries out what is asked.
        facts: Tells which chats are children.
    """

    def __init__(self, control: Control, facts: Callable[[ChatId], Awaitable[ChatFacts]]) -> None:
        self._control = control
        self._facts = facts

    async def offer(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        """Return the tools, none for a child."""
        if (await self._facts(chat_id)).is_child:
            return ()
        return tuple(tool.spec for tool in TOOLS.values())

    async def execute(self, execution: Execution) -> Outcome:
        """Carry out a call; what is wrong with it is told as its result."""
        tool = TOOLS.get(execution.dispatch.call.tool_name)
        if tool is None:
            hint = "Call a tool that is offered now."
            return failed("There is no such tool any more.", "NO_SUCH_TOOL", hint)
        try:
            given = read(tool.takes, execution.dispatch.call.args_json)
            return await tool.run(self._control, execution, given)
        except BadArguments as error:
            return misused(error)
        except InvalidRequest as error:
            hint = "Nothing was changed: correct it as read_template says, and call again."
            return failed(str(error), "INVALID_ARGUMENTS", hint)
        except TemplateNotFound:
            hint = "Call list_templates and use an id from there."
            return failed("There is no such template.", "TEMPLATE_NOT_FOUND", hint)
        except ChatError as error:
            return not_ready(error)

    async def find(self, execution: Execution) -> Found:
        """Say that a call may go on: repeating it finds what it did."""
        return StillRunning()

    async def cancel(self, execution: Execution) -> None:
        """Leave what was begun alone: the workspace can be stopped like any other."""


async def list_templates(
    control: Control, execution: Execution, given: ListTemplatesInput
) -> Outcome:
    """Return a page of templates with what to do next."""
    ranking = await control.list_templates(execution.owner.id, given.query, for_agents=True)
    first = (given.page - 1) * TEMPLATES_PER_PAGE
    shown = ranking.entries[first : first + TEMPLATES_PER_PAGE]
    has_more = first + TEMPLATES_PER_PAGE < len(ranking.entries)
    return succeeded(
        {
            "templates": [_summary(each) for each in shown],
            "page": given.page,
            **({"next_page": given.page + 1} if has_more else {}),
            **(
                {"recommended_template_id": ranking.recommended_id}
                if ranking.recommended_id
                else {}
            ),
        },
        next_step=ranking.next_step,
    )


async def read_template(
    control: Control, execution: Execution, given: ReadTemplateInput
) -> Outcome:
    """Return a template with everything that can be chosen."""
    template = await control.template(execution.owner.id, _uuid(given.template_id))
    fields = {
        "template": {
            "id": template.id,
            "name": template.name,
            "kind": template.kind.value,
            **_told("display_name", template.display_name),
            **_told("description", template.description),
            **_told("readme", template.readme[:README_CHARACTERS]),
        },
        "parameters": [_parameter(each) for each in template.parameters],
        "presets": [
            {
                "id": each.id,
                "name": each.name,
                "default": each.is_default,
                "parameters": dict(each.parameters),
            }
            for each in template.presets
        ],
    }
    step = "Call create_workspace with this template_id and the parameters that are required."
    return succeeded(fields, next_step=step)


async def create_workspace(
    control: Control, execution: Execution, given: CreateWorkspaceInput
) -> Outcome:
    """Make a workspace for the chat, unless it has one that can be used or started."""
    owner_id, key = execution.owner.id, execution.dispatch.execution_id
    found = await control.of_chat(execution.chat_id)
    present = None if found is None else found.workspace
    mine = control.id_for(owner_id, key)
    if present is not None and present.id != mine and not present.is_scratch_of_chat:
        match present.state:
            case State.READY | State.BUSY | State.PENDING | State.PREPARING:
                return await _ready(control, present, {"created": False, "already_exists": True})
            case State.STOPPED | State.STOPPING:
                told = f"This chat has the workspace {present.name}, which is {present.state}."
                hint = "Call start_workspace instead."
                return failed(told, "WORKSPACE_STOPPED", hint, fields={"created": False})
            case State.FAILED | State.DELETED:
                pass
    asked = NewWorkspace(
        owner_id=owner_id,
        key=key,
        body_hash=hashlib.sha256(execution.dispatch.call.args_json.encode()).digest(),
        template_id=_uuid(given.template_id),
        name=given.name,
        parameters=given.parameters,
        preset_id=given.preset_id,
        chat_id=execution.chat_id,
    )
    made, _ = await control.create(asked)
    return await _ready(control, made, {"created": True})


async def start_workspace(
    control: Control, execution: Execution, given: StartWorkspaceInput
) -> Outcome:
    """Start the workspace of the chat, or make it again."""
    workspace = await _of_chat(control, execution)
    if workspace is None or workspace.state is State.DELETED:
        return _absent({"started": False})
    if workspace.state is State.STOPPING:
        workspace = await control.settled(workspace.id)
    before, after = await control.start(workspace, given.parameters)
    begun = {"started": True} if after is not before else {"started": False, "no_build": True}
    return await _ready(control, after, begun)


async def stop_workspace(
    control: Control, execution: Execution, given: StopWorkspaceInput
) -> Outcome:
    """Stop the workspace of the chat."""
    workspace = await _of_chat(control, execution)
    if workspace is None or workspace.state is State.DELETED:
        return _absent({"stopped": False})
    before, after = await control.stop(workspace.id)
    after = await control.settled(after.id)
    fields = _fields(after, {"stopped": after.state is State.STOPPED})
    if before.state in (State.STOPPED, State.FAILED):
        return succeeded({**fields, "no_build": True}, next_step="It does not run; go on.")
    if after.state is State.STOPPED:
        return succeeded(fields, next_step="Call start_workspace before tools are used again.")
    told = f"The workspace is still {after.state}."
    return failed(told, "NOT_STOPPED", "Call stop_workspace again in a while.", fields=fields)


async def _ready(control: Control, workspace: Workspace, begun: Mapping[str, object]) -> Outcome:
    """Wait for a workspace and tell what became of it."""
    settled = await control.settled(workspace.id)
    fields = _fields(settled, begun)
    match settled.state:
        case State.READY | State.BUSY:
            step = "The workspace is ready: all tools work there now."
            return succeeded(fields, next_step=step)
        case State.FAILED:
            assert settled.failure is not None
            lines = [line.text for line in await control.lines(settled)][-LOG_LINES:]
            failure = settled.failure
            hint = (
                "Read the log; start_workspace tries again, create_workspace with other values "
                "makes another one."
                if failure.is_recreatable
                else "Tell the user; trying again does not help."
            )
            return failed(
                failure.message,
                f"WORKSPACE_{failure.kind.name}",
                hint,
                fields={**fields, **({"log": lines} if lines else {})},
            )
        case state:
            told = f"The workspace is {state} and not ready yet."
            hint = "Call start_workspace in a while: it waits for it."
            return failed(told, "WORKSPACE_NOT_READY", hint, fields=fields)


async def _of_chat(control: Control, execution: Execution) -> Workspace | None:
    found = await control.of_chat(execution.chat_id)
    return None if found is None else found.workspace


def _absent(fields: Mapping[str, object]) -> Outcome:
    hint = "Call list_templates and follow its next_step, if the work needs a workspace."
    return failed("This chat has no workspace.", "NO_WORKSPACE", hint, fields=fields)


def _fields(workspace: Workspace, begun: Mapping[str, object]) -> dict[str, object]:
    return {
        **begun,
        "workspace_id": workspace.id,
        "workspace_name": workspace.name,
        "state": workspace.state.value,
        "build_id": f"{workspace.id}-{workspace.epoch}",
        **_told("directory", workspace.root_path),
        **_told("git_branch", workspace.git_branch),
    }


def _summary(entry: Ranked) -> dict[str, object]:
    template, habit = entry.template, entry.habit
    used_at = habit.last_used_at
    return {
        "id": template.id,
        "name": template.name,
        "kind": template.kind.value,
        **_told("display_name", template.display_name),
        **_told("description", template.description[:DESCRIPTION_CHARACTERS]),
        **_told("active_developers", habit.active_users),
        **_told("your_workspace_count", habit.live),
        **_told("last_used_by_you", "" if used_at is None else used_at.isoformat()),
        **_told("readme_excerpt", template.readme[:EXCERPT_CHARACTERS]),
        "has_parameters": bool(template.parameters),
    }


def _parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "type": parameter.type.value,
        "required": parameter.is_required,
        "mutable": parameter.is_mutable,
        **_told("description", parameter.description),
        **_told("default", parameter.default_value),
        **_told("options", list(parameter.options)),
        **_told("pattern", parameter.pattern),
    }


def _told(name: str, value: object) -> dict[str, object]:
    return {name: value} if value else {}


def _uuid(text: str) -> str:
    plain = text.strip().lower()
    digits = plain.replace("-", "")
    if len(digits) != 32 or any(each not in "0123456789abcdef" for each in digits):
        raise BadArguments("template_id is not an id", "use one from list_templates")
    return plain


TOOLS: Final[Mapping[str, LifecycleTool]] = {
    tool.name: tool
    for tool in (
        LifecycleTool("list_templates", LIST_DESCRIPTION, ListTemplatesInput, list_templates),
        LifecycleTool("read_template", READ_DESCRIPTION, ReadTemplateInput, read_template),
        LifecycleTool(
            "create_workspace",
            CREATE_DESCRIPTION,
            CreateWorkspaceInput,
            create_workspace,
            moves_tools=True,
            is_serial=True,
        ),
        LifecycleTool(
            "start_workspace",
            START_DESCRIPTION,
            StartWorkspaceInput,
            start_workspace,
            moves_tools=True,
            is_serial=True,
        ),
        LifecycleTool(
            "stop_workspace",
            STOP_DESCRIPTION,
            StopWorkspaceInput,
            stop_workspace,
            is_serial=True,
        ),
    )
}
