"""The origin of messages with the role of the user: who sent each.

Messages of older versions are a person's, except those that say otherwise: what a goal and a
monitor sent, recognised by the sentences that they wrote then, the first message of an agent, and
what the installation added for the model alone.
"""

from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

KNOWN = "origin IN ('person', 'program', 'goal', 'monitor', 'schedule', 'hook', 'agent', 'system')"
GOAL = (
    r'^\[\{"type":"text","text":"The goal is not reached(: the check `|, says the model that judges'
    r' it\. ).*\\n\\nContinue until (the check passes|it is reached)\."'
)
MONITOR = r'^\[\{"type":"text","text":"Woken by a monitor: the background process \S+ \(`'
WRITTEN_BY = f"""
    CASE WHEN content::text LIKE '[{{"type":"text","text":"The goal is%'
            AND content::text ~ '{GOAL}' THEN 'goal'
        WHEN content::text LIKE '[{{"type":"text","text":"Woken by%'
            AND content::text ~ '{MONITOR}' THEN 'monitor'
        ELSE 'person' END
"""
ORIGINS = (
    "ALTER TABLE chat.chat_messages ADD COLUMN origin text",
    "ALTER TABLE chat.chat_queue ADD COLUMN origin text NOT NULL DEFAULT 'person'",
    f"""
    UPDATE chat.chat_messages m SET origin = CASE WHEN m.visibility = 'model' THEN 'system'
        WHEN EXISTS (SELECT 1 FROM chat.chats c WHERE c.id = m.chat_id
            AND c.parent_chat_id IS NOT NULL AND c.created_at = m.created_at
            AND c.root_chat_id NOT IN (SELECT r.chat_id FROM chat.races r)) THEN 'agent'
        ELSE {WRITTEN_BY} END
    WHERE m.role = 'user'
    """,
    f"UPDATE chat.chat_queue SET origin = {WRITTEN_BY}",
    "ALTER TABLE chat.chat_queue ALTER COLUMN origin DROP DEFAULT",
    f"""
    ALTER TABLE chat.chat_messages
        ADD CONSTRAINT chat_messages_origin_known CHECK ({KNOWN}),
        ADD CONSTRAINT chat_messages_users_have_origins
            CHECK ((role = 'user') = (origin IS NOT NULL))
    """,
    f"ALTER TABLE chat.chat_queue ADD CONSTRAINT chat_queue_origin_known CHECK ({KNOWN})",
)


def upgrade() -> None:
    for statement in ORIGINS:
        op.execute(statement)
