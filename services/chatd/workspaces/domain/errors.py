"""Errors of operations on workspaces, besides those of chats.

ChatError
├── WorkspaceNotReady     the workspace is in the wrong state for the operation
├── QuotaExhausted        the owner has reached a quota limit
├── TooManyNewWorkspaces  the owner has created or started as many within a minute as may be
├── NoNode                no machine can host it
├── NodeLost              the machine of the workspace does not respond
├── NodeNotFound          no such machine
├── StaleNode             the machine has registered again since
├── TemplateNotFound      no such template for this caller
└── NotAFork              the workspace is not a fork
"""

import math

from chatd.primitives.domain.errors import ChatError
from chatd.workspaces.domain.quota import QuotaUse
from chatd.workspaces.domain.workspace import State

#: The next step for a workspace that is not ready, by the name of the tool.
NEXT_STEPS = {
    State.PENDING: "wait until it is ready",
    State.PREPARING: "wait until it is ready",
    State.STOPPING: "wait until it has stopped, then call start_workspace",
    State.STOPPED: "start_workspace",
    State.DELETED: "create_workspace",
    State.FAILED: "start_workspace",
}


class WorkspaceNotReady(ChatError):
    """The workspace is in the wrong state."""

    def __init__(self, workspace_id: str, state: State) -> None:
        next_step = NEXT_STEPS.get(state, "stop_workspace")
        super().__init__(f"the workspace is {state}; next: {next_step}")
        self.workspace_id = workspace_id
        self.state = state
        self.next_step = next_step


class QuotaExhausted(ChatError):
    """The owner has reached a quota limit."""

    def __init__(self, use: QuotaUse) -> None:
        super().__init__(f"{use.used} of {use.limit} {use.dimension} are in use; {use.how_to_free}")
        self.use = use


class TooManyNewWorkspaces(ChatError):
    """The owner has created or started as many workspaces within a minute as may be."""

    def __init__(self, created_max: int, retry_after_s: float) -> None:
        super().__init__(
            f"{created_max} workspaces were created or started within a minute, which is the most; "
            f"the next can be in {math.ceil(retry_after_s)} s"
        )
        self.created_max = created_max
        self.retry_after_s = retry_after_s


class NoNode(ChatError):
    """No machine can host the workspace."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"no machine can host the workspace: {cause}")
        self.cause = cause


class NodeLost(ChatError):
    """The machine of the workspace does not respond."""

    def __init__(self, node_id: str) -> None:
        super().__init__("the machine of this workspace does not answer; try again later")
        self.node_id = node_id


class NodeNotFound(ChatError):
    """There is no such machine."""

    def __init__(self, node_id: str) -> None:
        super().__init__(f"no node {node_id}; register it first")
        self.node_id = node_id


class StaleNode(ChatError):
    """The machine has registered again since."""

    def __init__(self, node_id: str) -> None:
        super().__init__(f"node {node_id} registered anew since; register again")
        self.node_id = node_id


class TemplateNotFound(ChatError):
    """There is no such template for this caller."""

    def __init__(self, template_id: str) -> None:
        super().__init__(f"no template {template_id}; list_templates tells which there are")
        self.template_id = template_id


class NotAFork(ChatError):
    """The workspace is not a fork."""

    def __init__(self, workspace_id: str) -> None:
        super().__init__(f"workspace {workspace_id} is no fork of another")
        self.workspace_id = workspace_id
