"""Providers, their keys, models, overrides, and the model that each message asks for."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE chat.config_version (
    is_only boolean CONSTRAINT config_version_pkey PRIMARY KEY,
    version bigint NOT NULL,
    CONSTRAINT config_version_is_one CHECK (is_only)
);
INSERT INTO chat.config_version (is_only, version) VALUES (true, 1);

CREATE TABLE chat.providers (
    id uuid CONSTRAINT providers_pkey PRIMARY KEY,
    name text NOT NULL,
    display_name text NOT NULL,
    type text NOT NULL,
    base_url text NOT NULL,
    is_enabled boolean NOT NULL,
    user_keys_allowed boolean NOT NULL,
    options json NOT NULL,
    version bigint NOT NULL,
    request_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT providers_type_known CHECK (
        type IN ('anthropic', 'openai', 'openai_compatible', 'azure', 'bedrock', 'scripted')),
    CONSTRAINT providers_name_plain CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
    CONSTRAINT providers_options_are_an_object CHECK (json_typeof(options) = 'object')
);
CREATE UNIQUE INDEX providers_by_live_name ON chat.providers (name) WHERE deleted_at IS NULL;

CREATE TABLE chat.provider_keys (
    id uuid CONSTRAINT provider_keys_pkey PRIMARY KEY,
    provider_id uuid NOT NULL CONSTRAINT provider_keys_provider_fkey
        REFERENCES chat.providers (id) ON DELETE CASCADE,
    user_id uuid,
    position integer NOT NULL,
    hint text NOT NULL,
    sealed bytea NOT NULL,
    sealed_key_id text NOT NULL,
    request_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT provider_keys_ordered CHECK (position >= 1),
    CONSTRAINT provider_keys_hint_short CHECK (char_length(hint) <= 4)
);
CREATE INDEX provider_keys_by_provider ON chat.provider_keys (provider_id, user_id, position);
CREATE INDEX provider_keys_by_user ON chat.provider_keys (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE chat.models (
    id uuid CONSTRAINT models_pkey PRIMARY KEY,
    provider_id uuid NOT NULL CONSTRAINT models_provider_fkey
        REFERENCES chat.providers (id) ON DELETE RESTRICT,
    name text NOT NULL,
    display_name text NOT NULL,
    is_enabled boolean NOT NULL,
    is_default boolean NOT NULL,
    context_limit_tokens bigint NOT NULL,
    output_limit_tokens bigint NOT NULL,
    threshold_percent integer NOT NULL,
    default_effort text NOT NULL,
    max_effort text NOT NULL,
    input_price numeric,
    output_price numeric,
    cache_read_price numeric,
    cache_write_price numeric,
    options json NOT NULL,
    version bigint NOT NULL,
    request_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT models_limits_positive CHECK (
        least(context_limit_tokens, output_limit_tokens) >= 0),
    CONSTRAINT models_threshold_is_a_share CHECK (threshold_percent BETWEEN 0 AND 100),
    CONSTRAINT models_prices_positive CHECK (
        least(input_price, output_price, cache_read_price, cache_write_price) >= 0),
    CONSTRAINT models_options_are_an_object CHECK (json_typeof(options) = 'object'),
    CONSTRAINT models_default_is_live CHECK (NOT is_default OR deleted_at IS NULL)
);
CREATE UNIQUE INDEX models_by_live_name ON chat.models (provider_id, display_name)
    WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX models_default ON chat.models (is_default) WHERE is_default;

CREATE TABLE chat.model_overrides (
    purpose text CONSTRAINT model_overrides_pkey PRIMARY KEY,
    model_id text NOT NULL,
    reasoning_effort text NOT NULL
);

ALTER TABLE chat.chat_messages ADD COLUMN choice json,
    ADD CONSTRAINT chat_messages_only_users_choose CHECK (choice IS NULL OR role = 'user');
ALTER TABLE chat.chat_queue ADD COLUMN choice json;
"""


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement)
