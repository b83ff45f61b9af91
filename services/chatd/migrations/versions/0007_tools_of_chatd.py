"""Calls of tools that chatd carries out itself."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

DROP = "ALTER TABLE chat.tool_calls DROP CONSTRAINT tool_calls_executor_known"
ADD = """
    ALTER TABLE chat.tool_calls ADD CONSTRAINT tool_calls_executor_known
        CHECK (executor IN ('toolrunner', 'mcpgateway', 'chatd')) NOT VALID
"""
VALIDATE = "ALTER TABLE chat.tool_calls VALIDATE CONSTRAINT tool_calls_executor_known"


def upgrade() -> None:
    for statement in (DROP, ADD, VALIDATE):
        op.execute(statement)
