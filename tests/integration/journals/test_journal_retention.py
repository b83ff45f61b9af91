"""What both journals of executors keep, and for how long: one suite for SQLite and PostgreSQL."""

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from parley.postgres import Database, migrate
from support.database.postgres import TestPostgres, postgres
from support.journals.kept_journals import CallJournal, KeptJournal, NodeJournal

__all__ = ["postgres"]

GATEWAY_ID = "01900000-0000-7000-8000-0000000000aa"
NAMESPACE = uuid.UUID(GATEWAY_ID)
HOURS = timedelta(hours=2)
DAYS = timedelta(days=8)
CALLS = 10_000
ROUND = 500
#: Of a tombstone with its place in an index; an entry has more than ten times that.
TOMBSTONE_BYTES_MAX: dict[type, int] = {NodeJournal: 60, CallJournal: 120}
#: Of one round of calls with their results, twice over.
WINDOW_BYTES_MAX = 2 * 1024 * 1024


async def migrate_mcp(url: str) -> None:
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)


@pytest.fixture(params=["sqlite", "postgres"])
async def journal(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: TestPostgres
) -> AsyncIterator[KeptJournal]:
    if request.param == "sqlite":
        of_node = NodeJournal.at(tmp_path)
        yield of_node
        of_node.journal.close()
        return
    async with (
        postgres.database(template="mcp", prepare=migrate_mcp) as url,
        Database.open(url, application_name="test", connections_max=2) as database,
    ):
        yield CallJournal(database, await Journal.open(database, GATEWAY_ID))


async def test_a_result_is_kept_until_it_is_acknowledged_and_its_id_for_ever(
    journal: KeptJournal,
) -> None:
    await journal.finish(["done"])
    await journal.pass_time(HOURS)
    assert await journal.state("done") == "finished"
    assert await journal.acknowledge(["done"]) == []
    assert (await journal.state("done"), await journal.entries()) == ("acknowledged", 1)
    await journal.pass_time(HOURS)
    assert (await journal.entries(), await journal.tombstones()) == (0, 1)
    await journal.pass_time(1000 * DAYS)
    assert await journal.state("done") == "acknowledged"
    assert await journal.cancel("done") == "acknowledged"
    assert not await journal.begin("done")
    # Acknowledging is idempotent.
    assert await journal.acknowledge(["done"]) == []


async def test_what_runs_or_is_unknown_is_skipped_and_kept(journal: KeptJournal) -> None:
    await journal.begin("running")
    await journal.finish(["done"])
    assert await journal.acknowledge(["running", "done", "never"]) == ["running", "never"]
    await journal.pass_time(1000 * DAYS)
    assert await journal.state("running") == "started"
    assert await journal.state("never") == "never_seen"
    assert await journal.begin("never")


async def test_what_nobody_acknowledges_goes_by_its_age_and_cannot_begin_again(
    journal: KeptJournal,
) -> None:
    await journal.finish(["lost"])
    await journal.cancel("cancelled")
    await journal.pass_time(DAYS)
    await journal.pass_time(HOURS)
    assert (await journal.entries(), await journal.tombstones()) == (0, 2)
    for execution_id in ("lost", "cancelled"):
        assert await journal.state(execution_id) == "acknowledged"
        assert not await journal.begin(execution_id)


async def test_epochs_of_owners_outlive_all_entries(journal: KeptJournal) -> None:
    await journal.begin("first", epoch=5)
    await journal.pass_time(1000 * DAYS)
    assert await journal.is_stale(4)
    assert not await journal.is_stale(5)


async def test_ten_thousand_calls_leave_tombstones_and_the_window(journal: KeptJournal) -> None:
    sizes, ids = [], [""]
    for at in range(CALLS // ROUND):
        ids = [str(uuid.uuid5(NAMESPACE, f"{at}.{each}")) for each in range(ROUND)]
        await journal.finish(ids)
        assert await journal.acknowledge(ids) == []
        await journal.pass_time(HOURS)
        sizes.append(await journal.size_bytes())
    await journal.begin("open")
    assert (await journal.entries(), await journal.tombstones()) == (1, CALLS)
    assert sizes[-1] <= WINDOW_BYTES_MAX + CALLS * TOMBSTONE_BYTES_MAX[type(journal)]
    # It grows by the tombstones alone.
    grown = sizes[-1] - sizes[len(sizes) // 2]
    assert grown <= CALLS / 2 * TOMBSTONE_BYTES_MAX[type(journal)]
    assert not await journal.begin(ids[0])
