"""Takes the notice of a chat tree that is archived or deleted by age, if it still holds."""

from chatd.primitives.domain.errors import VersionConflict
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Connection

# The notice of a root that is due, counted; none if the tree was used since, or is pinned. The
# tree is locked.
# May run: process.
TAKE_NOTICE = """
    WITH taken AS (
        UPDATE chat.chats c SET archives_at = NULL, purges_at = NULL, retention_noticed_at = NULL
        WHERE c.id = $1 AND c.owner_id = $2 AND c.pin_order = 0
            AND CASE WHEN $3::boolean THEN c.purges_at ELSE c.archives_at END <= clock_timestamp()
            AND NOT EXISTS (
                SELECT 1 FROM chat.chats each JOIN chat.chat_exec e ON e.chat_id = each.id
                WHERE each.root_chat_id = c.id
                    AND (e.status NOT IN ('waiting', 'error') OR e.archived <> $3::boolean
                        OR e.changed_at > c.retention_noticed_at))
        RETURNING c.id),
    counted AS (
        INSERT INTO chat.retention_counts AS counts (day, archived, purged)
        SELECT current_date, (NOT $3::boolean)::int, $3::boolean::int FROM taken
        ON CONFLICT (day) DO UPDATE SET archived = counts.archived + excluded.archived,
            purged = counts.purged + excluded.purged)
    SELECT id FROM taken
"""


async def take_notice(
    connection: Connection, chat_id: ChatId, *, owner_id: OwnerId, is_purge: bool
) -> None:
    """Remove the notice of a locked tree, because it is archived or deleted now.

    Raises:
        VersionConflict: There is no notice that is due, or the tree was used since, or is pinned.
    """
    if await connection.fetchval(TAKE_NOTICE, chat_id, owner_id, is_purge) is None:
        raise VersionConflict("")
