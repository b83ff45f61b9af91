"""Agents in PostgreSQL: started once, by the owner of their parent, within their limits."""

from dataclasses import replace
from typing import Any, cast

import pytest

from chatd.chats.domain.agents import AgentLimits, AgentsRefused, SpawnRequest, agent_id_of
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.errors import FenceLost
from chatd.chats.store.agents import Agents
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.models.store.catalogue import StoredCatalogue
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerClaim, OwnerId
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat

ANN = Owner(OwnerId("00000000-0000-0000-0000-0000000000a1"), "member")
ROOT = ChatId("00000000-0000-0000-0000-000000000001")
CLAIM = OwnerClaim(ROOT, 3)
REQUEST = SpawnRequest(
    chat_id=ChatId("00000000-0000-0000-0000-00000000000a"),
    root_chat_id=ROOT,
    depth=1,
    owner=ANN,
    title="First",
    prompt="Look.",
    mode=ChatMode.EXPLORE,
    model=ModelChoice("small", ReasoningEffort.LOW),
    mcp_server_ids=None,
    fallback_model_id="other",
)
OTHER = replace(REQUEST, chat_id=ChatId("00000000-0000-0000-0000-00000000000b"))
DEEP = replace(REQUEST, chat_id=ChatId("00000000-0000-0000-0000-00000000000c"), depth=2)


@pytest.fixture
async def agents(pool: Pool) -> Agents:
    """The agents of a root chat whose owner has epoch 3."""
    state = ChatState(ROOT, Status.RUNNING, 1, 1, 0, MessageId(1), owner_epoch=3)
    await insert_chat(pool, state, ANN)
    return Agents(pool)


async def test_a_repeated_call_starts_nothing_twice_and_another_owner_starts_nothing(
    agents: Agents, pool: Pool
) -> None:
    state = await agents.spawn(CLAIM, REQUEST, AgentLimits())
    assert state is not None
    assert (state.chat_id, state.status, state.worker_id) == (
        REQUEST.chat_id,
        Status.RUNNING,
        None,
    )
    assert await agents.spawn(CLAIM, REQUEST, AgentLimits()) is None
    with pytest.raises(FenceLost):
        await agents.spawn(OwnerClaim(ROOT, 2), OTHER, AgentLimits())
    (child,) = await agents.children(ROOT, ROOT)
    assert (child.chat_id, child.name, child.is_explorer, child.is_done) == (
        REQUEST.chat_id,
        "First",
        True,
        False,
    )
    assert await agents.below(ROOT) == (REQUEST.chat_id,)
    facts = await StoredCatalogue(pool, cast(Any, None)).chat(REQUEST.chat_id)
    assert facts.fallback_model_id == "other"
    assert facts.choice == REQUEST.model


async def test_the_orders_of_an_agent_are_stored_for_its_turns_and_its_parent(
    agents: Agents, pool: Pool
) -> None:
    orders = AgentOrders("reviewer", "Read it.", ("read_file",), '{"type": "object"}')
    await agents.spawn(CLAIM, replace(REQUEST, orders=orders), AgentLimits())
    await agents.spawn(CLAIM, OTHER, AgentLimits())
    first, second = await agents.children(ROOT, ROOT)
    assert (first.orders, second.orders) == (orders, NO_ORDERS)
    facts = await StoredCatalogue(pool, cast(Any, None)).chat(REQUEST.chat_id)
    assert facts.orders == orders


async def test_a_tree_starts_no_more_than_its_limits_allow_and_repeats_what_it_started(
    agents: Agents,
) -> None:
    limits = AgentLimits(depth_max=1, children_max=1)
    with pytest.raises(AgentsRefused) as deep:
        await agents.spawn(CLAIM, DEEP, limits)
    await agents.spawn(CLAIM, REQUEST, limits)
    with pytest.raises(AgentsRefused) as many:
        await agents.spawn(CLAIM, OTHER, limits)
    assert (deep.value.reason, many.value.reason) == ("AGENTS_TOO_DEEP", "AGENTS_TOO_MANY")
    with pytest.raises(AgentsRefused) as early:
        await agents.is_started(OTHER, limits)
    assert early.value.reason == "AGENTS_TOO_MANY"
    assert await agents.is_started(REQUEST, limits)
    assert not await agents.is_started(OTHER, AgentLimits())
    assert await agents.spawn(CLAIM, REQUEST, limits) is None


async def test_the_agents_that_turns_started_are_found_with_those_below_them(
    agents: Agents, pool: Pool
) -> None:
    early, late = (ExecutionId(f"00000000-0000-0000-0000-00000000000{each}") for each in "ef")
    for message_id, execution_id, tool in (
        (11, early, "spawn_agent"),
        (14, late, "spawn_agent"),
        (14, ExecutionId("00000000-0000-0000-0000-0000000000ff"), "execute"),
    ):
        await pool.execute(
            "INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content, "
            "content_version, is_compressed, is_deleted, created_by, created_at) "
            "VALUES ($1, $2, 1, 'assistant', 'both', '[]', 1, false, false, '', now()) "
            "ON CONFLICT DO NOTHING",
            ROOT,
            message_id,
        )
        await pool.execute(
            "INSERT INTO chat.tool_calls (execution_id, chat_id, message_id, tool_call_id, "
            "tool_name, executor, owner_epoch, journal_generation, mode, dispatched_at) "
            "VALUES ($1, $2, $3, $4, $5, 'chatd', 3, '', 'ordinary', now())",
            execution_id,
            ROOT,
            message_id,
            f"call of {execution_id}",
            tool,
        )
    child = replace(REQUEST, chat_id=agent_id_of(late))
    limits = AgentLimits(depth_max=2)
    state = await agents.spawn(CLAIM, child, limits)
    assert state is not None
    await agents.spawn(OwnerClaim(child.chat_id, state.owner_epoch), DEEP, limits)

    assert await agents.started_since(ROOT, MessageId(12)) == (child.chat_id, DEEP.chat_id)
    every = await agents.started_since(ROOT, MessageId(1))
    assert sorted(every) == sorted([agent_id_of(early), child.chat_id, DEEP.chat_id])
