"""The only Alembic environment: it runs what `schema_upgrade` put into the config."""

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    version_table="alembic_version",
    version_table_schema=attributes["schema"],
)
# The caller's transaction is open and holds the lock; Alembic itself commits nothing.
with context.begin_transaction():
    context.run_migrations()
