"""Where chats work when nobody keeps track of it, and what a model is told when they cannot."""

from typing import Final

from chatd.clients.workspace import failed
from chatd.domain.chat import ChatId, Owner
from chatd.domain.errors import ChatError
from chatd.domain.tools import Outcome
from chatd.domain.workspaces.errors import NodeLost, NoNode, QuotaExhausted, WorkspaceNotReady
from chatd.domain.workspaces.ports import Site
from chatd.domain.workspaces.workspace import State
from parley.rpc import Channels

HINTS: Final = {
    State.STOPPED: "Call start_workspace, then repeat this.",
    State.FAILED: "Call start_workspace to have it made again, then repeat this.",
    State.DELETED: "Call create_workspace, following list_templates, then repeat this.",
    State.STOPPING: "Wait until it has stopped, call start_workspace, then repeat this.",
}
WAIT: Final = "It is still being made; repeat this in a while."


class PreferredSites:
    """Gives every chat a workspace under its own id, on the node that the id prefers."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def begin(self, chat_id: ChatId) -> Site:
        """Return where the chat's tools work."""
        return Site(str(self._channels.address_for(chat_id)), chat_id)

    async def ready(self, chat_id: ChatId, owner: Owner) -> Site:
        """Return the same: a node makes the directory at its first use."""
        return await self.begin(chat_id)

    async def seen(self, chat_id: ChatId) -> Site:
        """Return the same."""
        return await self.begin(chat_id)

    async def recent(self, chat_id: ChatId) -> Site:
        """Return the same."""
        return await self.begin(chat_id)

    def forget(self, chat_id: ChatId) -> None:
        """Know nothing that could be forgotten."""


def not_ready(error: ChatError) -> Outcome:
    """Return what a model is told of a call for which there is no workspace; nothing ran."""
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
        case _:
            return failed(str(error), "REFUSED", "Tell the user what is wrong.")
