"""The tools with which a model creates, starts and stops the workspace of its chat.

All are idempotent: the id of a created workspace is derived from the call, so after a crash the
same call finds it and waits for it.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, field

from chatd.content.domain.tools import Execution, Outcome
from chatd.tools.lifecycle.control import Control, LifecycleTool, stated, template_id_of
from chatd.tools.workspace.arguments import Input
from chatd.tools.workspace.results import failed, succeeded
from chatd.workspaces.domain.commands import NewWorkspace
from chatd.workspaces.domain.workspace import State, Workspace

LOG_LINES: Final = 20

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

Values = Annotated[
    dict[str, str],
    Meta(description="Values of the template's parameters by their names, all as text."),
]


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


async def create_workspace(
    control: Control, execution: Execution, given: CreateWorkspaceInput
) -> Outcome:
    """Create a workspace for the chat, unless it has one that can be used or started."""
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
        template_id=template_id_of(given.template_id),
        name=given.name,
        parameters=given.parameters,
        preset_id=given.preset_id,
        chat_id=execution.chat_id,
    )
    made, _ = await control.create(asked, claim=execution.claim)
    return await _ready(control, made, {"created": True})


async def start_workspace(
    control: Control, execution: Execution, given: StartWorkspaceInput
) -> Outcome:
    """Start the workspace of the chat, or create it again."""
    workspace = await _of_chat(control, execution)
    if workspace is None or workspace.state is State.DELETED:
        return _absent({"started": False})
    if workspace.state is State.STOPPING:
        workspace = await control.settled(workspace.id)
    before, after = await control.start(workspace, given.parameters, execution.claim)
    begun = {"started": True} if after is not before else {"started": False, "no_build": True}
    return await _ready(control, after, begun)


async def stop_workspace(
    control: Control, execution: Execution, given: StopWorkspaceInput
) -> Outcome:
    """Stop the workspace of the chat."""
    workspace = await _of_chat(control, execution)
    if workspace is None or workspace.state is State.DELETED:
        return _absent({"stopped": False})
    before, after = await control.stop_for(workspace.id, execution.claim)
    after = await control.settled(after.id)
    fields = _fields(after, {"stopped": after.state is State.STOPPED})
    if before.state in (State.STOPPED, State.FAILED):
        return succeeded({**fields, "no_build": True}, next_step="It does not run; go on.")
    if after.state is State.STOPPED:
        return succeeded(fields, next_step="Call start_workspace before tools are used again.")
    told = f"The workspace is still {after.state}."
    return failed(told, "NOT_STOPPED", "Call stop_workspace again in a while.", fields=fields)


async def _ready(control: Control, workspace: Workspace, begun: Mapping[str, object]) -> Outcome:
    """Wait for a workspace and return its state as the outcome."""
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
        **stated("directory", workspace.root_path),
        **stated("git_branch", workspace.git_branch),
    }


LIVING: Final = (
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
        "stop_workspace", STOP_DESCRIPTION, StopWorkspaceInput, stop_workspace, is_serial=True
    ),
)
