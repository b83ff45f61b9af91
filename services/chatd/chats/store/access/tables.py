"""The tables of shares and break-glass accesses."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
)

from chatd.primitives.store.columns import (
    TransactionId,
    id_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

chat_shares = Table(
    "chat_shares",
    metadata,
    id_column("chat_id"),
    text_column("grantee_kind"),
    id_column("grantee_id"),
    time_column("created_at"),
    PrimaryKeyConstraint("chat_id", "grantee_kind", "grantee_id", name=Constraint.CHAT_SHARES_PKEY),
    of_chat(Constraint.CHAT_SHARES_CHAT_FKEY),
    CheckConstraint("grantee_kind IN ('user', 'group')", name=Constraint.CHAT_SHARES_KIND_KNOWN),
    Index("chat_shares_by_grantee", "grantee_id", "chat_id"),
)

# Accesses of administrators to the chats of others.
break_glass = Table(
    "break_glass",
    metadata,
    id_column("id"),
    id_column("administrator_id"),
    id_column("owner_id"),
    text_column("reason"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("opened_at"),
    time_column("expires_at"),
    time_column("ended_at", nullable=True),
    Column("changed_xid", TransactionId, nullable=False),
    PrimaryKeyConstraint("id", name=Constraint.BREAK_GLASS_PKEY),
    CheckConstraint(
        "expires_at <= opened_at + interval '8 hours'", name=Constraint.BREAK_GLASS_IS_BOUNDED
    ),
    Index("break_glass_by_owner", "owner_id", "administrator_id"),
)

# Chats that were read by an access; no foreign key to chats, which may be deleted before.
break_glass_reads = Table(
    "break_glass_reads",
    metadata,
    id_column("access_id"),
    id_column("chat_id"),
    PrimaryKeyConstraint("access_id", "chat_id", name=Constraint.BREAK_GLASS_READS_PKEY),
    ForeignKeyConstraint(
        ["access_id"],
        ["chat.break_glass.id"],
        name=Constraint.BREAK_GLASS_READS_ACCESS_FKEY,
        ondelete="CASCADE",
    ),
)

revoked_shares = Table(
    "revoked_shares",
    metadata,
    id_column("chat_id"),
    id_column("grantee_id"),
    Column("changed_xid", TransactionId, nullable=False),
    time_column("revoked_at"),
    PrimaryKeyConstraint("chat_id", "grantee_id", name=Constraint.REVOKED_SHARES_PKEY),
    Index("revoked_shares_by_grantee", "grantee_id", "changed_xid"),
)
