"""The master keys of a service's database: checked at the start, and old ones replaced.

The first key of the keyring encrypts. Values under another key are encrypted for the first one, a
batch at a time; each batch is one statement, so a process that is killed leaves the rest to the
next start. Several processes may do this at once. A value that is written meanwhile is left alone.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from parley.postgres import Pool
from parley.secrets import CiphertextDamaged, Keyring, Sealed, SecretBox, WrongKey
from parley.telemetry import audit

logger = logging.getLogger(__name__)

BATCH_ROWS = 500
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
class StoredKeys:
    """The encrypted values of one schema.

    Attributes:
        fingerprints: The table with the fingerprints of the keys, with its schema.
        columns: Every column with encrypted values.
    """

    fingerprints: str
    columns: Sequence[SealedColumn]

    # May run: process.
    async def adopt(self, pool: Pool, keyring: Keyring) -> int:
        """Check the keyring against the database and encrypt all values for its first key.

        Afterwards the database needs no other key, except for values that are damaged.

        Returns:
            How many values were encrypted for the first key.

        Raises:
            WrongKey: A key that the database needs is missing or another one.
        """
        stored = await pool.fetch(f"SELECT key_id, fingerprint FROM {self.fingerprints}")
        keyring.check({row["key_id"]: row["fingerprint"] for row in stored})
        # A process with an older keyring may have written after the last start.
        await self._require(pool, keyring)
        await self._record(pool, keyring)
        box = SecretBox(keyring)
        changed = 0
        for column in self.columns:
            changed += await _rewrap_column(pool, keyring, box, column)
        await self._forget(pool, keyring)
        return changed

    async def _require(self, pool: Pool, keyring: Keyring) -> None:
        known = {key.id for key in keyring.keys}
        missing = await self._in_use(pool) - known
        if missing:
            raise WrongKey(tuple(sorted(missing)))

    # May run: process.
    async def _in_use(self, pool: Pool) -> set[str]:
        """Return the ids of the keys that values are encrypted with."""
        found = set[str]()
        for each in self.columns:
            rows = await pool.fetch(
                f"SELECT DISTINCT {each.key_column} AS key_id FROM {each.table} "
                f"WHERE {each.key_column} IS NOT NULL"
            )
            found |= {row["key_id"] for row in rows}
        return found

    # May run: process.
    async def _record(self, pool: Pool, keyring: Keyring) -> None:
        key = keyring.writing_key
        await pool.execute(
            f"INSERT INTO {self.fingerprints} (key_id, fingerprint) VALUES ($1, $2) "
            "ON CONFLICT DO NOTHING",
            key.id,
            key.fingerprint,
        )

    # May run: process.
    async def _forget(self, pool: Pool, keyring: Keyring) -> None:
        needed = await self._in_use(pool) | {keyring.writing_key.id}
        gone = await pool.fetch(
            f"DELETE FROM {self.fingerprints} WHERE key_id <> ALL($1::text[]) RETURNING key_id",
            sorted(needed),
        )
        for row in gone:
            audit("master_key.replaced", user_id="", key_id=row["key_id"])


# May run: process.
async def _rewrap_column(pool: Pool, keyring: Keyring, box: SecretBox, column: SealedColumn) -> int:
    changed, after_id = 0, FIRST_ID
    while True:
        rows = await pool.fetch(
            f"SELECT id, {column.column} AS sealed, {column.key_column} AS key_id "
            f"FROM {column.table} WHERE {column.key_column} <> $1 AND id > $2::uuid "
            f"ORDER BY id LIMIT {BATCH_ROWS}",
            keyring.writing_key.id,
            after_id,
        )
        if not rows:
            break
        after_id = str(rows[-1]["id"])
        found = {str(row["id"]): Sealed(row["sealed"], row["key_id"]) for row in rows}
        changed += await _rewrap(pool, box, column, found)
    if changed:
        key_id = keyring.writing_key.id
        audit("secrets.rewrapped", user_id="", table=column.table, key_id=key_id, rows=changed)
    return changed


# May run: process.
async def _rewrap(
    pool: Pool, box: SecretBox, column: SealedColumn, found: dict[str, Sealed]
) -> int:
    ids, old, new, key_ids = list[str](), list[bytes](), list[bytes](), list[str]()
    for row_id, sealed in found.items():
        try:
            rewrapped = box.rewrap(sealed, table=column.table, column=column.column, row_id=row_id)
        except CiphertextDamaged as error:
            logger.error("%s", error)
            continue
        ids.append(row_id)
        old.append(sealed.ciphertext)
        new.append(rewrapped.ciphertext)
        key_ids.append(rewrapped.key_id)
    written = await pool.fetch(
        f"UPDATE {column.table} AS stored SET {column.column} = given.new, "
        f"{column.key_column} = given.key_id "
        "FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::text[]) "
        "AS given (id, old, new, key_id) "
        f"WHERE stored.id = given.id AND stored.{column.column} = given.old RETURNING stored.id",
        ids,
        old,
        new,
        key_ids,
    )
    return len(written)
