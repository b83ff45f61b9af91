"""Encrypted values of all services, and the master keys that they need.

A column `x` of bytes has its keys in `x_key_id`, in a table whose key is `id`; a table with
`key_id` and `fingerprint` has the keys that a service knows. Both are found in the catalogue of the
database, so that the columns of every service are checked that the role can read.
"""

from collections.abc import Collection

import asyncpg

from chatd.audit.finding import IDS_MAX, Finding

NAME = "values_are_sealed_with_known_keys"
SENTENCE = "Every encrypted value of every service names a master key that is known."

# May run: process.
SELECT_SEALED = """
    SELECT format('%I.%I', sealed.table_schema, sealed.table_name) AS place,
        quote_ident(keys.column_name) AS key_column
    FROM information_schema.columns sealed JOIN information_schema.columns keys
        ON keys.table_schema = sealed.table_schema AND keys.table_name = sealed.table_name
        AND keys.column_name = sealed.column_name || '_key_id'
    WHERE sealed.data_type = 'bytea' ORDER BY 1
"""
# May run: process.
SELECT_FINGERPRINTS = """
    SELECT format('%I.%I', table_schema, table_name) AS place FROM information_schema.columns
    WHERE column_name IN ('key_id', 'fingerprint') GROUP BY 1 HAVING count(*) = 2
"""


# May run: process.
async def check_sealed_values(
    connection: "asyncpg.Connection[asyncpg.Record]", key_ids: Collection[str] | None
) -> Finding:
    """Return the values that no known key opens.

    Args:
        connection: The database.
        key_ids: The keys of the keyring; None for those whose fingerprints services have stored.
    """
    known = list(key_ids if key_ids is not None else await _stored_keys(connection))
    count, ids = 0, list[str]()
    for row in await connection.fetch(SELECT_SEALED):
        place, key_column = row["place"], row["key_column"]
        found = await connection.fetch(
            f"SELECT id::text, count(*) OVER () AS count FROM {place} "
            f"WHERE {key_column} <> ALL($1::text[]) ORDER BY id LIMIT {IDS_MAX}",
            known,
        )
        count += found[0]["count"] if found else 0
        ids += [f"{place}/{each['id']}" for each in found]
    return Finding(NAME, SENTENCE, count, tuple(ids[:IDS_MAX]))


# May run: process.
async def _stored_keys(connection: "asyncpg.Connection[asyncpg.Record]") -> set[str]:
    known = set[str]()
    for row in await connection.fetch(SELECT_FINGERPRINTS):
        keys = await connection.fetch(f"SELECT key_id FROM {row['place']}")
        known |= {each["key_id"] for each in keys}
    return known
