"""Groups of users, and who belongs to them."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.groups (
            id uuid PRIMARY KEY,
            name text NOT NULL,
            name_key text NOT NULL,
            version bigint NOT NULL,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL,
            deleted_at timestamptz,
            creation_request text CONSTRAINT groups_creation_request_unique UNIQUE
        )
    """)
    op.execute("""
        CREATE UNIQUE INDEX groups_name_unique ON identity.groups (name_key)
            WHERE deleted_at IS NULL
    """)
    op.execute("""
        CREATE TABLE identity.group_members (
            group_id uuid NOT NULL
                CONSTRAINT group_members_group_id_fkey
                REFERENCES identity.groups (id) ON DELETE CASCADE,
            user_id uuid NOT NULL
                CONSTRAINT group_members_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            added_at timestamptz NOT NULL,
            PRIMARY KEY (group_id, user_id)
        )
    """)
    op.execute("CREATE INDEX group_members_by_user ON identity.group_members (user_id)")


def downgrade() -> None:
    op.execute("DROP TABLE identity.group_members")
    op.execute("DROP TABLE identity.groups")
