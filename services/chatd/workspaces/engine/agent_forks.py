"""Forks in which agents work: copies of the workspaces of the chats that start them.

A fork has the id of its agent's chat and counts as the scratch workspace of that chat. So it is
found without another lookup, counts by its disk space only, starts again when it is used after a
stop, and is removed when the chat is deleted.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerClaim, OwnerId
from chatd.workspaces.domain.commands import Remove
from chatd.workspaces.domain.errors import QuotaExhausted, WorkspaceNotReady
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from chatd.workspaces.domain.quota import Dimension, QuotaLimits, uses
from chatd.workspaces.domain.spec import Kind, Source
from chatd.workspaces.domain.workspace import State, Workspace, WorkspaceId
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.fork_merges import ForkMerges
from chatd.workspaces.engine.locator import SCRATCH_LIFETIME, ChatWorkspaceLocator
from chatd.workspaces.store.workspaces import PostgresWorkspaces

#: States that a copy does not leave by itself.
ENDED: Final = frozenset({State.STOPPED, State.FAILED, State.DELETED})


class Settled(Protocol):
    """Waits for workspaces."""

    async def settled(self, workspace_id: str) -> Workspace:
        """Return a workspace once it needs no more action, or its state after a timeout."""
        ...


class AgentForks:
    """Creates, merges and discards the forks of agents.

    Args:
        workspaces: The store of workspaces.
        locator: Finds the workspaces of chats.
        driver: Creates forks.
        waits: Waits until they are created.
        merges: Merges them.
        limits: The quota of one user.
    """

    def __init__(
        self,
        workspaces: PostgresWorkspaces,
        locator: ChatWorkspaceLocator,
        driver: Driver,
        waits: Settled,
        merges: ForkMerges,
        limits: QuotaLimits,
    ) -> None:
        self._limits = limits
        self._workspaces = workspaces
        self._locator = locator
        self._driver = driver
        self._waits = waits
        self._merges = merges

    async def fork(
        self, chat_id: ChatId, agent_id: ChatId, owner: Owner, claim: OwnerClaim | None = None
    ) -> None:
        """Copy the workspace of a chat for an agent; a repeated request finds the copy.

        Args:
            chat_id: The chat whose workspace is copied.
            agent_id: The agent, whose id the copy gets.
            owner: The owner of both.
            claim: The claim of the chat whose tool asks for it; None for a request of a user.

        Raises:
            FenceLost: another process owns the chat, and nothing was copied.
            WorkspaceNotReady: the workspace cannot be used, or no copy could be made.
            NodeLost: its node does not respond.
            NoNode: there is no suitable node.
            QuotaExhausted: the owner has used up the disk space.
        """
        location = await self._locator.ensure_ready(chat_id, owner)
        source = await self._workspaces.own(location.workspace_id, owner.id)
        await self._require_disk(agent_id, owner.id)
        now = await self._workspaces.now()
        copied = replace(
            source.spec, kind=Kind.FORK, source=Source(parent_id=source.id), setup_script=""
        )
        fork = await self._workspaces.add_scratch(
            Workspace(
                id=WorkspaceId(agent_id),
                name=f"agent-{agent_id}",
                owner_id=owner.id,
                kind=Kind.FORK,
                spec=copied,
                lifetime=SCRATCH_LIFETIME,
                created_at=now,
                last_used_at=now,
                template_id=source.template_id,
                template_name=source.template_name,
                parameters=source.parameters,
                is_scratch_of_chat=True,
                parent_id=source.id,
            ),
            self._driver.driver_id,
            self._driver.timing.lease_s,
            claim,
        )
        # An earlier request failed, or its copy is removed because nothing used it.
        if fork.state is State.STOPPING:
            fork = await self._waits.settled(fork.id)
        if fork.state in ENDED and not _has_files(fork):
            fork = await self._workspaces.restart_scratch(fork.id, claim)
        self._driver.poke(fork)
        made = await self._waits.settled(fork.id)
        if _has_files(made):
            return
        if not made.has_files:
            await self.discard(agent_id)
        raise WorkspaceNotReady(made.id, made.state)

    async def _require_disk(self, agent_id: ChatId, owner_id: OwnerId) -> None:
        counted = await self._workspaces.counted(owner_id)
        if any(each.id == WorkspaceId(agent_id) for each in counted):
            return  # The copy of an earlier call.
        for use in uses(counted, self._limits):
            if use.dimension is Dimension.DISK_BYTES and use.is_exhausted_by(1):
                raise QuotaExhausted(use)

    async def discard(self, agent_id: ChatId) -> None:
        """Remove the fork of an agent that was not started, if there is one."""
        with suppress(WorkspaceNotFound):
            await self._workspaces.apply(agent_id, Remove())

    async def has_files(self, agent_id: ChatId, owner_id: OwnerId) -> bool:
        """Return whether the fork of an agent has its files; used without them it is copied anew.

        Raises:
            WorkspaceNotFound: the agent has no fork.
        """
        return _has_files(await self._workspaces.own(agent_id, owner_id))

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        """Merge the changes of an agent into the workspace that it was copied from.

        Raises:
            ChatError: the agent has no fork, or its files are not there.
            Refusal: the node refuses or does not respond.
        """
        return await self._merges.merge(agent_id, owner_id, request)


def _has_files(fork: Workspace) -> bool:
    # One that stopped starts again when it is used.
    return fork.is_usable or (fork.state is State.STOPPED and fork.has_files)
