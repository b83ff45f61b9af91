"""Restores of files in workspaces that cannot be used now."""

import asyncio

import pytest

from chatd.chats.domain.chat import Revert, RevertKind
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerClaim, OwnerId, RevertId
from chatd.reverts.clients.restores import PATIENCE_S, NodeRestores
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


class PreparedForLong(FixedLocator):
    """Finds workspaces that are being prepared."""

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Wait."""
        await asyncio.Event().wait()
        raise AssertionError("it is never ready")


class NoAgents:
    """Chats without agents."""

    async def started_since(self, chat_id: ChatId, message_id: MessageId) -> tuple[ChatId, ...]:
        """Return none."""
        return ()


def restores_with(locator: type[FixedLocator], clock: FakeClock) -> NodeRestores:
    place = Address.parse("unix:/nowhere")
    channels = Channels((place,), lambda _: pytest.fail("no node is asked"))
    return NodeRestores(channels, clock, locator(channels), NoAgents())


async def test_a_preview_does_not_wait_for_a_workspace_that_takes_long() -> None:
    clock = FakeClock()
    restores = restores_with(PreparedForLong, clock)

    async def refused() -> WorkspaceNotReady:
        with pytest.raises(WorkspaceNotReady) as caught:
            await restores.preview(CHAT, ANN, MessageId(1))
        return caught.value

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        previewing = tasks.create_task(refused())
        # Calls of gateways have 30 s.
        assert await clock.until_sleeping() < 30
        clock.advance(PATIENCE_S)
    assert previewing.result().state is State.PREPARING


async def test_a_preview_says_that_the_workspace_has_to_be_started() -> None:
    restores = restores_with(StoppedWorkspaces, FakeClock())
    with pytest.raises(WorkspaceNotReady) as refused:
        await restores.preview(CHAT, ANN, MessageId(1))
    assert refused.value.state is State.STOPPED


async def test_a_revert_fails_with_the_state_of_the_workspace() -> None:
    restores = restores_with(StoppedWorkspaces, FakeClock())
    claim = OwnerClaim(CHAT, 1, MessageId(3))
    revert = Revert(RevertId("r"), RevertKind.HISTORY, MessageId(1), restores_files=True)
    with pytest.raises(RestoreFailed) as failed:
        await restores.restore(claim, ANN, revert)
    # The text is for people, who have no tool "start_workspace".
    assert str(failed.value) == "The files could not be restored: the workspace is stopped."
