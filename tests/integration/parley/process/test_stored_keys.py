"""Encryption of stored values for the first master key, on a real PostgreSQL."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from parley.postgres import Database, Pool
from parley.process.stored_keys import BATCH_ROWS, SealedColumn, StoredKeys
from parley.secrets import Keyring, Sealed, SecretBox, WrongKey
from support.database.postgres import TestPostgres

COLUMN = SealedColumn("safe.values", "sealed", "sealed_key_id")
KEYS = StoredKeys("safe.fingerprints", (COLUMN,))
OLD = Keyring.generate()
NEW = OLD.with_readable_key().with_newest_first()

TABLES = """
    CREATE SCHEMA safe;
    CREATE TABLE safe.fingerprints (key_id text PRIMARY KEY, fingerprint text NOT NULL);
    CREATE TABLE safe.values (id uuid PRIMARY KEY, sealed bytea, sealed_key_id text);
"""


@pytest.fixture
async def pool(postgres: TestPostgres) -> AsyncIterator[Pool]:
    async with (
        postgres.database() as url,
        Database.open(url, application_name="test", connections_max=4) as database,
    ):
        await database.pool.execute(TABLES)
        yield database.pool


async def store(pool: Pool, keyring: Keyring, numbers: range) -> None:
    for number in numbers:
        row_id = str(UUID(int=number))
        sealed = SecretBox(keyring).seal(
            str(number).encode(), table=COLUMN.table, column=COLUMN.column, row_id=row_id
        )
        await pool.execute(
            "INSERT INTO safe.values VALUES ($1, $2, $3)",
            row_id,
            sealed.ciphertext,
            sealed.key_id,
        )


async def opened(pool: Pool, keyring: Keyring) -> list[str]:
    rows = await pool.fetch("SELECT * FROM safe.values WHERE sealed IS NOT NULL ORDER BY id")
    return [
        SecretBox(keyring)
        .open(
            Sealed(row["sealed"], row["sealed_key_id"]),
            table=COLUMN.table,
            column=COLUMN.column,
            row_id=str(row["id"]),
        )
        .decode()
        for row in rows
    ]


async def recorded(pool: Pool) -> dict[str, str]:
    rows = await pool.fetch("SELECT key_id, fingerprint FROM safe.fingerprints")
    return {row["key_id"]: row["fingerprint"] for row in rows}


def fingerprint(keyring: Keyring) -> dict[str, str]:
    return {keyring.writing_key.id: keyring.writing_key.fingerprint}


async def test_after_a_rotation_every_value_opens_with_the_new_key_alone(
    pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    await KEYS.adopt(pool, OLD)
    numbers = range(1, BATCH_ROWS + 3)
    await store(pool, OLD, numbers)
    await pool.execute("INSERT INTO safe.values VALUES ($1, NULL, NULL)", UUID(int=9_999))

    assert (await KEYS.adopt(pool, NEW)).changed == len(numbers)

    alone = NEW.without_old_keys()
    assert await opened(pool, alone) == [str(number) for number in numbers]
    assert await recorded(pool) == fingerprint(NEW)
    audited = [vars(record) for record in caplog.records if record.name == "parley.audit"]
    assert [(each["action"], each["key_id"], each.get("rows")) for each in audited] == [
        ("secrets.rewrapped", NEW.writing_key.id, len(numbers)),
        ("master_key.replaced", OLD.writing_key.id, None),
    ]
    assert (await KEYS.adopt(pool, alone)).changed == 0


async def test_a_rotation_that_was_cut_off_is_finished_by_the_next_start(pool: Pool) -> None:
    await store(pool, OLD, range(1, 4))
    await store(pool, NEW, range(4, 6))
    assert (await KEYS.adopt(pool, NEW)).changed == 3
    assert await opened(pool, NEW.without_old_keys()) == ["1", "2", "3", "4", "5"]


async def test_the_keyring_of_another_database_is_refused(pool: Pool) -> None:
    await KEYS.adopt(pool, OLD)
    with pytest.raises(WrongKey) as refused:
        await KEYS.adopt(pool, Keyring.generate())
    assert refused.value.key_ids == (OLD.writing_key.id,)
    assert await recorded(pool) == fingerprint(OLD)


async def test_a_key_that_values_need_is_missed_also_without_its_fingerprint(pool: Pool) -> None:
    await KEYS.adopt(pool, NEW)
    # A process that still had the old keyring.
    await store(pool, OLD, range(1, 2))
    with pytest.raises(WrongKey) as refused:
        await KEYS.adopt(pool, NEW.without_old_keys())
    assert refused.value.key_ids == (OLD.writing_key.id,)
    assert await opened(pool, OLD) == ["1"]


async def test_a_damaged_value_keeps_its_key_and_the_others_are_rotated(
    pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    await KEYS.adopt(pool, OLD)
    await store(pool, OLD, range(1, 3))
    await pool.execute("UPDATE safe.values SET sealed = 'gone' WHERE id = $1", UUID(int=1))
    assert (await KEYS.adopt(pool, NEW)).changed == 1
    assert f"row {UUID(int=1)}" in caplog.text
    assert await recorded(pool) == fingerprint(NEW) | fingerprint(OLD)
