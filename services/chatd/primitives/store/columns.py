"""The metadata of the schema `chat`, and helpers for the columns of its tables."""

from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKeyConstraint, MetaData, Text
from sqlalchemy.dialects.postgresql import JSON, UUID
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

from chatd.primitives.store.constraints import Constraint

SCHEMA = "chat"
MIGRATIONS = Path(__file__).parents[2] / "migrations"

metadata = MetaData(schema=SCHEMA)


class TransactionId(UserDefinedType[str]):
    """PostgreSQL's xid8, which SQLAlchemy does not support."""

    cache_ok = True

    def get_col_spec(self, **kw: object) -> str:
        """Return the type's name in SQL."""
        return "xid8"


# Reflection reads this table, and warns about types that it does not contain.
# pyrefly: ignore[unsupported-operation]  # Its inferred type has SQLAlchemy's own types alone.
ischema_names["xid8"] = TransactionId


def id_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """Return a column of ids."""
    return Column(name, UUID(as_uuid=False), nullable=nullable)


def text_column(name: str) -> Column[Any]:
    """Return a column of text, never null."""
    return Column(name, Text, nullable=False)


def count_column(name: str) -> Column[Any]:
    """Return a column of counts, never null."""
    return Column(name, BigInteger, nullable=False)


def flag_column(name: str) -> Column[Any]:
    """Return a boolean column."""
    return Column(name, Boolean, nullable=False)


def time_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """Return a column of timestamps."""
    return Column(name, DateTime(timezone=True), nullable=nullable)


# json, not jsonb: a prompt rebuilt from it is byte-identical to the prompt that was sent before.
def json_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """Return a column of JSON that is stored unchanged."""
    return Column(name, JSON, nullable=nullable)


def of_chat(name: Constraint) -> ForeignKeyConstraint:
    """Return the foreign key of a row to its chat; the row is deleted with the chat."""
    return ForeignKeyConstraint(["chat_id"], ["chat.chats.id"], name=name, ondelete="CASCADE")
