"""Reverts that restore files: files first, then the history, whoever dies in between."""

from dataclasses import dataclass, field

import pytest

from chatd.chats.domain.chat import NewMessage, Revert, RevertKind, Status
from chatd.chats.domain.commands import (
    EditMessage,
    FinishRevert,
    Interrupt,
    RevertChat,
    UndoRevert,
)
from chatd.chats.domain.errors import RevertSuperseded
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.models.domain.language_model import Finished, ModelEvent, ModelRequest, TextDelta
from chatd.primitives.domain.ids import (
    MessageId,
    Owner,
    OwnerClaim,
    RevertId,
)
from chatd.turns.domain.ports import RestoreFailed
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import WORKER, Stage

FIRST, SECOND = RevertId("revert-1"), RevertId("revert-2")


@dataclass
class JournalingRestores:
    """A node that restores each id once, and dies or refuses when it is told to."""

    done: dict[RevertId, Revert] = field(default_factory=dict)
    asked: list[RevertId] = field(default_factory=list)
    crashes: str = ""  # `before` or `after` the next restore.
    refusal: str = ""

    async def restore(self, claim: OwnerClaim, owner: Owner, revert: Revert) -> bytes:
        self.asked.append(revert.revert_id)
        if self.refusal:
            raise RestoreFailed(self.refusal)
        crashes, self.crashes = self.crashes, ""
        if crashes == "before":
            raise Crash
        self.done.setdefault(revert.revert_id, revert)
        if crashes == "after":
            raise Crash
        return b"report"


def answering(_: ModelRequest) -> tuple[ModelEvent, ...]:
    return (TextDelta("fine"), Finished())


async def asked_twice(restores: JournalingRestores) -> Stage:
    stage = Stage(answering, restores=restores)
    await stage.ask("one")
    await stage.ask("two")
    return stage


def texts(stage: Stage) -> list[tuple[Role, str]]:
    return [
        (message.role, "".join(part.text for part in message.content if isinstance(part, Text)))
        for message in stage.messages
        if not message.is_deleted
    ]


ONE = [(Role.USER, "one"), (Role.ASSISTANT, "fine")]
BOTH = [*ONE, (Role.USER, "two"), (Role.ASSISTANT, "fine")]


async def test_files_are_restored_before_messages_are_deleted_and_both_come_back() -> None:
    restores = JournalingRestores()
    stage = await asked_twice(restores)
    stage.do(RevertChat(FIRST, MessageId(3), True, WORKER))
    assert texts(stage) == BOTH

    await stage.run()

    assert texts(stage) == ONE
    assert restores.done[FIRST] == Revert(FIRST, RevertKind.HISTORY, MessageId(3), True)
    assert stage.status == Status.WAITING

    stage.do(UndoRevert(SECOND, FIRST, WORKER))
    await stage.run()

    assert texts(stage) == BOTH
    assert (restores.done[SECOND].kind, restores.done[SECOND].undone_id) == (
        RevertKind.UNDO,
        FIRST,
    )


async def crash_and_take_over(
    stage: Stage, restores: JournalingRestores, phase: str, place: str
) -> None:
    """Let the owner die before or after the restore or its commit, and the next one go on."""
    stage.commits.commands.clear()
    if place == "restore":
        restores.crashes = phase
    elif phase == "before":
        stage.commits.dies_before = 0
    else:
        stage.commits.dies_after = 0

    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("kind", ["revert", "undo"])
@pytest.mark.parametrize("place", ["restore", "commit"])
async def test_an_owner_that_dies_at_any_phase_is_followed_by_one_that_completes_it(
    phase: str, kind: str, place: str
) -> None:
    restores = JournalingRestores()
    stage = await asked_twice(restores)
    stage.do(RevertChat(FIRST, MessageId(3), True, WORKER))
    if kind == "undo":
        await stage.run()
        stage.do(UndoRevert(SECOND, FIRST, WORKER))
    revert_id = FIRST if kind == "revert" else SECOND
    await crash_and_take_over(stage, restores, phase, place)

    assert texts(stage) == (ONE if kind == "revert" else BOTH)
    assert stage.status == Status.WAITING
    assert stage.state.revert is None
    assert set(restores.asked[-2:]) == {revert_id} or place == "commit"
    assert list(restores.done).count(revert_id) == 1


async def test_files_that_cannot_be_restored_leave_the_history_as_it_is() -> None:
    restores = JournalingRestores(refusal="The files could not be restored: no node.")
    stage = await asked_twice(restores)
    stage.do(RevertChat(FIRST, MessageId(3), True, WORKER))

    await stage.run()

    assert texts(stage) == BOTH
    assert stage.status == Status.ERROR
    assert stage.state.last_error is not None
    assert stage.state.last_error.message == restores.refusal
    restores.refusal = ""
    stage.do(RevertChat(SECOND, MessageId(3), True, WORKER))
    await stage.run()
    assert texts(stage) == ONE


async def test_an_edit_restores_files_before_the_model_is_asked() -> None:
    restores = JournalingRestores()
    asked: list[int] = []

    def play(request: ModelRequest) -> tuple[ModelEvent, ...]:
        asked.append(len(restores.done))
        return (TextDelta("fine"), Finished())

    stage = Stage(play, restores=restores)
    await stage.ask("one")
    other = NewMessage(Role.USER, (Text("other"),), "ann")
    stage.do(EditMessage(MessageId(1), other, WORKER, FIRST, restores_files=True))
    await stage.run()

    assert asked == [0, 1]
    assert restores.done[FIRST].kind is RevertKind.EDIT
    assert texts(stage) == [(Role.USER, "other"), (Role.ASSISTANT, "fine")]


async def test_a_message_and_a_stop_during_a_revert_wait_for_its_end() -> None:
    restores = JournalingRestores()
    stage = await asked_twice(restores)
    stage.do(RevertChat(FIRST, MessageId(3), True, WORKER))
    stage.send("three")
    stage.do(Interrupt(MessageId(0), WORKER))

    await stage.run()

    assert texts(stage) == [*ONE, (Role.USER, "three"), (Role.ASSISTANT, "fine")]
    assert [type(each) for each in stage.commits.commands].count(FinishRevert) == 1


async def edited_with_files(restores: JournalingRestores) -> Stage:
    """Edit the second message of a chat, with its files, and run its turn."""
    stage = await asked_twice(restores)
    other = NewMessage(Role.USER, (Text("other"),), "ann")
    stage.do(EditMessage(MessageId(3), other, WORKER, FIRST, restores_files=True))
    await stage.run()
    assert texts(stage) == [*ONE, (Role.USER, "other"), (Role.ASSISTANT, "fine")]
    return stage


async def test_the_undo_of_an_edit_restores_files_and_then_what_it_replaced() -> None:
    restores = JournalingRestores()
    stage = await edited_with_files(restores)
    stage.do(UndoRevert(SECOND, FIRST, WORKER))
    assert texts(stage)[-2:] == [(Role.USER, "other"), (Role.ASSISTANT, "fine")]

    await stage.run()

    assert texts(stage) == BOTH
    undo = restores.done[SECOND]
    assert (undo.kind, undo.undone_id, undo.replacement_id) == (RevertKind.UNDO, FIRST, 5)
    assert stage.status == Status.WAITING
    await stage.ask("three")
    assert texts(stage) == [*BOTH, (Role.USER, "three"), (Role.ASSISTANT, "fine")]


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("place", ["restore", "commit"])
async def test_the_undo_of_an_edit_is_completed_by_the_next_owner(phase: str, place: str) -> None:
    restores = JournalingRestores()
    stage = await edited_with_files(restores)
    stage.do(UndoRevert(SECOND, FIRST, WORKER))
    await crash_and_take_over(stage, restores, phase, place)

    assert texts(stage) == BOTH
    assert (stage.status, stage.state.revert) == (Status.WAITING, None)


async def test_an_edit_without_files_is_undone_in_one_commit() -> None:
    stage = await asked_twice(JournalingRestores())
    other = NewMessage(Role.USER, (Text("other"),), "ann")
    stage.do(EditMessage(MessageId(1), other, WORKER, FIRST))
    await stage.run()
    assert texts(stage) == [(Role.USER, "other"), (Role.ASSISTANT, "fine")]

    stage.do(UndoRevert(SECOND, FIRST, WORKER))

    assert texts(stage) == BOTH
    with pytest.raises(RevertSuperseded):
        stage.do(UndoRevert(RevertId("revert-3"), FIRST, WORKER))


async def test_an_edit_after_which_a_person_wrote_again_is_not_undone() -> None:
    stage = await asked_twice(JournalingRestores())
    other = NewMessage(Role.USER, (Text("other"),), "ann")
    stage.do(EditMessage(MessageId(3), other, WORKER, FIRST))
    await stage.run()
    await stage.ask("three")
    with pytest.raises(RevertSuperseded):
        stage.do(UndoRevert(SECOND, FIRST, WORKER))
