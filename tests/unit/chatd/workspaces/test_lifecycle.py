"""The life of a workspace: every command in every state, and what lasts through it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.matrix import ALLOWED
from chatd.workspaces.domain.spec import Limits
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    USABLE,
    Failure,
    FailureKind,
    State,
    StopReason,
    Usage,
    Workspace,
)
from support.chatd.workspaces.workspace_values import NODE, NOON, OTHER_NODE, workspace

COMMANDS: tuple[type[Command], ...] = get_args(Command)
BROKEN = Failure(FailureKind.SETUP, "exit code 1")
LATER = NOON + timedelta(minutes=30)

#: Every command in the forms that make a difference.
FORMS: dict[type[Command], tuple[Command, ...]] = {
    Place: (Place(NODE), Place(OTHER_NODE), Place(NODE, after=9)),
    FinishPreparing: (FinishPreparing(1, "/workspace"), FinishPreparing(9)),
    Fail: (Fail(0, BROKEN), Fail(1, BROKEN), Fail(9, BROKEN)),
    Report: (Report(1, True), Report(1, False, Usage(1), LATER), Report(9, True)),
    Lapse: (Lapse(1), Lapse(1, BROKEN), Lapse(9)),
    Use: (Use(),),
    Warn: (Warn(),),
    SetTtl: (SetTtl(0), SetTtl(60_000)),
    Start: (Start(), Start({"a": "b"})),
    Stop: tuple(Stop(reason) for reason in StopReason),
    FinishStopping: (FinishStopping(1), FinishStopping(9)),
    Remove: (Remove(), Remove(is_node_lost=True)),
    FinishRemoving: (FinishRemoving(1), FinishRemoving(9)),
    MarkNodeLost: (MarkNodeLost(NODE), MarkNodeLost(OTHER_NODE)),
    Grant: (Grant(()), Grant(("deploy",))),
    SetPolicy: (SetPolicy(), SetPolicy(limits=Limits(pids=1))),
    ConfirmPolicy: (ConfirmPolicy(1, 1), ConfirmPolicy(9, 1)),
    Recover: tuple(
        Recover(node_id, epoch, state)
        for node_id in (NODE, OTHER_NODE)
        for epoch in (1, 9)
        for state in (State.READY, State.STOPPED, State.FAILED)
    ),
}


def variants(state: State) -> list[Workspace]:
    """Return workspaces in a state that a command may treat differently."""
    made = [workspace(state)]
    if state is State.DELETED:
        return [workspace(state, is_scratch_of_chat=True)]
    if state is State.PENDING:
        made.append(workspace(state, node_id=NODE, epoch=1))
    if state is State.STOPPING:
        made.append(workspace(state, is_removing=True))
    if state in (State.STOPPED, State.FAILED):
        made.append(workspace(state, node_id=None, has_files=False))
    return made


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("kind", COMMANDS)
def test_every_command_leads_exactly_where_the_table_says(
    state: State, kind: type[Command]
) -> None:
    reached = set()
    for before in variants(state):
        for command in FORMS[kind]:
            if kind not in ALLOWED[state]:
                with pytest.raises(WorkspaceNotReady) as refused:
                    decide(before, command, LATER)
                assert refused.value.state is state
            else:
                reached.add(decide(before, command, LATER).state)
    assert reached == set(ALLOWED[state].get(kind, ()))


@given(st.lists(st.sampled_from([form for forms in FORMS.values() for form in forms]), max_size=30))
def test_whatever_happens_a_workspace_stays_possible(commands: list[Command]) -> None:
    now, seen = NOON, workspace()
    for command in commands:
        now += timedelta(minutes=7)
        try:
            after = decide(seen, command, now)
        except WorkspaceNotReady:
            continue
        assert after is seen or after.version == seen.version + 1
        assert after.epoch in (seen.epoch, seen.epoch + 1)
        assert (after.state is State.FAILED) == (after.failure is not None)
        assert after.deadline_at is None or after.state in (*USABLE, State.STOPPING)
        assert after.max_deadline_at is None or after.deadline_at is not None
        assert not after.is_removing or after.state is State.STOPPING
        assert (after.state is State.STOPPED) <= (after.delete_at is not None)
        if after.state not in (State.PENDING, State.STOPPED, State.FAILED, State.DELETED):
            assert after.node_id is not None
        seen = after


def lived(*commands: Command, start: Workspace | None = None) -> Workspace:
    seen = start or workspace()
    for command in commands:
        seen = decide(seen, command, NOON)
    return seen


def test_a_placement_is_a_new_epoch_and_old_news_changes_nothing() -> None:
    placed = lived(Place(NODE))
    assert (placed.state, placed.node_id, placed.epoch) == (State.PREPARING, NODE, 1)
    assert decide(placed, FinishPreparing(0), NOON) is placed
    assert decide(placed, Fail(0, BROKEN), NOON) is placed
    ready = decide(placed, FinishPreparing(1, "/workspace", "agent/x", "ns"), LATER)
    expected = replace(
        placed,
        state=State.READY,
        has_files=True,
        root_path="/workspace",
        git_branch="agent/x",
        sandbox_level="ns",
        started_at=LATER,
        last_used_at=LATER,
        deadline_at=LATER + timedelta(hours=2),
        max_deadline_at=LATER + timedelta(hours=8),
        version=3,
    )
    assert ready == expected


def test_a_stopped_workspace_starts_where_its_files_are() -> None:
    stopped = lived(Place(NODE), FinishPreparing(1), Stop(StopReason.AUTOSTOP), FinishStopping(1))
    assert stopped.delete_at == NOON + timedelta(days=7)
    assert stopped.stop_reason is StopReason.AUTOSTOP
    again = decide(stopped, Start({"a": "b"}), LATER)
    assert (again.state, again.node_id, again.epoch) == (State.PREPARING, NODE, 2)
    assert (again.has_files, again.delete_at, again.parameters) == (True, None, {"a": "b"})


@pytest.mark.parametrize("state", [State.READY, State.BUSY, State.STOPPED, State.FAILED])
def test_a_forced_removal_waits_for_a_node_that_is_there(state: State) -> None:
    removing = decide(workspace(state), Remove(), NOON)
    assert (removing.state, removing.is_removing) == (State.STOPPING, True)
    gone = decide(workspace(state), Remove(is_node_lost=True), NOON)
    assert (gone.state, gone.is_removing) == (State.DELETED, False)


def test_what_was_left_where_a_workspace_was_before_is_removed_too() -> None:
    again = lived(Place(NODE), Fail(1, BROKEN), Start())
    assert (again.state, again.node_id) == (State.PENDING, NODE)
    removing = decide(again, Remove(), NOON)
    assert (removing.state, removing.node_id, removing.is_removing) == (State.STOPPING, NODE, True)
    assert lived(Remove()).state is State.DELETED


FULL = Usage(500, 6, 7, 8 << 30, 9, 10)
FILES_ONLY = Usage(disk_bytes=8 << 30, inodes=9)


@pytest.mark.parametrize(
    "commands",
    [
        (Stop(StopReason.AUTOSTOP), FinishStopping(1)),
        (Stop(StopReason.AUTOSTOP), Fail(1, BROKEN)),
        (Lapse(1),),
        (Lapse(1, BROKEN),),
    ],
    ids=["stopped", "not stopped", "lapsed", "failed"],
)
def test_what_does_not_run_still_takes_the_room_of_its_files(
    commands: tuple[Command, ...],
) -> None:
    used = lived(Place(NODE), FinishPreparing(1), Report(1, True, FULL))
    assert lived(*commands, start=used).usage == FILES_ONLY


def test_the_room_of_files_is_learnt_after_a_stop_and_forgotten_with_the_files() -> None:
    stopped = lived(Place(NODE), FinishPreparing(1), Stop(StopReason.DRAIN), FinishStopping(1))
    assert stopped.usage is None
    measured = decide(stopped, Report(1, False, FULL), LATER)
    assert (measured.state, measured.usage) == (State.STOPPED, FILES_ONLY)
    assert decide(measured, Report(1, False, FULL), LATER) is measured
    assert decide(measured, Report(9, False, Usage()), LATER) is measured
    # Started where its files are it keeps them; made anew elsewhere it has none yet.
    assert lived(Start(), start=measured).usage == FILES_ONLY
    elsewhere = lived(Start(), Fail(2, BROKEN), Start(), Place(OTHER_NODE), start=measured)
    assert elsewhere.usage is None
    assert lived(Remove(), FinishRemoving(1), start=measured).usage is None
    lost = lived(Place(NODE), FinishPreparing(1), Report(1, True, FULL), MarkNodeLost(NODE))
    assert lost.usage is None


def test_a_node_that_says_that_a_workspace_does_not_run_is_believed_of_its_placement() -> None:
    ready = lived(Place(NODE), FinishPreparing(1))
    stopped = decide(ready, Lapse(1), LATER)
    assert (stopped.state, stopped.stopped_at, stopped.deadline_at) == (State.STOPPED, LATER, None)
    failed = decide(ready, Lapse(1, BROKEN), LATER)
    assert (failed.state, failed.failure) == (State.FAILED, BROKEN)
    assert decide(ready, Lapse(9), LATER) is ready


def test_a_fork_is_placed_once_more_when_its_parent_moved_and_never_by_old_news() -> None:
    placed = lived(Place(NODE, after=0, parent_epoch=4))
    assert (placed.epoch, placed.spec.source.parent_epoch) == (1, 4)
    again = decide(placed, Place(NODE, after=1, parent_epoch=5), LATER)
    assert (again.state, again.epoch) == (State.PREPARING, 2)
    assert again.spec.source.parent_epoch == 5
    assert decide(again, Place(NODE, after=1, parent_epoch=6), LATER) is again


def test_a_failed_workspace_is_made_anew_anywhere() -> None:
    failed = lived(Place(NODE), Fail(1, BROKEN))
    again = lived(Start(), Place(OTHER_NODE), start=failed)
    assert (again.state, again.node_id, again.epoch) == (State.PREPARING, OTHER_NODE, 2)
    assert (again.has_files, again.failure) == (False, None)


def test_a_lost_node_takes_its_workspaces_along_until_it_is_back() -> None:
    ready = lived(Place(NODE), FinishPreparing(1))
    lost = decide(ready, MarkNodeLost(NODE), LATER)
    assert (lost.state, lost.failure, lost.deadline_at) == (State.FAILED, NODE_LOST, None)
    back = decide(lost, Recover(NODE, 1, State.BUSY), LATER)
    assert back == replace(ready, version=lost.version + 1)
    # Made again meanwhile, what the old node has is nobody's.
    moved = lived(Start(), Place(OTHER_NODE), FinishPreparing(2), start=lost)
    assert decide(moved, Recover(NODE, 1, State.READY), LATER) is moved


def test_what_is_being_removed_when_its_node_is_lost_is_removed() -> None:
    removing = lived(Place(NODE), FinishPreparing(1), Remove())
    assert (removing.state, removing.is_removing) == (State.STOPPING, True)
    assert decide(removing, FinishStopping(1), LATER) is removing
    assert decide(removing, MarkNodeLost(NODE), LATER).state is State.DELETED
    assert decide(removing, FinishRemoving(1), LATER).state is State.DELETED


def test_a_stop_during_preparation_is_carried_out_by_the_node() -> None:
    stopping = lived(Place(NODE), Stop(StopReason.REQUESTED))
    assert stopping.state is State.STOPPING
    # The preparation that ends now is too late.
    assert decide(stopping, FinishPreparing(1), LATER) is stopping
    stopped = decide(stopping, FinishStopping(1), LATER)
    # Nobody knows whether its files are all there, so a start makes it anew.
    assert decide(stopped, Start(), LATER).state is State.PENDING


@pytest.mark.parametrize(
    "refused",
    [
        (State.STOPPING, Start(), "wait until it has stopped, then call start_workspace"),
        (State.DELETED, Start(), "create_workspace"),
    ],
)
def test_a_refusal_says_what_to_do(refused: Any) -> None:
    state, command, next_step = refused
    with pytest.raises(WorkspaceNotReady) as error:
        decide(workspace(state), command, NOON)
    assert error.value.next_step == next_step
