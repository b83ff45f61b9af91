"""The master key changes while a process runs, on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from parley.clock import FakeClock
from parley.postgres import Database, Pool
from parley.process import KeyRotation
from parley.process.key_rotation import LOOK_S, REPEAT_S, MasterKeyStatus
from parley.process.stored_keys import BATCH_ROWS, SealedColumn, StoredKeys
from parley.secrets import Keyring, KeyringFile, SecretBox
from support.database.postgres import TestPostgres

COLUMN = SealedColumn("safe.values", "sealed", "sealed_key_id")
KEYS = StoredKeys("safe.fingerprints", (COLUMN,))
TABLES = """
    CREATE SCHEMA safe;
    CREATE TABLE safe.fingerprints (key_id text PRIMARY KEY, fingerprint text NOT NULL);
    CREATE TABLE safe.values (id uuid PRIMARY KEY, sealed bytea, sealed_key_id text);
"""
INSERT = "INSERT INTO safe.values VALUES ($1, $2, $3)"


@pytest.fixture
async def pool(postgres: TestPostgres) -> AsyncIterator[Pool]:
    async with (
        postgres.database() as url,
        Database.open(url, application_name="test", connections_max=6) as database,
    ):
        await database.pool.execute(TABLES)
        yield database.pool


async def store(pool: Pool, box: SecretBox, *numbers: int) -> None:
    for number in numbers:
        row_id = str(UUID(int=number))
        sealed = box.seal(b"value", table=COLUMN.table, column=COLUMN.column, row_id=row_id)
        await pool.execute(INSERT, row_id, sealed.ciphertext, sealed.key_id)


async def test_a_running_process_encrypts_for_a_new_key_and_says_when_the_old_one_is_not_needed(
    pool: Pool, tmp_path: Path
) -> None:
    path, clock, dropped = tmp_path / "keys", FakeClock(), list[int]()
    old = Keyring.generate()
    old.save(path)
    file = KeyringFile(path)
    rotation = KeyRotation(KEYS, pool, file, clock, settled=lambda: dropped.append(1))
    await rotation.adopt(file.current)
    await store(pool, SecretBox(file), 1, 2)
    new = old.with_readable_key().with_newest_first()
    both = tuple(key.id for key in new.keys)

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rotation.run())
        new.save(path)
        assert await rotation.status() == MasterKeyStatus(both, {both[1]: 2}, both[1], ())
        await clock.until_sleeping()
        clock.advance(LOOK_S)
        await clock.until_sleeping()
        assert await rotation.status() == MasterKeyStatus(both, {both[0]: 2}, both[0], ())
        assert len(dropped) == 2  # At the start, and now.

        # A process that has not read the file yet writes with the old key.
        await store(pool, SecretBox(old), 3)
        clock.advance(LOOK_S)
        await clock.until_sleeping()
        assert (await rotation.status()).values == {both[0]: 2, both[1]: 1}
        clock.advance(REPEAT_S)
        await clock.until_sleeping()
        assert (await rotation.status()).values == {both[0]: 3}
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_processes_that_encrypt_at_once_do_each_value_once(
    pool: Pool, tmp_path: Path
) -> None:
    old = Keyring.generate()
    await KEYS.adopt(pool, old)
    count = 3 * BATCH_ROWS
    await store(pool, SecretBox(old), *range(1, count + 1))
    new = old.with_readable_key().with_newest_first()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(KEYS.adopt(pool, new)) for _ in range(4)]
    assert sum(task.result().changed for task in started) == count
    assert await KEYS.count(pool) == {new.writing_key.id: count}


async def test_a_batch_that_is_cut_off_changes_nothing_and_the_rest_is_done_later(
    pool: Pool,
) -> None:
    old = Keyring.generate()
    await store(pool, SecretBox(old), *range(1, 6))
    new = old.with_readable_key().with_newest_first()
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM safe.values WHERE id = $1 FOR UPDATE", UUID(int=2))
        assert (await KEYS.adopt(pool, new)).changed == 4  # The fifth is in use.
    assert (await KEYS.adopt(pool, new)).changed == 1
