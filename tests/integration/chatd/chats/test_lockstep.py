"""The same random commands to the rules in memory and to PostgreSQL: both must always agree."""

import asyncio
import itertools
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis.stateful import initialize, run_state_machine_as_test

from chatd.chats.domain.chat import ChatState, Message
from chatd.chats.domain.commands import Command
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId
from chatd.spend.store.ledger import entry_id
from parley.clock import FakeClock
from parley.postgres import Database, Pool
from support.chatd.chats.chat_machine import CHAT, WORKER, ChatMachine

OWNER = "00000000-0000-0000-0000-00000000000a"
NUMBERS = itertools.count(1)

INSERT_IDLE_CHAT = """
    WITH chat AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, root_chat_id,
            model_id, reasoning_effort, mode, mcp_server_ids, labels, pin_order, summary,
            last_turn_summary, client_tools, last_read_message_id, created_at)
        VALUES ($1, $2, 'member', 'test', true, $1, '', '', '', '{}', '{}', 0, '', '', '[]', 0,
            now()))
    INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
        queue_version, retry_version, generation_attempt, next_message_id, turn_id, queue_length,
        owner_epoch, takeovers, pending, compactions, is_compaction_requested, changed_at,
        changed_xid)
    VALUES ($1, 'waiting', false, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, '[]', 0, false, now(),
        pg_current_xact_id())
"""
SELECT_CHOICE = "SELECT model_id, reasoning_effort FROM chat.chats WHERE id = $1"
INSERT_WORKER = """
    INSERT INTO chat.workers VALUES ($1, 'unix:/nowhere', false, now() + interval '1 day', now())
"""

SELECT_CANCELLED = """
    SELECT execution_id::text AS id FROM chat.cancelled_calls WHERE chat_id = $1
"""
SELECT_BILLED = """
    SELECT id::text, message_id, purpose, outcome, cost_micros, is_estimate FROM chat.usage
    WHERE chat_id = $1
"""


class Lockstep(ChatMachine):
    """Compares everything stored after every command."""

    run: Callable[[Coroutine[Any, Any, Any]], Any]
    pool: Pool

    @initialize()
    def create(self) -> None:
        super().create()
        self.chat_id = ChatId(str(uuid.uuid5(uuid.NAMESPACE_OID, f"chat {next(NUMBERS)}")))
        self.salt = self.chat_id
        self.stored = PostgresChats(self.pool, lambda state: None, FakeClock())
        self.run(self.stored.__aenter__())
        self.run(self.pool.execute(INSERT_IDLE_CHAT, self.chat_id, OWNER))

    def applied(self, command: Command, refusal: ChatError | None) -> None:
        stored_refusal: ChatError | None = None
        try:
            self.run(self.stored.apply(self.chat_id, command))
        except ChatError as error:
            stored_refusal = error
        assert type(stored_refusal) is type(refusal)
        assert self.run(self.everything()) == (
            without_times(self.chat.state),
            [known(message) for message in self.chat.messages],
            [(queued.id, queued.content, queued.choice) for queued in self.chat.queue],
            self.chat.choice,
            sorted(self.billed()),
            sorted(self.chat.cancelled),
        )

    def billed(self) -> Iterator[tuple[object, ...]]:
        """Return the ledger as the database should have it."""
        for entry in self.chat.ledger.values():
            yield (
                entry_id(replace(entry, chat_id=self.chat_id)),
                entry.message_id,
                entry.bill.purpose.value,
                entry.bill.outcome.value,
                entry.bill.use.cost_micros,
                entry.bill.use.is_estimate,
            )

    async def everything(self) -> tuple[object, ...]:
        state = await self.stored.state(self.chat_id)
        rows = await self.pool.fetch(
            f"SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages WHERE chat_id = $1 ORDER BY id",
            self.chat_id,
        )
        messages: list[Message] = [message_of(row) for row in rows]
        queue = await self.stored.queue(self.chat_id)
        row = await self.pool.fetchrow(SELECT_CHOICE, self.chat_id)
        assert row is not None
        billed = await self.pool.fetch(SELECT_BILLED, self.chat_id)
        return (
            without_times(replace(state, chat_id=CHAT)),
            [known(message) for message in messages],
            [(queued.id, queued.content, queued.choice) for queued in queue],
            ModelChoice(row["model_id"], ReasoningEffort(row["reasoning_effort"])),
            sorted(map(tuple, billed)),
            sorted(row["id"] for row in await self.pool.fetch(SELECT_CANCELLED, self.chat_id)),
        )


def known(message: Message) -> tuple[object, ...]:
    """Return what both must agree on of a message."""
    return (
        message.id,
        message.revision,
        message.role,
        message.content,
        message.is_deleted,
        message.choice,
        message.use,
        message.finish_reason,
    )


def without_times(state: ChatState) -> ChatState:
    """Return the state without what only the database's clock knows."""
    return replace(state, deadline_at=None)


def test_memory_and_postgresql_agree_after_every_command(chat_database: str) -> None:
    with asyncio.Runner() as runner:
        opened = Database.open(chat_database, application_name="test", connections_max=4)
        database = runner.run(opened.__aenter__())
        try:
            runner.run(database.pool.execute(INSERT_WORKER, WORKER))

            class Connected(Lockstep):
                run = staticmethod(runner.run)
                pool = database.pool

            run_state_machine_as_test(
                Connected,
                settings=settings(
                    max_examples=40, stateful_step_count=40, deadline=None, database=None
                ),
            )
        finally:
            runner.run(opened.__aexit__(None, None, None))
