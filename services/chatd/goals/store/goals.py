"""Goals in PostgreSQL: their owners set and read them, and one process at a time works on each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from chatd.goals.domain.goal import Goal, GoalState, RestingChat
from chatd.primitives.domain.errors import InvalidRequest, RequestIdReused, ResourceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from parley.postgres import Pool

RESOURCE = "goal"

_COLUMNS = """g.chat_id, g.id, g.owner_id, g.owner_role, g.text, g.check_command, g.turns_max,
    g.seconds_max, g.cost_max_micros, g.state, g.reason, g.turns_count, g.check_output,
    g.resumes_count, g.resumed_version, g.judge_model_id, g.verdict, g.request_hash, g.created_at, (
        SELECT coalesce(sum(u.cost_micros), 0)::bigint
        FROM chat.usage u WHERE u.root_chat_id = g.chat_id AND u.created_at >= g.created_at)
        AS cost_micros"""

# May run: owner.
SELECT_GOAL = f"SELECT {_COLUMNS} FROM chat.goals g WHERE g.chat_id = $1 AND g.owner_id = $2"

# May run: owner.
LOCK_GOAL = f"""
    SELECT {_COLUMNS}, e.history_version FROM chat.goals g
    JOIN chat.chat_exec e ON e.chat_id = g.chat_id
    WHERE g.chat_id = $1 AND g.owner_id = $2 FOR UPDATE OF g
"""

# A goal takes the place of an earlier one; only root chats of the owner have goals.
# May run: owner.
SET_GOAL = """
    INSERT INTO chat.goals (chat_id, id, owner_id, owner_role, text, check_command, turns_max,
        seconds_max, cost_max_micros, state, reason, turns_count, check_output, resumes_count,
        resumed_version, request_hash, created_at, judge_model_id, verdict)
    SELECT c.id, $3, $2, $4, $5, $6, $7, $8, $9, 'active', '', 0, '', 0, 0, $10, clock_timestamp(),
        $11, ''
    FROM chat.chats c WHERE c.id = $1 AND c.owner_id = $2 AND c.parent_chat_id IS NULL
    ON CONFLICT (chat_id) DO UPDATE SET id = excluded.id, owner_role = excluded.owner_role,
        text = excluded.text, check_command = excluded.check_command,
        turns_max = excluded.turns_max, seconds_max = excluded.seconds_max,
        cost_max_micros = excluded.cost_max_micros, state = excluded.state, reason = '',
        turns_count = 0, check_output = '', resumes_count = 0, resumed_version = 0,
        claimed_until = NULL, judge_model_id = excluded.judge_model_id, verdict = '',
        request_hash = excluded.request_hash, created_at = excluded.created_at
    RETURNING chat_id
"""

# May run: owner.
DELETE_GOAL = "DELETE FROM chat.goals WHERE chat_id = $1 AND owner_id = $2 RETURNING chat_id"

# An active goal whose chat is at rest and that no process claimed; none of suspended users and of
# those who are left out. A chat that waits to be woken by a monitor is not at rest for its goal.
# May run: process.
CLAIM = f"""
    WITH idle AS (
        SELECT d.chat_id, e.last_error ->> 'message' AS error, coalesce((
            SELECT m.role IN ('user', 'tool') OR m.finish_reason = 'interrupted'
            FROM chat.chat_messages m WHERE m.chat_id = d.chat_id AND NOT m.is_deleted
                AND NOT m.is_compressed
            ORDER BY m.id DESC LIMIT 1), false) AS is_interrupted, e.history_version
        FROM chat.goals d JOIN chat.chat_exec e ON e.chat_id = d.chat_id
        WHERE d.state = 'active' AND e.status IN ('waiting', 'error') AND e.queue_length = 0
            AND (d.claimed_until IS NULL OR d.claimed_until < clock_timestamp())
            AND d.owner_id <> ALL($2::uuid[])
            AND NOT EXISTS (SELECT 1 FROM chat.suspended_users b WHERE b.user_id = d.owner_id)
            AND NOT EXISTS (SELECT 1 FROM chat.monitors w
                WHERE w.chat_id = d.chat_id AND w.state IN ('waiting', 'due'))
        ORDER BY d.claimed_until NULLS FIRST LIMIT 1 FOR UPDATE OF d SKIP LOCKED)
    UPDATE chat.goals g SET claimed_until = clock_timestamp() + $1::interval
    FROM idle WHERE g.chat_id = idle.chat_id
    RETURNING {_COLUMNS}, idle.error, idle.is_interrupted, idle.history_version,
        clock_timestamp() AS now
"""

# Stores what became of a goal, unless it was changed, replaced, counted or resumed meanwhile.
# May run: process.
UPDATE_GOAL = """
    UPDATE chat.goals SET state = $4, reason = $5, turns_count = $6, check_output = $7,
        claimed_until = clock_timestamp() + $8::interval, verdict = $10
    WHERE chat_id = $1 AND id = $2 AND turns_count = $3 AND state = 'active'
        AND resumes_count = $9
"""

# Whether a goal is as it was claimed, and its chat is still at rest with the same history.
# May run: process.
SELECT_IS_CURRENT = """
    SELECT EXISTS (SELECT 1 FROM chat.goals g JOIN chat.chat_exec e ON e.chat_id = g.chat_id
        WHERE g.chat_id = $1 AND g.id = $2 AND g.turns_count = $3 AND g.state = 'active'
            AND g.resumes_count = $4 AND e.status IN ('waiting', 'error') AND e.queue_length = 0
            AND e.history_version = $5)
"""

# May run: checked by LOCK_GOAL.
CHANGE_STATE = """
    UPDATE chat.goals SET state = $2, reason = $3, resumes_count = $4, resumed_version = $5,
        claimed_until = NULL
    WHERE chat_id = $1
"""

# May run: process.
SELECT_ANY_ACTIVE = "SELECT EXISTS (SELECT 1 FROM chat.goals WHERE state = 'active')"


@dataclass(frozen=True, slots=True)
class ClaimedGoal:
    """A goal that this process works on for a while."""

    goal: Goal
    chat: RestingChat
    now: datetime


class PostgresGoals:
    """Stores goals."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, chat_id: ChatId, owner_id: OwnerId) -> Goal:
        """Return the goal of a chat.

        Raises:
            ResourceNotFound: The owner's chat has none.
        """
        found = await self.find(chat_id, owner_id)
        if found is None:
            raise ResourceNotFound(RESOURCE, chat_id)
        return found

    async def find(self, chat_id: ChatId, owner_id: OwnerId) -> Goal | None:
        """Return the goal of a chat; None if the owner's chat has none."""
        row = await self._pool.fetchrow(SELECT_GOAL, chat_id, owner_id)
        return None if row is None else _goal_of(row)

    async def set(self, goal: Goal, request_hash: bytes) -> None:
        """Set a goal, unless a repeated request set it before.

        Raises:
            RequestIdReused: Another request with the same id set it.
            InvalidRequest: The chat is no root chat of the owner.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_GOAL, goal.chat_id, goal.owner.id)
            if row is not None and str(row["id"]) == goal.id:
                if row["request_hash"] != request_hash:
                    raise RequestIdReused(goal.id)
                return
            stored = await connection.fetchval(
                SET_GOAL,
                goal.chat_id,
                goal.owner.id,
                goal.id,
                goal.owner.role,
                goal.text,
                goal.check_command,
                goal.turns_max,
                goal.seconds_max,
                goal.cost_max_micros,
                request_hash,
                goal.judge_model_id,
            )
            if stored is None:
                raise InvalidRequest("chat_id", "is a child; set the goal of its root chat")

    async def change(
        self, chat_id: ChatId, owner_id: OwnerId, decide: Callable[[Goal, int], Goal]
    ) -> None:
        """Pause or resume a goal, by its value and the version of the history of its chat.

        Raises:
            ResourceNotFound: The owner's chat has none.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_GOAL, chat_id, owner_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, chat_id)
            changed = decide(_goal_of(row), row["history_version"])
            if changed != _goal_of(row):
                await connection.execute(
                    CHANGE_STATE,
                    chat_id,
                    changed.state,
                    changed.reason,
                    changed.resumes_count,
                    changed.resumed_version,
                )

    async def delete(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Delete a goal.

        Raises:
            ResourceNotFound: The owner's chat has none.
        """
        if await self._pool.fetchval(DELETE_GOAL, chat_id, owner_id) is None:
            raise ResourceNotFound(RESOURCE, chat_id)

    async def claim(
        self, claim_for: timedelta, left_out: Sequence[OwnerId] = ()
    ) -> ClaimedGoal | None:
        """Claim a goal whose chat is at rest; None if there is none. The claim expires.

        Args:
            claim_for: When it expires.
            left_out: Owners whose goals are not claimed.
        """
        row = await self._pool.fetchrow(CLAIM, claim_for, left_out)
        if row is None:
            return None
        chat = RestingChat(row["history_version"], row["error"] or "", bool(row["is_interrupted"]))
        return ClaimedGoal(_goal_of(row), chat, row["now"])

    async def is_current(self, goal: Goal, chat: RestingChat) -> bool:
        """Return whether neither a claimed goal nor its chat was changed or ended meanwhile."""
        return bool(
            await self._pool.fetchval(
                SELECT_IS_CURRENT,
                goal.chat_id,
                goal.id,
                goal.turns_count,
                goal.resumes_count,
                chat.history_version,
            )
        )

    async def store(self, before: Goal, after: Goal, again_in: timedelta) -> None:
        """Store what became of a claimed goal, once; others may claim it after some time."""
        await self._pool.execute(
            UPDATE_GOAL,
            before.chat_id,
            before.id,
            before.turns_count,
            after.state,
            after.reason,
            after.turns_count,
            after.check_output,
            again_in,
            before.resumes_count,
            after.verdict,
        )

    async def are_there_any(self) -> bool:
        """Return whether any chat works towards a goal."""
        return bool(await self._pool.fetchval(SELECT_ANY_ACTIVE))


def _goal_of(row: asyncpg.Record) -> Goal:
    return Goal(
        id=str(row["id"]),
        chat_id=ChatId(str(row["chat_id"])),
        owner=Owner(OwnerId(str(row["owner_id"])), row["owner_role"]),
        text=row["text"],
        check_command=row["check_command"],
        turns_max=row["turns_max"],
        seconds_max=row["seconds_max"],
        cost_max_micros=row["cost_max_micros"],
        state=GoalState(row["state"]),
        created_at=row["created_at"],
        reason=row["reason"],
        turns_count=row["turns_count"],
        cost_micros=row["cost_micros"],
        check_output=row["check_output"],
        resumes_count=row["resumes_count"],
        resumed_version=row["resumed_version"],
        judge_model_id=row["judge_model_id"],
        verdict=row["verdict"],
    )
