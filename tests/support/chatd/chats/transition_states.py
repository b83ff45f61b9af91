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
from chatd.content.domain.messages import ErrorKind, MessageOrigin, Role, TurnError
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
HELLO = NewMessage(Role.USER, (Text("hello"),), "ann", origin=MessageOrigin.PERSON)
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
LOCAL = PendingCall("call_0", "execute", EXECUTION)
ACTION = ExecutionId("00000000-0000-0000-0000-0000000000ee")
OTHER_ACTION = ExecutionId("00000000-0000-0000-0000-0000000000ff")
CLIENT = PendingCall("call_1", "ask", ACTION, kind=PendingKind.CLIENT, deadline_s=300.0)
QUESTIONED = replace(CLIENT, kind=PendingKind.QUESTION)
APPROVABLE = replace(CLIENT, kind=PendingKind.APPROVAL)
OTHER_QUESTION = PendingCall(
    "call_2", "ask", OTHER_ACTION, kind=PendingKind.QUESTION, deadline_s=60.0
)
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

ASKING = replace(AT_REST, status=Status.REQUIRES_ACTION, deadline_at=NOW)


def with_and_without_queue(letter: str, state: ChatState) -> dict[str, ChatState]:
    """Return a state under its letter, without a queue and with one."""
    return {f"{letter}0": state, f"{letter}1": replace(state, queue_length=2)}


#: W waiting, E error, R running: T with a call at its executor, C with calls that only others can
#: answer, V with files to restore. I interrupting: J with a call. Requires action: A of a client,
#: P of a person who may answer in free text, N of one who may not, B of both a client and a person,
#: Q for a call that runs. X archived. The number says whether messages are queued.
STATES: Mapping[str, ChatState] = {
    "W": AT_REST,
    **with_and_without_queue("E", replace(AT_REST, status=Status.ERROR, last_error=OOPS)),
    **with_and_without_queue("R", replace(OWNED, status=Status.RUNNING)),
    **with_and_without_queue("T", replace(OWNED, status=Status.RUNNING, pending=(LOCAL,))),
    **with_and_without_queue("C", replace(OWNED, status=Status.RUNNING, pending=(CLIENT,))),
    **with_and_without_queue("V", replace(OWNED, status=Status.RUNNING, revert=REVERT)),
    **with_and_without_queue("I", replace(OWNED, status=Status.INTERRUPTING)),
    **with_and_without_queue("J", replace(OWNED, status=Status.INTERRUPTING, pending=(LOCAL,))),
    **with_and_without_queue("A", replace(ASKING, pending=(CLIENT,))),
    **with_and_without_queue("P", replace(ASKING, pending=(QUESTIONED,))),
    **with_and_without_queue("N", replace(ASKING, pending=(APPROVABLE,))),
    **with_and_without_queue("B", replace(ASKING, pending=(CLIENT, OTHER_QUESTION))),
    **with_and_without_queue("Q", replace(ASKING, pending=(SUSPENDED,))),
    "XW": replace(AT_REST, archived=True),
    "XE0": replace(AT_REST, status=Status.ERROR, last_error=OOPS, archived=True),
    "XE1": replace(AT_REST, status=Status.ERROR, last_error=OOPS, archived=True, queue_length=2),
}
FACTS = Facts(is_queued=True, target=TARGET, has_material=True, undone=DONE_REVERT)
