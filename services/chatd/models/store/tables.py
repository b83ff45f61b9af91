"""The tables of the catalogue: providers, their keys, models, overrides, settings."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    text,
)

from chatd.primitives.store.columns import (
    count_column,
    flag_column,
    id_column,
    json_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

# Not constraints, because the name of a deleted row can be used again.

# One row: its version grows with every change here, or of a setting.
config_version = Table(
    "config_version",
    metadata,
    flag_column("is_only"),
    count_column("version"),
    PrimaryKeyConstraint("is_only", name=Constraint.CONFIG_VERSION_PKEY),
    CheckConstraint("is_only", name=Constraint.CONFIG_VERSION_IS_ONE),
)

providers = Table(
    "providers",
    metadata,
    id_column("id"),
    text_column("name"),
    text_column("display_name"),
    text_column("type"),
    text_column("base_url"),
    flag_column("is_enabled"),
    flag_column("user_keys_allowed"),
    json_column("options"),
    count_column("version"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("deleted_at", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.PROVIDERS_PKEY),
    CheckConstraint(
        "type IN ('anthropic', 'openai', 'openai_compatible', 'azure', 'bedrock', 'scripted')",
        name=Constraint.PROVIDERS_TYPE_KNOWN,
    ),
    CheckConstraint("name ~ '^[a-z0-9]+(-[a-z0-9]+)*$'", name=Constraint.PROVIDERS_NAME_PLAIN),
    CheckConstraint(
        "json_typeof(options) = 'object'", name=Constraint.PROVIDERS_OPTIONS_ARE_AN_OBJECT
    ),
    Index(
        Constraint.PROVIDERS_BY_LIVE_NAME,
        "name",
        unique=True,
        postgresql_where=text("deleted_at IS NULL"),
    ),
)

provider_keys = Table(
    "provider_keys",
    metadata,
    id_column("id"),
    id_column("provider_id"),
    id_column("user_id", nullable=True),
    Column("position", Integer, nullable=False),
    text_column("hint"),
    Column("sealed", LargeBinary, nullable=False),
    text_column("sealed_key_id"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.PROVIDER_KEYS_PKEY),
    ForeignKeyConstraint(
        ["provider_id"],
        ["chat.providers.id"],
        name=Constraint.PROVIDER_KEYS_PROVIDER_FKEY,
        ondelete="CASCADE",
    ),
    CheckConstraint("position >= 1", name=Constraint.PROVIDER_KEYS_ORDERED),
    CheckConstraint("char_length(hint) <= 4", name=Constraint.PROVIDER_KEYS_HINT_SHORT),
    Index("provider_keys_by_provider", "provider_id", "user_id", "position"),
    Index("provider_keys_by_user", "user_id", postgresql_where=text("user_id IS NOT NULL")),
)

models = Table(
    "models",
    metadata,
    id_column("id"),
    id_column("provider_id"),
    text_column("name"),
    text_column("display_name"),
    flag_column("is_enabled"),
    flag_column("is_default"),
    count_column("context_limit_tokens"),
    count_column("output_limit_tokens"),
    Column("threshold_percent", Integer, nullable=False),
    text_column("default_effort"),
    text_column("max_effort"),
    Column("input_price", Numeric),
    Column("output_price", Numeric),
    Column("cache_read_price", Numeric),
    Column("cache_write_price", Numeric),
    json_column("options"),
    count_column("version"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("deleted_at", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.MODELS_PKEY),
    ForeignKeyConstraint(
        ["provider_id"],
        ["chat.providers.id"],
        name=Constraint.MODELS_PROVIDER_FKEY,
        ondelete="RESTRICT",
    ),
    CheckConstraint(
        "least(context_limit_tokens, output_limit_tokens) >= 0",
        name=Constraint.MODELS_LIMITS_POSITIVE,
    ),
    CheckConstraint(
        "threshold_percent BETWEEN 0 AND 100", name=Constraint.MODELS_THRESHOLD_IS_A_SHARE
    ),
    CheckConstraint(
        "least(input_price, output_price, cache_read_price, cache_write_price) >= 0",
        name=Constraint.MODELS_PRICES_POSITIVE,
    ),
    CheckConstraint(
        "json_typeof(options) = 'object'", name=Constraint.MODELS_OPTIONS_ARE_AN_OBJECT
    ),
    CheckConstraint("NOT is_default OR deleted_at IS NULL", name=Constraint.MODELS_DEFAULT_IS_LIVE),
    Index(
        Constraint.MODELS_BY_LIVE_NAME,
        "provider_id",
        "display_name",
        unique=True,
        postgresql_where=text("deleted_at IS NULL"),
    ),
    Index(
        Constraint.MODELS_DEFAULT, "is_default", unique=True, postgresql_where=text("is_default")
    ),
)

model_overrides = Table(
    "model_overrides",
    metadata,
    text_column("purpose"),
    text_column("model_id"),
    text_column("reasoning_effort"),
    PrimaryKeyConstraint("purpose", name=Constraint.MODEL_OVERRIDES_PKEY),
)

settings = Table(
    "settings",
    metadata,
    id_column("scope"),
    text_column("name"),
    json_column("value"),
    PrimaryKeyConstraint("scope", "name", name=Constraint.SETTINGS_PKEY),
)
