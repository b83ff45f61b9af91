import asyncio
import itertools
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import settings
from hypothesis.stateful import initialize, run_state_machine_as_test

from chatd.audit import (
    HISTORY_INVARIANTS,
    IDS_MAX,
    LIVE_INVARIANTS,
    SQL_INVARIANTS,
    Finding,
    WrongDatabase,
    audit,
)
from chatd.audit.__main__ import main
from chatd.audit.running import READABLE
from chatd.audit.sealed_values import NAME as SEALED
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import Command, CommitCompaction
from chatd.chats.store.chats import PostgresChats
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.schema import MIGRATIONS, SCHEMA
from chatd.turns.domain.compaction import COMPACTIONS_MAX
from parley.cli.home.layout import Home
from parley.cli.invocation import Invocation
from parley.cli.main import run
from parley.clock import FakeClock
from parley.postgres import Database, Pool, migrate
from parley.secrets import Keyring
from support.chatd.chats.audited_chats import EMPTY, OWNER, fill, made_id
from support.chatd.chats.call_machine import WORKER
from support.chatd.chats.chat_machine import ChatMachine
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.chats.planted_violations import PLANTED, Planted
from support.database.postgres import TestPostgres

NAMES = [each.name for each in (*SQL_INVARIANTS, *LIVE_INVARIANTS, *HISTORY_INVARIANTS)] + [
    READABLE,
    SEALED,
]
PIN_ANOTHER = f"UPDATE chat.chats SET pin_order = 3 WHERE id = '{EMPTY}'"
NUMBERS = itertools.count(1)


def violated(findings: tuple[Finding, ...]) -> Mapping[str, tuple[str, ...]]:
    return {finding.name: finding.ids for finding in findings if finding.count}


async def migrate_and_fill(url: str) -> None:
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)
    async with Database.open(url, application_name="test", connections_max=4) as database:
        await fill(database.pool)


async def execute(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


@pytest.fixture
async def filled(postgres: TestPostgres) -> AsyncIterator[str]:
    """The URL of a database with the chats of `support.chatd.chats.audited_chats`."""
    async with postgres.database(template="audited_chats", prepare=migrate_and_fill) as url:
        yield url


async def test_a_clean_database_has_a_finding_without_ids_for_every_invariant(filled: str) -> None:
    findings = await audit(filled, is_live=True)
    assert violated(findings) == {}
    assert sorted(finding.name for finding in findings) == sorted(NAMES)


@pytest.mark.parametrize(
    "planted", PLANTED, ids=[f"{place}-{each.invariant}" for place, each in enumerate(PLANTED)]
)
async def test_a_planted_violation_is_found_and_nothing_else(filled: str, planted: Planted) -> None:
    await execute(filled, planted.statements)
    findings = await audit(filled, is_live=True)
    assert violated(findings) == {planted.invariant: (planted.offender,)}


def test_a_violation_is_planted_for_every_invariant() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {planted.invariant for planted in PLANTED} == set(NAMES)


async def test_values_are_compared_with_the_keyring_or_with_what_services_have_recorded(
    filled: str,
) -> None:
    (planted,) = (each for each in PLANTED if each.invariant == SEALED)
    await execute(filled, planted.statements)
    await execute(filled, "INSERT INTO chat.key_fingerprints VALUES ('lost', 'fingerprint')")
    assert violated(await audit(filled)) == {}
    assert violated(await audit(filled, key_ids=["lost"])) == {}
    assert violated(await audit(filled, key_ids=["another"])) == {SEALED: (planted.offender,)}


async def test_values_of_other_services_are_checked_too(filled: str) -> None:
    await execute(
        filled,
        "CREATE SCHEMA other; CREATE TABLE other.things (id uuid, token bytea, token_key_id text);"
        f"INSERT INTO other.things VALUES ('{made_id('thing')}', '', 'lost')",
    )
    assert violated(await audit(filled)) == {SEALED: (f"other.things/{made_id('thing')}",)}


async def test_a_copy_is_not_judged_by_whether_anybody_works_on_it(filled: str) -> None:
    for planted in PLANTED:
        if planted.invariant == "owners_are_alive":
            await execute(filled, planted.statements)
    assert violated(await audit(filled)) == {}


async def test_a_chat_in_line_behind_others_of_its_user_is_not_abandoned(filled: str) -> None:
    stranger = Owner(OwnerId(made_id("other")), "member")
    async with Pool(lambda: asyncpg.connect(filled), size_max=1, patience_s=5) as pool:
        for owner, name in ((OWNER, "in line"), (stranger, "left")):
            chat_id = ChatId(made_id(name))
            state = ChatState(chat_id, Status.RUNNING, 1, 0, 0, MessageId(1), owner_epoch=1)
            await insert_chat(pool, state, owner, age_s=3600)
    assert violated(await audit(filled, is_live=True)) == {
        "running_chats_find_an_owner": (made_id("left"),)
    }


async def test_all_violations_are_counted_and_the_first_are_named(
    chat_database: str, pool: Pool
) -> None:
    ids = sorted(made_id(f"chat {number}") for number in range(IDS_MAX + 5))
    for chat_id in ids:
        state = ChatState(ChatId(chat_id), Status.WAITING, 1, 0, 0, MessageId(1))
        await insert_chat(pool, state, OWNER)
    await pool.execute(
        "UPDATE chat.chat_exec SET generation_attempt = 1, next_message_id = 1, deadline_at = NULL;"
        "ALTER TABLE chat.chat_exec DROP CONSTRAINT chat_exec_only_runners_are_owned;"
        f"UPDATE chat.chat_exec SET owner_epoch = 1, worker_id = '{WORKER}'"
    )
    found = {finding.name: finding for finding in await audit(chat_database) if finding.count}
    assert {name: (finding.count, finding.ids) for name, finding in found.items()} == {
        "chats_at_rest_have_no_episode": (len(ids), tuple(ids[:IDS_MAX])),
        "states_are_possible": (len(ids), tuple(ids[:IDS_MAX])),
    }


async def test_more_chats_than_are_read_at_once_are_all_read(
    chat_database: str, pool: Pool
) -> None:
    for number in range(120):
        chat_id = ChatId(made_id(f"chat {number}"))
        await insert_chat(pool, ChatState(chat_id, Status.WAITING, 1, 0, 0, MessageId(1)), OWNER)
    await pool.execute(
        """UPDATE chat.chat_exec SET pending = '[{"tool_call_id": "a", "tool_name": "b"}]'"""
    )
    found = {finding.name: finding.count for finding in await audit(chat_database)}
    assert found["open_calls_are_pending"] == 120


async def test_a_database_without_chats_is_refused(postgres: TestPostgres) -> None:
    async with postgres.database() as url:
        with pytest.raises(WrongDatabase) as caught:
            await audit(url)
    assert "chat_exec.status" in caught.value.missing


async def test_a_role_that_may_only_read_can_audit(filled: str, postgres: TestPostgres) -> None:
    await postgres.execute("CREATE ROLE auditor LOGIN PASSWORD 'secret'")
    name = filled.rpartition("/")[2].partition("?")[0]
    try:
        url = postgres.server.url(role="auditor", password="secret", database=name)
        with pytest.raises(WrongDatabase):
            await audit(url)
        await execute(
            filled,
            "GRANT USAGE ON SCHEMA chat TO auditor; "
            "GRANT SELECT ON ALL TABLES IN SCHEMA chat TO auditor",
        )
        assert violated(await audit(url, is_live=True)) == {}
    finally:
        await execute(filled, "DROP OWNED BY auditor")
        await postgres.execute("DROP ROLE auditor")


class AuditedMachine(ChatMachine):
    """Random commands to PostgreSQL; whatever they came to must be clean."""

    run: Callable[[Coroutine[Any, Any, Any]], Any]
    pool: Pool
    url: str

    @initialize()
    def create(self) -> None:
        super().create()
        number = next(NUMBERS)
        self.calls = number * 1000  # Executions of all chats are in one table.
        self.chat_id = ChatId(str(uuid.uuid5(uuid.NAMESPACE_OID, f"audited {number}")))
        self.root_id = self.chat_id
        self.stored = PostgresChats(self.pool, lambda state: None, FakeClock())
        self.run(self.stored.__aenter__())
        fresh = ChatState(self.chat_id, Status.WAITING, 1, 0, 0, MessageId(1))
        self.run(insert_chat(self.pool, fresh, OWNER))

    def apply(self, command: Command) -> ChatState | None:
        # The limit is the engine's: it asks for no more of them.
        if isinstance(command, CommitCompaction) and (
            self.chat.state.compactions >= COMPACTIONS_MAX
        ):
            return None
        return super().apply(command)

    def applied(self, command: Command, refusal: ChatError | None) -> None:
        stored_refusal: ChatError | None = None
        try:
            self.run(self.stored.apply(self.chat_id, command))
        except ChatError as error:
            stored_refusal = error
        assert type(stored_refusal) is type(refusal)

    def teardown(self) -> None:
        if not hasattr(self, "stored"):
            return
        self.run(self.stored.__aexit__(None, None, None))
        found = violated(self.run(audit(self.url, is_live=True)))
        # What one example broke must not be held against the next.
        self.run(self.pool.execute("DELETE FROM chat.chats"))
        assert found == {}


def test_whatever_commands_come_to_is_clean(chat_database: str) -> None:
    with asyncio.Runner() as runner:
        opened = Database.open(chat_database, application_name="test", connections_max=4)
        database = runner.run(opened.__aenter__())
        insert_worker = (
            f"INSERT INTO chat.workers VALUES ('{WORKER}', 'unix:/nowhere', false,"
            " now() + interval '1 day', now())"
        )
        runner.run(database.pool.execute(insert_worker))
        try:

            class Connected(AuditedMachine):
                run = staticmethod(runner.run)
                pool = database.pool
                url = chat_database

            run_state_machine_as_test(
                Connected,
                settings=settings(
                    max_examples=25, stateful_step_count=40, deadline=None, database=None
                ),
            )
        finally:
            runner.run(opened.__aexit__(None, None, None))


def test_the_program_prints_a_line_per_invariant_and_exits_0_when_all_hold(
    filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--database", filled, "--live"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"✓ {name}" for name in NAMES)
    assert last == f"All {len(NAMES)} invariants hold."


def test_the_program_names_what_offends_and_exits_1(
    filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(execute(filled, PIN_ANOTHER))
    url_file = tmp_path / "url"
    url_file.write_text(filled + "\n")
    assert main(["--database-url-file", str(url_file)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    offending = [line for line in lines if line.startswith("✗")]
    assert last == f"1 of {len(lines)} invariants do not hold."
    assert offending == [
        f"✗ pins_are_numbered_in_order 1: {EMPTY} "
        "(The pinned chats of a user are roots, numbered 1, 2, 3 without a gap, or archived.)"
    ]


def test_the_program_prints_json(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(execute(filled, PIN_ANOTHER))
    assert main(["--database", filled, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["is_clean"] is False
    assert [each for each in document["invariants"] if each["count"]] == [
        {
            "name": "pins_are_numbered_in_order",
            "sentence": "The pinned chats of a user are roots, numbered 1, 2, 3 without a gap, or "
            "archived.",
            "count": 1,
            "ids": [EMPTY],
        }
    ]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nobody:x@127.0.0.1:1/nowhere",
        "not a url",
    ],
)
def test_a_database_that_cannot_be_reached_is_one_message_and_exit_code_2(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--database", url]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)


def test_a_file_without_a_url_is_one_message_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for file in (empty, tmp_path / "missing"):
        assert main(["--database-url-file", str(file)]) == 2
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1)
        assert str(file) in said.err


def test_the_command_audits_the_database_of_the_stack_in_its_home(
    filled: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endpoints.json").write_text(json.dumps({"database": filled}))
    keys = Home.at(tmp_path).master_key_file
    keys.parent.mkdir(exist_ok=True)
    Keyring.generate().save(keys)
    invocation = Invocation({"PYTHONPATH": os.pathsep.join(sys.path)}, "parley", str(tmp_path))
    assert run(["audit", "--live"], invocation) == 0
    asyncio.run(execute(filled, PIN_ANOTHER))
    assert run(["audit", "--json", "--database", filled], invocation) == 1
    assert capfd.readouterr().out.count(f'"{EMPTY}"') == 1
    assert run(["audit", "--database", "postgresql://x:y@127.0.0.1:1/z"], invocation) == 2


def test_the_command_needs_a_stack_or_a_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit"], Invocation({}, "parley", str(tmp_path))) == 2
    assert "--database URL" in capsys.readouterr().err
