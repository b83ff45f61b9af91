"""Restores of files in workspaces that cannot be used now."""

import pytest

from chatd.chats.domain.chat import Revert, RevertKind
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerClaim, OwnerId, RevertId
from chatd.reverts.clients.restores import NodeRestores
from chatd.turns.domain.ports import RestoreFailed
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.ports import WorkspaceLocation
from chatd.workspaces.domain.workspace import State
from parley.clock import FakeClock
from parley.rpc import Address, Channels
from support.chatd.workspaces.fixed_locator import FixedLocator

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")


class StoppedWorkspaces(FixedLocator):
    """Finds workspaces that were stopped."""

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Refuse."""
        raise WorkspaceNotReady(chat_id, State.STOPPED)


class NoAgents:
    """Chats without agents."""

    async def started_since(self, chat_id: ChatId, message_id: MessageId) -> tuple[ChatId, ...]:
        """Return none."""
        return ()


@pytest.fixture
def restores() -> NodeRestores:
    place = Address.parse("unix:/nowhere")
    channels = Channels((place,), lambda _: pytest.fail("no node is asked"))
    return NodeRestores(channels, FakeClock(), StoppedWorkspaces(channels), NoAgents())


async def test_a_preview_says_that_the_workspace_has_to_be_started(restores: NodeRestores) -> None:
    with pytest.raises(WorkspaceNotReady) as refused:
        await restores.preview(CHAT, ANN, MessageId(1))
    assert refused.value.state is State.STOPPED


async def test_a_revert_fails_with_the_state_of_the_workspace(restores: NodeRestores) -> None:
    claim = OwnerClaim(CHAT, 1, MessageId(3))
    revert = Revert(RevertId("r"), RevertKind.HISTORY, MessageId(1), restores_files=True)
    with pytest.raises(RestoreFailed) as failed:
        await restores.restore(claim, ANN, revert)
    # The text is for people, who have no tool "start_workspace".
    assert str(failed.value) == "The files could not be restored: the workspace is stopped."
