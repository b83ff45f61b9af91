"""Rows of the journal of calls, as values."""

import hashlib
from uuid import UUID

import asyncpg

from mcpgateway.client.call import CallEnd, CallKey, CallRecord, CallRequest, Outcome
from mcpgateway.client.content import decode_parts
from mcpgateway.runtime.call_questions import question_of
from mcpgateway.servers.domain import Limits, Reason
from mcpgateway.servers.errors import ExecutionIdReused, TooManyCalls


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
