"""Workspaces are looked at soon after tools were called, seldom, and only news is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from chatd.chats.domain.diffs import DiffStatus, RepositoriesUnknown
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    Found,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.workspace import TOOLS
from chatd.workspaces.clients.repositories import READERS, ChangeTrackingTools
from chatd.workspaces.engine.diffs import COOLDOWN_S, LATEST_S, QUIET_S, DiffStatuses
from parley.clock import FakeClock

A, B = ChatId("a"), ChatId("b")
ANN = Owner(OwnerId("ann"), "member")
DONE = Outcome(ToolOutcome.DONE, "{}")


class Desk:
    """Repositories and a store in memory, and what was asked of them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.looked: list[ChatId] = []
        self.kept: dict[ChatId, DiffStatus | None] = {}
        self.told: list[ChatId] = []
        self.files = 0
        self.is_down = False
        self.statuses = DiffStatuses(
            self, self, self.clock, changed=lambda chat_id, _: self.told.append(chat_id)
        )

    async def status(self, chat_id: ChatId, owner: Owner) -> DiffStatus | None:
        self.looked.append(chat_id)
        if self.is_down:
            raise RepositoriesUnknown("the node is away")
        return DiffStatus(
            branch="main",
            origin_url="",
            repositories=1,
            changed_files=self.files,
            added_lines=0,
            deleted_lines=0,
            refreshed_at=self.clock.now(),
        )

    async def set(self, chat_id: ChatId, status: DiffStatus | None) -> int | None:
        known = self.kept.get(chat_id)
        self.kept[chat_id] = status
        is_newer = known is None or status is None or known.changed_files != status.changed_files
        return 7 if is_newer else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Callable[[float], Awaitable[None]]]:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(self.statuses.run())

            async def pass_s(seconds: float) -> None:
                await asyncio.to_thread(lambda: None)
                self.clock.advance(seconds)
                await asyncio.to_thread(lambda: None)

            yield pass_s
            task.cancel()


async def test_many_calls_are_one_look_once_it_is_quiet() -> None:
    desk = Desk()
    async with desk.running() as pass_s:
        for _ in range(5):
            desk.statuses.files_changed(A, ANN)
            await pass_s(QUIET_S / 2)
        assert desk.looked == []
        desk.statuses.files_changed(B, ANN)
        await pass_s(QUIET_S / 2)
        assert (desk.looked, desk.told) == ([A], [A])
        await pass_s(QUIET_S / 2)
    assert (desk.looked, desk.told) == ([A, B], [A, B])


async def test_a_chat_that_is_never_quiet_is_looked_at_all_the_same() -> None:
    desk = Desk()
    async with desk.running() as pass_s:
        for _ in range(round(2 * LATEST_S / (QUIET_S / 2))):
            desk.statuses.files_changed(A, ANN)
            await pass_s(QUIET_S / 2)
    assert 1 <= len(desk.looked) <= 2


async def test_what_is_no_news_is_not_told() -> None:
    desk = Desk()
    async with desk.running() as pass_s:
        for files in (0, 0, 3, 3):
            desk.files = files
            desk.statuses.files_changed(A, ANN)
            await pass_s(COOLDOWN_S)
    assert (len(desk.looked), desk.told) == (4, [A, A])


async def test_where_nothing_was_new_the_next_look_waits_longer() -> None:
    desk = Desk()
    async with desk.running() as pass_s:
        for _ in range(2):
            desk.statuses.files_changed(A, ANN)
            await pass_s(QUIET_S)
        assert (len(desk.looked), desk.told) == (2, [A])
        desk.files = 3
        for _ in range(round(COOLDOWN_S / QUIET_S) - 1):
            desk.statuses.files_changed(A, ANN)
            await pass_s(QUIET_S)
        assert (len(desk.looked), desk.told) == (2, [A])
        await pass_s(QUIET_S)
        assert (len(desk.looked), desk.told) == (3, [A, A])
        # What was new is followed by a look as soon as ever.
        desk.statuses.files_changed(A, ANN)
        await pass_s(QUIET_S)
    assert len(desk.looked) == 4


async def test_a_node_that_is_away_costs_nothing_but_the_look() -> None:
    desk = Desk()
    async with desk.running() as pass_s:
        desk.is_down = True
        desk.statuses.files_changed(A, ANN)
        await pass_s(QUIET_S)
        assert (desk.looked, desk.told) == ([A], [])
        desk.is_down = False
        desk.statuses.files_changed(A, ANN)
        await pass_s(QUIET_S)
    assert desk.told == [A]


class AttachmentStore:
    """Tools that do nothing, or fail."""

    def __init__(self) -> None:
        self.is_failing = False

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return ()

    async def execute(self, execution: Execution) -> Outcome:
        if self.is_failing:
            raise ConnectionError
        return DONE

    async def find(self, execution: Execution) -> Found:
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        return None


def execution(name: str, executor: Executor = Executor.TOOLRUNNER) -> Execution:
    spec = ToolSpec(name, "", "{}", executor)
    dispatch = Dispatch(ExecutionId("e"), ToolCall("c", name, "{}"), executor, "")
    return Execution(TurnContext(A, ANN), 1, dispatch, spec)


async def test_only_calls_that_may_change_files_are_told_of_even_if_they_fail() -> None:
    files_changed: list[ChatId] = []
    attachment_store = AttachmentStore()
    tools = ChangeTrackingTools(attachment_store, lambda chat_id, _: files_changed.append(chat_id))
    for name in READERS:
        assert await tools.execute(execution(name)) == DONE
    await tools.execute(execution("execute", Executor.MCPGATEWAY))
    assert files_changed == []
    await tools.execute(execution("write_file"))
    attachment_store.is_failing = True
    with pytest.raises(ConnectionError):
        await tools.execute(execution("execute"))
    assert files_changed == [A, A]


def test_those_that_only_read_are_tools_of_the_workspace() -> None:
    assert set(TOOLS) > READERS
