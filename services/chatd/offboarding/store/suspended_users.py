"""Suspended and deleted users, and the data that chatd stores of them.

These statements have no authorisation: they run for the offboarding, not for a caller.
"""

from dataclasses import dataclass

from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, OwnerId
from parley.postgres import Pool

BATCH_MAX = 100

# A deletion is permanent: a later suspension does not revert it.
# May run: process.
SUSPEND = """
    INSERT INTO chat.suspended_users AS b (user_id, is_deleted, suspended_at)
    VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (user_id) DO UPDATE SET is_deleted = excluded.is_deleted
    WHERE excluded.is_deleted AND NOT b.is_deleted
"""

# May run: process.
REINSTATE = "DELETE FROM chat.suspended_users WHERE user_id = $1 AND NOT is_deleted"

# May run: process.
SELECT_SUSPENDED = "SELECT user_id FROM chat.suspended_users"

# May run: process.
SELECT_OWNERS = """
    SELECT owner_id FROM chat.chats WHERE owner_id > $1
    UNION SELECT owner_id FROM chat.workspaces WHERE owner_id > $1
    UNION SELECT owner_id FROM chat.files WHERE owner_id > $1
    UNION SELECT owner_id FROM chat.secrets WHERE owner_id > $1
    UNION SELECT user_id FROM chat.provider_keys WHERE user_id > $1
    UNION SELECT user_id FROM chat.approval_rules WHERE user_id > $1
    UNION SELECT scope FROM chat.settings WHERE scope > $1
    UNION SELECT owner_id FROM chat.skills WHERE owner_id > $1
    UNION SELECT owner_id FROM chat.schedules WHERE owner_id > $1
    UNION SELECT owner_id FROM chat.push_subscriptions WHERE owner_id > $1
    UNION SELECT owner_id FROM chat.break_glass WHERE owner_id > $1
    UNION SELECT administrator_id FROM chat.break_glass WHERE administrator_id > $1
        AND ended_at IS NULL AND expires_at > clock_timestamp()
    UNION SELECT grantee_id FROM chat.chat_shares WHERE grantee_id > $1 AND grantee_kind = 'user'
    UNION SELECT subject_id FROM chat.spend_limits WHERE subject_id > $1 AND subject_kind = 'user'
    ORDER BY owner_id LIMIT $2
"""

# Chats of suspended users whose turns would still use their credentials, in the order of their ids:
# one that cannot be stopped now does not keep the next ones from being found.
# May run: process.
SELECT_RUNNING_TURNS = """
    SELECT e.chat_id, e.turn_id FROM chat.suspended_users b
    JOIN chat.chats c ON c.owner_id = b.user_id JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE e.status IN ('running', 'requires_action') AND e.chat_id > $1
    ORDER BY e.chat_id LIMIT $2
"""

# May run: process.
SELECT_ROOTS_OF_DELETED = """
    SELECT c.id, c.owner_id FROM chat.suspended_users b
    JOIN chat.chats c ON c.owner_id = b.user_id AND c.parent_chat_id IS NULL
    WHERE b.is_deleted LIMIT $1
"""

# Calls of a chat tree whose results the journal of mcpgateway may still have, by journal.
# May run: process.
SELECT_JOURNALED = """
    SELECT t.journal_generation, array_agg(t.execution_id::text ORDER BY t.execution_id) AS ids
    FROM chat.chats c JOIN chat.tool_calls t ON t.chat_id = c.id
    WHERE c.root_chat_id = $1 AND t.executor = 'mcpgateway' GROUP BY t.journal_generation
"""

# Rows that refer to the user and to no chat. A file that another user's chat holds is kept. So is
# a removed workspace whose node is lost and may still have files, without what its owner called it.
# Accesses that a deleted administrator opened end, and stay for the users whose chats were read.
# May run: process.
DELETE_REST = """
    WITH gone AS (SELECT user_id FROM chat.suspended_users WHERE is_deleted),
    shares AS (DELETE FROM chat.chat_shares s USING gone
        WHERE s.grantee_kind = 'user' AND s.grantee_id = gone.user_id),
    accesses AS (DELETE FROM chat.break_glass a USING gone WHERE a.owner_id = gone.user_id),
    ended_accesses AS (UPDATE chat.break_glass a
        SET ended_at = clock_timestamp(), changed_xid = pg_current_xact_id() FROM gone
        WHERE a.administrator_id = gone.user_id AND a.ended_at IS NULL
            AND a.expires_at > clock_timestamp()
            AND a.owner_id NOT IN (SELECT user_id FROM gone)),
    own_settings AS (DELETE FROM chat.settings s USING gone WHERE s.scope = gone.user_id),
    own_skills AS (DELETE FROM chat.skills k USING gone WHERE k.owner_id = gone.user_id),
    own_schedules AS (DELETE FROM chat.schedules p USING gone WHERE p.owner_id = gone.user_id),
    own_devices AS (DELETE FROM chat.push_subscriptions d USING gone
        WHERE d.owner_id = gone.user_id),
    own_rules AS (DELETE FROM chat.approval_rules r USING gone WHERE r.user_id = gone.user_id),
    own_limits AS (DELETE FROM chat.spend_limits l USING gone
        WHERE l.subject_kind = 'user' AND l.subject_id = gone.user_id),
    own_uses AS (DELETE FROM chat.secret_uses u USING gone WHERE u.owner_id = gone.user_id),
    removed AS (DELETE FROM chat.workspaces w USING gone
        WHERE w.owner_id = gone.user_id AND w.state = 'deleted' AND NOT EXISTS (
            SELECT 1 FROM chat.nodes n WHERE n.id = w.node_id AND n.state = 'lost')),
    renamed AS (UPDATE chat.workspaces w SET name = 'removed', parameters = '{}'
        FROM gone, chat.nodes n WHERE w.owner_id = gone.user_id AND w.state = 'deleted'
            AND n.id = w.node_id AND n.state = 'lost' AND w.name <> 'removed'),
    own_keys AS (DELETE FROM chat.provider_keys k USING gone WHERE k.user_id = gone.user_id),
    own_secrets AS (DELETE FROM chat.secrets s USING gone WHERE s.owner_id = gone.user_id)
    DELETE FROM chat.files f USING gone WHERE f.owner_id = gone.user_id
        AND NOT EXISTS (SELECT 1 FROM chat.chat_files l WHERE l.file_id = f.id)
"""


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn of a suspended user."""

    chat_id: ChatId
    turn_id: MessageId


class PostgresSuspendedUsers:
    """Stores which users are suspended."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def suspend(self, user_id: OwnerId, *, is_deleted: bool) -> None:
        """Store that a user is suspended or deleted."""
        await self._pool.execute(SUSPEND, user_id, is_deleted)

    async def reinstate(self, user_id: OwnerId) -> None:
        """Remove the suspension of a user, unless they are deleted."""
        await self._pool.execute(REINSTATE, user_id)

    async def suspended(self) -> frozenset[OwnerId]:
        """Return all suspended users."""
        rows = await self._pool.fetch(SELECT_SUSPENDED)
        return frozenset(OwnerId(str(row["user_id"])) for row in rows)

    async def owners(self, after: OwnerId, limit: int) -> tuple[OwnerId, ...]:
        """Return owners of chats and workspaces in the order of their ids."""
        rows = await self._pool.fetch(SELECT_OWNERS, after, limit)
        return tuple(OwnerId(str(row["owner_id"])) for row in rows)

    async def running_turns(self, after: ChatId) -> tuple[RunningTurn, ...]:
        """Return a batch of running turns of suspended users, in the order of their chats' ids."""
        rows = await self._pool.fetch(SELECT_RUNNING_TURNS, after, BATCH_MAX)
        return tuple(RunningTurn(ChatId(str(row["chat_id"])), row["turn_id"]) for row in rows)

    async def roots_of_deleted(self) -> tuple[tuple[ChatId, OwnerId], ...]:
        """Return a batch of root chats of deleted users, with their owners."""
        rows = await self._pool.fetch(SELECT_ROOTS_OF_DELETED, BATCH_MAX)
        return tuple((ChatId(str(row["id"])), OwnerId(str(row["owner_id"]))) for row in rows)

    async def journaled_calls(self, chat_id: ChatId) -> dict[str, tuple[ExecutionId, ...]]:
        """Return the calls of a chat tree to MCP servers, by the generation of their journal."""
        rows = await self._pool.fetch(SELECT_JOURNALED, chat_id)
        return {row["journal_generation"]: tuple(map(ExecutionId, row["ids"])) for row in rows}

    async def delete_rest(self) -> None:
        """Delete the data of deleted users that belongs to no chat."""
        await self._pool.execute(DELETE_REST)
