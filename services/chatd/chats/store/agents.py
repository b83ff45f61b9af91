"""Children that a chat starts, and the calls that wait for their end."""

from typing import Final

import asyncpg
import msgspec

from chatd.chats.agent_ids import agent_id_of
from chatd.chats.domain.agents import (
    Agent,
    AgentLimits,
    AgentPage,
    AgentWait,
    SpawnRequest,
    TreeUse,
    require_budget,
    require_start,
)
from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.chats.store.codec import error_from_json, parts_from_json
from chatd.chats.store.creation import NewChat, insert_chat
from chatd.chats.store.owner_claims import claimed_status, interrupted_chat
from chatd.content.domain.messages import FinishReason, MessageOrigin, Role
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.content.domain.parts import Text
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerClaim, OwnerId
from parley.postgres import Pool

# Two children of one tree are counted one after the other.
# May run: process.
LOCK_ROOT = """
    SELECT owner_group_ids FROM chat.chats WHERE id = $1 FOR NO KEY UPDATE
"""

# When a caller of the API last sent a message to an agent, at once or into its queue.
SENT_BY_CALLER = """
    SELECT max(sent.created_at) FROM (
        SELECT created_at FROM chat.chat_messages
        WHERE chat_id = $3::uuid AND origin IN ('person', 'program')
        UNION ALL
        SELECT created_at FROM chat.chat_queue
        WHERE chat_id = $3::uuid AND origin IN ('person', 'program')) AS sent
"""

# What the limits of a tree depend on; for an agent the time since a person wrote to it, if that is
# shorter.
# May run: process.
SELECT_TREE = f"""
    SELECT (SELECT count(*) FROM chat.chats WHERE root_chat_id = $1 AND id <> $1) AS children,
        used.cost_micros, used.tokens, EXISTS (SELECT 1 FROM chat.chats WHERE id = $2) AS is_known,
        least(coalesce((SELECT extract(epoch FROM clock_timestamp() - m.created_at)
            FROM chat.chat_exec e JOIN chat.chat_messages m
                ON m.chat_id = e.chat_id AND m.id = e.turn_id
            WHERE e.chat_id = $1), 0),
            extract(epoch FROM clock_timestamp() - ({SENT_BY_CALLER})))::float8 AS duration_s
    FROM (SELECT coalesce(sum(cost_micros), 0)::bigint AS cost_micros,
            coalesce(sum(input_tokens + cache_read_tokens + cache_write_tokens + output_tokens),
                0)::bigint AS tokens
        FROM chat.usage WHERE root_chat_id = $1) AS used
"""

# Children with their last answer and their cost. A child that rests behind a message or a result
# without an answer was interrupted.
CHILD_COLUMNS = """
    c.id, c.title, c.mode, c.workspace_id = c.id AS is_forked, c.orders::text AS orders,
        e.status, e.queue_length, e.history_version,
        e.last_error::text AS last_error, c.model_id, c.reasoning_effort,
        answer.content::text AS answer, answer.finish_reason, coalesce((
            SELECT m.role <> 'assistant' FROM chat.chat_messages m
            WHERE m.chat_id = c.id AND NOT m.is_deleted AND NOT m.is_compressed
            ORDER BY m.id DESC LIMIT 1), false) AS is_unanswered,
        (SELECT coalesce(sum(u.cost_micros), 0)::bigint FROM chat.usage u
            WHERE u.chat_id = c.id) AS cost_micros
"""
CHILD_ANSWERS = """
    LEFT JOIN LATERAL (
        SELECT m.content, m.finish_reason FROM chat.chat_messages m
        WHERE m.chat_id = c.id AND m.role = 'assistant' AND NOT m.is_deleted
            AND NOT m.is_compressed
        ORDER BY m.id DESC LIMIT 1) AS answer ON true
"""

# The children of a chat, in the order of their start.
# May run: process.
SELECT_CHILDREN = f"""
    SELECT {CHILD_COLUMNS} FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    {CHILD_ANSWERS}
    WHERE c.root_chat_id = $1 AND c.parent_chat_id = $2 ORDER BY c.created_at, c.id
"""

# Some children of a chat, those that changed last first; without those that were put away.
# May run: process.
SELECT_CHILDREN_PAGE = f"""
    WITH listed AS (
        SELECT child.id, moved.changed_at, count(*) OVER () AS total
        FROM chat.chats child JOIN chat.chat_exec moved ON moved.chat_id = child.id
        WHERE child.root_chat_id = $1 AND child.parent_chat_id = $2 AND NOT moved.archived
        ORDER BY moved.changed_at DESC, child.id LIMIT $3 OFFSET $4)
    SELECT listed.total, {CHILD_COLUMNS} FROM listed JOIN chat.chats c ON c.id = listed.id
    JOIN chat.chat_exec e ON e.chat_id = c.id
    {CHILD_ANSWERS}
    ORDER BY listed.changed_at DESC, listed.id
"""

# Calls of a chat that started agents, from a message on; also those of deleted messages.
# May run: checked by Ownership, process.
SELECT_STARTS = """
    SELECT execution_id FROM chat.tool_calls
    WHERE chat_id = $1 AND message_id >= $2 AND tool_name = 'spawn_agent'
"""

# Calls that wait for agents, and whether these have ended: all, or one if that is enough.
# May run: process.
SELECT_WAITS = """
    SELECT a.id, a.chat_id, c.owner_id, c.owner_role,
        (SELECT CASE WHEN a.arguments ->> 'until' = 'any'
                THEN bool_or(child.status IN ('waiting', 'error'))
                ELSE coalesce(bool_and(child.status IN ('waiting', 'error')), true) END
            FROM json_array_elements_text(a.arguments -> 'agents') AS waited (id)
            JOIN chat.chat_exec child ON child.chat_id = waited.id::uuid) AS is_over
    FROM chat.chat_actions a JOIN chat.chat_exec e ON e.chat_id = a.chat_id
    JOIN chat.chats c ON c.id = a.chat_id
    WHERE a.kind = 'agents' AND a.ended_at IS NULL AND e.status = 'requires_action'
    ORDER BY is_over DESC, a.asked_at LIMIT $1
"""

# All chats below a chat, the nearest first.
# May run: checked by Ownership, process.
SELECT_BELOW = """
    WITH RECURSIVE below AS (
        SELECT c.id, 1 AS depth FROM chat.chats c WHERE c.parent_chat_id = $1
            AND c.root_chat_id = (SELECT root_chat_id FROM chat.chats WHERE id = $1)
        UNION ALL
        SELECT c.id, depth + 1 FROM below JOIN chat.chats c ON c.parent_chat_id = below.id
            AND c.root_chat_id = (SELECT root_chat_id FROM chat.chats WHERE id = $1))
    SELECT id FROM below ORDER BY depth, id
"""

_orders: Final = msgspec.json.Decoder(AgentOrders)
AT_REST: Final = (Status.WAITING, Status.ERROR)


class Agents:
    """Stores children and finds the waits that are over."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def spawn(
        self, claim: OwnerClaim, request: SpawnRequest, limits: AgentLimits
    ) -> ChatState | None:
        """Start a child; return its state, or None if it exists already.

        Raises:
            AgentsRefused: The tree has reached a limit, or the parent is interrupted.
            FenceLost: Another process owns the parent, or its turn is over.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            # The execution before other rows, as everywhere. The parent keeps its owner and its
            # turn, and is not interrupted, until the child is stored.
            status = await claimed_status(connection, claim)
            group_ids = await connection.fetchval(LOCK_ROOT, request.root_chat_id)
            tree = await connection.fetchrow(
                SELECT_TREE, request.root_chat_id, request.chat_id, None
            )
            assert tree is not None  # An aggregate always returns a row.
            if tree["is_known"]:
                return None
            if status is not Status.RUNNING:
                # Its agents were listed to be stopped already; one more would not be among them.
                raise interrupted_chat()
            require_start(request.depth, limits, _use_of(tree))
            new = _new_chat(request, claim.chat_id, tuple(map(str, group_ids or ())))
            return await insert_chat(connection, new, claimed_by=None, client_key=None)

    async def is_started(self, request: SpawnRequest, limits: AgentLimits) -> bool:
        """Return whether a child exists already, as seen without a lock.

        Raises:
            AgentsRefused: It does not, and the tree has reached a limit.
        """
        tree = await self._pool.fetchrow(SELECT_TREE, request.root_chat_id, request.chat_id, None)
        assert tree is not None  # An aggregate always returns a row.
        if not tree["is_known"]:
            require_start(request.depth, limits, _use_of(tree))
        return bool(tree["is_known"])

    async def require_budget(
        self, root_chat_id: ChatId, limits: AgentLimits, agent_id: ChatId | None = None
    ) -> None:
        """Require that the agents of a tree may work on; without a limit nothing is read.

        Args:
            root_chat_id: The root of the tree.
            limits: Its limits.
            agent_id: The agent that works, whose time begins anew when a person writes to it.

        Raises:
            AgentsRefused: The tree has used up its money, its tokens or its time.
        """
        if not limits.has_budget:
            return
        tree = await self._pool.fetchrow(SELECT_TREE, root_chat_id, root_chat_id, agent_id)
        assert tree is not None  # An aggregate always returns a row.
        require_budget(limits, _use_of(tree))

    async def require_running(self, claim: OwnerClaim) -> None:
        """Require that a chat still runs the turn of a claim.

        Raises:
            AgentsRefused: The chat is interrupted.
            FenceLost: Another process owns the chat, its turn is over, or it was deleted.
        """
        if await claimed_status(self._pool, claim) is not Status.RUNNING:
            raise interrupted_chat()

    async def children(self, root_chat_id: ChatId, chat_id: ChatId) -> tuple[Agent, ...]:
        """Return the children of a chat, in the order of their start."""
        rows = await self._pool.fetch(SELECT_CHILDREN, root_chat_id, chat_id)
        return tuple(map(_agent_of, rows))

    async def page(
        self, root_chat_id: ChatId, chat_id: ChatId, length: int, offset: int
    ) -> AgentPage:
        """Return some children of a chat, those that changed last first."""
        rows = await self._pool.fetch(SELECT_CHILDREN_PAGE, root_chat_id, chat_id, length, offset)
        return AgentPage(tuple(map(_agent_of, rows)), rows[0]["total"] if rows else 0)

    async def below(self, chat_id: ChatId) -> tuple[ChatId, ...]:
        """Return all chats below a chat, the nearest first."""
        rows = await self._pool.fetch(SELECT_BELOW, chat_id)
        return tuple(ChatId(str(row["id"])) for row in rows)

    async def started_since(self, chat_id: ChatId, message_id: MessageId) -> tuple[ChatId, ...]:
        """Return the agents that a chat started from a message on, with all chats below them."""
        rows = await self._pool.fetch(SELECT_STARTS, chat_id, message_id)
        found: list[ChatId] = []
        for row in rows:
            agent_id = agent_id_of(ExecutionId(str(row["execution_id"])))
            found += (agent_id, *await self.below(agent_id))
        return tuple(found)

    async def waits(self, waits_max: int) -> tuple[AgentWait, ...]:
        """Return calls that wait for agents, those that are over first."""
        rows = await self._pool.fetch(SELECT_WAITS, waits_max)
        return tuple(
            AgentWait(
                ChatId(str(row["chat_id"])),
                Owner(OwnerId(str(row["owner_id"])), row["owner_role"]),
                ExecutionId(str(row["id"])),
                is_over=bool(row["is_over"]),
            )
            for row in rows
        )


def _use_of(tree: asyncpg.Record) -> TreeUse:
    return TreeUse(tree["children"], tree["cost_micros"], tree["tokens"], tree["duration_s"])


def _new_chat(
    request: SpawnRequest, parent_chat_id: ChatId, owner_group_ids: tuple[str, ...]
) -> NewChat:
    message = NewMessage(
        Role.USER,
        (Text(request.prompt),),
        created_by=request.owner.id,
        choice=request.model,
        origin=MessageOrigin.AGENT,
    )
    return NewChat(
        request.chat_id,
        request.owner,
        request.title,
        has_own_title=True,
        messages=(message,),
        model_id=request.model.model_id,
        reasoning_effort=request.model.reasoning_effort,
        mode=request.mode,
        workspace_id=request.chat_id if request.is_forked else "",
        mcp_server_ids=request.mcp_server_ids,
        owner_group_ids=owner_group_ids,
        is_unattended=True,
        parent_chat_id=parent_chat_id,
        root_chat_id=request.root_chat_id,
        fallback_model_id=request.fallback_model_id,
        orders=request.orders,
    )


def _agent_of(row: asyncpg.Record) -> Agent:
    status = Status(row["status"])
    parts = () if row["answer"] is None else parts_from_json(row["answer"])
    report = "".join(part.text for part in parts if isinstance(part, Text))
    is_done = status in AT_REST and not (status is Status.WAITING and row["queue_length"])
    return Agent(
        chat_id=ChatId(str(row["id"])),
        name=row["title"],
        is_explorer=row["mode"] == "explore",
        status=status,
        is_done=is_done,
        report=report,
        error=error_from_json(row["last_error"]),
        cost_micros=row["cost_micros"],
        version=row["history_version"],
        is_forked=bool(row["is_forked"]),
        orders=NO_ORDERS if row["orders"] is None else _orders.decode(row["orders"]),
        finish_reason=finish_reason_of(row),
        model=ModelChoice(row["model_id"], ReasoningEffort(row["reasoning_effort"])),
    )


def finish_reason_of(row: asyncpg.Record) -> FinishReason | None:
    """Return why the last answer of an agent ended; interrupted if it rests without one."""
    if row["status"] == Status.WAITING and row["is_unanswered"]:
        return FinishReason.INTERRUPTED
    return None if row["finish_reason"] is None else FinishReason(row["finish_reason"])
