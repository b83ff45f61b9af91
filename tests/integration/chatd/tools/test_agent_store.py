"""Agents in PostgreSQL: started once, by the owner of their parent, within their limits."""

from dataclasses import replace
from typing import Any, cast

import pytest

from chatd.chats.agent_ids import agent_id_of
from chatd.chats.domain.agents import AgentLimits, AgentsRefused, SpawnRequest
from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.chats.domain.commands import SendMessage
from chatd.chats.domain.errors import FenceLost
from chatd.chats.store.agents import Agents
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.codec import error_to_json
from chatd.chats.store.idempotency_keys import Keys
from chatd.chats.store.metadata import ChatChanges, Metadata
from chatd.content.domain.messages import (
    ChatMode,
    ErrorKind,
    FinishReason,
    MessageOrigin,
    Role,
    TurnError,
)
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.content.domain.parts import Text
from chatd.models.domain.catalogue import Catalogue
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.models.engine.configuration import CHAT_PREFIX, ConfigurationCache
from chatd.models.store.catalogue import KeyValues, StoredCatalogue
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerClaim,
    OwnerId,
    QueuedMessageId,
)
from chatd.primitives.domain.requests import ClientKey
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.store.ledger import PostgresLedger
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat

ANN = Owner(OwnerId("00000000-0000-0000-0000-0000000000a1"), "member")
ROOT = ChatId("00000000-0000-0000-0000-000000000001")
TURN = MessageId(1)
CLAIM = OwnerClaim(ROOT, 3, TURN)
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
QUEUED = QueuedMessageId("00000000-0000-0000-0000-0000000000e2")
DEEP = replace(REQUEST, chat_id=ChatId("00000000-0000-0000-0000-00000000000c"), depth=2)

ADD_MESSAGE = """
    INSERT INTO chat.chat_messages
        (chat_id, id, revision, role, visibility, content, content_version, is_compressed,
        is_deleted, created_by, created_at, finish_reason, origin)
    VALUES ($1, $2, 1, $3::text, 'both', '[]', 1, false, false, '', now(), $4,
        CASE WHEN $3::text = 'user' THEN 'person' END)
"""
FAIL = "UPDATE chat.chat_exec SET status = 'error', last_error = $2 WHERE chat_id = $1"
CHANGE = "UPDATE chat.chat_exec SET changed_at = changed_at + interval '1 h' WHERE chat_id = $1"
PUT_AWAY = """
    UPDATE chat.chat_exec SET status = 'waiting', archived = true WHERE chat_id = $1
"""
REST = "UPDATE chat.chat_exec SET status = 'waiting' WHERE chat_id = $1"
INTERRUPT = "UPDATE chat.chat_exec SET status = 'interrupting' WHERE chat_id = $1"
NEXT_TURN = "UPDATE chat.chat_exec SET turn_id = turn_id + 1 WHERE chat_id = $1"
ADD_CALL = """
    INSERT INTO chat.tool_calls (execution_id, chat_id, message_id, tool_call_id, tool_name,
        executor, owner_epoch, journal_generation, mode, dispatched_at)
    VALUES ($1, $2, $3, $4, $5, 'chatd', 3, '', 'ordinary', now())
"""
AGE_QUEUE = """
    UPDATE chat.chat_queue SET created_at = created_at - interval '61 s' WHERE chat_id = $1
"""
AGE_MESSAGES = """
    UPDATE chat.chat_messages SET created_at = created_at - interval '61 s' WHERE chat_id = $1
"""


@pytest.fixture
async def agents(pool: Pool) -> Agents:
    """The agents of a root chat whose owner has epoch 3."""
    state = ChatState(ROOT, Status.RUNNING, 1, 1, 0, MessageId(2), turn_id=TURN, owner_epoch=3)
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
    for ended in (OwnerClaim(ROOT, 2, TURN), OwnerClaim(ROOT, 3, MessageId(2))):
        with pytest.raises(FenceLost):
            await agents.spawn(ended, OTHER, AgentLimits())
    (child,) = await agents.children(ROOT, ROOT)
    assert (child.chat_id, child.name, child.is_explorer, child.is_done) == (
        REQUEST.chat_id,
        "First",
        True,
        False,
    )
    assert (child.model, child.error) == (REQUEST.model, None)
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


async def test_the_agents_that_changed_last_are_on_the_first_page(
    agents: Agents, pool: Pool
) -> None:
    third = replace(REQUEST, chat_id=DEEP.chat_id)
    for request in (REQUEST, OTHER, third):
        await agents.spawn(CLAIM, request, AgentLimits())
    await pool.execute(CHANGE, OTHER.chat_id)
    first = await agents.page(ROOT, ROOT, 2, 0)
    rest = await agents.page(ROOT, ROOT, 2, 2)
    assert first.agents[0].chat_id == OTHER.chat_id
    assert (first.total, rest.total) == (3, 3)
    listed = {each.chat_id for each in (*first.agents, *rest.agents)}
    assert listed == {each.chat_id for each in await agents.children(ROOT, ROOT)}
    assert (await agents.page(ROOT, ROOT, 2, 3)).agents == ()
    await pool.execute(PUT_AWAY, OTHER.chat_id)
    assert (await agents.page(ROOT, ROOT, 9, 0)).total == 2


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


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([("assistant", "stop")], FinishReason.STOP),
        ([("assistant", "length")], FinishReason.LENGTH),
        ([("assistant", "interrupted")], FinishReason.INTERRUPTED),
        ([("assistant", "tool_calls"), ("tool", None)], FinishReason.INTERRUPTED),
        ([], FinishReason.INTERRUPTED),
        ([("assistant", None)], None),
    ],
)
async def test_an_agent_is_read_with_why_its_last_answer_ended(
    agents: Agents,
    pool: Pool,
    answers: list[tuple[str, str | None]],
    reason: FinishReason | None,
) -> None:
    await agents.spawn(CLAIM, REQUEST, AgentLimits())
    for place, (role, finish_reason) in enumerate(answers):
        await pool.execute(ADD_MESSAGE, REQUEST.chat_id, place + 2, role, finish_reason)
    await pool.execute(REST, REQUEST.chat_id)
    (child,) = await agents.children(ROOT, ROOT)
    assert (child.is_done, child.finish_reason) == (True, reason)


async def test_an_agent_that_failed_is_read_with_its_whole_error(
    agents: Agents, pool: Pool
) -> None:
    await agents.spawn(CLAIM, REQUEST, AgentLimits())
    error = TurnError("busy", ErrorKind.OVERLOADED, "529", "maker", 529, True, 4)
    await pool.execute(FAIL, REQUEST.chat_id, error_to_json(error))
    (child,) = await agents.children(ROOT, ROOT)
    assert (child.is_done, child.error) == (True, error)


async def test_an_ordinary_agent_explores_while_its_root_plans(agents: Agents, pool: Pool) -> None:
    cache = ConfigurationCache(
        StoredCatalogue(pool, cast(Any, None)), Catalogue(), KeyValues(), FakeClock()
    )
    metadata = Metadata(pool, lambda chat_id: cache.on_notice(f"{CHAT_PREFIX}{chat_id}", 0))
    await agents.spawn(CLAIM, replace(REQUEST, mode=ChatMode.ORDINARY), AgentLimits())
    modes = [(await cache.chat(REQUEST.chat_id)).mode]
    for mode in (ChatMode.PLAN, ChatMode.ORDINARY):
        await metadata.change(ROOT, owner_id=ANN.id, changes=ChatChanges(mode=mode))
        modes.append((await cache.chat(REQUEST.chat_id)).mode)
    assert modes == [ChatMode.ORDINARY, ChatMode.EXPLORE, ChatMode.ORDINARY]


async def test_what_any_agent_of_a_tree_spent_counts_for_starts_and_messages(
    agents: Agents, pool: Pool
) -> None:
    deep = AgentLimits(depth_max=2, cost_micros_max=100)
    await agents.spawn(CLAIM, REQUEST, deep)
    row = await pool.fetchrow(
        "SELECT owner_epoch, turn_id FROM chat.chat_exec WHERE chat_id = $1", REQUEST.chat_id
    )
    assert row is not None
    child = OwnerClaim(REQUEST.chat_id, row["owner_epoch"], row["turn_id"])
    await agents.spawn(child, DEEP, deep)
    assert await agents.below(ROOT) == (REQUEST.chat_id, DEEP.chat_id)
    await agents.require_budget(ROOT, deep)
    for attempt, chat_id in enumerate((REQUEST.chat_id, DEEP.chat_id)):
        bill = Bill(CallPurpose.TURN, CallOutcome.DONE, ModelUse("m", 1, cost_micros=50))
        await PostgresLedger(pool).enter(LedgerEntry(chat_id, 1, attempt, bill), ANN.id)
    later = replace(DEEP, chat_id=ChatId("00000000-0000-0000-0000-00000000000d"))
    for claim, request in ((CLAIM, OTHER), (child, later)):
        with pytest.raises(AgentsRefused) as refused:
            await agents.spawn(claim, request, deep)
        assert refused.value.reason == "AGENTS_TOO_EXPENSIVE"
    with pytest.raises(AgentsRefused) as unsent:
        await agents.require_budget(ROOT, deep)
    assert unsent.value.reason == "AGENTS_TOO_EXPENSIVE"
    await agents.require_budget(ROOT, replace(deep, cost_micros_max=101))
    await agents.require_budget(ROOT, AgentLimits())


async def test_tokens_of_a_tree_count_for_starts_and_messages_also_cached_ones(
    agents: Agents, pool: Pool
) -> None:
    limits = AgentLimits(tokens_max=100)
    await agents.spawn(CLAIM, REQUEST, limits)
    use = ModelUse(
        "m", input_tokens=10, output_tokens=20, cache_read_tokens=30, cache_write_tokens=40
    )
    bill = Bill(CallPurpose.TURN, CallOutcome.DONE, use)
    await PostgresLedger(pool).enter(LedgerEntry(REQUEST.chat_id, 1, 1, bill), ANN.id)

    with pytest.raises(AgentsRefused) as refused:
        await agents.spawn(CLAIM, OTHER, limits)
    with pytest.raises(AgentsRefused) as unsent:
        await agents.require_budget(ROOT, limits)

    assert refused.value.reason == unsent.value.reason == "AGENTS_TOO_MANY_TOKENS"
    await agents.require_budget(ROOT, AgentLimits(tokens_max=101))


async def test_the_time_of_a_tree_begins_with_the_message_that_began_the_turn_of_its_root(
    agents: Agents, pool: Pool
) -> None:
    limits = AgentLimits(duration_s_max=60)
    await pool.execute(ADD_MESSAGE, ROOT, TURN, "user", None)
    await agents.spawn(CLAIM, REQUEST, limits)
    await pool.execute(AGE_MESSAGES, ROOT)

    with pytest.raises(AgentsRefused) as refused:
        await agents.spawn(CLAIM, OTHER, limits)
    with pytest.raises(AgentsRefused) as unsent:
        await agents.require_budget(ROOT, limits)
    await pool.execute(ADD_MESSAGE, ROOT, TURN + 1, "user", None)
    await pool.execute(NEXT_TURN, ROOT)

    assert refused.value.reason == unsent.value.reason == "AGENTS_TOO_LATE"
    await agents.require_budget(ROOT, limits)


@pytest.mark.parametrize("is_at_rest", [True, False])
@pytest.mark.parametrize(
    ("origin", "is_of_caller"),
    [(MessageOrigin.PERSON, True), (MessageOrigin.PROGRAM, True), (MessageOrigin.AGENT, False)],
)
async def test_a_message_of_a_person_begins_the_time_of_one_agent_anew(
    agents: Agents, pool: Pool, is_at_rest: bool, origin: MessageOrigin, is_of_caller: bool
) -> None:
    limits = AgentLimits(duration_s_max=60)
    await pool.execute(ADD_MESSAGE, ROOT, TURN, "user", None)
    for request in (REQUEST, OTHER):
        await agents.spawn(CLAIM, request, limits)
    for each in (ROOT, REQUEST.chat_id, OTHER.chat_id):
        await pool.execute(AGE_MESSAGES, each)
    if is_at_rest:
        await pool.execute(REST, REQUEST.chat_id)

    async def is_late(agent_id: ChatId | None) -> bool:
        try:
            await agents.require_budget(ROOT, limits, agent_id)
        except AgentsRefused as refused:
            return refused.reason == "AGENTS_TOO_LATE"
        return False

    message = NewMessage(Role.USER, (Text("Go on."),), created_by=ANN.id, origin=origin)
    assert await is_late(REQUEST.chat_id)
    async with PostgresChats(pool, lambda state: None, FakeClock()) as chats:
        command = SendMessage(message, QUEUED, None)
        await Keys(pool, chats).once(REQUEST.chat_id, command, ClientKey("key", b"body"))

    assert await is_late(REQUEST.chat_id) is not is_of_caller
    assert [await is_late(each) for each in (OTHER.chat_id, None)] == [True, True]
    await pool.execute(AGE_MESSAGES, REQUEST.chat_id)
    await pool.execute(AGE_QUEUE, REQUEST.chat_id)
    assert await is_late(REQUEST.chat_id)


async def test_a_claim_holds_while_its_turn_runs_and_not_after_it(
    agents: Agents, pool: Pool
) -> None:
    await agents.require_running(CLAIM)
    await pool.execute(INTERRUPT, ROOT)
    with pytest.raises(AgentsRefused) as refused:
        await agents.require_running(CLAIM)
    await pool.execute(NEXT_TURN, ROOT)

    with pytest.raises(FenceLost):
        await agents.require_running(CLAIM)
    assert refused.value.reason == "AGENTS_INTERRUPTED"


async def test_agents_two_levels_below_a_root_start_only_if_that_is_allowed(
    agents: Agents,
) -> None:
    await agents.spawn(CLAIM, REQUEST, AgentLimits())
    with pytest.raises(AgentsRefused) as refused:
        await agents.is_started(DEEP, AgentLimits())
    assert refused.value.reason == "AGENTS_TOO_DEEP"
    assert not await agents.is_started(DEEP, AgentLimits(depth_max=2))


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
            ADD_CALL, execution_id, ROOT, message_id, f"call of {execution_id}", tool
        )
    child = replace(REQUEST, chat_id=agent_id_of(late))
    limits = AgentLimits(depth_max=2)
    state = await agents.spawn(CLAIM, child, limits)
    assert state is not None
    started = OwnerClaim(child.chat_id, state.owner_epoch, state.turn_id)
    await agents.spawn(started, DEEP, limits)

    assert await agents.started_since(ROOT, MessageId(12)) == (child.chat_id, DEEP.chat_id)
    every = await agents.started_since(ROOT, MessageId(1))
    assert sorted(every) == sorted([agent_id_of(early), child.chat_id, DEEP.chat_id])
