"""The arrays that statements have, told to asyncpg so that it does not ask the server for them.

Its question takes longer than dozens of our statements. The numbers of built-in types are the same
in every version of PostgreSQL.
"""

from collections.abc import Mapping
from typing import Any, Final

import asyncpg

#: The numbers of an array type and of its elements' type, by the name of the former.
_ARRAYS: Final[Mapping[str, tuple[int, int]]] = {
    "_bool": (1000, 16),
    "_int4": (1007, 23),
    "_int8": (1016, 20),
    "_uuid": (2951, 2950),
}
#: As asyncpg's own question is answered.
_ANSWER: Final[tuple[Mapping[str, object], ...]] = tuple(
    {
        "oid": array,
        "ns": "pg_catalog",
        "name": name,
        "kind": "b",
        "basetype": None,
        "elemtype": element,
        "elemdelim": ",",
        "range_subtype": None,
        "attrtypoids": None,
        "attrnames": None,
    }
    for name, (array, element) in _ARRAYS.items()
)


def introduce_arrays(connection: "asyncpg.Connection[Any]") -> None:
    """Tell a new connection of the arrays."""
    connection._protocol.get_settings().register_data_types(_ANSWER)  # type: ignore[attr-defined]
