"""Administrators and auditors list, export and verify the audit log; others do not."""

from pathlib import Path
from typing import Any

import asyncpg
import pytest

from parley.audit_log import AuditVerifier
from parley.audit_log.export import decode_line
from parley.identity import Role, SigningKey
from support.gateway.browser import new_user
from support.gateway.shell import Shell
from support.gateway.stack import GatewayStack, gateway_stack
from support.gateway.users import client_with

PATH = "/api/v1/audit-log"
#: What somebody with access to the database does first.
UNGUARDED = "ALTER TABLE identity.audit_entries DISABLE TRIGGER audit_entries_are_kept"


async def tamper(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"{UNGUARDED}; {statement}")
    finally:
        await connection.close()


def shell_of(
    stack: GatewayStack,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    return Shell(stack, home, capsys, monkeypatch)


@pytest.fixture
def shell(
    stack: GatewayStack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    return shell_of(stack, tmp_path / "home", capsys, monkeypatch)


async def test_entries_are_listed_newest_first_in_pages(stack: GatewayStack) -> None:
    ada = await new_user(stack)
    first = (await stack.owner.request("GET", f"{PATH}?limit=2")).json()
    second = (
        await stack.owner.request("GET", f"{PATH}?limit=2&cursor={first['next_cursor']}")
    ).json()
    newest = first["items"][0]
    me = (await stack.owner.request("GET", "/api/v1/me")).json()["id"]

    assert [each["seq"] for each in (*first["items"], *second["items"])] == [3, 2, 1]
    assert second["next_cursor"] is None
    assert newest == {
        "seq": 3,
        "id": newest["id"],
        "at": newest["at"],
        "service": "gateway",
        "action": "user.created",
        "outcome": "done",
        "object_id": ada,
        "actor_id": me,
        "subject_id": ada,
        "details": {"kind": "person", "role": "member"},
        "address": "127.0.0.1",
        "hash": newest["hash"],
    }


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ("action=user", ["user.created", "user.created"]),
        ("action=api_key.created", ["api_key.created"]),
        ("action=user.c", []),
        ("user_id={ada}", ["user.created"]),
        ("object_id={ada}", ["user.created"]),
        ("object_id=title", []),
        ("end=2000-01-01T00:00:00Z", []),
        ("start=2000-01-01T00:00:00Z&limit=1", ["user.created"]),
    ],
)
async def test_lists_are_filtered(stack: GatewayStack, query: str, actions: list[str]) -> None:
    ada = await new_user(stack)
    found = await stack.owner.request("GET", f"{PATH}?{query.format(ada=ada)}")

    assert [each["action"] for each in found.json()["items"]] == actions


@pytest.mark.parametrize(
    "query", ["user_id=ada", "cursor=x", "start=today", "limit=0", "limit=201"]
)
async def test_filters_that_cannot_be_meant_are_refused(stack: GatewayStack, query: str) -> None:
    refused = await stack.owner.request("GET", f"{PATH}?{query}")

    assert (refused.status, refused.json()["code"]) == (422, "INVALID_REQUEST")


@pytest.mark.parametrize("path", [PATH, f"{PATH}/export", f"{PATH}/verification"])
@pytest.mark.parametrize(
    ("role", "status"), [(Role.MEMBER, 403), (Role.ADMIN, 200), (Role.AUDITOR, 200)]
)
async def test_only_administrators_and_auditors_read_it(
    stack: GatewayStack, identity_database: str, path: str, role: Role, status: int
) -> None:
    client = await client_with(stack, identity_database, role)

    assert (await client.request("GET", path)).status == status
    assert (await stack.anonymous.request("GET", path)).status == 401


async def test_an_export_is_verified_without_the_server(stack: GatewayStack) -> None:
    await new_user(stack)
    exported = await stack.owner.request("GET", f"{PATH}/export")
    verifier = AuditVerifier()
    verifier.read(decode_line(line) for line in exported.body.splitlines())
    found = verifier.finish()

    assert exported.headers["content-type"] == "application/x-ndjson"
    assert (found.entries, found.problems) == (4, ())
    assert exported.body.splitlines()[-1].count(b"audit_log.exported") == 1


async def test_the_command_accepts_dates_and_times(stack: GatewayStack, shell: Shell) -> None:
    for text in ("2026-07-01", "2026-07-01T08:30:00Z", "2026-07-01T08:30:00+02:00"):
        assert (await shell.as_owner(stack, "audit", "log", "--since", text))[0] == 0
    code, printed = await shell.as_owner(stack, "audit", "log", "--since", "yesterday")
    no_zone = await shell.as_owner(stack, "audit", "log", "--until", "2026-07-01T08:30:00")

    assert (code, "Invalid value for '--since': 'yesterday' is no time" in printed) == (2, True)
    assert (no_zone[0], "Invalid value for '--until'" in no_zone[1]) == (2, True)


async def test_the_command_lists_exports_and_verifies(
    stack: GatewayStack, shell: Shell, tmp_path: Path
) -> None:
    await new_user(stack)
    target = tmp_path / "log.jsonl"
    code, listed = await shell.as_owner(stack, "audit", "log", "--user", "ada")
    intact_code, intact = await shell.as_owner(stack, "audit", "log", "--verify")
    export_code, _ = await shell.as_owner(stack, "audit", "log", "--export", str(target))
    lines = target.read_text().splitlines(keepends=True)
    verified_code, _ = await shell.parley("audit", "log", "--verify", "--file", str(target))
    target.write_text("".join(lines).replace("user.created", "user.deleted", 1))
    tampered_code, tampered = await shell.parley("audit", "log", "--verify", "--file", str(target))

    assert (code, listed.splitlines()[1].split()[2:6]) == (
        0,
        ["user.created", "done", "owner", "ada"],
    )
    assert (intact_code, intact.splitlines()[0]) == (0, "The audit log is intact: 3 entries.")
    assert (export_code, target.stat().st_mode & 0o777, len(lines)) == (0, 0o600, 4)
    assert verified_code == 0
    assert (tampered_code, tampered.splitlines()[0]) == (
        1,
        "line 1: changed: its content does not match its hash",
    )


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param(
            "UPDATE identity.audit_entries SET details = '{}' WHERE seq = 3",
            [("changed", 3)],
            id="g14 a changed line",
        ),
        pytest.param(
            "DELETE FROM identity.audit_entries WHERE seq = 2",
            [("removed", 2)],
            id="g14 a removed line",
        ),
        pytest.param(
            """UPDATE identity.audit_entries SET seq = seq + 100 WHERE seq > 2;
            UPDATE identity.audit_entries SET seq = seq - 99 WHERE seq > 100;
            INSERT INTO identity.audit_entries SELECT 3, gen_random_uuid(), at, service, action,
                outcome, object_id, actor, subject, details, address, previous_hash, hash, seal
            FROM identity.audit_entries WHERE seq = 2;
            UPDATE identity.audit_head SET seq = seq + 1""",
            [("changed", 3), ("reordered", 4)],
            id="g14 an inserted line",
        ),
        pytest.param(
            """UPDATE identity.audit_entries SET seq = 100 WHERE seq = 2;
            UPDATE identity.audit_entries SET seq = 2 WHERE seq = 3;
            UPDATE identity.audit_entries SET seq = 3 WHERE seq = 100""",
            [("reordered", 2), ("reordered", 3)],
            id="g14 lines in another order",
        ),
        pytest.param(
            "DELETE FROM identity.audit_entries WHERE seq = 3",
            [("truncated", 3)],
            id="g14 a missing end",
        ),
        pytest.param(
            """UPDATE identity.audit_people p SET user_id = gen_random_uuid()
            FROM identity.audit_entries e WHERE e.seq = 3 AND e.subject = p.pseudonym""",
            [("person_changed", 3)],
            id="g14 another person",
        ),
    ],
)
async def test_what_is_done_to_the_stored_log_is_found_and_named(
    tmp_path: Path, identity_database: str, statement: str, expected: list[tuple[str, int]]
) -> None:
    SigningKey.generate().save(tmp_path / "audit.key")
    files: dict[str, Any] = {
        "audit_key_file": tmp_path / "audit.key",
        "audit_heads_file": tmp_path / "heads.jsonl",
    }
    async with gateway_stack(tmp_path, identity_database, **files) as stack:
        await new_user(stack)
        before = await stack.owner.request("GET", f"{PATH}/verification")
        await tamper(identity_database, statement)
        after = await stack.owner.request("GET", f"{PATH}/verification")

    assert (before.json()["is_intact"], after.json()["is_intact"]) == (True, False)
    found = {(each["kind"], each["seq"]) for each in after.json()["problems"]}
    # Signed heads and people may contradict the same lines.
    assert found >= set(expected)
