"""The state table of workspaces: the commands allowed in each state and the resulting states.

A command that is not in the row of a state is refused there. A command whose result is the same
state is a repetition or stale, and changes nothing. A test compares `transitions.decide` with it.
"""

from collections.abc import Mapping
from typing import Final

from chatd.workspaces.domain.commands import (
    Command,
    ConfirmPolicy,
    Fail,
    FinishPreparing,
    FinishRemoving,
    FinishStopping,
    Grant,
    Lapse,
    MarkNodeLost,
    Place,
    Recover,
    Remove,
    Report,
    SetPolicy,
    SetTtl,
    Start,
    Stop,
    Use,
    Warn,
)
from chatd.workspaces.domain.workspace import State

PENDING, PREPARING, READY, BUSY = State.PENDING, State.PREPARING, State.READY, State.BUSY
STOPPING, STOPPED = State.STOPPING, State.STOPPED
DELETED, FAILED = State.DELETED, State.FAILED

#: Reports about a past placement are accepted in all states and change nothing.
_STALE_REPORTS: Final[tuple[type[Command], ...]] = (
    FinishPreparing,
    Fail,
    Report,
    Lapse,
    Use,
    Warn,
    FinishStopping,
    FinishRemoving,
    MarkNodeLost,
    Recover,
    ConfirmPolicy,
)


def _row(
    state: State, moves: Mapping[type[Command], tuple[State, ...]]
) -> Mapping[type[Command], tuple[State, ...]]:
    still: dict[type[Command], tuple[State, ...]] = dict.fromkeys(_STALE_REPORTS, (state,))
    if state is not DELETED:
        still[Grant] = still[SetPolicy] = (state,)
    return {**still, **moves}


ALLOWED: Final[Mapping[State, Mapping[type[Command], tuple[State, ...]]]] = {
    PENDING: _row(
        PENDING,
        {
            Place: (PREPARING, PENDING),
            Fail: (FAILED, PENDING),
            SetTtl: (PENDING,),
            Start: (PENDING,),
            Stop: (STOPPED,),
            # Files may be left on its previous node.
            Remove: (STOPPING, DELETED),
        },
    ),
    PREPARING: _row(
        PREPARING,
        {
            # The parent of the fork has a new placement.
            Place: (PREPARING,),
            FinishPreparing: (READY, PREPARING),
            Fail: (FAILED, PREPARING),
            SetTtl: (PREPARING,),
            Start: (PREPARING,),
            Stop: (STOPPING,),
            Remove: (STOPPING, DELETED),
            MarkNodeLost: (FAILED, PREPARING),
        },
    ),
    READY: _row(
        READY,
        {
            Report: (READY, BUSY),
            Lapse: (STOPPED, FAILED, READY),
            SetTtl: (READY,),
            Start: (READY,),
            Stop: (STOPPING,),
            Remove: (STOPPING, DELETED),
            MarkNodeLost: (FAILED, READY),
        },
    ),
    BUSY: _row(
        BUSY,
        {
            Report: (BUSY, READY),
            Lapse: (STOPPED, FAILED, BUSY),
            SetTtl: (BUSY,),
            Start: (BUSY,),
            Stop: (STOPPING,),
            Remove: (STOPPING, DELETED),
            MarkNodeLost: (FAILED, BUSY),
        },
    ),
    STOPPING: _row(
        STOPPING,
        {
            Fail: (FAILED, STOPPING),
            FinishStopping: (STOPPED, STOPPING),
            FinishRemoving: (DELETED, STOPPING),
            Stop: (STOPPING,),
            Remove: (STOPPING, DELETED),
            MarkNodeLost: (FAILED, DELETED, STOPPING),
        },
    ),
    STOPPED: _row(
        STOPPED,
        {
            SetTtl: (STOPPED,),
            Start: (PREPARING, PENDING),
            Stop: (STOPPED,),
            Remove: (STOPPING, DELETED),
        },
    ),
    FAILED: _row(
        FAILED,
        {
            Recover: (READY, STOPPED, FAILED),
            SetTtl: (FAILED,),
            Start: (PENDING,),
            Stop: (FAILED,),
            Remove: (STOPPING, DELETED),
        },
    ),
    # Only the scratch workspace of a chat can be started again: its id is that of the chat.
    DELETED: _row(DELETED, {Start: (PENDING,), Remove: (DELETED,), Stop: (DELETED,)}),
}
