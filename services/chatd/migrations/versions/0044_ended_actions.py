"""The version of the chat that ended an action, for readers that resume.

Actions that ended before have none: their readers were not told of ends.
"""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

ENDED_VERSION = "ALTER TABLE chat.chat_actions ADD COLUMN ended_version bigint"
ENDED_INDEX = """
CREATE INDEX chat_actions_ended ON chat.chat_actions (chat_id, ended_version)
    WHERE ended_version IS NOT NULL
"""


def upgrade() -> None:
    for statement in (ENDED_VERSION, ENDED_INDEX):
        op.execute(statement)
