"""An index of the forks of agents and candidates, to find those whose chats were not created."""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

FORKS = """
CREATE INDEX workspaces_forked_for_chats ON chat.workspaces (changed_at)
    WHERE is_scratch_of_chat AND parent_id IS NOT NULL AND state <> 'deleted'
"""


def upgrade() -> None:
    op.execute(FORKS)
