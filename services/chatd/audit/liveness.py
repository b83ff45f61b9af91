"""Invariants that hold only while services run on the database, not on a copy of it."""

from chatd.audit.invariants import SqlInvariant

#: The lease, the contact that a worker needs before it takes over chats, and some sweeps.
GRACE_S = 30

LIVE_INVARIANTS = (
    SqlInvariant(
        "owners_are_alive",
        f"No chat is left for more than {GRACE_S} s with a worker whose lease has ended.",
        f"""
        SELECT e.chat_id::text FROM chat.chat_exec e
        LEFT JOIN chat.workers w ON w.id = e.worker_id
        WHERE e.worker_id IS NOT NULL
            AND greatest(w.lease_until, e.changed_at) < now() - interval '{GRACE_S} seconds'
        """,
    ),
    SqlInvariant(
        "running_chats_find_an_owner",
        f"No chat runs without a worker for more than {GRACE_S} s, unless its user has others "
        "that run.",
        f"""
        SELECT e.chat_id::text FROM chat.chat_exec e JOIN chat.chats c ON c.id = e.chat_id
        WHERE e.status IN ('running', 'interrupting') AND e.worker_id IS NULL
            AND e.changed_at < now() - interval '{GRACE_S} seconds'
            AND NOT (e.status = 'running' AND EXISTS (
                SELECT 1 FROM chat.chat_exec other JOIN chat.chats of ON of.id = other.chat_id
                WHERE of.owner_id = c.owner_id AND other.status = 'running'
                    AND other.worker_id IS NOT NULL))
        """,
    ),
    SqlInvariant(
        "deadlines_are_kept",
        f"No chat waits for an answer {GRACE_S} s after its deadline.",
        f"""
        SELECT chat_id::text FROM chat.chat_exec
        WHERE deadline_at < now() - interval '{GRACE_S} seconds'
        """,
    ),
    SqlInvariant(
        "changes_are_not_ahead_of_the_server",
        "No chat changed in a transaction that is still to come, where followers would miss it.",
        """
        SELECT chat_id::text FROM chat.chat_exec
        WHERE changed_xid >= pg_snapshot_xmax(pg_current_snapshot())
        """,
    ),
)
