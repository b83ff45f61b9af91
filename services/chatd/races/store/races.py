"""Races in PostgreSQL, beside the chats that they consist of."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import asyncpg

from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.chats.store.agents import finish_reason_of
from chatd.chats.store.codec import parts_from_json
from chatd.chats.store.creation import NewChat, insert_chat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.races.domain.race import Candidate, CandidateStatus, CheckResult, NewRace, Race
from parley.postgres import Pool

RACES_MAX: Final = 100
AT_REST: Final = (Status.WAITING, Status.ERROR)

# No model answers in the chat of a race that was just created.
# May run: process.
REST = "UPDATE chat.chat_exec SET status = 'waiting', turn_id = 1 WHERE chat_id = $1"

# May run: process.
INSERT_RACE = "INSERT INTO chat.races (chat_id, check_command) VALUES ($1, $2)"

# May run: process.
INSERT_CANDIDATES = """
    INSERT INTO chat.race_candidates
        (race_id, position, chat_id, model, model_id, check_output, checked_version)
    SELECT $1, position, chat_id, model, model_id, '', 0
    FROM unnest($2::int[], $3::uuid[], $4::text[], $5::text[])
        AS candidate (position, chat_id, model, model_id)
"""

# May run: owner.
SELECT_RACES = """
    SELECT c.id, c.title, c.workspace_id, c.created_at, r.check_command, r.cancelled_at,
        r.applied_chat_id
    FROM chat.races r JOIN chat.chats c ON c.id = r.chat_id
    WHERE c.owner_id = $1 AND ($2::uuid IS NULL OR c.id = $2)
    ORDER BY c.created_at DESC, c.id LIMIT $3
"""

# Candidates with their last answer, time and cost; those that were not started have no chat.
# May run: checked by SELECT_RACES.
SELECT_CANDIDATES = """
    SELECT k.position, k.chat_id, k.model, k.model_id, k.check_exit_code, k.check_output,
        k.checked_version, e.status, e.queue_length, e.history_version, e.owner_epoch,
        e.last_error::json ->> 'message' AS error, answer.content::text AS answer,
        answer.finish_reason, coalesce((
            SELECT m.role <> 'assistant' FROM chat.chat_messages m
            WHERE m.chat_id = c.id AND NOT m.is_deleted AND NOT m.is_compressed
            ORDER BY m.id DESC LIMIT 1), false) AS is_unanswered,
        c.created_at AS started_at,
        (SELECT max(m.created_at) FROM chat.chat_messages m WHERE m.chat_id = c.id) AS last_at,
        (SELECT coalesce(sum(u.cost_micros), 0)::bigint FROM chat.usage u
            WHERE u.chat_id = c.id) AS cost_micros
    FROM chat.race_candidates k LEFT JOIN chat.chats c ON c.id = k.chat_id
    LEFT JOIN chat.chat_exec e ON e.chat_id = c.id
    LEFT JOIN LATERAL (
        SELECT m.content, m.finish_reason FROM chat.chat_messages m
        WHERE m.chat_id = c.id AND m.role = 'assistant' AND NOT m.is_deleted
            AND NOT m.is_compressed
        ORDER BY m.id DESC LIMIT 1) AS answer ON true
    WHERE k.race_id = $1 ORDER BY k.position
"""

# May run: checked by SELECT_RACES.
SET_CHECK = """
    UPDATE chat.race_candidates SET check_exit_code = $3, check_output = $4, checked_version = $5
    WHERE race_id = $1 AND chat_id = $2
"""

# May run: checked by SELECT_RACES.
SET_CANCELLED = """
    UPDATE chat.races SET cancelled_at = coalesce(cancelled_at, clock_timestamp())
    WHERE chat_id = $1
"""

# Taken while candidates are created, so that a cancellation comes before all of them or after.
# May run: process.
LOCK_RACE = "SELECT 1 FROM chat.races WHERE chat_id = $1 AND cancelled_at IS NULL FOR UPDATE"

# May run: checked by SELECT_RACES.
SET_APPLIED = "UPDATE chat.races SET applied_chat_id = $2 WHERE chat_id = $1"


class PostgresRaces:
    """Stores races."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, new: NewRace, key: ClientKey) -> ChatState | None:
        """Create the chat of a race and name its candidates; None if it exists already."""
        async with self._pool.acquire() as connection, connection.transaction():
            state = await insert_chat(connection, _chat_of(new), claimed_by=None, client_key=key)
            if state is None:
                return None
            await connection.execute(REST, new.id)
            await connection.execute(INSERT_RACE, new.id, new.check_command)
            await connection.execute(
                INSERT_CANDIDATES,
                new.id,
                [each.position for each in new.candidates],
                [each.chat_id for each in new.candidates],
                [each.model for each in new.candidates],
                [each.model_id for each in new.candidates],
            )
        return state

    async def start(self, chats: Sequence[NewChat]) -> tuple[ChatState, ...]:
        """Create the chats of candidates, together; return the states of those that are new.

        None is created if their race was cancelled or deleted.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(LOCK_RACE, chats[0].parent_chat_id) is None:
                return ()
            states = [
                await insert_chat(connection, new, claimed_by=None, client_key=None)
                for new in chats
            ]
        return tuple(state for state in states if state is not None)

    async def races(self, owner_id: OwnerId) -> tuple[Race, ...]:
        """Return the newest races of a user, without their candidates."""
        rows = await self._pool.fetch(SELECT_RACES, owner_id, None, RACES_MAX)
        return tuple(map(_race_of, rows))

    async def get(self, race_id: ChatId, owner_id: OwnerId) -> Race:
        """Return a race of a user with its candidates.

        Raises:
            ChatNotFound: The user has no such race.
        """
        row = await self._pool.fetchrow(SELECT_RACES, owner_id, race_id, 1)
        if row is None:
            raise ChatNotFound(race_id)
        candidates = await self._pool.fetch(SELECT_CANDIDATES, race_id)
        return _race_of(row, tuple(map(_candidate_of, candidates)))

    async def set_check(self, race_id: ChatId, chat_id: ChatId, result: CheckResult) -> None:
        """Store the result of a check."""
        await self._pool.execute(
            SET_CHECK, race_id, chat_id, result.exit_code, result.output, result.version
        )

    async def set_cancelled(self, race_id: ChatId) -> None:
        """Store that a race was cancelled."""
        await self._pool.execute(SET_CANCELLED, race_id)

    async def set_applied(self, race_id: ChatId, chat_id: ChatId) -> None:
        """Store the candidate whose changes were applied."""
        await self._pool.execute(SET_APPLIED, race_id, chat_id)


def _chat_of(new: NewRace) -> NewChat:
    models = ", ".join(each.model for each in new.candidates)
    told = f"{len(new.candidates)} models work on this, each in a copy of the files: {models}."
    return NewChat(
        new.id,
        new.owner,
        new.title,
        has_own_title=True,
        messages=(
            NewMessage(
                Role.USER,
                (Text(new.prompt), *new.added),
                created_by=new.owner.id,
                origin=new.origin,
            ),
            NewMessage(Role.ASSISTANT, (Text(told),)),
        ),
        workspace_id=new.workspace_id,
        mcp_server_ids=None,
        owner_group_ids=new.owner_group_ids,
    )


def _race_of(row: asyncpg.Record, candidates: tuple[Candidate, ...] = ()) -> Race:
    return Race(
        ChatId(str(row["id"])),
        row["title"],
        "" if row["workspace_id"] is None else str(row["workspace_id"]),
        row["check_command"],
        row["created_at"],
        row["cancelled_at"],
        "" if row["applied_chat_id"] is None else str(row["applied_chat_id"]),
        candidates,
    )


def _candidate_of(row: asyncpg.Record) -> Candidate:
    chosen = (row["position"], ChatId(str(row["chat_id"])), row["model"], row["model_id"])
    if row["status"] is None:
        return Candidate(*chosen)
    parts = () if row["answer"] is None else parts_from_json(row["answer"])
    checked = CheckResult(row["check_exit_code"], row["check_output"], row["checked_version"])
    version = row["history_version"]
    return Candidate(
        *chosen,
        status=_status_of(Status(row["status"]), row["queue_length"]),
        answer="".join(part.text for part in parts if isinstance(part, Text)),
        error=row["error"] or "",
        duration=timedelta() if row["last_at"] is None else row["last_at"] - row["started_at"],
        cost_micros=row["cost_micros"],
        owner_epoch=row["owner_epoch"],
        version=version,
        check=checked if checked.version == version else None,
        finish_reason=finish_reason_of(row),
    )


def _status_of(status: Status, queue_length: int) -> CandidateStatus:
    if status not in AT_REST or (status is Status.WAITING and queue_length):
        return CandidateStatus.RUNNING
    return CandidateStatus.FAILED if status is Status.ERROR else CandidateStatus.DONE
