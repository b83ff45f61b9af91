"""The same random commands to the rules in memory and to PostgreSQL: both must always agree."""

import asyncio
import itertools
import json
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import asyncpg
from hypothesis import settings
from hypothesis.stateful import initialize, run_state_machine_as_test

from chatd.chats.domain.action_answers import expires_at
from chatd.chats.domain.chat import ChatState, DoneRevert, Message, PendingCall, Status
from chatd.chats.domain.commands import Command
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.codec import parts_from_json, stored_text
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import Part
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, ExecutionId
from chatd.spend.store.ledger import entry_id
from parley.clock import FakeClock
from parley.postgres import Database, Pool
from support.chatd.chats.call_machine import CHAT, WORKER
from support.chatd.chats.chat_machine import ChatMachine
from support.chatd.chats.in_memory_chats import StoredAction

OWNER = "00000000-0000-0000-0000-00000000000a"
NUMBERS = itertools.count(1)
REVERTS_MAX = 1000

INSERT_IDLE_CHAT = """
    WITH chat AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, root_chat_id,
            model_id, reasoning_effort, mode, mcp_server_ids, labels, pin_order, summary,
            last_turn_summary, client_tools, last_read_message_id, created_at)
        VALUES ($1, $2, 'member', 'test', true, $1, '', '', 'plan', '{}', '{}', 0, '', '', '[]', 0,
            now()))
    INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
        queue_version, retry_version, generation_attempt, next_message_id, turn_id, queue_length,
        owner_epoch, takeovers, pending, compactions, is_compaction_requested, changed_at,
        changed_xid)
    VALUES ($1, 'waiting', false, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, '[]', 0, false, now(),
        pg_current_xact_id())
"""
SELECT_CHAT = "SELECT model_id, reasoning_effort, mode FROM chat.chats WHERE id = $1"
INSERT_WORKER = """
    INSERT INTO chat.workers VALUES ($1, 'unix:/nowhere', false, now() + interval '1 day', now())
"""

SELECT_CANCELLED = """
    SELECT execution_id::text AS id FROM chat.cancelled_calls WHERE chat_id = $1
"""
SELECT_ACTIONS = """
    SELECT id::text, message_id, tool_call_id, tool_name, mcp_server_id, kind,
        arguments::text AS arguments, reason, mode, deadline_s, asked_at, deadline_at, outcome,
        ended_by, answer::text AS answer, result::text AS result
    FROM chat.chat_actions WHERE chat_id = $1
"""
SELECT_CALLS = """
    SELECT execution_id::text, message_id, tool_call_id, tool_name, executor, journal_generation,
        mode, result::text AS result
    FROM chat.tool_calls WHERE chat_id = $1
"""
SELECT_REMEMBERED = """
    SELECT id::text, tool, reason, is_for_tainted, digest FROM chat.approval_rules
    WHERE chat_id = $1
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
        self.salt = self.root_id = self.chat_id
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
        if refusal is not None:
            state = self.run(self.stored.state(self.chat_id))
            assert without_times(replace(state, chat_id=CHAT)) == without_times(self.chat.state)
            return
        stored, known = self.run(self.everything()), self.known()
        for name, value in known.items():
            assert stored[name] == value, f"{name} after {command}"

    def known(self) -> dict[str, object]:
        """Return everything that the rules in memory came to."""
        chat = self.chat
        return {
            "state": without_times(chat.state),
            "messages": [known(message) for message in chat.messages],
            "queue": [(each.id, each.content, each.choice) for each in chat.queue],
            "choice": chat.choice,
            "mode": chat.mode,
            "billed": sorted(self.billed()),
            "cancelled": sorted(chat.cancelled),
            "actions": {key: known_action(each) for key, each in chat.actions.items()},
            "deadlines": [True for _ in waiting_calls(chat.state)],
            "calls": {key: self.known_call(key) for key in chat.dispatches},
            "reverts": {
                key: replace(done, is_superseded=self.is_superseded(done))
                for key, done in chat.reverts.items()
            },
            "remembered": sorted(
                (each.rule_id, each.tool, each.reason, each.is_for_tainted, each.digest)
                for each in chat.remembered.values()
            ),
        }

    def known_call(self, execution_id: ExecutionId) -> tuple[object, ...]:
        """Return a dispatched call and its result."""
        dispatch = self.chat.dispatches[execution_id]
        message_id = next(each.id for each in self.chat.messages if dispatch.call in each.content)
        return (
            message_id,
            dispatch.call.tool_call_id,
            dispatch.call.tool_name,
            dispatch.executor,
            dispatch.journal_generation,
            dispatch.mode,
            self.chat.results.get(execution_id),
        )

    def is_superseded(self, done: DoneRevert) -> bool:
        """Return whether a revert can no longer be undone."""
        return any(message.revision > done.version for message in self.chat.messages)

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

    async def everything(self) -> dict[str, object]:
        """Return everything that is stored."""
        state = await self.stored.state(self.chat_id)
        rows = await self.pool.fetch(
            f"SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages WHERE chat_id = $1 ORDER BY id",
            self.chat_id,
        )
        messages: list[Message] = [message_of(row) for row in rows]
        queue = await self.stored.queue(self.chat_id)
        row = await self.pool.fetchrow(SELECT_CHAT, self.chat_id)
        assert row is not None
        billed = await self.pool.fetch(SELECT_BILLED, self.chat_id)
        actions = await self.pool.fetch(SELECT_ACTIONS, self.chat_id)
        calls = await self.pool.fetch(SELECT_CALLS, self.chat_id)
        remembered = await self.pool.fetch(SELECT_REMEMBERED, self.chat_id)
        reverts = await self.stored.done_reverts(self.chat_id, REVERTS_MAX)
        return {
            "state": without_times(replace(state, chat_id=CHAT)),
            "messages": [known(message) for message in messages],
            "queue": [(each.id, each.content, each.choice) for each in queue],
            "choice": ModelChoice(row["model_id"], ReasoningEffort(row["reasoning_effort"])),
            "mode": ChatMode(row["mode"]),
            "billed": sorted(map(tuple, billed)),
            "cancelled": sorted(
                row["id"] for row in await self.pool.fetch(SELECT_CANCELLED, self.chat_id)
            ),
            "actions": {each["id"]: stored_action(each) for each in actions},
            "deadlines": are_deadlines_right(state, actions),
            "calls": {each[0]: (*each[1:-1], result_of(each["result"])) for each in calls},
            "reverts": {each.revert.revert_id: each for each in reverts},
            "remembered": sorted(map(tuple, remembered)),
        }


def known_action(action: StoredAction) -> tuple[object, ...]:
    """Return an action as memory has it."""
    asked, pending = action.asked, action.asked.pending
    return (
        action.message_id,
        pending.tool_call_id,
        pending.tool_name,
        pending.mcp_server_id,
        pending.kind,
        json.loads(asked.call.args_json),
        pending.reason,
        asked.mode,
        pending.deadline_s,
        action.is_asked,
        pending.deadline_s if action.is_asked else None,
        action.outcome,
        action.ended_by,
        json.loads(action.answer_json) if action.answer_json else None,
        action.result,
    )


def stored_action(row: asyncpg.Record) -> tuple[object, ...]:
    """Return an action as the database has it; the time that it may wait is rounded."""
    asked_at, deadline_at, answer = row["asked_at"], row["deadline_at"], row["answer"]
    waits_s = None if deadline_at is None else round((deadline_at - asked_at).total_seconds())
    return (
        row["message_id"],
        row["tool_call_id"],
        row["tool_name"],
        row["mcp_server_id"],
        row["kind"],
        json.loads(stored_text(row["arguments"])),
        row["reason"],
        row["mode"],
        row["deadline_s"],
        asked_at is not None,
        waits_s,
        row["outcome"],
        row["ended_by"],
        None if answer is None else json.loads(stored_text(answer)),
        result_of(row["result"]),
    )


def are_deadlines_right(state: ChatState, rows: "list[asyncpg.Record]") -> list[bool]:
    """Return for each open action whether its row has the deadline that readers are shown."""
    by_id = {row["id"]: row["deadline_at"] for row in rows}
    return [by_id[call.action_id] == expires_at(state, call) for call in waiting_calls(state)]


def waiting_calls(state: ChatState) -> list[PendingCall]:
    """Return the calls that a chat waits for, if it waits."""
    is_waiting = state.status is Status.REQUIRES_ACTION
    return [call for call in state.pending if call.is_asked and is_waiting]


def result_of(text: str | None) -> Part | None:
    """Return a stored result."""
    return None if text is None else parts_from_json(f"[{text}]")[0]


def known(message: Message) -> tuple[object, ...]:
    """Return what both must agree on of a message."""
    return (
        message.id,
        message.revision,
        message.role,
        message.content,
        message.created_by,
        message.visibility,
        message.is_compressed,
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
