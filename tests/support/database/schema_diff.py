"""Alembic's comparison of a database with its metadata, as sentences."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, Constraint, Index, Table

_VERBS = {"add": "missing in the database", "remove": "only in the database"}


def describe(differences: Iterable[Any]) -> tuple[str, ...]:
    """Return one sentence per difference, sorted, so that equal states give equal text."""
    return tuple(sorted(sentence for entry in differences for sentence in _sentences(entry)))


def _sentences(entry: Any) -> Iterable[str]:
    # Alembic groups the changes of one column into a list.
    if isinstance(entry, list):
        return [sentence for inner in entry for sentence in _sentences(inner)]
    kind: str = entry[0]
    verb, _, what = kind.partition("_")
    match entry:
        case (("add_column" | "remove_column"), schema, table, Column(name=name)):
            return [f"column {schema}.{table}.{name} is {_VERBS[verb]}"]
        case (("add_table" | "remove_table"), Table() as table):
            return [f"table {table.fullname} is {_VERBS[verb]}"]
        case (_, (Index() | Constraint()) as thing) if verb in _VERBS:
            words = what.replace("_", " ").replace("fk", "foreign key")
            return [f"{words} {_name(thing)} is {_VERBS[verb]}"]
        case (_, schema, table, column, _, found, declared) if verb == "modify":
            return [
                f"{what} of {schema}.{table}.{column} is {found!r} in the database, "
                f"declared {declared!r}"
            ]
        case _:
            return [" ".join(str(part) for part in entry)]


def _name(thing: Any) -> str:
    columns = ", ".join(column.name for column in getattr(thing, "columns", ()))
    return f"{thing.name or columns} of {thing.table.fullname}"
