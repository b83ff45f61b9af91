"""Rows of the journal of calls, as values."""

import hashlib
from typing import Final
from uuid import UUID

import asyncpg
import msgspec

from mcpgateway.client.call import CallEnd, CallKey, CallRecord, CallRequest, Outcome
from mcpgateway.client.content import decode_parts
from mcpgateway.client.questions import Answer, Question
from mcpgateway.servers.domain import Limits, Reason
from mcpgateway.servers.errors import ExecutionIdReused, TooManyCalls
from parley.postgres import Database

# May run: process.
_ASK = """
    UPDATE mcp.calls SET question_id = $2, question = $3, answer = NULL
    WHERE execution_id = $1 AND finished_at IS NULL
"""
# May run: service.
_ANSWER = """
    UPDATE mcp.calls SET answer = $3
    WHERE execution_id = $1 AND question_id = $2 AND answer IS NULL AND finished_at IS NULL
    RETURNING true
"""
# May run: process.
_GO_ON = """
    UPDATE mcp.calls SET question_id = NULL, question = NULL, answer = NULL
    WHERE execution_id = $1 AND question_id = $2
"""


class CallQuestions:
    """The questions of running calls; the end of a call drops its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, execution_id: str, question: Question) -> None:
        """Store what a running call asks."""
        encoded = msgspec.json.encode(question)
        await self._database.pool.execute(_ASK, execution_id, question.id, encoded)

    async def answer(self, execution_id: str, question_id: str, answer: Answer) -> bool:
        """Store an answer for the process that makes the call; return whether it was awaited."""
        encoded = msgspec.json.encode(answer)
        values = (execution_id, question_id, encoded)
        return bool(await self._database.pool.fetchval(_ANSWER, *values))

    async def go_on(self, execution_id: str, question_id: str) -> None:
        """Drop a question with its answer, because the call goes on."""
        await self._database.pool.execute(_GO_ON, execution_id, question_id)


def question_of(row: "asyncpg.Record") -> Question | None:
    """Return what a call asks, unless it is answered and about to go on."""
    if row["question"] is None or row["answer"] is not None:
        return None
    return msgspec.json.decode(row["question"], type=Question)


decode_answer: Final = msgspec.json.Decoder(Answer).decode


def check_content(record: CallRecord, call_request: CallRequest) -> None:
    """Reject an execution id that was journaled with other content.

    Raises:
        ExecutionIdReused: The content differs.
    """
    if record.sha256 is not None and record.sha256 != call_request.sha256:
        raise ExecutionIdReused(call_request.key.execution_id)


def check_capacity(row: "asyncpg.Record", limits: Limits) -> None:
    """Reject a call beyond the limits; its row goes with the transaction.

    Raises:
        TooManyCalls: As many calls as there may be were running before it.
    """
    if row["of_user"] >= limits.calls_per_user_max:
        raise TooManyCalls(limits.calls_per_user_max)
    if row["of_server"] >= limits.calls_max:
        raise TooManyCalls(limits.calls_max)


def tombstone_digest(caller: str, execution_id: str) -> str:
    """Return the digest of a tombstone, as pruning computes it."""
    return str(UUID(bytes=hashlib.sha256(f"{caller}\x01{execution_id}".encode()).digest()[:16]))


def tombstone(key: CallKey) -> CallRecord:
    """Return the record of a call of which only the key is known."""
    return CallRecord(
        key, sha256=None, started_at=None, finished_at=None, end=None, is_acknowledged=True
    )


def checked_record(row: "asyncpg.Record", key: CallKey) -> CallRecord:
    """Return the record of a row.

    Raises:
        ExecutionIdReused: It is the call of another caller or chat.
    """
    if row["caller"] != key.caller or row["chat_id"] != key.chat_id:
        raise ExecutionIdReused(key.execution_id)
    return record_of(row)


def record_of(row: "asyncpg.Record") -> CallRecord:
    """Return the record of a row."""
    end = None
    if row["outcome"] is not None:
        end = CallEnd(
            outcome=Outcome(row["outcome"]),
            parts=decode_parts(row["parts"]) if row["parts"] is not None else (),
            reason=None if row["reason"] is None else Reason(row["reason"]),
            message=row["message"],
            may_have_executed=row["may_have_executed"],
            retry_after_ms=row["retry_after_ms"],
            original_bytes=row["original_bytes"],
        )
    return CallRecord(
        key=CallKey(row["execution_id"], row["caller"], row["chat_id"], row["owner_epoch"]),
        sha256=row["sha256"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        end=end,
        is_acknowledged=row["acknowledged_at"] is not None,
        question=question_of(row),
    )
