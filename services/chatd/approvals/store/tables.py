"""The table of approval rules."""

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from chatd.primitives.store.columns import (
    count_column,
    flag_column,
    id_column,
    json_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

approval_rules = Table(
    "approval_rules",
    metadata,
    id_column("id"),
    text_column("scope"),
    id_column("user_id", nullable=True),
    id_column("chat_id", nullable=True),
    text_column("effect"),
    text_column("tool"),
    id_column("server_id", nullable=True),
    Column("modes", ARRAY(Text), nullable=False),
    text_column("command"),
    json_column("arguments"),
    text_column("reason"),
    flag_column("is_rememberable"),
    flag_column("is_for_tainted"),
    text_column("digest"),
    count_column("version"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.APPROVAL_RULES_PKEY),
    of_chat(Constraint.APPROVAL_RULES_CHAT_FKEY),
    CheckConstraint(
        "(scope = 'installation' AND user_id IS NULL AND chat_id IS NULL)"
        " OR (scope = 'user' AND user_id IS NOT NULL AND chat_id IS NULL)"
        " OR (scope = 'chat' AND user_id IS NULL AND chat_id IS NOT NULL)",
        name=Constraint.APPROVAL_RULES_SCOPE_KNOWN,
    ),
    CheckConstraint(
        "effect IN ('allow', 'ask', 'deny')", name=Constraint.APPROVAL_RULES_EFFECT_KNOWN
    ),
    CheckConstraint(
        "digest = '' OR (scope = 'chat' AND effect = 'allow')",
        name=Constraint.APPROVAL_RULES_CHATS_REMEMBER,
    ),
    CheckConstraint(
        "NOT is_for_tainted OR (scope <> 'user' AND effect = 'allow')",
        name=Constraint.APPROVAL_RULES_USERS_TRUST_NOTHING,
    ),
    CheckConstraint(
        "json_typeof(arguments) = 'object'",
        name=Constraint.APPROVAL_RULES_ARGUMENTS_ARE_AN_OBJECT,
    ),
    Index("approval_rules_by_user", "user_id", postgresql_where=text("user_id IS NOT NULL")),
    Index("approval_rules_by_chat", "chat_id", postgresql_where=text("chat_id IS NOT NULL")),
    Index(
        "approval_rules_of_installation",
        "id",
        postgresql_where=text("scope = 'installation'"),
    ),
    Index(
        Constraint.APPROVAL_RULES_BY_DIGEST,
        "chat_id",
        "digest",
        unique=True,
        postgresql_where=text("digest <> ''"),
    ),
)
