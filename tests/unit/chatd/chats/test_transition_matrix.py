"""The whole matrix: every command in every state, allowed with its outcome or refused by name."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import get_args

import pytest

from chatd.chats.domain.chat import ChatState, Facts, Retry, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    BusyBehavior,
    ChangeQueuedMessage,
    Command,
    CommitCompaction,
    CommitResults,
    CommitStep,
    DeleteQueuedMessage,
    EditMessage,
    EnterRequiresAction,
    ExpireAction,
    FailTurn,
    FinishInterruption,
    FinishRevert,
    FinishTurn,
    Interrupt,
    PromoteQueuedMessage,
    Reconcile,
    RecordResult,
    RecordRetry,
    Release,
    RequestCompaction,
    Resolved,
    RevertChat,
    SendMessage,
    SetArchived,
    SubmitToolResults,
    Supplied,
    SuspendCall,
    UndoRevert,
    UserCommand,
)
from chatd.chats.domain.errors import (
    ActionNotOpen,
    BadToolResult,
    ChatArchived,
    FenceLost,
    InvalidState,
    QueuedMessageNotFound,
    TransitionNotAllowed,
)
from chatd.chats.domain.matrix import ALLOWED
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import decide, fence_of, impossibility
from chatd.content.domain.messages import ChatMode, MessageOrigin
from chatd.content.domain.tools import Dispatch, Executor, InputAction, PendingKind
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import MessageId
from support.chatd.chats.transition_states import (
    ACTION,
    ANSWER,
    ANSWERED,
    ASKED_CALL,
    AT_REST,
    CALL,
    DONE,
    DONE_REVERT,
    EXECUTION,
    FACTS,
    HELLO,
    NOW,
    OOPS,
    OTHER,
    OTHER_REVERT,
    QUEUED,
    REVERT,
    STATES,
    SUSPENDED,
    TARGET,
    WORKER,
)

OF_GOAL = replace(HELLO, origin=MessageOrigin.GOAL)
ALLOWED_CALL = Approved(TARGET.id, Dispatch(ACTION, CALL, Executor.TOOLRUNNER, "journal-1"))

# What each command is, built for a state, because a worker's carries that state's fence.
COMMANDS: Mapping[str, Callable[[ChatState], Command]] = {
    "send": lambda _: SendMessage(HELLO, QUEUED, OTHER),
    "send for a goal": lambda _: SendMessage(OF_GOAL, QUEUED, OTHER),
    "send urgently": lambda _: SendMessage(HELLO, QUEUED, OTHER, BusyBehavior.INTERRUPT),
    "edit": lambda _: EditMessage(TARGET.id, HELLO, OTHER),
    "edit with files": lambda _: EditMessage(TARGET.id, HELLO, OTHER, OTHER_REVERT, True),
    "revert": lambda _: RevertChat(OTHER_REVERT, TARGET.id, False, OTHER),
    "revert with files": lambda _: RevertChat(OTHER_REVERT, TARGET.id, True, OTHER),
    "undo revert": lambda _: UndoRevert(OTHER_REVERT, REVERT.revert_id, OTHER),
    "undo revert with files": lambda _: UndoRevert(OTHER_REVERT, REVERT.revert_id, OTHER),
    "drop queued": lambda _: DeleteQueuedMessage(QUEUED),
    "change queued": lambda _: ChangeQueuedMessage(QUEUED, HELLO.content, None, 2),
    "promote": lambda _: PromoteQueuedMessage(QUEUED, OTHER),
    "interrupt": lambda _: Interrupt(MessageId(0), OTHER),
    "interrupt another turn": lambda _: Interrupt(MessageId(4), OTHER),
    "interrupt and drop the queue": lambda _: Interrupt(MessageId(0), OTHER, drops_queue=True),
    "answer": lambda _: SubmitToolResults((ANSWERED,), "ann", OTHER),
    "compact": lambda _: RequestCompaction(OTHER),
    "archive": lambda _: SetArchived(archived=True),
    "unarchive": lambda _: SetArchived(archived=False),
    "answer as person": lambda _: AnswerAction(ACTION, Resolved(ANSWERED), "{}", "ann", OTHER),
    "accept a plan": lambda _: AnswerAction(
        ACTION, Resolved(ANSWERED, ChatMode.ORDINARY), "{}", "ann", OTHER
    ),
    "approve": lambda _: AnswerAction(ACTION, ALLOWED_CALL, "{}", "ann", OTHER),
    "answer what is over": lambda _: AnswerAction(
        EXECUTION, Resolved(ANSWERED), "{}", "ann", OTHER
    ),
    "answer a call": lambda _: AnswerAction(
        ACTION, Supplied(InputAction.ACCEPT), "{}", "ann", OTHER
    ),
    "expire": lambda _: ExpireAction(ACTION, OTHER),
    "expire what is over": lambda _: ExpireAction(EXECUTION, OTHER),
    "reconcile": lambda _: Reconcile(),
    "step": lambda state: CommitStep(fence_of(state), (ANSWER,)),
    "step with calls": lambda state: CommitStep(fence_of(state), (ANSWER,), asked=(ASKED_CALL,)),
    "record": lambda state: RecordResult(fence_of(state), DONE),
    "suspend": lambda state: SuspendCall(
        fence_of(state), TARGET.id, replace(ASKED_CALL, pending=SUSPENDED, call=CALL)
    ),
    "commit results": lambda state: CommitResults(fence_of(state)),
    "commit the last result": lambda state: CommitResults(fence_of(state), (DONE,)),
    "wait": lambda state: EnterRequiresAction(fence_of(state)),
    "commit compaction": lambda state: CommitCompaction(fence_of(state), (HELLO,)),
    "retry": lambda state: RecordRetry(fence_of(state), Retry(1, 1000, NOW, OOPS)),
    "finish": lambda state: FinishTurn(fence_of(state), (ANSWER,)),
    "finish interruption": lambda state: FinishInterruption(fence_of(state), (ANSWER,)),
    "finish revert": lambda state: FinishRevert(fence_of(state), b"report"),
    "fail": lambda state: FailTurn(fence_of(state), OOPS),
    "release": lambda state: Release(fence_of(state)),
}

QUEUES = "0", "1"
PRESENT = [name for name, state in STATES.items() if not state.archived]
QUEUED_IN = [name for name in PRESENT if name.endswith("1")]


def both(**letters: str) -> dict[str, str]:
    """Return outcomes of states that keep their queue, or keep having none."""
    return {before + queue: after + queue for before, after in letters.items() for queue in QUEUES}


def longer(**letters: str) -> dict[str, str]:
    """Return outcomes of states after which a message is queued."""
    return {before + queue: f"{after}1" for before, after in letters.items() for queue in QUEUES}


def always(after: str, *letters: str) -> dict[str, str]:
    """Return one outcome of states with and without a queue."""
    return {before + queue: after for before in letters for queue in QUEUES}


RESTING = ("W", "E0", "E1")
BUSY = longer(R="R", T="T", C="C", V="V", I="I", J="J", A="A", N="N", Q="Q")
INTERRUPTED = both(R="I", T="J", C="J", Q="J")
EDITABLE = [name for name in PRESENT if not name.startswith("V")]
NOT_CHANGED = dict.fromkeys([*RESTING, "V0", "V1", "I0", "I1", "J0", "J1"], "=")

# The states a command leads to, from the specification's matrix and our deviations from it. A state
# that is missing refuses the command; "=" leaves it as it is.
OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "send": {"W": "R0", **both(E="R", P="R", B="A"), **BUSY},
    "send for a goal": {"W": "R0", **both(E="R"), **BUSY, **longer(P="P", B="B")},
    "send urgently": {
        "W": "R0",
        **both(E="R", A="R", P="R", N="R", B="R"),
        **longer(R="I", T="J", C="J", V="V", I="I", J="J", Q="J"),
    },
    "edit": dict.fromkeys(EDITABLE, "R0"),
    "edit with files": dict.fromkeys(EDITABLE, "V0"),
    "revert": dict.fromkeys(RESTING, "W"),
    "revert with files": dict.fromkeys(RESTING, "V0"),
    "undo revert": dict.fromkeys(RESTING, "W"),
    "undo revert with files": dict.fromkeys(RESTING, "V0"),
    "drop queued": {name: name for name in QUEUED_IN},
    "change queued": {name: name for name in QUEUED_IN},
    "promote": {
        "E1": "R1", "A1": "R1", "P1": "R1", "N1": "R1", "B1": "R1",
        "R1": "I1", "T1": "J1", "C1": "J1", "I1": "I1", "J1": "J1", "Q1": "J1",
    },
    "interrupt": {
        **NOT_CHANGED, **INTERRUPTED,
        "A0": "W", "P0": "W", "N0": "W", "B0": "W", "A1": "R1", "P1": "R1", "N1": "R1", "B1": "R1",
    },
    "interrupt another turn": dict.fromkeys(PRESENT, "="),
    "interrupt and drop the queue": {
        **NOT_CHANGED, **always("I0", "R"), **always("J0", "T", "C", "Q"),
        "V1": "V0", "I1": "I0", "J1": "J0", **always("W", "A", "P", "N", "B"),
    },
    "answer": both(A="R", B="P"),
    "compact": {"W": "R0", **both(E="R")},
    "archive": {
        "W": "XW", **both(E="XE"),
        **{letter + "0": "XW" for letter in "APNBQ"}, **{letter + "1": "XE1" for letter in "APNBQ"},
        "XW": "=", "XE0": "=", "XE1": "=",
    },
    "unarchive": {
        **dict.fromkeys(RESTING, "="), **always("=", "A", "P", "N", "B", "Q"),
        "XW": "W", "XE0": "E0", "XE1": "E1",
    },
    "answer as person": both(A="R", P="R", N="R", B="P"),
    "accept a plan": both(A="R", P="R", N="R", B="P"),
    "approve": both(A="T", P="T", N="T", B="P"),
    "answer what is over": {},
    "answer a call": both(Q="T"),
    "expire": both(A="R", P="R", N="R", B="P", Q="T"),
    "expire what is over": always("=", "A", "P", "N", "B", "Q"),
    "reconcile": {},
    "step": both(R="R"),
    "step with calls": both(R="C"),
    "record": both(T="T", J="J"),
    "suspend": both(T="C"),
    "commit results": both(R="R", T="T", C="C"),
    "commit the last result": both(T="R"),
    "wait": both(C="A"),
    "commit compaction": both(R="R"),
    "retry": both(R="R", T="T", C="C", V="V"),
    "finish": {**always("W", "R", "T", "C"), "R1": "R1", "T1": "R1", "C1": "R1"},
    "finish interruption": {"I0": "W", "J0": "W", "I1": "R1", "J1": "R1"},
    "finish revert": {"V0": "W", "V1": "R1"},
    "fail": both(R="E", T="E", C="E", V="E"),
    "release": both(R="R", T="T", C="C", V="V", I="I", J="J"),
}  # fmt: skip


def label(state: ChatState) -> str:
    """Return the name of a state in the matrix."""
    queue = "" if state.status is Status.WAITING else str(int(state.queue_length > 0))
    return f"{'X' if state.archived else ''}{letter_of(state)}{queue}"


def letter_of(state: ChatState) -> str:
    asked = [call.kind for call in state.pending if call.is_asked]
    match state.status:
        case Status.WAITING:
            return "W"
        case Status.ERROR:
            return "E"
        case Status.INTERRUPTING:
            return "J" if state.pending else "I"
        case Status.RUNNING if state.revert is not None:
            return "V"
        case Status.RUNNING if not state.pending:
            return "R"
        case Status.RUNNING:
            return "C" if len(asked) == len(state.pending) else "T"
        case Status.REQUIRES_ACTION if any(call.is_suspended for call in state.pending):
            return "Q"
        case Status.REQUIRES_ACTION if len(asked) > 1:
            return "B"
        case Status.REQUIRES_ACTION:
            return {PendingKind.CLIENT: "A", PendingKind.QUESTION: "P"}.get(asked[0], "N")


def facts_for(name: str, command: str) -> Facts:
    """Return facts that fit: nothing is queued without a queue, and a revert had files or not."""
    undone = replace(DONE_REVERT, revert=replace(REVERT, restores_files="files" in command))
    return replace(FACTS, is_queued=name.endswith("1"), undone=undone)


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_every_state_does_what_the_matrix_says(name: str, command: str) -> None:
    state = STATES[name]
    expected = OUTCOMES[command].get(name)
    facts = facts_for(name, command)
    if expected is None:
        with pytest.raises(ChatError) as refusal:
            decide(state, COMMANDS[command](state), facts)
        assert type(refusal.value) is refusal_of(state, command)
        return
    decision = decide(state, COMMANDS[command](state), facts)
    if expected == "=":
        assert decision == Decision(state)
    else:
        assert label(decision.state) == expected
        assert decision.state.snapshot_version == state.snapshot_version + 1
    assert impossibility(decision.state) is None


def refusal_of(state: ChatState, command: str) -> type[ChatError]:
    built = COMMANDS[command](state)
    if state.archived and isinstance(built, UserCommand) and not isinstance(built, Reconcile):
        return ChatArchived
    if command == "promote" and state.revert is not None:
        return TransitionNotAllowed
    if isinstance(built, DeleteQueuedMessage | ChangeQueuedMessage | PromoteQueuedMessage):
        return QueuedMessageNotFound
    if state.status is Status.REQUIRES_ACTION and isinstance(built, SubmitToolResults):
        return BadToolResult
    if state.status is Status.REQUIRES_ACTION and isinstance(built, AnswerAction):
        return ActionNotOpen
    is_running = state.status is Status.RUNNING and state.revert is None
    if is_running and command in {"record", "suspend", "commit the last result"}:
        return FenceLost
    if state.status is Status.INTERRUPTING and command == "record":
        return FenceLost
    return TransitionNotAllowed


def test_the_matrix_leaves_out_no_state_and_no_command() -> None:
    assert set(OUTCOMES) == set(COMMANDS)
    assert {name for row in OUTCOMES.values() for name in row} == set(STATES)
    assert {label(state) for state in STATES.values()} == set(STATES)


def test_every_command_of_the_union_has_a_row() -> None:
    built = {type(build(STATES["R0"])) for build in COMMANDS.values()}
    assert built == set(get_args(Command))


def test_the_table_of_statuses_allows_exactly_what_the_matrix_does() -> None:
    changed: dict[tuple[Status, type[Command]], set[Status]] = defaultdict(set)
    left: dict[tuple[Status, type[Command]], set[Status]] = defaultdict(set)
    for command, row in OUTCOMES.items():
        for before, after in row.items():
            state = STATES[before]
            place = (state.status, type(COMMANDS[command](state)))
            if after == "=":
                left[place].add(state.status)
            else:
                changed[place].add(STATES[after].status)
    for status, row_of_table in ALLOWED.items():
        for kind, statuses in row_of_table.items():
            reached, kept = changed.pop((status, kind), set()), left[status, kind]
            assert reached <= set(statuses) <= reached | kept, (status, kind)
    assert not changed


@pytest.mark.parametrize(
    "broken",
    [
        replace(AT_REST, queue_length=1),
        replace(STATES["R0"], archived=True),
        replace(AT_REST, worker_id=WORKER),
        replace(AT_REST, status=Status.ERROR),
        replace(STATES["A0"], pending=()),
        replace(AT_REST, revert=REVERT),
    ],
)
def test_an_impossible_state_takes_nothing_but_being_reconciled(broken: ChatState) -> None:
    for name, build in COMMANDS.items():
        if name != "reconcile":
            with pytest.raises(InvalidState):
                decide(broken, build(broken), FACTS)
    repaired = decide(broken, Reconcile()).state
    assert (repaired.status, repaired.archived) == (Status.ERROR, False)
    assert repaired.owner_epoch == broken.owner_epoch + 1
    assert impossibility(repaired) is None
