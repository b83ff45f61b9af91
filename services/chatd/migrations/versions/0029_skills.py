"""Skills of users, and the skills of workspaces that are pinned in the prompts of chats."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE chat.skills (
            owner_id uuid NOT NULL,
            name text NOT NULL,
            description text NOT NULL,
            body text NOT NULL,
            updated_at timestamptz NOT NULL,
            CONSTRAINT skills_pkey PRIMARY KEY (owner_id, name)
        )
    """)
    # The default is for rows that exist already; every new one has its skills.
    op.execute("ALTER TABLE chat.chat_instructions ADD COLUMN skills json NOT NULL DEFAULT '[]'")
    op.execute("ALTER TABLE chat.chat_instructions ALTER COLUMN skills DROP DEFAULT")
