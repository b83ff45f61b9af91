"""The schema `chat` itself, and the kinds of columns its tables are made of."""

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
    """PostgreSQL's xid8, which SQLAlchemy does not know."""

    cache_ok = True

    def get_col_spec(self, **kw: object) -> str:
        """Return the type's name in SQL."""
        return "xid8"


# Reflection asks this table, and warns about types that it does not find.
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
    """Return a column of yes and no."""
    return Column(name, Boolean, nullable=False)


def time_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """Return a column of moments."""
    return Column(name, DateTime(timezone=True), nullable=nullable)


# json, not jsonb: a prompt rebuilt from here has the bytes of the one that was sent before.
def json_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """Return a column of JSON as it was written."""
    return Column(name, JSON, nullable=nullable)


def of_chat(name: Constraint) -> ForeignKeyConstraint:
    """Return the reference of a row to its chat, with which it goes."""
    return ForeignKeyConstraint(["chat_id"], ["chat.chats.id"], name=name, ondelete="CASCADE")
