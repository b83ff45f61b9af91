"""What a revert, its end and its undo write."""

from dataclasses import replace

import pytest

from chatd.chats.domain.chat import DoneRevert, Facts, Revert, RevertKind, Status
from chatd.chats.domain.commands import EditMessage, FailTurn, FinishRevert, RevertChat, UndoRevert
from chatd.chats.domain.errors import RevertNotFound, RevertSuperseded
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import decide, fence_of
from chatd.chats.domain.writes import (
    AnswerPending,
    CancelCalls,
    ClearQueue,
    DeleteMessagesFrom,
    RecordRevert,
    RestoreMessages,
)
from chatd.primitives.domain.ids import NO_MESSAGE
from support.chatd.chats.transition_states import (
    AT_REST,
    DONE_REVERT,
    EXECUTION,
    FACTS,
    HELLO,
    LOCAL,
    OOPS,
    OTHER_REVERT,
    REVERT,
    STATES,
    TARGET,
    WORKER,
)

EDIT = replace(
    REVERT,
    kind=RevertKind.EDIT,
    replacement_id=AT_REST.next_message_id,
    deleted_version=AT_REST.snapshot_version + 1,
)


def test_a_revert_deletes_from_the_message_on_and_drops_the_queue() -> None:
    failed = replace(STATES["E1"], pending=(LOCAL,))
    decision = decide(failed, RevertChat(OTHER_REVERT, TARGET.id, False, WORKER), FACTS)
    done = Revert(OTHER_REVERT, RevertKind.HISTORY, TARGET.id, False, open_calls=(LOCAL,))
    assert decision == Decision(
        replace(
            AT_REST,
            snapshot_version=10,
            history_version=10,
            queue_version=10,
            queue_length=0,
            turn_id=NO_MESSAGE,
        ),
        (
            ClearQueue(),
            DeleteMessagesFrom(TARGET.id),
            RecordRevert(done, b""),
            CancelCalls((EXECUTION,)),
        ),
    )


def test_a_revert_with_files_changes_the_history_only_when_they_are_restored() -> None:
    begun = decide(AT_REST, RevertChat(REVERT.revert_id, TARGET.id, True, WORKER), FACTS)
    assert (begun.writes, begun.state.revert) == ((), REVERT)

    done = decide(begun.state, FinishRevert(fence_of(begun.state), b"report"))

    assert done.writes == (DeleteMessagesFrom(TARGET.id), RecordRevert(REVERT, b"report"))
    assert (done.state.status, done.state.revert) == (Status.WAITING, None)


def test_an_undo_brings_messages_back_and_answers_the_calls_that_were_open() -> None:
    undone = replace(DONE_REVERT, revert=replace(DONE_REVERT.revert, open_calls=(LOCAL,)))
    command = UndoRevert(OTHER_REVERT, REVERT.revert_id, WORKER)
    decision = decide(AT_REST, command, Facts(undone=undone))
    restored, answers, recorded = decision.writes
    assert restored == RestoreMessages(8)
    assert isinstance(answers, AnswerPending)
    assert answers.calls == (LOCAL,)
    assert isinstance(recorded, RecordRevert)
    assert recorded.revert.undone_id == REVERT.revert_id
    assert decision.state.next_message_id == AT_REST.next_message_id + 1


def test_only_the_last_thing_that_happened_can_be_undone() -> None:
    command = UndoRevert(OTHER_REVERT, REVERT.revert_id, WORKER)
    with pytest.raises(RevertNotFound):
        decide(AT_REST, command, Facts())
    with pytest.raises(RevertSuperseded):
        decide(AT_REST, command, Facts(undone=replace(DONE_REVERT, is_superseded=True)))
    edit = replace(REVERT, kind=RevertKind.EDIT)
    with pytest.raises(RevertNotFound):
        decide(AT_REST, command, Facts(undone=DoneRevert(edit, 8)))


def test_an_edit_that_restores_files_runs_after_that() -> None:
    edit = EditMessage(TARGET.id, HELLO, WORKER, REVERT.revert_id, restores_files=True)
    edited = decide(AT_REST, edit, FACTS).state
    assert edited.revert == EDIT

    done = decide(edited, FinishRevert(fence_of(edited), b"report"))

    assert (done.state.status, done.state.turn_id, done.state.revert) == (
        Status.RUNNING,
        edited.turn_id,
        None,
    )


def test_an_edit_whose_files_could_not_be_restored_is_recorded_without_them() -> None:
    edit = EditMessage(TARGET.id, HELLO, WORKER, REVERT.revert_id, restores_files=True)
    edited = decide(AT_REST, edit, FACTS).state
    reverting = decide(AT_REST, RevertChat(REVERT.revert_id, TARGET.id, True, WORKER), FACTS).state

    failed = decide(edited, FailTurn(fence_of(edited), OOPS))

    assert failed.writes == (RecordRevert(replace(EDIT, restores_files=False), b""),)
    assert (failed.state.status, failed.state.revert) == (Status.ERROR, None)
    assert decide(reverting, FailTurn(fence_of(reverting), OOPS)).writes == ()


def test_an_edit_is_recorded_with_what_its_undo_needs() -> None:
    failed = replace(STATES["E1"], pending=(LOCAL,))
    edit = EditMessage(TARGET.id, HELLO, WORKER, REVERT.revert_id)
    decision = decide(failed, edit, FACTS)
    recorded = decision.writes[-1]
    assert isinstance(recorded, RecordRevert)
    assert recorded.revert == replace(EDIT, restores_files=False, open_calls=(LOCAL,))
    assert decision.state.revert is None


def test_the_undo_of_an_edit_deletes_the_edited_turn_and_brings_the_others_back() -> None:
    edited = replace(EDIT, restores_files=False, open_calls=(LOCAL,))
    later = replace(AT_REST, snapshot_version=20, turn_id=EDIT.replacement_id)
    command = UndoRevert(OTHER_REVERT, REVERT.revert_id, WORKER)
    decision = decide(later, command, Facts(undone=DoneRevert(edited, 15)))
    dropped, restored, answers, recorded = decision.writes
    assert dropped == DeleteMessagesFrom(EDIT.replacement_id)
    assert restored == RestoreMessages(EDIT.deleted_version)
    assert isinstance(answers, AnswerPending)
    assert answers.calls == (LOCAL,)
    assert isinstance(recorded, RecordRevert)
    assert recorded.revert.kind is RevertKind.UNDO
    assert (decision.state.status, decision.state.turn_id) == (Status.WAITING, NO_MESSAGE)
