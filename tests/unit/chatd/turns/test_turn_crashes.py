"""A process that dies before or after any commit: another goes on, and nothing happens twice."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import (
    CommitStep,
    RecordResult,
    RequestCompaction,
)
from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Text, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    InputRequired,
    PendingKind,
)
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.turn import TurnSetup
from support.chatd.turns.asking_scenes import (
    ASKING,
    TWO_CALLS,
    Move,
    Person,
    with_a_call_that_asks,
    with_client_tools,
)
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import WORKER, Stage, calling, tool

SMALL = TurnSetup(ModelProfile("demo", context_limit_tokens=1000))


def plain() -> Stage:
    stage = Stage(lambda _: (TextDelta("hi"), Finished()))
    stage.send("one")
    stage.send("two")
    return stage


def with_tools() -> Stage:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two", is_serial=True))
    stage.send()
    return stage


def with_refused_calls() -> Stage:
    stage = Stage(calling(*TWO_CALLS), tool("one", is_exclusive=True), tool("two"))
    stage.send()
    return stage


def with_summaries() -> Stage:
    """A chat whose first steps fill the window and whose summaries empty it."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if not request.may_call_tools:
            yield TextDelta("a summary")
        elif any("handover" in str(message.content) for message in request.messages):
            yield TextDelta("from there")
            yield UsageReported(100, 10)
        else:
            yield ToolCallRequested(TWO_CALLS[0])
            yield UsageReported(800, 10)
        yield Finished()

    stage = Stage(play, tool("one"), setup=SMALL)
    stage.send()
    return stage


def with_a_call_that_asks_twice() -> Stage:
    """A chat whose first call asks twice while it runs, beside one that does not."""
    return with_a_call_that_asks(
        InputRequired("r1", PendingKind.ELICITATION, "Which?"),
        InputRequired("r2", PendingKind.LOGIN, "Sign in.", url="https://example.com/login"),
    )


async def answer(stage: Stage) -> None:
    """Answer everything that the chat waits for, as a client and as a person do."""
    await Person(Move.ACCEPT).attend(stage)


async def run_to_the_end(stage: Stage) -> None:
    await stage.run()
    await answer(stage)


async def run_and_attend(stage: Stage, person: Person) -> None:
    await stage.run()
    await person.attend(stage)


def told(stage: Stage) -> list[object]:
    """Return the history without what differs between processes: derived ids and time."""
    ids = re.compile(r"chat_summarized_[0-9a-f-]+")
    return [
        (
            message.role,
            ids.sub("summary", repr(tuple(map(without_wording, message.content)))),
            message.is_compressed,
            message.visibility,
            None if message.use is None else (message.use.model_id, message.use.output_tokens),
        )
        for message in stage.messages
    ]


def without_wording(part: Part) -> Part:
    """Return a part; of a cancelled call not who says that: its executor, or its next owner."""
    if isinstance(part, ToolResult) and part.outcome is ToolOutcome.CANCELLED:
        return ToolResult(part.tool_call_id, part.tool_name, "", part.outcome)
    return part


def outcomes(stage: Stage) -> list[ActionOutcome | None]:
    """Return how the actions of the chat ended; None for one that is open."""
    return [each.outcome for each in stage.chats.chats[stage.state.chat_id].actions.values()]


SCENES: tuple[Callable[[], Stage], ...] = (
    plain,
    with_tools,
    with_refused_calls,
    with_summaries,
    with_a_call_that_asks_twice,
)


def dying(stage: Stage, place: int, *, is_after: bool) -> Stage:
    """Return a chat whose owner dies before or after one of its commits."""
    if is_after:
        stage.commits.dies_after = place
    else:
        stage.commits.dies_before = place
    return stage


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_dying_at_any_commit_changes_nothing_in_the_end(
    scene: Callable[[], Stage], is_after: bool
) -> None:
    whole = scene()
    await run_to_the_end(whole)
    commits = len(whole.commits.commands)
    for place in range(commits):
        stage = dying(scene(), place, is_after=is_after)
        with pytest.raises(Crash):
            await run_to_the_end(stage)
        await stage.take_over()
        await answer(stage)
        assert told(stage) == told(whole)
        assert outcomes(stage) == outcomes(whole)
        assert stage.tools.told == whole.tools.told
        assert stage.status == whole.status == Status.WAITING
        assert set(stage.tools.starts.values()) <= {1}
        assert len(stage.tools.starts) == len(whole.tools.starts)
    assert commits >= 2


def test_every_kind_of_action_has_a_scene() -> None:
    assert set(ASKING) == set(PendingKind) - {PendingKind.DISPATCHED}


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("move", Move)
@pytest.mark.parametrize("kind", ASKING)
async def test_dying_at_any_commit_of_asking_changes_nothing_whatever_people_do(
    kind: PendingKind, move: Move, is_after: bool
) -> None:
    whole = ASKING[kind]()
    await whole.run()
    asked = [call.kind for call in whole.state.pending if call.is_asked]
    assert (whole.status, asked) == (Status.REQUIRES_ACTION, [kind])
    commands = list(enumerate(whole.commits.commands))
    first = max(place for place, command in commands if isinstance(command, CommitStep))
    await Person(move).attend(whole)
    assert whole.state.pending == () or whole.status is Status.REQUIRES_ACTION
    for place in range(first, len(whole.commits.commands)):
        stage, person = dying(ASKING[kind](), place, is_after=is_after), Person(move)
        with pytest.raises(Crash):
            await run_and_attend(stage, person)
        await stage.take_over()
        await person.attend(stage)
        assert told(stage) == told(whole)
        assert outcomes(stage) == outcomes(whole)
        assert stage.tools.told == whole.tools.told
        assert (stage.status, stage.state.archived) == (whole.status, whole.state.archived)
        assert set(stage.tools.starts.values()) <= {1}
        assert len(stage.tools.starts) == len(whole.tools.starts)


@pytest.mark.parametrize("scene", [with_tools, with_client_tools], ids=lambda scene: scene.__name__)
async def test_dying_while_a_call_runs_attaches_to_it(scene: Callable[[], Stage]) -> None:
    whole, stage = scene(), scene()
    await run_to_the_end(whole)
    stage.tools.crash_after_start = True
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    await answer(stage)
    assert told(stage) == told(whole)
    assert set(stage.tools.starts.values()) == {1}


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_dying_at_the_end_of_an_interruption_stores_it_once(is_after: bool) -> None:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), held={"two"})
    stage.commits.after = {RecordResult: stage.interrupt}
    # The step, the result of the first call, then the end of the interruption.
    if is_after:
        stage.commits.dies_after = 2
    else:
        stage.commits.dies_before = 2
    with pytest.raises(Crash):
        await stage.ask()
    await stage.take_over()
    results = [part for _, parts in stage.said for part in parts if isinstance(part, ToolResult)]
    assert [result.outcome for result in results] == [ToolOutcome.DONE, ToolOutcome.CANCELLED]
    assert stage.status == Status.WAITING
    assert set(stage.tools.starts.values()) == {1}


@pytest.mark.parametrize("place", range(3))
async def test_a_summary_by_hand_is_made_once_and_not_talked_about(place: int) -> None:
    stage = Stage(lambda _: (TextDelta("words"), Finished()))
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    stage.commits.commands.clear()
    stage.commits.dies_after = place if place < 2 else None
    if place < 2:
        with pytest.raises(Crash):
            await stage.run()
        await stage.take_over()
    else:
        await stage.run()
    assert [message.role for message in stage.messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
    ]
    assert stage.messages[1].content == (Text("words"),)
    assert stage.status == Status.WAITING


async def test_two_runners_of_one_chat_never_both_write() -> None:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), held={"two"})
    stage.send()
    async with stage.running():
        await stage.tools.until_started(2)
        stage.tools.end("two")
        stage.chats.chats[stage.state.chat_id].state = replace(
            stage.state,
            snapshot_version=stage.state.snapshot_version + 1,
            owner_epoch=stage.state.owner_epoch + 1,
        )
    committed = [type(command).__name__ for command in stage.commits.commands]
    assert "CommitResults" not in committed
    await stage.take_over()
    assert stage.texts[-1] == ("assistant", "done")
    assert set(stage.tools.starts.values()) == {1}
