"""A chat in each of its states, and values for commands on it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from chatd.chats.domain.chat import (
    ChatState,
    DoneRevert,
    Facts,
    Message,
    NewMessage,
    PendingCall,
    Revert,
    RevertKind,
    Status,
)
from chatd.chats.domain.commands import (
    AskedCall,
)
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor, InputRequired, PendingKind
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    QueuedMessageId,
    RevertId,
    WorkerId,
)

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
OTHER = WorkerId("00000000-0000-0000-0000-0000000000bb")
QUEUED = QueuedMessageId("00000000-0000-0000-0000-0000000000cc")
EXECUTION = ExecutionId("00000000-0000-0000-0000-0000000000dd")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OOPS = TurnError("It broke.", ErrorKind.GENERIC)
HELLO = NewMessage(Role.USER, (Text("hello"),), "ann")
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
LOCAL = PendingCall("call_0", "execute", EXECUTION)
ACTION = ExecutionId("00000000-0000-0000-0000-0000000000ee")
CLIENT = PendingCall("call_1", "ask", ACTION, kind=PendingKind.CLIENT, deadline_s=300.0)
QUESTION = InputRequired("r1", PendingKind.ELICITATION, "Which one?")
SUSPENDED = PendingCall(
    "call_0",
    "execute",
    EXECUTION,
    kind=PendingKind.ELICITATION,
    deadline_s=300.0,
    question=QUESTION,
    question_id=ACTION,
)
ASKED_CALL = AskedCall(CLIENT, ToolCall("call_1", "ask", "{}"))
DONE = ToolResult("call_0", "execute", "{}", ToolOutcome.DONE)
ANSWERED = ToolResult("call_1", "ask", "{}", ToolOutcome.DONE)
CALL = ToolCall("call_0", "execute", "{}")
DISPATCH = Dispatch(EXECUTION, CALL, Executor.TOOLRUNNER, "journal-1")
TARGET = Message(MessageId(3), 2, Role.USER, (Text("old"),), "ann", NOW)
REVERT = Revert(RevertId("revert-1"), RevertKind.HISTORY, TARGET.id, restores_files=True)
OTHER_REVERT = RevertId("revert-2")
DONE_REVERT = DoneRevert(replace(REVERT, restores_files=False), version=8)

AT_REST = ChatState(CHAT, Status.WAITING, 9, 8, 0, MessageId(7), turn_id=MessageId(5))
OWNED = replace(AT_REST, owner_epoch=4, worker_id=WORKER, generation_attempt=1)

STATES: Mapping[str, ChatState] = {
    "W": AT_REST,
    "E0": replace(AT_REST, status=Status.ERROR, last_error=OOPS),
    "E1": replace(AT_REST, status=Status.ERROR, last_error=OOPS, queue_length=2),
    "R0": replace(OWNED, status=Status.RUNNING),
    "R1": replace(OWNED, status=Status.RUNNING, queue_length=2),
    "V0": replace(OWNED, status=Status.RUNNING, revert=REVERT),
    "V1": replace(OWNED, status=Status.RUNNING, revert=REVERT, queue_length=2),
    "I0": replace(OWNED, status=Status.INTERRUPTING),
    "I1": replace(OWNED, status=Status.INTERRUPTING, queue_length=2),
    "A0": replace(AT_REST, status=Status.REQUIRES_ACTION, pending=(CLIENT,), deadline_at=NOW),
    "A1": replace(
        AT_REST, status=Status.REQUIRES_ACTION, pending=(CLIENT,), deadline_at=NOW, queue_length=2
    ),
    "Q0": replace(AT_REST, status=Status.REQUIRES_ACTION, pending=(SUSPENDED,), deadline_at=NOW),
    "Q1": replace(
        AT_REST,
        status=Status.REQUIRES_ACTION,
        pending=(SUSPENDED,),
        deadline_at=NOW,
        queue_length=2,
    ),
    "XW": replace(AT_REST, archived=True),
    "XE0": replace(AT_REST, status=Status.ERROR, last_error=OOPS, archived=True),
    "XE1": replace(AT_REST, status=Status.ERROR, last_error=OOPS, archived=True, queue_length=2),
}
FACTS = Facts(is_queued=True, target=TARGET, has_material=True, undone=DONE_REVERT)
