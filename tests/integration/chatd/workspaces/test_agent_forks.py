"""Forks of agents in PostgreSQL: found by the agent's chat, and never replaced by another."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from chatd.chats.domain.agents import AgentLimits, SpawnRequest
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.errors import FenceLost
from chatd.chats.store.agents import Agents
from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import NO_CHOICE
from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import (
    NO_MESSAGE,
    ChatId,
    MessageId,
    Owner,
    OwnerClaim,
    WorkerId,
)
from chatd.workspaces.domain.commands import Remove, Start
from chatd.workspaces.domain.errors import QuotaExhausted, WorkspaceNotReady
from chatd.workspaces.domain.ports import WorkspaceLocation
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.spec import Kind
from chatd.workspaces.domain.workspace import State, Usage, Workspace, WorkspaceId
from chatd.workspaces.engine.agent_forks import AgentForks
from chatd.workspaces.engine.driver import DriverTiming
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.workspaces.stored_workspaces import DRIVER, IDS, LIMITS, fresh
from support.chatd.workspaces.workspace_values import ANN

OWNER = Owner(ANN, "member")


@pytest.fixture
async def agent(pool: Pool) -> SpawnRequest:
    """An agent in a fork, started by a root chat, and one beside it in the files of the root."""
    root = ChatId(next(IDS))
    state = ChatState(root, Status.RUNNING, 1, 1, 0, MessageId(1), owner_epoch=1)
    await insert_chat(pool, state, OWNER)
    request = SpawnRequest(
        chat_id=ChatId(next(IDS)),
        root_chat_id=root,
        depth=1,
        owner=OWNER,
        title="Writer",
        prompt="Write.",
        mode=ChatMode.ORDINARY,
        model=NO_CHOICE,
        mcp_server_ids=None,
        is_forked=True,
    )
    for each in (request, replace(request, chat_id=ChatId(next(IDS)), is_forked=False)):
        await Agents(pool).spawn(OwnerClaim(root, 1, NO_MESSAGE), each, AgentLimits())
    return request


async def test_an_agent_whose_fork_is_gone_never_gets_the_files_of_its_root(
    pool: Pool, agent: SpawnRequest
) -> None:
    store = PostgresWorkspaces(pool)
    root_id = agent.root_chat_id
    scratch = fresh("root", id=WorkspaceId(root_id), is_scratch_of_chat=True)
    await store.add_scratch(scratch, DRIVER, 15.0)
    fork = fresh(
        "fork",
        id=WorkspaceId(agent.chat_id),
        is_scratch_of_chat=True,
        kind=Kind.FORK,
        parent_id=root_id,
    )
    await store.add_scratch(fork, DRIVER, 15.0)
    shared = [each for each in await Agents(pool).children(root_id, root_id) if not each.is_forked]
    found = await store.of_chat(agent.chat_id)
    beside = await store.of_chat(shared[0].chat_id)
    assert found is not None
    assert beside is not None
    assert (found.workspace, found.scratch_id) == (fork, fork.id)
    assert (beside.workspace, beside.scratch_id) == (scratch, scratch.id)

    await store.apply(fork.id, Remove())
    gone = await store.of_chat(agent.chat_id)
    assert gone is not None
    assert gone.workspace is not None
    assert (gone.workspace.id, gone.workspace.state) == (fork.id, State.DELETED)
    _, again = await store.apply(fork.id, Start())
    assert (again.state, again.kind, again.parent_id) == (State.PENDING, Kind.FORK, root_id)


async def test_forks_of_agents_count_by_their_disk_space_only(
    pool: Pool, agent: SpawnRequest
) -> None:
    store = PostgresWorkspaces(pool)
    forks = [
        fresh(f"fork{number}", id=WorkspaceId(next(IDS)), is_scratch_of_chat=True, kind=Kind.FORK)
        for number in range(LIMITS.live_workspaces + 1)
    ]
    for fork in forks:
        assert await store.add_scratch(fork, DRIVER, 15.0) == fork


@dataclass
class Ready:
    """A chat whose workspace is ready, with a driver that leaves copies in a state."""

    store: PostgresWorkspaces
    source_id: str
    outcome: dict[str, Any]
    driver_id: WorkerId = DRIVER
    timing: DriverTiming = field(default_factory=DriverTiming)

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        return WorkspaceLocation("unix:/run/node.sock", self.source_id)

    def poke(self, workspace: Workspace) -> None:
        """Do nothing."""

    async def settled(self, workspace_id: str) -> Workspace:
        return replace(await self.store.get(workspace_id), **self.outcome)

    def forks(self) -> AgentForks:
        """Return the forks of agents."""
        this = cast(Any, self)
        limits = QuotaLimits(live_workspaces=1, workspaces=1, disk_bytes=1024)
        return AgentForks(self.store, this, this, this, this, limits)


@pytest.mark.parametrize(
    ("outcome", "is_kept", "is_refused"),
    [
        ({"state": State.READY, "has_files": True}, True, False),
        ({"state": State.STOPPED, "has_files": True}, True, False),
        ({"state": State.FAILED, "has_files": True}, True, True),
        ({"state": State.FAILED, "has_files": False}, False, True),
    ],
)
async def test_only_a_copy_that_never_became_usable_is_discarded(
    pool: Pool, outcome: dict[str, Any], is_kept: bool, is_refused: bool
) -> None:
    store = PostgresWorkspaces(pool)
    source = fresh("source", is_scratch_of_chat=True)
    await store.add_scratch(source, DRIVER, 15.0)
    agent_id = ChatId(next(IDS))
    with pytest.raises(WorkspaceNotReady) if is_refused else nullcontext():
        await Ready(store, source.id, outcome).forks().fork(ChatId(source.id), agent_id, OWNER)
    assert (await store.get(agent_id)).is_gone is not is_kept


@pytest.mark.parametrize(("owner_epoch", "turn_id"), [(0, NO_MESSAGE), (1, MessageId(7))])
async def test_an_owner_that_was_replaced_and_a_turn_that_is_over_copy_nothing(
    pool: Pool, agent: SpawnRequest, owner_epoch: int, turn_id: MessageId
) -> None:
    store = PostgresWorkspaces(pool)
    source = fresh("source", is_scratch_of_chat=True)
    await store.add_scratch(source, DRIVER, 15.0)
    forks = Ready(store, source.id, {"state": State.READY, "has_files": True}).forks()
    replaced = OwnerClaim(agent.root_chat_id, owner_epoch, turn_id)
    present = OwnerClaim(agent.root_chat_id, 1, NO_MESSAGE)
    with pytest.raises(FenceLost):
        await forks.fork(ChatId(source.id), agent.chat_id, OWNER, replaced)
    with pytest.raises(WorkspaceNotFound):
        await store.get(agent.chat_id)
    await forks.fork(ChatId(source.id), agent.chat_id, OWNER, present)
    assert (await store.get(agent.chat_id)).state is State.PENDING


async def test_a_copy_beyond_the_disk_space_of_its_owner_is_refused(pool: Pool) -> None:
    store = PostgresWorkspaces(pool)
    source = fresh("source", is_scratch_of_chat=True)
    await store.add_scratch(source, DRIVER, 15.0)
    forks = Ready(store, source.id, {"state": State.READY, "has_files": True}).forks()
    first, other = ChatId(next(IDS)), ChatId(next(IDS))
    await forks.fork(ChatId(source.id), first, OWNER)
    full = fresh("full", is_scratch_of_chat=True, usage=Usage(disk_bytes=1024))
    await store.add_scratch(full, DRIVER, 15.0)
    await forks.fork(ChatId(source.id), first, OWNER)
    with pytest.raises(QuotaExhausted):
        await forks.fork(ChatId(source.id), other, OWNER)
    with pytest.raises(WorkspaceNotFound):
        await store.get(other)


@pytest.mark.parametrize("is_claimed", [False, True])
async def test_secrets_of_a_copy_are_recorded_once_as_granted_by_its_owner(
    pool: Pool, agent: SpawnRequest, is_claimed: bool
) -> None:
    store = PostgresWorkspaces(pool)
    plain, source = (fresh(name, is_scratch_of_chat=True) for name in ("plain", "source"))
    source = replace(source, spec=replace(source.spec, secret_names=("deploy", "sign")))
    claim = OwnerClaim(agent.root_chat_id, 1, NO_MESSAGE) if is_claimed else None
    outcome = {"state": State.READY, "has_files": True}
    for each in (plain, source):
        await store.add(each, b"", LIMITS)
    await pool.execute("TRUNCATE chat.audit_outbox")

    await (
        Ready(store, plain.id, outcome)
        .forks()
        .fork(agent.root_chat_id, ChatId(next(IDS)), OWNER, claim)
    )
    for _ in range(2):
        await (
            Ready(store, source.id, outcome)
            .forks()
            .fork(agent.root_chat_id, agent.chat_id, OWNER, claim)
        )

    rows = await pool.fetch(
        "SELECT action, object_id, actor_user_id::text, subject_user_id::text, details::text "
        "FROM chat.audit_outbox"
    )
    details = '{"secrets": "2"}'
    assert [tuple(row) for row in rows] == [
        ("workspace.secrets_granted", agent.chat_id, ANN, ANN, details)
    ]


async def test_a_copy_that_was_removed_is_made_again_by_a_repeated_request(pool: Pool) -> None:
    store = PostgresWorkspaces(pool)
    source = fresh("source", is_scratch_of_chat=True)
    await store.add_scratch(source, DRIVER, 15.0)
    agent_id = ChatId(next(IDS))
    failed = Ready(store, source.id, {"state": State.FAILED, "has_files": False}).forks()
    with pytest.raises(WorkspaceNotReady):
        await failed.fork(ChatId(source.id), agent_id, OWNER)
    assert (await store.get(agent_id)).state is State.DELETED
    made = Ready(store, source.id, {"state": State.READY, "has_files": True}).forks()
    await made.fork(ChatId(source.id), agent_id, OWNER)
    assert (await store.get(agent_id)).state is State.PENDING


async def test_a_fork_whose_chat_was_not_created_within_an_hour_is_left_behind(
    pool: Pool, agent: SpawnRequest
) -> None:
    store = PostgresWorkspaces(pool)
    source = fresh("source", id=WorkspaceId(agent.root_chat_id), is_scratch_of_chat=True)
    ids = (WorkspaceId(agent.chat_id), WorkspaceId(next(IDS)), WorkspaceId(next(IDS)))
    used, unstarted, recent = (
        fresh(
            f"fork{each}"[:60],
            id=each,
            is_scratch_of_chat=True,
            kind=Kind.FORK,
            parent_id=source.id,
        )
        for each in ids
    )
    for each in (source, used, unstarted, recent):
        await store.add_scratch(each, DRIVER, 15.0)
    aged = "UPDATE chat.workspaces SET changed_at = changed_at - interval '2 hours' WHERE id <> $1"
    await pool.execute(aged, recent.id)
    assert [seen.workspace.id for seen in await store.orphaned(9)] == [unstarted.id]
    await Ready(store, source.id, {}).forks().discard(ChatId(unstarted.id))
    assert await store.orphaned(9) == ()
