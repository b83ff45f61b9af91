"""The table of a workspace's life: which command means something in which state, and where to.

A command that is not in the row of a state is refused there. One that leads nowhere else is a
repetition or old news, and changes nothing. `transitions.decide` is held to this table.
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

#: What nodes and drivers say of a placement that is over is heard everywhere, and changes nothing.
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
            # Where it was before, something of it may be left.
            Remove: (STOPPING, DELETED),
        },
    ),
    PREPARING: _row(
        PREPARING,
        {
            # What it is a copy of was placed anew meanwhile.
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
    # Only the scratch workspace of a chat can come back: its id is the chat's.
    DELETED: _row(DELETED, {Start: (PENDING,), Remove: (DELETED,), Stop: (DELETED,)}),
}
