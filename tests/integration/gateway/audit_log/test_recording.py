"""Changes of identity are in the audit log, each once, with who did it and from where."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway.audit_log.engine.head_signing import HeadSigner
from gateway.audit_log.store.appending import AuditLog
from gateway.audit_log.store.reading import AuditFilter, AuditReader
from parley.audit_log import (
    AuditAction,
    AuditEvent,
    AuditVerification,
    AuditVerifier,
    read_heads,
    seal_key_of,
)
from parley.identity import SigningKey
from parley.postgres import Database
from support.gateway.browser import PASSWORD, Browser, link_for, new_user
from support.gateway.stack import GatewayStack, gateway_stack

NO_ADDRESS = ""


async def entries(url: str) -> list[tuple[Any, ...]]:
    """Return what every entry says: action, outcome, actor, subject and address."""
    async with Database.open(url, application_name="test", connections_max=2) as database:
        page = await AuditReader(database).page(AuditFilter(), before_seq=None, limit=200)
    return [
        (
            line.entry.action,
            line.entry.outcome,
            None if line.actor is None else line.actor.user_id,
            None if line.subject is None else line.subject.user_id,
            line.address or NO_ADDRESS,
        )
        for line in reversed(page)
    ]


async def verification(url: str, **known: Any) -> AuditVerification:
    async with Database.open(url, application_name="test", connections_max=2) as database:
        reader = AuditReader(database)
        head = await reader.head()
        verifier = AuditVerifier(stored_head=head, **known)
        async for lines in reader.batches(until_seq=2**60):
            verifier.read(lines)
    return verifier.finish()


async def owner_id(stack: GatewayStack) -> str:
    return str((await stack.owner.request("GET", "/api/v1/me")).json()["id"])


async def test_a_person_who_comes_and_goes_is_in_the_log(
    stack: GatewayStack, identity_database: str
) -> None:
    owner = await owner_id(stack)
    ada = await new_user(stack)
    url = await link_for(stack, ada)
    browser = Browser(stack)
    page = await browser.open(url)
    await browser.submit(page, "/link", password=PASSWORD, repeated=PASSWORD)
    wrong = await stack.anonymous.request(
        "POST", "/api/v1/sign-in", {"login": "ada", "password": "not the password"}
    )
    unknown = await stack.anonymous.request(
        "POST", "/api/v1/sign-in", {"login": "my secret", "password": "not the password"}
    )
    await browser.call("POST", "/api/v1/me/api-keys", {"name": "laptop"})
    await browser.call("POST", "/api/v1/sign-out", {"everywhere": True})
    await stack.owner.request("POST", f"/api/v1/users/{ada}/deactivate")

    here = "127.0.0.1"
    assert (wrong.status, unknown.status) == (401, 401)
    assert await entries(identity_database) == [
        ("user.created", "done", None, owner, ""),
        ("api_key.created", "done", None, owner, ""),
        ("user.created", "done", owner, ada, here),
        ("sign_in_link.created", "done", owner, ada, here),
        ("sign_in_link.used", "done", ada, None, here),
        ("session.created", "done", ada, None, here),
        ("session.refused", "refused", None, ada, here),
        ("session.refused", "refused", None, None, here),
        ("api_key.created", "done", ada, ada, here),
        ("session.ended", "done", ada, ada, here),
        ("user.deactivated", "done", owner, ada, here),
    ]


async def test_an_archive_of_a_person_is_in_the_log_with_who_asked_for_it(
    stack: GatewayStack, identity_database: str
) -> None:
    owner, ada = await owner_id(stack), await new_user(stack)
    await stack.owner.request("POST", f"/api/v1/users/{ada}/deactivate")
    for _ in range(2):
        asked = await stack.owner.request("POST", f"/api/v1/users/{ada}/exports", {})
        assert asked.status < 300, asked.body
    found = [entry[:4] for entry in await entries(identity_database) if "export" in entry[0]]

    # The second request found the export of the first.
    assert found == [("account_export.requested", "done", owner, ada)]


async def test_no_secret_and_no_name_is_in_the_chain(
    stack: GatewayStack, identity_database: str
) -> None:
    ada = await new_user(stack, display_name="Ada Lovelace")
    url = await link_for(stack, ada)
    browser = Browser(stack)
    page = await browser.open(url)
    await browser.submit(page, "/link", password=PASSWORD, repeated=PASSWORD)
    made = await browser.call("POST", "/api/v1/me/api-keys", {"name": "Ada's laptop"})
    await stack.anonymous.request("POST", "/api/v1/sign-in", {"login": "typo", "password": "oops"})
    connection = await asyncpg.connect(identity_database)
    try:
        rows = await connection.fetch("SELECT e::text FROM identity.audit_entries e")
    finally:
        await connection.close()
    text = "\n".join(row[0] for row in rows)

    secrets = (PASSWORD, url.partition("token=")[2], made.json()["key"])
    people = ("Lovelace", "Ada's laptop", "typo", "oops", "127.0.0.1", ada)
    assert [each for each in (*secrets, *people) if each in text] == []


async def test_deleting_a_person_erases_them_and_keeps_the_chain_valid(
    stack: GatewayStack, identity_database: str
) -> None:
    owner, ada = await owner_id(stack), await new_user(stack)
    await stack.owner.request("POST", f"/api/v1/users/{ada}/deactivate")
    before = await verification(identity_database)
    await stack.owner.request("DELETE", f"/api/v1/users/{ada}")
    connection = await asyncpg.connect(identity_database)
    try:
        left = await connection.fetchval(
            "SELECT count(*) FROM identity.audit_people WHERE user_id = $1", ada
        )
        named = await connection.fetchval(
            "SELECT count(*) FROM identity.audit_entries e WHERE strpos(e::text, $1) > 0", ada
        )
    finally:
        await connection.close()
    after = await verification(identity_database)
    about = await stack.owner.request("GET", "/api/v1/audit-log?action=user.deleted")

    assert (await entries(identity_database))[-3:] == [
        ("user.created", "done", owner, None, "127.0.0.1"),
        ("user.deactivated", "done", owner, None, "127.0.0.1"),
        ("user.deleted", "done", owner, None, "127.0.0.1"),
    ]
    assert (left, named) == (0, 0)
    assert [each["object_id"] for each in about.json()["items"]] == [None]
    assert (before.problems, after.problems) == ((), ())
    assert after.last_seq == before.last_seq + 1


async def test_many_who_append_at_once_make_one_chain(identity_database: str) -> None:
    key = bytes(32)
    async with Database.open(
        identity_database, application_name="test", connections_max=32
    ) as database:
        audit_log = AuditLog(key)

        async def append(number: int) -> None:
            async with database.transaction() as connection:
                event = AuditEvent(AuditAction.GROUP_CREATED, str(number))
                await audit_log.append(connection, event)

        async with asyncio.TaskGroup() as tasks:
            for number in range(200):
                tasks.create_task(append(number))
    verified = await verification(identity_database, seal_key=key)

    assert (verified.entries, verified.last_seq, verified.problems) == (200, 200, ())


async def test_a_change_that_fails_leaves_no_entry_and_no_gap(identity_database: str) -> None:
    async with Database.open(
        identity_database, application_name="test", connections_max=2
    ) as database:
        audit_log = AuditLog()

        async def fail() -> None:
            async with database.transaction() as connection:
                await audit_log.append(connection, AuditEvent(AuditAction.GROUP_CREATED, "lost"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with database.transaction() as connection:
            await audit_log.append(connection, AuditEvent(AuditAction.GROUP_CREATED, "kept"))
    verified = await verification(identity_database)

    assert (verified.entries, verified.last_seq, verified.problems) == (1, 1, ())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE identity.audit_entries SET action = 'group.deleted'",
        "DELETE FROM identity.audit_entries",
        "TRUNCATE identity.audit_entries",
    ],
)
async def test_the_database_refuses_to_change_entries(
    stack: GatewayStack, identity_database: str, statement: str
) -> None:
    connection = await asyncpg.connect(identity_database)
    try:
        with pytest.raises(asyncpg.RaiseError, match="never changed or deleted"):
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_head_is_signed_once_and_shows_a_missing_end(
    tmp_path: Path, identity_database: str
) -> None:
    key = SigningKey.generate()
    key.save(tmp_path / "audit.key")
    heads_file = tmp_path / "heads.jsonl"
    files: dict[str, Any] = {
        "audit_key_file": tmp_path / "audit.key",
        "audit_heads_file": heads_file,
    }
    async with (
        gateway_stack(tmp_path, identity_database, **files) as stack,
        Database.open(identity_database, application_name="test", connections_max=2) as database,
    ):
        await new_user(stack)
        signer = HeadSigner(AuditReader(database), key, heads_file, stack.clock)
        await signer.sign()
        await signer.sign()
    heads = read_heads(heads_file)
    known = {"heads": heads, "public_key": key.public, "seal_key": seal_key_of(key)}
    whole = await verification(identity_database, **known)
    connection = await asyncpg.connect(identity_database)
    try:
        await connection.execute("""
            ALTER TABLE identity.audit_entries DISABLE TRIGGER audit_entries_are_kept;
            DELETE FROM identity.audit_entries WHERE seq = 3;
            UPDATE identity.audit_head SET seq = 2,
                hash = (SELECT hash FROM identity.audit_entries WHERE seq = 2);
        """)
    finally:
        await connection.close()
    cut = await verification(identity_database, **known)

    assert [head.seq for head in heads if head.seq == 3] == [3]
    assert (whole.problems, whole.signed_seq, whole.unsealed) == ((), 3, 0)
    assert [(each.kind, each.seq) for each in cut.problems] == [("truncated", 3)]
