"""Calls that are to be cancelled at their executors, also after their chats were deleted."""

from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Dispatch, Executor
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from parley.postgres import Pool

#: When another process tries, if the one that took a call dies.
TAKEN_FOR = timedelta(seconds=30)

# Calls whose time has come, taken by this process for a while. A chat that goes on may have a newer
# owner, whose epoch executors know; that of a deleted chat is stored.
# May run: process.
TAKE = """
    UPDATE chat.cancelled_calls t SET try_at = clock_timestamp() + $2::interval
    FROM chat.cancelled_calls due LEFT JOIN chat.chat_exec e ON e.chat_id = due.chat_id
    WHERE t.execution_id = due.execution_id AND due.execution_id IN (
        SELECT execution_id FROM chat.cancelled_calls WHERE try_at <= clock_timestamp()
        ORDER BY try_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING t.*, coalesce(e.owner_epoch, t.owner_epoch) AS newest_epoch,
        t.created_at < clock_timestamp() - $3::interval AS is_old
"""

# Forget a call, unless its chat has a newer owner by now: the executor may know of it, and have
# refused the request.
# May run: process.
DELETE = """
    DELETE FROM chat.cancelled_calls c WHERE c.execution_id = $1 AND NOT EXISTS (
        SELECT 1 FROM chat.chat_exec e WHERE e.chat_id = c.chat_id AND e.owner_epoch > $2)
"""


@dataclass(frozen=True, slots=True)
class CancelledCall:
    """A call that is to be cancelled.

    Attributes:
        owner_epoch: The newest epoch of its chat.
        is_old: Whether it was tried for too long.
    """

    chat_id: ChatId
    owner: Owner
    dispatch: Dispatch
    owner_epoch: int
    is_old: bool = False


class CancelledCalls:
    """The stored calls of all chats."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def take(self, calls_max: int, kept: timedelta) -> tuple[CancelledCall, ...]:
        """Return calls that no other process tries now; those older than `kept` are marked."""
        rows = await self._pool.fetch(TAKE, calls_max, TAKEN_FOR, kept)
        return tuple(map(_call_of, rows))

    async def delete(self, call: CancelledCall) -> None:
        """Forget a call that is over, if its executor was asked by the newest owner's epoch."""
        await self._pool.execute(DELETE, call.dispatch.execution_id, call.owner_epoch)


def _call_of(row: asyncpg.Record) -> CancelledCall:
    return CancelledCall(
        ChatId(str(row["chat_id"])),
        Owner(OwnerId(str(row["owner_id"])), row["owner_role"]),
        Dispatch(
            ExecutionId(str(row["execution_id"])),
            ToolCall(row["tool_call_id"], row["tool_name"], "{}"),
            Executor(row["executor"]),
            row["journal_generation"],
        ),
        row["newest_epoch"],
        row["is_old"],
    )
