"""The master keys of a service's database: checked at the start, and old ones replaced.

The first key of the keyring encrypts. Values under another key are encrypted for the first one, a
batch at a time; each batch is one transaction, so a process that is killed leaves the rest to
another one or to the next start. Several processes may do this at once: each skips the rows that
another one has locked, and a value that is written meanwhile is left alone.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parley.secrets import CiphertextDamaged, Key, Keyring, Sealed, SecretBox, WrongKey
from parley.telemetry import audit

if TYPE_CHECKING:
    # A toolrunner has no database: loading its drivers would be a third of its start.
    from parley.postgres import Pool

logger = logging.getLogger(__name__)

BATCH_ROWS = 200
FIRST_ID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column with encrypted values, in a table whose key is `id`.

    Attributes:
        table: The table with its schema, as its values are bound to it.
        column: The ciphertexts.
        key_column: The ids of the keys that they were encrypted with.
    """

    table: str
    column: str
    key_column: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """What one pass over the values of a schema did.

    Attributes:
        changed: How many values were encrypted for the first key.
        damaged: Values that cannot be decrypted and therefore keep their key, as `table/row`.
    """

    changed: int = 0
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The encrypted values of one schema.

    Attributes:
        fingerprints: The table with the fingerprints of the keys, with its schema.
        columns: Every column with encrypted values.
    """

    fingerprints: str
    columns: Sequence[SealedColumn]

    # May run: process.
    async def adopt(self, pool: "Pool", keyring: Keyring) -> Adoption:
        """Check the keyring against the database and encrypt all values for its first key.

        Afterwards the database needs no other key, except for values that are damaged or that were
        locked meanwhile.

        Raises:
            WrongKey: A key that the database needs is missing or another one.
        """
        stored = await pool.fetch(f"SELECT key_id, fingerprint FROM {self.fingerprints}")
        keyring.check({row["key_id"]: row["fingerprint"] for row in stored})
        # A process with an older keyring may have written after the last start.
        await self._require(pool, keyring)
        await self._record(pool, keyring.writing_key)
        box = SecretBox(keyring)
        passes = [await _rewrap_column(pool, keyring, box, column) for column in self.columns]
        await self._forget(pool, keyring)
        return Adoption(
            sum(each.changed for each in passes),
            tuple(row for each in passes for row in each.damaged),
        )

    # May run: process.
    async def count(self, pool: "Pool") -> Mapping[str, int]:
        """Return how many values are encrypted with each key, by its id."""
        counts = Counter[str]()
        for each in self.columns:
            rows = await pool.fetch(
                f"SELECT {each.key_column} AS key_id, count(*) AS count FROM {each.table} "
                f"WHERE {each.key_column} IS NOT NULL GROUP BY 1"
            )
            counts.update({row["key_id"]: row["count"] for row in rows})
        return counts

    async def _require(self, pool: "Pool", keyring: Keyring) -> None:
        known = {key.id for key in keyring.keys}
        missing = set(await self.count(pool)) - known
        if missing:
            raise WrongKey(tuple(sorted(missing)))

    # May run: process.
    async def _record(self, pool: "Pool", key: Key) -> None:
        await pool.execute(
            f"INSERT INTO {self.fingerprints} (key_id, fingerprint) VALUES ($1, $2) "
            "ON CONFLICT DO NOTHING",
            key.id,
            key.fingerprint,
        )

    # May run: process.
    async def _forget(self, pool: "Pool", keyring: Keyring) -> None:
        needed = {*await self.count(pool), keyring.writing_key.id}
        gone = await pool.fetch(
            f"DELETE FROM {self.fingerprints} WHERE key_id <> ALL($1::text[]) RETURNING key_id",
            sorted(needed),
        )
        for row in gone:
            audit("master_key.replaced", user_id="", key_id=row["key_id"])


# May run: process.
async def _rewrap_column(
    pool: "Pool", keyring: Keyring, box: SecretBox, column: SealedColumn
) -> Adoption:
    changed, after_id, damaged = 0, FIRST_ID, list[str]()
    while True:
        async with pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(
                f"SELECT id, {column.column} AS sealed, {column.key_column} AS key_id "
                f"FROM {column.table} WHERE {column.key_column} <> $1 AND id > $2::uuid "
                f"ORDER BY id LIMIT {BATCH_ROWS} FOR UPDATE SKIP LOCKED",
                keyring.writing_key.id,
                after_id,
            )
            if not rows:
                break
            after_id = str(rows[-1]["id"])
            found = {str(row["id"]): Sealed(row["sealed"], row["key_id"]) for row in rows}
            rewrapped, broken = _rewrap(box, column, found)
            damaged += broken
            await connection.execute(
                f"UPDATE {column.table} AS stored SET {column.column} = given.sealed, "
                f"{column.key_column} = $3 FROM unnest($1::uuid[], $2::bytea[]) "
                "AS given (id, sealed) WHERE stored.id = given.id",
                list(rewrapped),
                [sealed.ciphertext for sealed in rewrapped.values()],
                keyring.writing_key.id,
            )
        changed += len(rewrapped)
    if changed:
        key_id = keyring.writing_key.id
        audit("secrets.rewrapped", user_id="", table=column.table, key_id=key_id, rows=changed)
    return Adoption(changed, tuple(damaged))


def _rewrap(
    box: SecretBox, column: SealedColumn, found: Mapping[str, Sealed]
) -> tuple[dict[str, Sealed], list[str]]:
    """Return the values for the first key by row, and the rows that are damaged."""
    rewrapped, damaged = dict[str, Sealed](), list[str]()
    for row_id, sealed in found.items():
        try:
            rewrapped[row_id] = box.rewrap(
                sealed, table=column.table, column=column.column, row_id=row_id
            )
        except CiphertextDamaged as error:
            logger.error("%s", error)
            damaged.append(f"{column.table}/{row_id}")
    return rewrapped, damaged
