"""The table of the state machine: commands allowed in each status, and the resulting statuses.

The diagram in ARCHITECTURE.md is generated from it, and `transitions.decide` is checked against it.
"""

from collections.abc import Mapping

from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import (
    AnswerAction,
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
    RecordResult,
    RecordRetry,
    Release,
    RequestCompaction,
    RevertChat,
    SendMessage,
    SetArchived,
    SubmitToolResults,
    SuspendCall,
    UndoRevert,
)

WAITING, RUNNING, INTERRUPTING = Status.WAITING, Status.RUNNING, Status.INTERRUPTING
ASKING, ERROR = Status.REQUIRES_ACTION, Status.ERROR

ALLOWED: Mapping[Status, Mapping[type[Command], tuple[Status, ...]]] = {
    WAITING: {
        SendMessage: (RUNNING,),
        EditMessage: (RUNNING,),
        RevertChat: (WAITING, RUNNING),
        UndoRevert: (WAITING, RUNNING),
        DeleteQueuedMessage: (),  # The queue is empty; the command fails with not found.
        ChangeQueuedMessage: (),
        PromoteQueuedMessage: (),
        Interrupt: (WAITING,),
        RequestCompaction: (RUNNING,),
        SetArchived: (WAITING,),
    },
    ERROR: {
        SendMessage: (RUNNING,),
        EditMessage: (RUNNING,),
        RevertChat: (WAITING, RUNNING),
        UndoRevert: (WAITING, RUNNING),
        DeleteQueuedMessage: (ERROR,),
        ChangeQueuedMessage: (ERROR,),
        PromoteQueuedMessage: (RUNNING,),
        Interrupt: (ERROR,),
        RequestCompaction: (RUNNING,),
        SetArchived: (ERROR,),
    },
    RUNNING: {
        SendMessage: (RUNNING, INTERRUPTING),
        EditMessage: (RUNNING,),
        DeleteQueuedMessage: (RUNNING,),
        ChangeQueuedMessage: (RUNNING,),
        PromoteQueuedMessage: (INTERRUPTING,),
        Interrupt: (INTERRUPTING, RUNNING),
        CommitStep: (RUNNING,),
        RecordResult: (RUNNING,),
        SuspendCall: (RUNNING,),
        CommitResults: (RUNNING,),
        EnterRequiresAction: (ASKING,),
        CommitCompaction: (RUNNING,),
        RecordRetry: (RUNNING,),
        FinishTurn: (WAITING, RUNNING),
        FailTurn: (ERROR,),
        FinishRevert: (WAITING, RUNNING),
        Release: (RUNNING,),
    },
    INTERRUPTING: {
        SendMessage: (INTERRUPTING,),
        EditMessage: (RUNNING,),
        DeleteQueuedMessage: (INTERRUPTING,),
        ChangeQueuedMessage: (INTERRUPTING,),
        PromoteQueuedMessage: (INTERRUPTING,),
        Interrupt: (INTERRUPTING,),
        RecordResult: (INTERRUPTING,),
        FinishInterruption: (WAITING, RUNNING),
        Release: (INTERRUPTING,),
    },
    ASKING: {
        # A call that waits at its executor is cancelled there by an owner first.
        SendMessage: (ASKING, RUNNING, INTERRUPTING),
        EditMessage: (RUNNING,),
        DeleteQueuedMessage: (ASKING,),
        ChangeQueuedMessage: (ASKING,),
        PromoteQueuedMessage: (RUNNING, INTERRUPTING),
        Interrupt: (WAITING, RUNNING, ASKING, INTERRUPTING),
        SubmitToolResults: (RUNNING, ASKING),
        AnswerAction: (RUNNING, ASKING),
        ExpireAction: (RUNNING, ASKING),
        SetArchived: (WAITING, ERROR),
    },
}
