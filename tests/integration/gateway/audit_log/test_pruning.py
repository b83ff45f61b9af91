"""Old entries of the audit log are pruned behind a signed checkpoint; the rest stays verifiable."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio

from gateway.audit_log.engine.pruning import LogPruner
from gateway.audit_log.store.appending import AuditLog, DeliveredEvent
from gateway.audit_log.store.pruning import PruningStore
from gateway.audit_log.store.reading import AuditReader
from parley.audit_log import (
    AuditAction,
    AuditEvent,
    AuditVerification,
    AuditVerifier,
    SignedHead,
    append_head,
    read_heads,
    seal_key_of,
    sign_head,
)
from parley.clock import FakeClock, SystemClock
from parley.identity import SigningKey
from parley.postgres import Database
from support.gateway.shell import Shell
from support.gateway.stack import gateway_stack
from support.host.cancelled_at import cancelled_at_every_await

DAYS = 30
SOON_S = 20
OLD = timedelta(days=DAYS + 5)
ADDRESS = "192.0.2.7"
UNGUARDED = "ALTER TABLE identity.audit_entries DISABLE TRIGGER audit_entries_are_kept"


@dataclass
class Log:
    """A log with a key and a file of heads."""

    database: Database
    key: SigningKey
    path: Path

    async def append(self, number: int, age: timedelta) -> None:
        """Append an event of a certain age."""
        audit_log = AuditLog(seal_key_of(self.key))
        event = AuditEvent(AuditAction.GROUP_CREATED, str(number))
        at = SystemClock().now() - age
        given = DeliveredEvent(str(UUID(int=number)), at, "chatd", event, ADDRESS)
        async with self.database.transaction() as connection:
            await audit_log.append_delivered(connection, given)

    def pruner(self) -> LogPruner:
        """Return what prunes it."""
        store = PruningStore(self.database, AuditLog(seal_key_of(self.key)))
        reader = AuditReader(self.database)
        return LogPruner(store, reader, self.key, self.path, retention_days=DAYS, clock=FakeClock())

    async def sign(self) -> None:
        """Sign the head."""
        seq, entry_hash = await AuditReader(self.database).head()
        append_head(self.path, sign_head(seq, entry_hash, SystemClock().now(), self.key))

    async def verified(self, heads: tuple[SignedHead, ...] | None = None) -> AuditVerification:
        """Verify it as the gateway does."""
        reader = AuditReader(self.database)
        head = await reader.head()
        verifier = AuditVerifier(
            heads=read_heads(self.path) if heads is None else heads,
            public_key=self.key.public,
            seal_key=seal_key_of(self.key),
            stored_head=head,
        )
        async for lines in reader.batches(until_seq=head[0]):
            verifier.read(lines)
        return verifier.finish()

    async def numbers(self) -> list[int]:
        """Return the numbers of the entries that are there."""
        rows = await self.database.pool.fetch("SELECT seq FROM identity.audit_entries ORDER BY seq")
        return [row["seq"] for row in rows]


@pytest_asyncio.fixture
async def log(tmp_path: Path, identity_database: str) -> AsyncIterator[Log]:
    async with Database.open(
        identity_database, application_name="test", connections_max=4
    ) as database:
        yield Log(database, SigningKey.generate(), tmp_path / "heads.jsonl")


async def with_old_entries(log: Log) -> None:
    """Append four old entries, of which the last is behind a new one, and sign the head."""
    for number, age in enumerate((OLD, OLD, OLD, timedelta(), OLD), start=1):
        await log.append(number, age)
    await log.sign()


async def test_old_entries_are_pruned_and_the_rest_is_verified_from_the_checkpoint(
    log: Log,
) -> None:
    await with_old_entries(log)
    assert await log.pruner().prune_next()
    again = await log.pruner().prune_next()
    verified = await log.verified()
    last = await log.database.pool.fetchrow(
        "SELECT action, details FROM identity.audit_entries ORDER BY seq DESC LIMIT 1"
    )
    addresses = await log.database.pool.fetch("SELECT seq FROM identity.audit_addresses")

    assert not again
    assert await log.numbers() == [4, 5, 6]
    assert (verified.problems, verified.entries, verified.last_seq) == ((), 3, 6)
    assert verified.checkpoint is not None
    assert verified.checkpoint.seq == 3
    assert last is not None
    assert (last["action"], json.loads(last["details"])) == (
        "audit_log.pruned",
        {"until_seq": "3", "entries": "3"},
    )
    assert sorted(row["seq"] for row in addresses) == [4, 5]


async def test_entries_that_are_missing_without_a_checkpoint_are_found(log: Log) -> None:
    await with_old_entries(log)
    await log.pruner().prune_next()
    heads = read_heads(log.path)
    without = await log.verified(tuple(head for head in heads if not head.is_checkpoint))
    await log.database.pool.execute(
        f"{UNGUARDED}; DELETE FROM identity.audit_entries WHERE seq = 4"
    )
    further = await log.verified()

    assert [(each.kind, each.seq) for each in without.problems] == [("removed", 1)]
    assert [(each.kind, each.seq) for each in further.problems] == [("removed", 4)]


async def test_a_checkpoint_of_another_key_allows_nothing_to_be_missing(log: Log) -> None:
    await with_old_entries(log)
    key, log.key = log.key, SigningKey.generate()
    await log.database.pool.execute(
        f"{UNGUARDED}; DELETE FROM identity.audit_entries WHERE seq < 3"
    )
    heads = read_heads(log.path)
    forged = SignedHead(2, bytes(32), SystemClock().now(), key.public, bytes(64), True)
    renamed = SignedHead(
        heads[0].seq, heads[0].hash, heads[0].at, key.public, heads[0].signature, True
    )
    log.key = key
    verified = await log.verified((forged, renamed))

    assert [(each.kind, each.seq) for each in verified.problems] == [
        ("removed", 1),
        ("head_forged", 2),
        ("head_forged", 5),
    ]


async def test_a_line_that_was_changed_is_not_pruned_away(log: Log) -> None:
    await with_old_entries(log)
    await log.database.pool.execute(
        f"{UNGUARDED}; UPDATE identity.audit_entries SET object_id = 'other' WHERE seq = 2"
    )
    assert not await log.pruner().prune_next()
    verified = await log.verified()

    assert await log.numbers() == [1, 2, 3, 4, 5]
    assert [(each.kind, each.seq) for each in verified.problems] == [("changed", 2)]
    assert not any(head.is_checkpoint for head in read_heads(log.path))


async def test_pruning_that_is_cut_off_anywhere_leaves_a_log_that_is_intact(log: Log) -> None:
    for number, age in ((1, OLD), (2, OLD), (3, timedelta())):
        await log.append(number, age)
    cuts = 0
    async for _ in cancelled_at_every_await(log.pruner().prune_next):
        cuts += 1
        assert (await log.verified()).problems == ()
        await log.pruner().prune_next()
        assert ((await log.verified()).problems, (await log.numbers())[0]) == ((), 3)
        # All that is left is new; the next attempt gets a log of its own with old ones in front.
        await log.database.pool.execute(
            f"{UNGUARDED}; TRUNCATE identity.audit_entries, identity.audit_addresses;"
            "UPDATE identity.audit_head SET seq = 0, hash = decode(repeat('00', 32), 'hex');"
            "ALTER TABLE identity.audit_entries ENABLE TRIGGER audit_entries_are_kept"
        )
        log.path.unlink(missing_ok=True)
        for each, age in ((1, OLD), (2, OLD), (3, timedelta())):
            await log.append(each, age)
    assert cuts > 5


async def test_the_newest_entry_is_kept_however_old_it_is(log: Log) -> None:
    await log.append(1, OLD)
    assert not await log.pruner().prune_next()
    assert await log.numbers() == [1]


def files_of(log: Log, directory: Path) -> dict[str, Any]:
    key_file = directory / "audit.key"
    log.key.save(key_file)
    return {"audit_key_file": key_file, "audit_heads_file": log.path}


async def test_the_gateway_prunes_by_its_setting_and_says_from_where_it_verified(
    log: Log,
    tmp_path: Path,
    identity_database: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await with_old_entries(log)
    exported = tmp_path / "log.jsonl"
    settings = files_of(log, tmp_path) | {"audit_retention_days": DAYS}
    async with gateway_stack(tmp_path, identity_database, **settings) as stack:
        shell = Shell(stack, tmp_path / "home", capsys, monkeypatch)
        async with asyncio.timeout(SOON_S):
            while (await log.numbers())[0] != 4:
                await SystemClock().sleep(0.02)
        verified = await shell.as_owner(stack, "audit", "log", "--verify")
        shown = await shell.as_owner(stack, "audit", "retention", "--json")
        await shell.as_owner(stack, "audit", "log", "--export", str(exported))
        elsewhere = await shell.parley(
            *("audit", "log", "--verify", "--file", str(exported), "--heads", str(log.path)),
            *("--key", log.key.public.hex()),
        )

    for code, printed in (verified, elsewhere):
        assert (code, "is intact" in printed) == (0, True), printed
        assert "verified from line 4 on" in printed
    retention = json.loads(shown[1])
    assert (retention["retention_days"], retention["checkpoint_seq"]) == (DAYS, 3)
    assert (retention["old_entries"], retention["old_seq"]) == (0, 0)


async def test_without_the_setting_nothing_is_pruned_and_a_dry_run_counts(
    log: Log,
    tmp_path: Path,
    identity_database: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await with_old_entries(log)
    async with gateway_stack(tmp_path, identity_database, **files_of(log, tmp_path)) as stack:
        shell = Shell(stack, tmp_path / "home", capsys, monkeypatch)
        code, printed = await shell.as_owner(stack, "audit", "retention", "--days", str(DAYS))
        refused = await stack.owner.request("GET", "/api/v1/audit-log/retention?days=-1")

    assert (code, printed.splitlines()) == (
        0,
        ["All entries are kept.", "Older than 30 days: 3 entries, up to line 3."],
    )
    assert (await log.numbers())[:5] == [1, 2, 3, 4, 5]
    assert refused.status == 422


async def test_the_database_refuses_to_delete_without_saying_that_it_prunes(
    log: Log, identity_database: str
) -> None:
    await log.append(1, OLD)
    connection = await asyncpg.connect(identity_database)
    try:
        with pytest.raises(asyncpg.RaiseError, match="never changed or deleted"):
            await connection.execute(
                "SET parley.prunes_audit_log = 'on'; UPDATE identity.audit_entries SET seq = 9"
            )
    finally:
        await connection.close()
