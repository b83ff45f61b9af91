"""The ledger names answers and keeps within bounds; spend limits; what chats keep for both."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

CHANGES = """
ALTER TABLE chat.usage
    ADD COLUMN message_id bigint,
    ADD COLUMN model_name text NOT NULL DEFAULT '',
    ADD CONSTRAINT usage_counts_bounded CHECK (
        greatest(input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,
                 cache_write_tokens) <= 1000000000000),
    ADD CONSTRAINT usage_cost_bounded CHECK (cost_micros <= 10000000000000),
    ADD CONSTRAINT usage_purpose_known CHECK (
        purpose IN ('turn', 'compaction', 'title', 'label', 'summary', 'advisor')),
    ADD CONSTRAINT usage_outcome_known CHECK (
        outcome IN ('done', 'failed', 'aborted', 'interrupted'));
CREATE INDEX usage_by_time ON chat.usage USING brin (created_at);

CREATE TABLE chat.spend_limits (
    subject_kind text NOT NULL,
    subject_id uuid NOT NULL,
    limit_micros bigint NOT NULL,
    period text NOT NULL,
    CONSTRAINT spend_limits_pkey PRIMARY KEY (subject_kind, subject_id),
    CONSTRAINT spend_limits_subject_known CHECK (subject_kind IN ('user', 'group', 'everyone')),
    CONSTRAINT spend_limits_one_for_everyone CHECK (
        subject_kind <> 'everyone' OR subject_id = '00000000-0000-0000-0000-000000000000'),
    CONSTRAINT spend_limits_bounded CHECK (limit_micros BETWEEN 1 AND 10000000000000),
    CONSTRAINT spend_limits_period_known CHECK (period IN ('day', 'week', 'month'))
);

ALTER TABLE chat.chats
    ADD COLUMN owner_group_ids uuid[] NOT NULL DEFAULT '{}',
    ADD COLUMN summarised_until bigint NOT NULL DEFAULT 0;

INSERT INTO chat.usage (id, chat_id, root_chat_id, owner_id, purpose, provider, model, outcome,
    input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_write_tokens,
    cost_micros, model_runtime_ms, created_at, message_id)
SELECT gen_random_uuid(), m.chat_id, c.root_chat_id, c.owner_id,
    CASE WHEN m.is_compressed THEN 'compaction' ELSE 'turn' END, '',
    coalesce(m.use ->> 'model_id', ''), 'done',
    coalesce((m.use ->> 'input_tokens')::bigint, 0),
    coalesce((m.use ->> 'output_tokens')::bigint, 0),
    coalesce((m.use ->> 'reasoning_tokens')::bigint, 0),
    coalesce((m.use ->> 'cache_read_tokens')::bigint, 0),
    coalesce((m.use ->> 'cache_write_tokens')::bigint, 0),
    (m.use ->> 'cost_micros')::bigint, coalesce((m.use ->> 'model_runtime_ms')::bigint, 0),
    m.created_at, m.id
FROM chat.chat_messages m JOIN chat.chats c ON c.id = m.chat_id
WHERE m.use IS NOT NULL;
"""


def upgrade() -> None:
    for statement in CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
