"""The outcome of a call whose workspace is not ready."""

import math
from typing import Final

from chatd.content.domain.tools import Outcome
from chatd.primitives.domain.errors import ChatError
from chatd.tools.workspace import failed
from chatd.workspaces.domain.errors import (
    NodeLost,
    NoNode,
    QuotaExhausted,
    TooManyNewWorkspaces,
    WorkspaceNotReady,
)
from chatd.workspaces.domain.workspace import State

HINTS: Final = {
    State.STOPPED: "Call start_workspace, then repeat this.",
    State.FAILED: "Call start_workspace to have it made again, then repeat this.",
    State.DELETED: "Call create_workspace, following list_templates, then repeat this.",
    State.STOPPING: "Wait until it has stopped, call start_workspace, then repeat this.",
}


WAIT: Final = "It is still being made; repeat this in a while."


def not_ready(error: ChatError) -> Outcome:
    """Return the outcome of a call without a usable workspace; nothing ran."""
    match error:
        case WorkspaceNotReady(state=state):
            told = f"The workspace of this chat is {state}; nothing ran."
            return failed(told, "WORKSPACE_NOT_READY", HINTS.get(state, WAIT))
        case NodeLost():
            told = "The machine of this workspace does not answer; nothing ran."
            hint = (
                "Repeat this in a minute; if it goes on, call stop_workspace, then start_workspace."
            )
            return failed(told, "NODE_LOST", hint)
        case NoNode(cause=cause):
            told = f"There is no machine to work on: {cause}; nothing ran."
            return failed(told, "NO_NODE", "Tell the user; an administrator has to look at it.")
        case QuotaExhausted(use=use):
            return failed(
                str(error),
                "QUOTA_EXHAUSTED",
                f"Ask the user: {use.how_to_free}.",
                fields={
                    "dimension": use.dimension.value,
                    "used": use.used,
                    "limit": use.limit,
                },
            )
        case TooManyNewWorkspaces(retry_after_s=retry_after_s):
            return failed(
                str(error),
                "TOO_MANY_NEW_WORKSPACES",
                "Use the workspaces that there are, or repeat this then.",
                fields={"retry_after_s": math.ceil(retry_after_s)},
            )
        case _:
            return failed(str(error), "REFUSED", "Tell the user what is wrong.")
