"""Client tools whose time is over: a worker answers for the client, and only for what was due."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.chats.domain.chat import ChatState, PendingCall, Status
from chatd.chats.domain.commands import Command, ExpireAction
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, ExecutionId
from support.chatd.turns.worker_stage import LIMITS, ONE, TWO, A, B, Stage, settle

CONTACT_S = 9.0


def asked(name: str) -> PendingCall:
    """Return a call that the client is asked to execute."""
    action_id = ExecutionId(f"action of {name}")
    return PendingCall(name, "ask", action_id, kind=PendingKind.CLIENT, deadline_s=300.0)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_late_client_is_answered_for_and_its_chat_goes_on(stage: Stage) -> None:
    state = stage.add(A, status=Status.REQUIRES_ACTION)
    stage.store(replace(state, pending=(asked("call_0"),), deadline_at=stage.clock.now()))
    async with stage.worker() as worker:
        await stage.pass_time(CONTACT_S + 2)
        assert [each.state.chat_id for each in stage.runners.started] == [A]
        assert worker.mailbox(A) is not None
        running = stage.state(A)
        assert (running.status, running.worker_id, running.pending) == (Status.RUNNING, ONE, ())


async def test_without_a_slot_a_late_client_is_answered_for_and_the_chat_waits(
    stage: Stage,
) -> None:
    state = stage.add(A, status=Status.REQUIRES_ACTION)
    stage.store(replace(state, pending=(asked("call_0"),), deadline_at=stage.clock.now()))
    async with stage.worker(limits=replace(LIMITS, slots_max=0)):
        await stage.pass_time(CONTACT_S + 2)
        assert (stage.state(A).status, stage.state(A).worker_id) == (Status.RUNNING, None)


async def test_an_action_that_began_since_the_sweep_looked_is_not_given_up() -> None:
    stage = AskedAgain()
    state = stage.add(A, status=Status.REQUIRES_ACTION)
    stage.store(replace(state, pending=(asked("call_0"),), deadline_at=stage.clock.now()))
    async with stage.worker() as worker:
        await stage.pass_time(CONTACT_S + 2)
        assert isinstance(stage.given_up, ExpireAction)
        assert (stage.runners.started, worker.mailbox(A)) == ([], None)
        assert stage.state(A).status is Status.REQUIRES_ACTION
        assert stage.state(A).pending == (asked("call_1"),)


class AskedAgain(Stage):
    """The client answers and is asked anew between the look of a sweep and its command."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up: Command | None = None

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Let the client be faster, once."""
        if self.given_up is None:
            self.given_up = command
            answered = self.state(chat_id)
            self.store(
                replace(
                    answered,
                    snapshot_version=answered.snapshot_version + 3,
                    history_version=answered.snapshot_version + 2,
                    pending=(asked("call_1"),),
                    deadline_at=self.clock.now() + timedelta(seconds=300),
                )
            )
        return await super().apply(chat_id, command)


class HeldUp(Stage):
    """An answer for a client waits until the test lets it through."""

    def __init__(self) -> None:
        super().__init__()
        self.is_through = asyncio.Event()

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Wait, as a write does that meets an outage."""
        if isinstance(command, ExpireAction):
            await self.is_through.wait()
        return await super().apply(chat_id, command)


async def test_after_an_answer_that_waited_for_an_outage_nobody_is_held_for_dead_at_once() -> None:
    stage = HeldUp()
    state = stage.add(A, status=Status.REQUIRES_ACTION)
    stage.store(replace(state, pending=(asked("call_0"),), deadline_at=stage.clock.now()))
    await stage.workers.register(TWO, "unix:/two", lease_s=20.0)
    stage.add(B, worker_id=TWO)
    async with stage.worker():
        await stage.pass_time(CONTACT_S + 2)
        stage.workers.is_down = True
        await stage.pass_time(20)
        stage.workers.is_down = False
        await stage.pass_time(1.5)
        stage.is_through.set()
        await settle()
        assert [each.state.chat_id for each in stage.runners.started] == [A]
        await stage.pass_time(CONTACT_S + 2)
        assert [each.state.chat_id for each in stage.runners.started] == [A, B]
