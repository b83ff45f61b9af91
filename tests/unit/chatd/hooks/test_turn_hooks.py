"""Turns whose events go to hooks: refused, asked about, rewritten, failed and repeated."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import AnswerAction, Approved, RequestCompaction
from chatd.chats.domain.errors import HookDenied, HookFailed
from chatd.content.domain.arguments import ARGUMENTS_DEPTH_MAX
from chatd.content.domain.messages import ErrorKind, Visibility
from chatd.content.domain.parts import (
    File,
    FileReference,
    HookAddition,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.tools import Dispatch, Executor, PendingKind
from chatd.content.domain.turn_context import TurnContext
from chatd.hooks.domain.answers import Allowed, Verdict
from chatd.hooks.domain.hooks import FailPolicy, HookEvent, HookNotice
from chatd.hooks.engine.dispatch import CONCURRENT_MAX, EVENT_MS_MAX
from chatd.hooks.rpc.errors import HOOK_ERRORS
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.turns.domain.ports import NoHooks
from parley.postgres import DatabaseUnavailable
from parley.rpc import Problems
from support.chatd.hooks.in_memory_hooks import HOOK_ID, Answer, HookStage, hook, hook_stage
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import ANN, CHAT, WORKER, Stage, calling, client_tool, tool

RM = ToolCall("a", "execute", '{"command": "rm x"}')
LS = ToolCall("b", "execute", '{"command": "ls"}')
COMMITS = 3  # The answer with its call, the result, the last answer.
OTHER_ID = "00000000-0000-4000-8000-0000000000f1"
PRE, POST = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE


def stage_of(
    answer: Answer, *events: HookEvent, calls: tuple[ToolCall, ...] = (RM, LS), **more: Any
) -> tuple[Stage, HookStage]:
    hooks = hook_stage(answer, hook(*events, **more))
    return Stage(calling(*calls), tool("execute"), client_tool("browse"), hooks=hooks.chats), hooks


def about_rm(answer: object) -> Answer:
    """Return answers to calls of rm; others are allowed."""
    return lambda payload: answer if "rm" in json.dumps(payload["data"]) else {}


def results(stage: Stage) -> dict[str, ToolResult]:
    return {
        part.tool_call_id: part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    }


def arguments(stage: Stage) -> list[str]:
    return [
        part.args_json
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolCall)
    ]


async def test_a_call_that_a_hook_denies_does_not_run_and_the_model_reads_why() -> None:
    stage, _ = stage_of(about_rm({"decision": "deny", "reason": "Keep files."}), PRE)
    await stage.ask()
    assert stage.tools.order == ["execute"]
    refused = json.loads(results(stage)["a"].result_json)
    assert refused["error"] == "this did not run, because a hook refuses it: Keep files."
    assert refused["hint"].startswith("This is a policy, not a fault")
    assert results(stage)["b"].outcome is ToolOutcome.DONE
    assert stage.texts[-1] == ("assistant", "done")


async def test_a_call_that_a_hook_asks_about_waits_for_an_approval() -> None:
    stage, _ = stage_of(about_rm({"decision": "ask", "reason": "Sure?"}), PRE)
    await stage.ask()
    assert stage.tools.order == ["execute"]
    assert stage.status is Status.REQUIRES_ACTION
    (waiting,) = [call for call in stage.state.pending if not call.is_recorded]
    assert (waiting.tool_call_id, waiting.kind, waiting.reason) == (
        "a",
        PendingKind.APPROVAL,
        "a hook asks: Sure?",
    )


async def test_a_rewritten_call_runs_and_is_stored_with_the_new_arguments() -> None:
    stage, _ = stage_of(about_rm({"rewrite": {"command": "ls x"}}), PRE)
    await stage.ask()
    assert stage.tools.order == ["execute", "execute"]
    assert arguments(stage) == ['{"command":"ls x"}', '{"command": "ls"}']


async def test_rewritten_arguments_are_validated_again() -> None:
    deep: dict[str, Any] = {}
    for _ in range(ARGUMENTS_DEPTH_MAX):
        deep = {"a": deep}
    stage, _ = stage_of(about_rm({"rewrite": deep}), PRE)
    await stage.ask()
    assert stage.tools.order == ["execute"]
    assert results(stage)["a"].outcome is ToolOutcome.FAILED


async def test_ambiguous_arguments_are_refused_before_hooks_see_them() -> None:
    call = ToolCall("a", "execute", '{"path": "/ok", "PATH": "/secret"}')
    stage, hooks = stage_of(lambda _: {}, PRE, calls=(call, ToolCall("b", "unknown", "{}")))
    await stage.ask()
    assert hooks.consumer.got == []
    assert "differ only in case" in results(stage)["a"].result_json


def saying_done(request: ModelRequest) -> Iterable[ModelEvent]:
    yield TextDelta("done")
    yield Finished()


async def test_a_hook_lets_a_turn_go_on_once() -> None:
    denial = {"decision": "deny", "reason": "The tests were not run."}
    hooks = hook_stage(lambda _: denial, hook(HookEvent.STOP))
    stage = Stage(saying_done, hooks=hooks.chats)
    await stage.ask()
    assert hooks.consumer.seen() == [("stop", {"continued": False}), ("stop", {"continued": True})]
    assert len({each["dispatch_id"] for each in hooks.consumer.got}) == 2
    assert stage.status is Status.WAITING
    _, answer, told, last = stage.messages
    assert [each.role.value for each in (answer, told, last)] == ["assistant", "user", "assistant"]
    assert told.visibility is Visibility.MODEL
    assert "The tests were not run." in str(told.content)


async def test_a_turn_goes_on_once_though_its_owner_dies_after_the_hook_refused_its_end() -> None:
    denial = {"decision": "deny", "reason": "Not yet."}
    hooks = hook_stage(lambda _: denial, hook(HookEvent.STOP))
    stage = Stage(saying_done, hooks=hooks.chats)
    stage.commits.dies_after = 0
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    assert stage.status is Status.WAITING
    assert [data["continued"] for _, data in hooks.consumer.seen()] == [False, True]
    kept = [each for each in stage.messages if each.visibility is Visibility.MODEL]
    assert len(kept) == 1


@pytest.mark.parametrize("decision", ["deny", "ask"])
async def test_a_call_for_the_client_can_be_denied_and_a_question_about_it_refuses_it(
    decision: str,
) -> None:
    answer = {"decision": decision, "reason": "Not here."}
    stage, _ = stage_of(lambda _: answer, PRE, calls=(ToolCall("a", "browse", "{}"),))
    await stage.ask()
    assert stage.status is Status.WAITING
    assert "Not here." in results(stage)["a"].result_json


async def test_a_hook_that_is_down_ends_the_turn_unless_it_fails_open() -> None:
    stage, _ = stage_of(lambda _: None, PRE)
    await stage.ask()
    assert stage.tools.order == []
    assert stage.status is Status.ERROR
    assert stage.state.last_error is not None
    assert stage.state.last_error.kind is ErrorKind.HOOK_DISPATCH_FAILED
    assert stage.state.last_error.detail == f"hook {HOOK_ID}"
    stage, _ = stage_of(lambda _: None, PRE, fail_policy=FailPolicy.OPEN)
    await stage.ask()
    assert stage.tools.order == ["execute", "execute"]
    assert stage.status is Status.WAITING


def test_members_do_not_read_why_a_hook_failed() -> None:
    problem = Problems(HOOK_ERRORS).of(HookFailed(HOOK_ID, "10.0.0.7:8080 refused"))
    assert problem is not None
    assert "10.0.0.7" not in str(problem)
    assert problem.metadata == {"hook_id": HOOK_ID}


async def test_calls_with_the_same_id_are_told_apart() -> None:
    answer = about_rm({"decision": "deny"})
    stage, hooks = stage_of(answer, PRE, calls=(RM, ToolCall("a", "execute", "{}")))
    await stage.ask()
    assert stage.tools.order == ["execute"]
    assert len({each["data"]["tool_use_id"] for each in hooks.consumer.got}) == 2


async def test_results_are_stored_before_a_failing_hook_ends_the_turn() -> None:
    stage, _ = stage_of(lambda _: 500, POST)
    await stage.ask()
    assert {each.outcome for each in results(stage).values()} == {ToolOutcome.DONE}
    assert stage.status is Status.ERROR
    assert stage.state.last_error is not None
    assert f"`parley hook log {HOOK_ID}`" in stage.state.last_error.message


async def test_calls_that_are_pending_run_before_a_failing_hook_ends_the_turn() -> None:
    def answer(payload: dict[str, Any]) -> object:
        return 500 if payload["type"] == POST else about_rm({"decision": "deny"})(payload)

    stage, hooks = stage_of(answer, PRE, POST)
    await stage.ask()
    assert stage.tools.order == ["execute"]
    assert results(stage)["b"].outcome is ToolOutcome.DONE
    assert stage.status is Status.ERROR
    sent = {each["data"]["tool_use_id"] for each in hooks.consumer.got if each["type"] == POST}
    assert sent == {"a", "b"}


async def test_an_answer_is_stored_before_a_failing_hook_ends_the_turn() -> None:
    stage, _ = stage_of(lambda _: 500, HookEvent.STOP)
    await stage.ask()
    assert stage.texts[-1] == ("assistant", "done")
    assert stage.status is Status.ERROR


async def test_a_turn_sends_its_events_in_order() -> None:
    stage, hooks = stage_of(lambda _: {}, calls=(LS,))
    await stage.ask()
    call = {"tool_use_id": "b", "tool_name": "execute"}
    first, *others = hooks.consumer.seen()
    assert first == ("session_start", {"source": "startup"})
    assert others[0] == ("pre_tool_use", {**call, "tool_input": {"command": "ls"}})
    assert others[1][0] == "post_tool_use"
    assert others[1][1] == {
        **call,
        "outcome": "done",
        "tool_response": results(stage)["b"].result_json,
    }
    assert others[2:] == [("stop", {"continued": False})]
    await stage.ask("again")
    assert [each["type"] for each in hooks.consumer.got[4:]] == [
        "pre_tool_use",
        "post_tool_use",
        "stop",
    ]


async def test_without_hooks_for_its_events_a_turn_reads_nothing() -> None:
    stage, hooks = stage_of(lambda _: {}, HookEvent.USER_PROMPT_SUBMIT)
    await stage.ask()
    assert (hooks.consumer.got, hooks.stored.reads) == ([], 1)


class AbsentHooks(NoHooks):
    """No hooks, with the events that they are asked about nevertheless."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def judge(
        self, context: TurnContext, history_version: int, calls: Sequence[ToolCall]
    ) -> Mapping[str, Verdict]:
        self.asked.append("judge")
        return {}

    async def stop(self, context: TurnContext, notice: HookNotice) -> Verdict:
        self.asked.append(notice.event)
        return Allowed()

    async def notify(
        self, context: TurnContext, notices: Sequence[HookNotice]
    ) -> tuple[HookAddition, ...]:
        self.asked += [each.event for each in notices]
        return ()


async def test_a_turn_asks_no_hooks_that_are_known_to_be_absent() -> None:
    hooks = AbsentHooks()
    stage = Stage(calling(RM, LS), tool("execute"), client_tool("browse"), hooks=hooks)
    await stage.ask()
    assert hooks.asked == []


async def test_a_summary_is_announced_before_and_after_it_is_stored() -> None:
    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta("summary")
        yield UsageReported(10, 10)
        yield Finished()

    hooks = hook_stage(lambda _: {}, hook(HookEvent.PRE_COMPACT, HookEvent.POST_COMPACT))
    stage = Stage(play, hooks=hooks.chats)
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    await stage.run()
    assert hooks.consumer.seen() == [
        ("pre_compact", {"source": "manual"}),
        ("post_compact", {"source": "manual"}),
    ]


@pytest.mark.parametrize("dies_after", range(COMMITS))
async def test_the_next_owner_repeats_events_with_the_same_ids_and_loses_no_result(
    dies_after: int,
) -> None:
    stage, hooks = stage_of(lambda _: {}, calls=(LS,))
    stage.commits.dies_after = dies_after
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    assert stage.texts[-1] == ("assistant", "done")
    ids = {(each["type"], each["dispatch_id"]) for each in hooks.consumer.got}
    assert sorted(kind for kind, _ in ids) == [
        "post_tool_use",
        "pre_tool_use",
        "session_start",
        "stop",
    ]


@pytest.mark.parametrize("event", [PRE, POST, HookEvent.STOP])
async def test_a_turn_is_resumed_after_the_database_was_away_for_a_hook(event: HookEvent) -> None:
    stage, hooks = stage_of(lambda _: {}, event, calls=(LS,))

    def away(payload: object) -> object:
        raise DatabaseUnavailable("it restarts")

    hooks.consumer.answer = away
    stage.send()
    with pytest.raises(DatabaseUnavailable):
        await stage.run()
    assert stage.status is Status.RUNNING
    hooks.consumer.answer = lambda _: {}
    await stage.take_over()
    assert stage.tools.order == ["execute"]
    assert stage.texts[-1] == ("assistant", "done")


async def test_events_name_the_workspace_of_the_chat() -> None:
    hooks = hook_stage(lambda _: {}, hook(PRE))
    await hooks.chats.judge(TurnContext(CHAT, ANN, workspace_id="w"), 1, (RM,))
    await hooks.chats.judge(TurnContext(CHAT, ANN), 1, (RM,))
    assert [each["workspace_id"] for each in hooks.consumer.got] == ["w", None]


async def test_two_calls_with_one_id_are_not_decided_on() -> None:
    hooks = hook_stage(lambda _: {}, hook(PRE))
    with pytest.raises(HookFailed):
        await hooks.chats.judge(TurnContext(CHAT, ANN), 1, (RM, RM))
    assert hooks.consumer.got == []


async def test_a_message_is_accepted_as_hooks_decide() -> None:
    said = (Text("hello"), Text("world"))
    answers: list[object] = [{}, {"rewrite": "bye"}, {"decision": "deny", "reason": "no"}, None]
    hooks = hook_stage(lambda _: answers.pop(0), hook(HookEvent.USER_PROMPT_SUBMIT))
    assert await hooks.chats.submitted(CHAT, ANN, "k", said) == said
    assert await hooks.chats.submitted(CHAT, ANN, "k", said) == (Text("bye"),)
    with pytest.raises(HookDenied):
        await hooks.chats.submitted(CHAT, ANN, "k", said)
    with pytest.raises(HookFailed):
        await hooks.chats.submitted(CHAT, ANN, "k", said)
    assert hooks.consumer.seen()[0] == (
        "user_prompt_submit",
        {"prompt": "hello\n\nworld", "parts": 2},
    )
    assert len({each["dispatch_id"] for each in hooks.consumer.got}) == 1


async def test_hooks_see_and_replace_the_lines_of_files_in_a_message() -> None:
    image = File("00000000-0000-4000-8000-0000000000a1", "image/png")
    said = (Text("Run this:"), FileReference("a.sh", 1, 2, "rm -rf /"), image)
    hooks = hook_stage(lambda _: {"rewrite": "ls"}, hook(HookEvent.USER_PROMPT_SUBMIT))
    assert await hooks.chats.submitted(CHAT, ANN, "k", said) == (Text("ls"), image)
    prompt = "Run this:\n\na.sh, lines 1 to 2:\n```\nrm -rf /\n```"
    assert hooks.consumer.seen() == [("user_prompt_submit", {"prompt": prompt, "parts": 3})]


async def test_a_user_does_not_wait_for_a_hook_to_interrupt_a_turn() -> None:
    stage, hooks = stage_of(lambda _: {}, PRE)
    hooks.consumer.held = asyncio.Event()
    stage.send()
    async with stage.running():
        await hooks.consumer.arrived.wait()
        stage.interrupt()
    assert stage.tools.order == []
    assert stage.status is Status.WAITING


@pytest.mark.parametrize(
    ("event", "last_text"),
    [
        (HookEvent.SESSION_START, ("user", "hello")),
        (POST, ("tool", "ToolResult")),
        (HookEvent.STOP, ("assistant", "done")),
    ],
)
async def test_a_user_does_not_wait_for_a_notified_hook_to_interrupt_a_turn(
    event: HookEvent, last_text: tuple[str, str]
) -> None:
    stage, hooks = stage_of(lambda _: {}, event)
    hooks.consumer.held = asyncio.Event()
    stage.send()
    async with stage.running():
        await hooks.consumer.arrived.wait()
        stage.interrupt()
    assert stage.status is Status.WAITING
    assert stage.texts[-1] == last_text


async def test_results_are_sent_at_the_same_time_and_together_within_a_bounded_time() -> None:
    hooks = hook_stage(lambda _: {}, hook(POST))
    everyone = asyncio.Barrier(CONCURRENT_MAX)

    async def all_arrived() -> None:
        await everyone.wait()
        hooks.clock.advance(EVENT_MS_MAX / 1000)

    hooks.consumer.meanwhile = all_arrived
    notices = [HookNotice(POST, str(number), {}) for number in range(CONCURRENT_MAX + 1)]
    async with asyncio.timeout(30):
        with pytest.raises(HookFailed) as failed:
            await hooks.chats.notify(TurnContext(CHAT, ANN), notices)
    assert "took all the time" in failed.value.problem
    assert len(hooks.consumer.got) == CONCURRENT_MAX


async def test_an_approved_call_runs_rewritten_and_hooks_are_not_asked_again() -> None:
    rewriting = hook(PRE, name="rewriting")
    asking = hook(PRE, id=OTHER_ID)
    answers: list[object] = [{"rewrite": {"command": "ls x"}}, {"decision": "ask"}]
    hooks = hook_stage(lambda _: answers.pop(0), rewriting, asking)
    stage = Stage(calling(RM), tool("execute"), hooks=hooks.chats)
    await stage.ask()
    (waiting,) = stage.state.pending
    assert waiting.action_id is not None
    call = stage.chats.chats[CHAT].actions[waiting.action_id].asked.call
    assert call.args_json == '{"command":"ls x"}'
    message_id = next(each.id for each in stage.messages if call in each.content)
    approved = Approved(message_id, Dispatch(waiting.action_id, call, Executor.TOOLRUNNER, "j1"))
    stage.do(AnswerAction(waiting.action_id, approved, "{}", ANN.id, WORKER))
    await stage.run()
    assert stage.tools.order == ["execute"]
    assert stage.texts[-1] == ("assistant", "done")
    assert len(hooks.consumer.got) == 2
