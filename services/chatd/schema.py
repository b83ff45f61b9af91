"""The schema `chat` with the tables of every slice; a test compares it with the migrations."""

import chatd.actions.store.tables
import chatd.approvals.store.tables
import chatd.chats.store.access.tables
import chatd.chats.store.tables
import chatd.chats.store.text_search.tables
import chatd.files.store.tables
import chatd.goals.store.tables
import chatd.hooks.store.tables
import chatd.instructions.store.tables
import chatd.models.store.tables
import chatd.monitors.store.tables
import chatd.offboarding.store.tables
import chatd.primitives.store.audit_outbox
import chatd.primitives.store.key_fingerprints
import chatd.push.store.tables
import chatd.races.store.tables
import chatd.retention.store.tables
import chatd.schedules.store.tables
import chatd.spend.store.tables
import chatd.turns.store.tables
import chatd.workspace_servers.store.tables
import chatd.workspaces.store.secret_tables
import chatd.workspaces.store.tables  # noqa: F401 (each adds its tables to the metadata)
from chatd.primitives.store.columns import MIGRATIONS, SCHEMA, metadata

__all__ = ["MIGRATIONS", "SCHEMA", "metadata"]
