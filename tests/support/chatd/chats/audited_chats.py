"""A small world of chats that an auditor finds clean: one of each kind that can go wrong."""

import uuid
from dataclasses import replace
from decimal import Decimal

from chatd.chats.domain.chat import ChatState, NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    AskedCall,
    CommitResults,
    CommitStep,
    EnterRequiresAction,
    FailTurn,
    FinishTurn,
    RecordResult,
    Resolved,
    SendMessage,
    SuspendCall,
)
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import File, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    Dispatch,
    Executor,
    InputRequired,
    PendingKind,
)
from chatd.models.domain.price import ModelUse, Price
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerId,
    QueuedMessageId,
    WorkerId,
)
from chatd.primitives.domain.requests import ClientKey
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat


def made_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


OWNER = Owner(OwnerId(made_id("owner")), "member")
STRANGER = made_id("stranger")
WORKER = WorkerId(made_id("worker"))
FILE = made_id("file")
KEY = "request-1"
USE = ModelUse(
    "m", 10, 20, cost_micros=81, provider="p", price=Price(Decimal("0.05"), Decimal("4"))
)

#: Runs under the worker: a recorded call, one under way, one of the client; two messages queued.
RUNNING = ChatId(made_id("running"))
#: Waits after a turn with one call, which was answered.
DONE = ChatId(made_id("done"))
#: A child of the one that is done.
CHILD = ChatId(made_id("child"))
#: Failed while a client was asked.
FAILED = ChatId(made_id("failed"))
#: Waits for a client, after a question was answered.
ASKING = ChatId(made_id("asking"))
#: Waits for an answer to what a running call asks.
SUSPENDED = ChatId(made_id("suspended"))
#: Never had a message.
EMPTY = ChatId(made_id("empty"))

INSERT_REST = f"""
    INSERT INTO chat.workers VALUES
        ('{WORKER}', 'unix:/nowhere', false, now() + interval '1 day', now());
    INSERT INTO chat.files VALUES
        ('{FILE}', '{OWNER.id}', 'a.txt', 'text/plain', '\\x00', '\\x00', now());
    INSERT INTO chat.usage (id, chat_id, root_chat_id, owner_id, purpose, provider, model, outcome,
        input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_write_tokens,
        cost_micros, model_runtime_ms, created_at)
    VALUES ('{made_id("usage")}', '{DONE}', '{DONE}', '{OWNER.id}', 'turn', 'scripted', 'm', 'done',
        1, 1, 0, 0, 0, 5, 10, now())
"""
LINK_REST = f"""
    UPDATE chat.chats SET parent_chat_id = '{DONE}', root_chat_id = '{DONE}' WHERE id = '{CHILD}';
    UPDATE chat.chats SET pin_order = 1, last_read_message_id = 4 WHERE id = '{DONE}';
    UPDATE chat.chats SET pin_order = 2 WHERE id = '{EMPTY}';
    INSERT INTO chat.chat_shares VALUES ('{DONE}', 'user', '{STRANGER}', now());
    INSERT INTO chat.chat_partials VALUES ('{RUNNING}', 1, 1, 0, '[]')
"""


def execution_of(tool_call_id: str) -> ExecutionId:
    return ExecutionId(made_id(f"execution of {tool_call_id}"))


async def fill(pool: Pool) -> None:
    """Make the whole world in an empty database."""
    await pool.execute(INSERT_REST)
    async with PostgresChats(pool, lambda state: None, FakeClock()) as chats:
        await _running(chats)
        await _done(chats)
        await _failed(chats)
        await _asking(chats)
        await _suspended(chats)
    for idle in (CHILD, EMPTY):
        await insert_chat(pool, ChatState(idle, Status.WAITING, 1, 0, 0, MessageId(1)), OWNER)
    await pool.execute(LINK_REST)


async def _running(chats: PostgresChats) -> None:
    state = await _add(chats, RUNNING, ClientKey(KEY, b"hash"))
    state = await chats.apply(RUNNING, _step(state, local=("read", "write"), client=("confirm",)))
    await chats.apply(RUNNING, RecordResult(fence_of(state), _result("read")))
    for number in (1, 2):
        queued = QueuedMessageId(made_id(f"queued {number}"))
        await chats.apply(RUNNING, SendMessage(_said(f"later {number}"), queued, None))


async def _done(chats: PostgresChats) -> None:
    state = await _add(chats, DONE, None, File(FILE, "text/plain", "a.txt"))
    state = await chats.apply(DONE, _step(state, local=("look",)))
    state = await chats.apply(DONE, RecordResult(fence_of(state), _result("look")))
    state = await chats.apply(DONE, CommitResults(fence_of(state)))
    answer = NewMessage(Role.ASSISTANT, (Text("done"),), use=USE)
    bill = Bill(CallPurpose.TURN, CallOutcome.DONE, USE)
    await chats.apply(DONE, FinishTurn(fence_of(state), (answer,), bill))


async def _failed(chats: PostgresChats) -> None:
    state = await _add(chats, FAILED, None)
    state = await chats.apply(FAILED, _step(state, client=("ask",)))
    error = TurnError("It broke.", ErrorKind.GENERIC)
    await chats.apply(FAILED, FailTurn(fence_of(state), error))


async def _asking(chats: PostgresChats) -> None:
    state = await _add(chats, ASKING, None)
    step = _step(state, client=("question", "ask of asking"))
    question, ask = step.asked
    pending = replace(question.pending, kind=PendingKind.QUESTION, deadline_s=None)
    state = await chats.apply(
        ASKING, replace(step, asked=(replace(question, pending=pending), ask))
    )
    await chats.apply(ASKING, EnterRequiresAction(fence_of(state)))
    answer = Resolved(_result("question"))
    command = AnswerAction(execution_of("question"), answer, "{}", OWNER.id, None)
    await chats.apply(ASKING, command)


async def _suspended(chats: PostgresChats) -> None:
    state = await _add(chats, SUSPENDED, None)
    state = await chats.apply(SUSPENDED, _step(state, local=("search",)))
    pending = PendingCall(
        "search",
        "tool",
        execution_of("search"),
        kind=PendingKind.ELICITATION,
        question=InputRequired("r1", PendingKind.ELICITATION, "Where?"),
        question_id=execution_of("search asks"),
    )
    asked = AskedCall(pending, ToolCall("search", "tool", '{"message": "Where?"}'))
    message_id = MessageId(state.next_message_id - 1)
    state = await chats.apply(SUSPENDED, SuspendCall(fence_of(state), message_id, asked))
    await chats.apply(SUSPENDED, EnterRequiresAction(fence_of(state)))


async def _add(
    chats: PostgresChats, chat_id: ChatId, key: ClientKey | None, *files: File
) -> ChatState:
    new = NewChat(
        id=chat_id,
        owner=OWNER,
        title="test",
        has_own_title=True,
        messages=(NewMessage(Role.USER, (Text("hello"), *files), OWNER.id),),
        file_ids=tuple(file.file_id for file in files),
    )
    state = await chats.add(new, claimed_by=WORKER, client_key=key)
    assert state is not None
    return state


def _step(
    state: ChatState, *, local: tuple[str, ...] = (), client: tuple[str, ...] = ()
) -> CommitStep:
    calls = {name: ToolCall(name, "tool", "{}") for name in (*local, *client)}
    return CommitStep(
        fence_of(state),
        (NewMessage(Role.ASSISTANT, tuple(calls.values())),),
        tuple(
            Dispatch(execution_of(name), calls[name], Executor.TOOLRUNNER, "j1") for name in local
        ),
        tuple(
            AskedCall(
                PendingCall(
                    name,
                    "tool",
                    execution_of(name),
                    kind=PendingKind.CLIENT,
                    deadline_s=300.0,
                ),
                calls[name],
            )
            for name in client
        ),
    )


def _said(text: str) -> NewMessage:
    return NewMessage(Role.USER, (Text(text),), OWNER.id)


def _result(tool_call_id: str) -> ToolResult:
    return ToolResult(tool_call_id, "tool", "{}", ToolOutcome.DONE)
