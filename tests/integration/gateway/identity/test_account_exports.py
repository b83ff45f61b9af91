"""Exports of accounts: who may have one, how one goes on after a cut, and when it ends."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator, Set
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gateway.exports.collection import Collection
from gateway.exports.file import File
from gateway.exports.runner import FAILURE, FAILURES_MAX, KEPT, LEASE, ExportRunner
from gateway.identity.domain import UserRecord
from gateway.identity.engine.archives import archive
from gateway.identity.store.account_exports import ClaimLost, ExportStore, StoredPart
from gateway.identity.store.credentials import IdentityStore
from integration.gateway.identity.test_store import database, owner_of
from parley.clock import FakeClock, SystemClock
from parley.postgres import Database
from support.gateway.browser import new_user
from support.gateway.shell import Shell
from support.gateway.stack import GatewayStack
from support.host.cancelled_at import cancelled_at_every_await

__all__ = ["database"]

EXPORT = "00000000-0000-0000-0000-0000000000e1"
FILES = {"profile.json": b"{}", "chats/a/chat.json": b"a", "chats/b/chat.json": b"b"}


class FixedCollection(Collection):
    """The same files for every user."""

    def __init__(self, user: UserRecord, known: Set[str]) -> None:
        self._known_names = known

    async def files(self) -> AsyncIterator[File]:
        """Yield those that are not known."""
        for name, data in FILES.items():
            if name not in self._known_names:
                yield File(name, data)


class DefectiveCollection(FixedCollection):
    """All files, and then a defect."""

    async def files(self) -> AsyncIterator[File]:
        """Yield the files and fail."""
        async for file in super().files():
            yield file
        raise LookupError("a defect")


async def fail(database: Database, clock: FakeClock) -> None:
    """Make the export that waits, as often as a defect is met before it is given up."""
    runner = ExportRunner(
        ExportStore(database), IdentityStore(database), DefectiveCollection, clock
    )
    for _ in range(FAILURES_MAX - 1):
        with pytest.raises(LookupError):
            await runner.make_next()
        clock.advance(LEASE.total_seconds())
    assert await runner.make_next()


def runner_over(database: Database, clock: FakeClock) -> ExportRunner:
    return ExportRunner(ExportStore(database), IdentityStore(database), FixedCollection, clock)


async def test_an_export_that_was_cut_off_anywhere_is_completed_by_another(
    database: Database,
) -> None:
    owner, clock, store = await owner_of(database), FakeClock(), ExportStore(database)
    cuts = 0
    await store.add(EXPORT, owner.id, owner.id, clock.now())
    async for _ in cancelled_at_every_await(runner_over(database, clock).make_next):
        cuts += 1
        clock.advance(LEASE.total_seconds() + 1)
        await runner_over(database, clock).make_next()
        (record,) = await store.list(owner.id, clock.now())
        assert record.completed_at is not None
        assert {entry.name: entry.sha256 for entry in await store.entries(record.id)} == {
            name: sha256(data).digest() for name, data in FILES.items()
        }
        await database.pool.execute("DELETE FROM identity.account_exports")
        await store.add(EXPORT, owner.id, owner.id, clock.now())
    assert cuts > 10


async def test_a_gateway_that_lost_its_claim_writes_nothing(database: Database) -> None:
    owner, clock, store = await owner_of(database), FakeClock(), ExportStore(database)
    await store.add(EXPORT, owner.id, owner.id, clock.now())
    lost = await store.claim(clock.now(), LEASE)
    assert lost is not None
    assert await store.claim(clock.now(), LEASE) is None
    clock.advance(LEASE.total_seconds() / 2)
    lost = await store.prolong(lost, clock.now() + LEASE)
    clock.advance(LEASE.total_seconds() / 2)
    assert await store.claim(clock.now(), LEASE) is None
    clock.advance(LEASE.total_seconds() / 2)
    assert await store.claim(clock.now(), LEASE) is not None
    with pytest.raises(ClaimLost):
        await store.prolong(lost, clock.now())
    with pytest.raises(ClaimLost):
        await store.put(lost, StoredPart("late.json", 0, b"", b""), clock.now())
    with pytest.raises(ClaimLost):
        await store.complete(lost, clock.now(), clock.now() + KEPT)
    assert await store.entries(EXPORT) == ()


async def test_an_archive_begins_with_a_manifest_and_ends_after_a_week(database: Database) -> None:
    owner, clock, store = await owner_of(database), FakeClock(), ExportStore(database)
    await store.add(EXPORT, owner.id, owner.id, clock.now())
    assert await runner_over(database, clock).make_next()
    (record,) = await store.list(owner.id, clock.now())
    data = b"".join([piece async for piece in archive(store, record)])
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        assert read.testzip() is None
        assert read.namelist() == ["manifest.json", *sorted(FILES)]
        manifest = json.loads(read.read("manifest.json"))
        assert {name: read.read(name) for name in FILES} == FILES
    assert manifest["entries"] == [
        {"name": name, "size_bytes": len(FILES[name]), "sha256": sha256(FILES[name]).hexdigest()}
        for name in sorted(FILES)
    ]
    clock.advance(KEPT.total_seconds())
    assert await store.list(owner.id, clock.now()) == ()
    await store.delete_expired(clock.now())
    assert await database.pool.fetchval("SELECT count(*) FROM identity.account_exports") == 0


async def test_a_file_in_parts_is_whole_in_the_archive_and_read_anew_after_a_cut(
    database: Database,
) -> None:
    owner, clock, store = await owner_of(database), FakeClock(), ExportStore(database)
    await store.add(EXPORT, owner.id, owner.id, clock.now())
    claim = await store.claim(clock.now(), LEASE)
    assert claim is not None
    until = clock.now() + LEASE
    digest = sha256(b"onetwo").digest()
    for part in (0, 1, 2):
        claim = await store.put(claim, StoredPart("large", part, None, b"old"), until)
    assert await store.entries(EXPORT) == ()
    claim = await store.put(claim, StoredPart("large", 0, None, b"one"), until)
    claim = await store.put(claim, StoredPart("large", 1, digest, b"two"), until)
    await store.complete(claim, clock.now(), clock.now() + KEPT)
    (record,) = await store.list(owner.id, clock.now())
    data = b"".join([piece async for piece in archive(store, record)])
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        assert read.read("large") == b"onetwo"
        (entry,) = json.loads(read.read("manifest.json"))["entries"]
    assert entry == {"name": "large", "size_bytes": 6, "sha256": digest.hex()}
    assert (record.entries, record.size_bytes) == (1, 6)


async def test_administrators_get_exports_of_deactivated_users_only(stack: GatewayStack) -> None:
    user_id = await new_user(stack)
    path = f"/api/v1/users/{user_id}/exports"
    early = await stack.owner.request("POST", path)
    assert (early.status, early.json()["code"]) == (409, "USER_STILL_ACTIVE")
    assert (await stack.owner.request("GET", path)).status == 409
    await stack.owner.request("POST", f"/api/v1/users/{user_id}/deactivate")
    begun = await stack.owner.request("POST", path)
    assert begun.status == 202
    document: dict[str, Any] = begun.json()
    assert (document["user_id"], document["state"]) == (user_id, "running")
    again = await stack.owner.request("POST", path)
    assert again.json()["id"] == document["id"]
    listed = await stack.owner.request("GET", path)
    assert [each["id"] for each in listed.json()["items"]] == [document["id"]]
    unfinished = await stack.owner.request("GET", f"{path}/{document['id']}/archive")
    assert (unfinished.status, unfinished.json()["code"]) == (404, "ACCOUNT_EXPORT_NOT_FOUND")


async def test_a_failed_export_says_why_and_a_new_one_takes_its_place(
    stack: GatewayStack, database: Database
) -> None:
    path = "/api/v1/me/exports"
    begun = (await stack.owner.request("POST", path)).json()
    await fail(database, FakeClock(start=stack.clock.now()))
    (failed,) = (await stack.owner.request("GET", path)).json()["items"]
    partial = await stack.owner.request("GET", f"{path}/{begun['id']}/archive")
    again = (await stack.owner.request("POST", path)).json()
    listed = (await stack.owner.request("GET", path)).json()["items"]

    assert (failed["id"], failed["state"], failed["failure"]) == (begun["id"], "failed", FAILURE)
    with zipfile.ZipFile(io.BytesIO(partial.body)) as read:
        assert read.namelist() == ["manifest.json", *sorted([*FILES, "problems.json"])]
        assert json.loads(read.read("problems.json")) == [{"name": "", "code": "EXPORT_FAILED"}]
    assert (again["state"], again["failure"], again["id"] != begun["id"]) == ("running", "", True)
    assert [each["id"] for each in listed] == [again["id"]]


async def test_the_command_says_why_an_export_failed(
    stack: GatewayStack,
    database: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell, target = Shell(stack, tmp_path / "home", capsys, monkeypatch), tmp_path / "mine.zip"
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        printing = tasks.create_task(shell.as_owner(stack, "account", "export", str(target)))
        while not (await stack.owner.request("GET", "/api/v1/me/exports")).json()["items"]:
            await SystemClock().sleep(0.05)
        await fail(database, FakeClock(start=stack.clock.now()))
    code, printed = printing.result()

    assert (code, FAILURE in printed) == (1, True)
    assert not target.exists()
