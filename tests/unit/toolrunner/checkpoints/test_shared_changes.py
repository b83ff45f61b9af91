"""Changes of an interval in which more than one author was at work: they belong to all of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parley.clock import FakeClock
from support.host.supervised import supervision
from toolrunner.checkpoints.domain import Outcome, Turn
from toolrunner.checkpoints.service import GAP_S, Checkpoints
from toolrunner.directories.workspaces import Workspaces
from toolrunner.primitives.domain import NO_CHAT, ChatId, Scope, WorkspaceId

WORKSPACE = WorkspaceId("00000000-0000-0000-0000-000000000009")
FIRST, SECOND = (ChatId(f"00000000-0000-0000-0000-00000000000{number}") for number in (1, 2))
ONE, OTHER, PERSON = (
    Scope(WORKSPACE, FIRST, turn_id=5),
    Scope(WORKSPACE, SECOND, turn_id=3),
    Scope(WORKSPACE),
)
RESTORED, CONFLICT = Outcome.RESTORED, Outcome.CONFLICT


@dataclass
class Authors:
    """Chats and a person whose processes change files of one workspace."""

    checkpoints: Checkpoints
    root: Path
    running: set[str] = field(default_factory=set)

    async def start(self, scope: Scope) -> None:
        """Start a process of a turn, or of a person."""
        self.running.add(scope.chat_id)
        await self.checkpoints.before_process(scope)

    async def end(self, scope: Scope) -> None:
        """End it, and find what it changed."""
        self.running.discard(scope.chat_id)
        await self.checkpoints.settle(WORKSPACE)

    def write(self, *names: str) -> None:
        for name in names:
            (self.root / name).write_text(f"{name} changed")

    async def outcomes(self, scope: Scope) -> dict[str, Outcome]:
        """Return what a restore of a turn would do."""
        preview = await self.checkpoints.preview(scope, Turn(scope.chat_id, scope.turn_id))
        return {step.path: step.outcome for step in preview.steps}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def authors(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Authors]:
    workspaces = Workspaces(tmp_path)
    root = workspaces.prepared(WORKSPACE).root
    for name in "abcd":
        (root / name).write_text("before")
    async with Checkpoints(workspaces, clock, supervision(clock)) as checkpoints:
        found = Authors(checkpoints, root)
        checkpoints.running = lambda _: frozenset(found.running)
        yield found


async def test_what_two_chats_may_have_changed_is_a_conflict_for_both(authors: Authors) -> None:
    await authors.start(ONE)
    authors.write("a")
    await authors.start(OTHER)
    authors.write("b")
    await authors.end(OTHER)
    authors.write("c")
    await authors.end(ONE)

    assert await authors.outcomes(ONE) == {"a": RESTORED, "b": CONFLICT, "c": RESTORED}
    assert await authors.outcomes(OTHER) == {"b": CONFLICT}


async def test_a_chat_that_starts_again_beside_another_is_an_author_again(authors: Authors) -> None:
    await authors.start(ONE)
    await authors.start(OTHER)
    await authors.end(ONE)
    await authors.start(ONE)
    authors.write("a")
    await authors.end(ONE)
    await authors.end(OTHER)

    assert await authors.outcomes(ONE) == {"a": CONFLICT}
    assert await authors.outcomes(OTHER) == {"a": CONFLICT}


async def test_a_chat_that_starts_again_after_a_preview_is_an_author_again(
    authors: Authors,
) -> None:
    await authors.start(ONE)
    authors.running.clear()
    await authors.outcomes(ONE)
    await authors.start(ONE)
    authors.write("a")
    await authors.end(ONE)

    assert await authors.outcomes(ONE) == {"a": RESTORED}


async def test_what_a_person_may_have_changed_beside_a_turn_is_a_conflict(
    authors: Authors,
) -> None:
    await authors.start(ONE)
    authors.write("a")
    await authors.start(PERSON)
    authors.write("b")
    await authors.end(PERSON)
    authors.write("c")
    await authors.end(ONE)

    assert await authors.outcomes(ONE) == {"a": RESTORED, "b": CONFLICT, "c": RESTORED}


async def test_a_process_of_a_person_that_ran_before_the_turn_counts_while_it_runs(
    authors: Authors,
) -> None:
    await authors.start(PERSON)
    authors.write("a")
    await authors.start(ONE)
    authors.write("b")
    authors.running.discard(NO_CHAT)
    await authors.end(ONE)
    await authors.start(ONE)
    authors.write("c")
    await authors.end(ONE)

    assert await authors.outcomes(ONE) == {"b": CONFLICT, "c": RESTORED}


async def test_what_a_person_changed_between_two_processes_of_a_turn_is_not_the_turns(
    authors: Authors, clock: FakeClock
) -> None:
    await authors.start(ONE)
    await authors.end(ONE)
    await authors.start(PERSON)
    authors.write("a")
    authors.running.discard(NO_CHAT)
    assert clock.monotonic() < GAP_S
    await authors.start(ONE)
    authors.write("b")
    await authors.end(ONE)

    assert await authors.outcomes(ONE) == {"b": RESTORED}


async def test_a_person_is_an_author_also_after_the_service_was_killed(
    authors: Authors, tmp_path: Path, clock: FakeClock
) -> None:
    await authors.start(ONE)
    await authors.start(PERSON)
    authors.write("a")
    async with Checkpoints(Workspaces(tmp_path), clock, supervision(clock)) as successor:
        shown = await successor.preview(ONE, Turn(FIRST, 5))

    assert [(step.path, step.outcome) for step in shown.steps] == [("a", CONFLICT)]


async def test_what_agents_of_the_turns_changed_is_taken_back_with_them(authors: Authors) -> None:
    await authors.start(ONE)
    authors.write("a", "b")
    await authors.end(ONE)
    await authors.start(OTHER)
    authors.write("c")
    (authors.root / "b").write_text("changed again")
    await authors.end(OTHER)
    checkpoints, turn, agents = authors.checkpoints, Turn(FIRST, 5), frozenset({str(SECOND)})
    assert await authors.outcomes(ONE) == {"a": RESTORED, "b": CONFLICT}

    shown = await checkpoints.preview(ONE, turn, agents)
    plan = await checkpoints.plan(ONE, "r1", turn, "", agents)
    await checkpoints.finish(WORKSPACE, plan, plan.steps, agents)

    expected = [("a", RESTORED), ("b", RESTORED), ("c", RESTORED)]
    assert [(step.path, step.outcome) for step in shown.steps] == expected
    assert plan.steps == shown.steps
    # The turns of the agent are taken back as well.
    assert await authors.outcomes(OTHER) == {}
    undo = await checkpoints.plan(ONE, "r2", Turn(FIRST, 0), "r1")
    await checkpoints.finish(WORKSPACE, undo, undo.steps)
    assert (await authors.outcomes(OTHER)).keys() == {"b", "c"}
