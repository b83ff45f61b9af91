"""Races in PostgreSQL: started once, checked once for each end, applied and cancelled."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.commands import Command
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    Execution,
    Executor,
    ExecutorUnreachable,
    Found,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatNotFound, CheckUnavailable, InvalidRequest
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.races.domain.race import CandidateStatus, NewRace, Race
from chatd.races.engine.races import RacePorts, Races, candidates_of
from chatd.races.store.races import PostgresRaces
from chatd.workspaces.domain.errors import NodeLost
from chatd.workspaces.domain.merges import MergeConflict, MergeReport, MergeRequest
from parley.postgres import Pool
from parley.tasks import ShieldedTasks

ANN = Owner(OwnerId("00000000-0000-0000-0000-0000000000a1"), "member")
BOB = OwnerId("00000000-0000-0000-0000-0000000000b1")
RACE = ChatId("00000000-0000-0000-0000-000000000001")
KEY = ClientKey("key", b"body")
MODELS = (("fast", "model-1"), ("careful", "model-2"))
NEW = NewRace(RACE, ANN, "Write.", "Write.", candidates_of(RACE, MODELS), "make test")
END = """
    UPDATE chat.chat_exec SET status = 'waiting', history_version = $2, snapshot_version = $2
    WHERE chat_id = $1
"""
ADD_MESSAGE = """
    INSERT INTO chat.chat_messages
        (chat_id, id, revision, role, visibility, content, content_version, is_compressed,
        is_deleted, created_by, created_at, finish_reason, origin)
    VALUES ($1, $2, 1, $3::text, 'both', '[]', 1, false, false, '', now(), $4,
        CASE WHEN $3::text = 'user' THEN 'person' END)
"""
SPEC = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)


class Forks:
    """Forks that are counted, and one that cannot be made."""

    def __init__(self) -> None:
        self.made: list[ChatId] = []
        self.lost: ChatId | None = None
        self.report = MergeReport(is_applied=True, merged_paths=("a",))
        self.without_files: set[ChatId] = set()
        self.copied: Callable[[ChatId], Awaitable[object]] | None = None

    async def fork(self, chat_id: ChatId, agent_id: ChatId, owner: Owner) -> None:
        if agent_id == self.lost:
            raise NodeLost("node")
        self.made.append(agent_id)
        if self.copied is not None:
            await self.copied(agent_id)

    async def discard(self, agent_id: ChatId) -> None:
        if agent_id in self.made:
            self.made.remove(agent_id)

    async def has_files(self, agent_id: ChatId, owner_id: OwnerId) -> bool:
        return agent_id not in self.without_files

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        return self.report


class Tools:
    """Tools whose commands end as a test says."""

    def __init__(self) -> None:
        self.ran: list[Execution] = []
        self.cancelled: list[Execution] = []
        self.result: dict[str, object] | None = {"ok": True, "exit_code": 0, "output": "fine"}
        self.outcome = ToolOutcome.DONE

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return (SPEC,)

    async def execute(self, execution: Execution) -> Outcome:
        if self.result is None:
            raise ExecutorUnreachable(Executor.TOOLRUNNER)
        self.ran.append(execution)
        return Outcome(self.outcome, json.dumps(self.result))

    async def find(self, execution: Execution) -> Found:
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        self.cancelled.append(execution)


class Stage:
    """Races on a database."""

    def __init__(self, pool: Pool, tasks: ShieldedTasks) -> None:
        self.pool, self.forks, self.tools = pool, Forks(), Tools()
        self.store = PostgresRaces(pool)
        self.started: list[ChatState] = []
        self.stopped: list[ChatId] = []
        self.races = Races(
            RacePorts(
                store=self.store,
                forks=self.forks,
                tools=self.tools,
                complete=self._complete,
                apply=self._apply,
                started=self.started.append,
                grown=lambda _: None,
                tasks=tasks,
            )
        )

    async def _complete(self, new: NewChat) -> NewChat:
        return new

    async def _apply(self, chat_id: ChatId, command: Command) -> object:
        self.stopped.append(chat_id)
        return None

    async def race(self) -> Race:
        return await self.store.get(RACE, ANN.id)

    async def end(self, position: int, version: int = 5) -> None:
        """Let a candidate end."""
        await self.pool.execute(END, NEW.candidates[position - 1].chat_id, version)


@pytest.fixture
async def stage(pool: Pool) -> AsyncIterator[Stage]:
    async with ShieldedTasks() as tasks:
        yield Stage(pool, tasks)


async def test_a_start_that_was_interrupted_is_continued_and_nothing_starts_twice(
    stage: Stage,
) -> None:
    stage.forks.lost = NEW.candidates[1].chat_id
    with pytest.raises(NodeLost):
        await stage.races.start(NEW, KEY)
    assert stage.started == []
    assert {each.status for each in (await stage.race()).candidates} == {CandidateStatus.STARTING}
    stage.forks.lost = None
    await stage.races.start(NEW, KEY)
    await stage.races.start(NEW, KEY)
    assert [state.chat_id for state in stage.started] == [each.chat_id for each in NEW.candidates]
    race = await stage.race()
    assert [(each.model, each.status) for each in race.candidates] == [
        ("fast", CandidateStatus.RUNNING),
        ("careful", CandidateStatus.RUNNING),
    ]
    status = await stage.pool.fetchval("SELECT status FROM chat.chat_exec WHERE chat_id = $1", RACE)
    assert status == "waiting"  # No model answers in the chat of the race.


async def test_a_candidate_is_checked_once_for_each_end(stage: Stage) -> None:
    await stage.races.start(NEW, KEY)
    await stage.end(1)
    first, second = (await stage.races.check(RACE, ANN)).candidates
    assert first.check is not None
    assert (first.check.is_passed, first.check.output, second.check) == (True, "fine", None)
    await stage.races.check(RACE, ANN)
    assert len(stage.tools.ran) == 1
    await stage.end(1, version=7)
    stage.tools.result = {"ok": False, "exit_code": 2, "output": "broken"}
    first, _ = (await stage.races.check(RACE, ANN)).candidates
    assert first.check is not None
    assert (first.check.is_passed, first.check.exit_code) == (False, 2)
    ids = {execution.dispatch.execution_id for execution in stage.tools.ran}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("answer", "cut"),
    [
        (("assistant", "length"), FinishReason.LENGTH),
        (("assistant", "content_filter"), FinishReason.CONTENT_FILTER),
        (("assistant", "stop"), None),
        (("tool", None), FinishReason.INTERRUPTED),
    ],
)
async def test_an_answer_that_is_not_complete_is_marked_once_its_candidate_has_ended(
    stage: Stage, answer: tuple[str, str | None], cut: FinishReason | None
) -> None:
    await stage.races.start(NEW, KEY)
    chat_id, (role, reason) = NEW.candidates[0].chat_id, answer
    await stage.pool.execute(ADD_MESSAGE, chat_id, 2, "assistant", "tool_calls")
    await stage.pool.execute(ADD_MESSAGE, chat_id, 3, role, reason)
    assert {each.cut for each in (await stage.race()).candidates} == {None}
    await stage.end(1)
    assert [each.cut for each in (await stage.race()).candidates] == [cut, None]


async def test_a_check_that_does_not_end_is_stopped_and_fails(stage: Stage) -> None:
    await stage.races.start(NEW, KEY)
    await stage.end(1)
    stage.tools.result = {"ok": True, "running": True, "exit_code": None, "output": "..."}
    first, _ = (await stage.races.check(RACE, ANN)).candidates
    assert first.check is not None
    assert (first.check.is_passed, first.check.exit_code) == (False, None)
    assert first.check.output.startswith("The check did not end")
    assert len(stage.tools.cancelled) == 1


async def test_a_check_whose_node_does_not_answer_can_be_repeated(stage: Stage) -> None:
    await stage.races.start(NEW, KEY)
    await stage.end(1)
    stage.tools.result = None
    with pytest.raises(CheckUnavailable):
        await stage.races.check(RACE, ANN)
    assert (await stage.race()).unchecked() != ()


async def test_a_candidate_without_its_files_is_not_checked_and_holds_up_no_other(
    stage: Stage,
) -> None:
    await stage.races.start(NEW, KEY)
    await stage.end(1)
    await stage.end(2)
    stage.forks.without_files = {NEW.candidates[0].chat_id}
    with pytest.raises(CheckUnavailable):
        await stage.races.check(RACE, ANN)
    first, second = (await stage.race()).candidates
    assert (first.check, second.check is not None) == (None, True)


async def test_a_check_that_was_refused_is_not_stored(stage: Stage) -> None:
    await stage.races.start(NEW, KEY)
    await stage.end(1)
    stage.tools.outcome = ToolOutcome.FAILED
    stage.tools.result = {"ok": False, "reason": "WORKSPACE_NOT_READY", "error": "not now"}
    with pytest.raises(CheckUnavailable):
        await stage.races.check(RACE, ANN)
    assert (await stage.race()).unchecked() != ()


async def test_a_race_that_is_cancelled_while_its_copies_are_made_starts_nothing(
    stage: Stage,
) -> None:
    async def cancel(_: ChatId) -> None:
        await stage.races.cancel(RACE, ANN)

    stage.forks.copied = cancel
    await stage.races.start(NEW, KEY)
    assert (stage.started, stage.forks.made) == ([], [])
    assert {each.status for each in (await stage.race()).candidates} == {CandidateStatus.STARTING}


async def test_a_cancelled_race_stops_what_runs_and_starts_nothing(stage: Stage) -> None:
    stage.forks.lost = NEW.candidates[1].chat_id
    with pytest.raises(NodeLost):
        await stage.races.start(NEW, KEY)
    assert len(stage.forks.made) == 1
    assert (await stage.races.cancel(RACE, ANN)).cancelled_at is not None
    stage.forks.lost = None
    await stage.races.start(NEW, KEY)
    assert (stage.started, stage.stopped, stage.forks.made) == ([], [], [])


async def test_only_candidates_that_run_are_stopped(stage: Stage) -> None:
    await stage.races.start(NEW, KEY)
    await stage.end(1)
    await stage.races.cancel(RACE, ANN)
    assert stage.stopped == [NEW.candidates[1].chat_id]


async def test_a_candidate_is_applied_after_its_end_and_a_conflict_applies_nothing(
    stage: Stage,
) -> None:
    await stage.races.start(NEW, KEY)
    for position, problem in ((1, "has not ended"), (3, "is more than 2")):
        with pytest.raises(InvalidRequest, match=problem):
            await stage.races.apply(RACE, ANN, position, MergeRequest("m"))
    await stage.end(1)
    applied = stage.forks.report
    conflict = (MergeConflict("a", "both_changed"),)
    stage.forks.report = replace(applied, is_applied=False, conflicts=conflict)
    race, _ = await stage.races.apply(RACE, ANN, 1, MergeRequest("m"))
    assert race.applied_chat_id == ""
    stage.forks.report = applied
    race, report = await stage.races.apply(RACE, ANN, 1, MergeRequest("n"))
    assert (race.applied_chat_id, report) == (NEW.candidates[0].chat_id, applied)


async def test_others_neither_read_nor_list_a_race(stage: Stage) -> None:
    await stage.races.start(NEW, KEY)
    assert [each.id for each in await stage.store.races(ANN.id)] == [RACE]
    assert await stage.store.races(BOB) == ()
    with pytest.raises(ChatNotFound):
        await stage.store.get(RACE, BOB)
