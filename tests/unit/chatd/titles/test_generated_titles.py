"""Which notes are made when a chat is created and when its turns end."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.chats.domain.chat import ChatState, Message, NewMessage, Status
from chatd.chats.domain.errors import TitleUnavailable
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import File, Text
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.providers.scripted import Play
from chatd.spend.domain.ledger import CallOutcome, CallPurpose, LedgerEntry
from chatd.titles.engine.jobs import JobQueue
from chatd.titles.engine.titles import TitleWriter
from chatd.titles.store.title_store import ChatFacts
from chatd.turns.domain.turn import Ending, TurnEnded, TurnSetup
from chatd.turns.engine.side_calls import SideCallPorts, SideCalls
from parley.clock import FakeClock
from support.chatd.turns.absent_ports import NoCallObserver, Unlimited
from support.chatd.turns.fixed_setups import FixedSetups, FixedUtilityModels
from support.chatd.turns.in_memory_money import InMemoryNotes
from support.chatd.turns.turn_stage import NotingModel

CHAT = ChatId("c")
ANN = Owner(OwnerId("ann"), "member")
OWN = ModelProfile("own")
REST = ChatState(CHAT, Status.WAITING, 3, 3, 0, MessageId(3))
ENDED = TurnEnded(Ending.FINISHED, ANN, REST, "All fixed.", asked="fix it", model=OWN)
NEW = NewChat(
    CHAT, ANN, "fix it", has_own_title=False, messages=(NewMessage(Role.USER, (Text("fix it"),)),)
)
LONG = Message(
    MessageId(1), 1, Role.USER, (Text("fix it " * 50),), "", datetime(2026, 1, 1, tzinfo=UTC)
)
KINDS = {"title": "Broken login", "label": "Login works again", "summary": "The login was fixed."}


def kind_of(request: ModelRequest) -> str:
    (told,) = request.messages[0].content
    assert isinstance(told, Text)
    return next(
        kind
        for kind, word in (("title", "title"), ("label", "labels"), ("summary", "summary"))
        if word in told.text
    )


def helpful(request: ModelRequest) -> Iterable[ModelEvent]:
    return (TextDelta(KINDS[kind_of(request)]), UsageReported(1, 1), Finished())


def useless(_: ModelRequest) -> Iterable[ModelEvent]:
    return (TextDelta("I would call it this. " * 80), UsageReported(1, 1), Finished())


def broken(_: ModelRequest) -> Iterable[ModelEvent]:
    raise ModelError(ErrorKind.AUTH, "no key", is_retryable=False)


class Desk:
    """The jobs of titles with all that they need."""

    def __init__(self, play: Play = helpful, *, notes: InMemoryNotes | None = None) -> None:
        self.model = NotingModel(play)
        self.notes = notes or InMemoryNotes(title=NEW.title)
        self.billed: list[LedgerEntry] = []
        self.changed: list[tuple[ChatId, int]] = []
        self.jobs = JobQueue()
        self.clock = FakeClock()
        side_calls = SideCalls(
            SideCallPorts(
                self.model,
                FixedSetups(TurnSetup(OWN)),
                FixedUtilityModels(),
                Unlimited(),
                self._bill,
                NoCallObserver(),
            ),
            clock=self.clock,
            jitter=lambda: 0.0,
        )
        self.title_writer = TitleWriter(
            side_calls,
            self.notes,
            self.jobs,
            debounce=lambda _, owner_id, job: self.jobs.add(owner_id, job),
            bill=self._bill,
            changed=lambda chat_id, version: self.changed.append((chat_id, version)),
        )

    @property
    def asked(self) -> list[str]:
        return [kind_of(request) for request in self.model.requests]

    def _bill(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        self.billed.append(entry)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Do what the body asks for, all of it."""
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            running = group.create_task(self.jobs.run())
            yield
            await self.jobs.done()
            running.cancel()


async def test_a_new_chat_gets_a_title() -> None:
    desk = Desk()
    async with desk.working():
        desk.title_writer.created(NEW)
    assert (desk.notes.title, desk.changed) == ("Broken login", [(CHAT, 7)])
    (entry,) = desk.notes.billed
    assert (entry.history_version, entry.bill.purpose) == (1, CallPurpose.TITLE)


@pytest.mark.parametrize(
    "new",
    [
        replace(NEW, has_own_title=True),
        replace(NEW, messages=(NewMessage(Role.USER, (File("f", "image/png"),)),)),
    ],
    ids=["it has one", "nothing was said"],
)
async def test_some_chats_need_no_title(new: NewChat) -> None:
    desk = Desk()
    async with desk.working():
        desk.title_writer.created(new)
    assert desk.asked == []


async def test_a_title_that_the_user_chose_meanwhile_stays() -> None:
    desk = Desk(notes=InMemoryNotes(title="mine"))
    async with desk.working():
        desk.title_writer.created(NEW)
    assert (desk.notes.title, desk.changed) == ("mine", [])


async def test_a_useless_title_is_paid_for_and_dropped() -> None:
    desk = Desk(useless)
    async with desk.working():
        desk.title_writer.created(NEW)
    assert desk.notes.title == NEW.title
    assert [(entry.bill.purpose, entry.bill.outcome) for entry in desk.billed] == [
        (CallPurpose.TITLE, CallOutcome.DONE)
    ]


async def test_a_finished_turn_gets_a_label_and_the_chat_a_summary() -> None:
    notes = InMemoryNotes(messages=(LONG,))
    desk = Desk(notes=notes)
    async with desk.working():
        desk.title_writer.ended(ENDED)
    assert (notes.label, notes.summary) == ("Login works again", "The login was fixed.")
    assert desk.asked == ["label", "summary"]
    assert desk.changed == [(CHAT, 7), (CHAT, 7)]
    assert [entry.bill.purpose for entry in notes.billed] == [
        CallPurpose.LABEL,
        CallPurpose.SUMMARY,
    ]


@pytest.mark.parametrize("play", [useless, broken], ids=["useless", "broken"])
async def test_a_label_that_cannot_be_used_is_replaced_by_the_fallback(play: Play) -> None:
    notes = InMemoryNotes(messages=(LONG,), summary="as it was")
    desk = Desk(play, notes=notes)
    async with desk.working():
        desk.title_writer.ended(ENDED)
    assert (notes.label, notes.summary) == ("Answer ready", "as it was")


@pytest.mark.parametrize(
    ("ending", "status", "label"),
    [
        (Ending.FAILED, Status.ERROR, ""),
        (Ending.INTERRUPTED, Status.WAITING, ""),
        (Ending.ASKED_CLIENT, Status.REQUIRES_ACTION, "Waiting for input"),
    ],
)
async def test_other_endings_have_a_label_without_a_model(
    ending: Ending, status: Status, label: str
) -> None:
    desk = Desk(notes=InMemoryNotes(label="as it was"))
    async with desk.working():
        desk.title_writer.ended(replace(ENDED, ending=ending, state=replace(REST, status=status)))
    assert (desk.notes.label, desk.asked) == (label, [])


@pytest.mark.parametrize(
    "ended",
    [
        replace(ENDED, model=ModelProfile("scripted")),
        replace(ENDED, state=replace(REST, status=Status.RUNNING)),
        replace(ENDED, state=replace(REST, history_version=2)),
    ],
    ids=["the demo's", "of a chat that runs on", "of a history that is over"],
)
async def test_some_turns_are_not_labelled(ended: TurnEnded) -> None:
    desk = Desk(notes=InMemoryNotes(label="as it was"))
    async with desk.working():
        desk.title_writer.ended(ended)
    assert (desk.notes.label, desk.asked) == ("as it was", [])


async def test_a_summary_waits_for_enough_to_say() -> None:
    for facts, messages in (
        (ChatFacts(True, True, 3, 2), (LONG,)),
        (ChatFacts(True, False, 3, 1), (replace(LONG, content=(Text("hi"),)),)),
    ):
        desk = Desk(notes=InMemoryNotes(known=facts, messages=messages))
        async with desk.working():
            desk.title_writer.ended(ENDED)
        assert desk.asked == ["label"]


async def test_a_child_is_summarised_by_its_report_alone() -> None:
    desk = Desk(notes=InMemoryNotes(known=ChatFacts(False, False, 3, 1), messages=(LONG,)))
    async with desk.working():
        desk.title_writer.ended(replace(ENDED, text="Found **it**.\n\nDetails."))
    assert (desk.notes.summary, desk.notes.label, desk.asked) == ("Found it.", "", [])


async def test_a_title_is_proposed_from_what_was_said_and_billed_each_time() -> None:
    desk = Desk(notes=InMemoryNotes(messages=(LONG,)))
    for _ in range(2):
        assert await desk.title_writer.propose(NEW.id, NEW.owner) == KINDS["title"]
        desk.clock.advance(1)
    assert len({entry.generation_attempt for entry in desk.billed}) == 2


@pytest.mark.parametrize("play", [useless, broken])
async def test_without_a_usable_answer_there_is_no_title(play: Play) -> None:
    desk = Desk(play, notes=InMemoryNotes(messages=(LONG,)))
    with pytest.raises(TitleUnavailable):
        await desk.title_writer.propose(NEW.id, NEW.owner)
