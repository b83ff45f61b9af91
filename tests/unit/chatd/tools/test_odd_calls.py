"""Calls that no tool can take: odd, huge, deep, too many, or the same over and over."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.chats.domain.chat import Message, Status
from chatd.content.domain.arguments import (
    ARGUMENTS_BYTES_MAX,
    ARGUMENTS_DEPTH_MAX,
    Arguments,
    is_kept,
    mended,
    parsed,
)
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Notice, Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Outcome, PendingKind
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.calls import CALLS_MAX, plan_calls
from chatd.turns.domain.loops import ASK_AFTER, HINT
from chatd.turns.domain.steps import REPETITIONS_MAX, repeated_call
from chatd.turns.domain.system_prompt import SystemPrompt
from parley.clock.fake import EPOCH
from support.chatd.turns.turn_stage import SETUP, Stage, calling, tool

LOOK = tool("look")
SPECS = {"look": LOOK}
HUGE = json.dumps({"text": "x" * 5_000_000})
DEEP = '{"a":' + "[" * 5000 + "]" * 5000 + "}"


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def told(stage: Stage) -> dict[str, tuple[ToolOutcome, str]]:
    return {
        part.tool_call_id: (part.outcome, part.result_json)
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    }


@pytest.mark.parametrize(
    ("args_json", "problem"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"a":1,"a":2}', "twice"),
        ('{"a":NaN}', "NaN is no JSON"),
        ('{"a":' + "9" * 5000 + "}", "not valid JSON"),
        (HUGE, "larger than 2 MiB"),
        (DEEP, "not valid JSON"),
        (nested(ARGUMENTS_DEPTH_MAX + 1), "nested more than 100"),
    ],
    ids=["broken", "a list", "twice", "NaN", "a long number", "huge", "very deep", "deep"],
)
async def test_odd_arguments_are_told_to_the_model_and_do_not_spoil_the_history(
    args_json: str, problem: str
) -> None:
    stage = Stage(calling(ToolCall("a", "look", args_json)), LOOK)
    await stage.ask()
    outcome, result_json = told(stage)["a"]
    assert outcome is ToolOutcome.FAILED
    assert problem in json.loads(result_json)["error"]
    assert stage.tools.order == []
    assert stage.texts[-1] == ("assistant", "done")
    (asked,) = [
        part
        for message in stage.model.requests[-1].messages
        for part in message.content
        if isinstance(part, ToolCall)
    ]
    assert isinstance(json.loads(asked.args_json), dict)
    assert len(asked.args_json) < 100


async def test_a_tool_that_does_not_exist_and_ids_that_repeat_or_lack_are_no_harm() -> None:
    calls = (
        ToolCall("a", "look", "{}"),
        ToolCall("a", "look", '{"b":1}'),
        ToolCall("", "look", ""),
        ToolCall("", "nothing", "{}"),
    )
    stage = Stage(calling(*calls), LOOK)
    await stage.ask()
    outcomes = {call_id: outcome for call_id, (outcome, _) in told(stage).items()}
    assert sorted(outcomes.values()) == [ToolOutcome.DONE] * 3 + [ToolOutcome.FAILED]
    assert len(outcomes) == 4
    assert stage.tools.order == ["look"] * 3


@pytest.mark.parametrize(
    ("args_json", "meant"),
    [
        ('{"a": [1, 2, ], "b": 1,\n}', {"a": [1, 2], "b": 1}),
        ('{"a": "one\ntwo\tthree\r"}', {"a": "one\ntwo\tthree\r"}),
        ('{"a": "keep, }", "b": "\\", ]",}', {"a": "keep, }", "b": '", ]'}),
    ],
    ids=["commas", "line breaks", "texts that look like it"],
)
async def test_a_slip_that_leaves_no_doubt_is_mended_and_recorded(
    args_json: str, meant: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stage = Stage(calling(ToolCall("a", "look", args_json)), LOOK)
    await stage.ask()
    (asked,) = [
        part
        for message in stage.model.requests[-1].messages
        for part in message.content
        if isinstance(part, ToolCall)
    ]
    assert json.loads(asked.args_json) == meant
    assert len(stage.tools.order) == 1
    assert "the arguments of a call of look were mended" in caplog.text


@pytest.mark.parametrize("args_json", ['{"a": 1,,}', '{"a": 1, "a": 2,}', '{"a" 1,}', '{"a": "x}'])
def test_what_leaves_a_doubt_is_refused(args_json: str) -> None:
    assert plan_calls((ToolCall("a", "look", args_json),), SPECS).dispatched == ()


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=20))
def test_what_is_json_is_never_mended(value: object) -> None:
    args_json = json.dumps({"value": value}, ensure_ascii=False)
    assert mended(args_json) == args_json


def test_half_a_character_in_arguments_is_replaced() -> None:
    plan = plan_calls((ToolCall("a", "look", '{"a":"\ud83d"}'),), SPECS)
    assert [call.args_json for call in plan.dispatched] == ['{"a":"\ufffd"}']


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=20))
def test_what_is_usable_is_kept(value: object) -> None:
    args_json = json.dumps({"value": value})
    assert parsed(args_json) == Arguments(value=value)
    assert is_kept(args_json)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_whatever_the_arguments_are_the_answer_is_a_value_or_a_reason(args_json: str) -> None:
    with suppress(ValueError):
        assert isinstance(parsed(args_json), Arguments)
    assert is_kept(args_json) in (True, False)


def test_the_bounds_themselves_are_allowed() -> None:
    assert is_kept(nested(ARGUMENTS_DEPTH_MAX - 1))
    assert not is_kept(nested(ARGUMENTS_DEPTH_MAX + 1))
    frame = len(json.dumps({"a": ""}))
    assert is_kept(json.dumps({"a": "x" * (ARGUMENTS_BYTES_MAX - frame)}))
    assert not is_kept(json.dumps({"a": "x" * (ARGUMENTS_BYTES_MAX - frame + 1)}))


async def test_of_very_many_calls_the_first_hundred_run_and_all_are_answered_in_order() -> None:
    calls = [ToolCall(f"c{number:03}", "look", "{}") for number in range(150)]
    stage = Stage(calling(*calls), LOOK)
    await stage.ask()
    assert len(stage.tools.order) == CALLS_MAX
    results = told(stage)
    for place, call in enumerate(calls):
        outcome, result_json = results[call.tool_call_id]
        assert outcome is (ToolOutcome.DONE if place < CALLS_MAX else ToolOutcome.FAILED)
        assert ("did not run" in result_json) is (place >= CALLS_MAX)
    answered = stage.model.requests[-1].messages[-1].content
    assert [part.tool_call_id for part in answered if isinstance(part, ToolResult)] == [
        call.tool_call_id for call in calls
    ]


def circling(request: ModelRequest) -> Iterable[ModelEvent]:
    yield ToolCallRequested(ToolCall("a", "look", '{"at":"it"}'))
    yield Finished()


async def test_a_call_with_the_same_result_six_times_is_asked_about() -> None:
    stage = Stage(circling, LOOK)
    await stage.ask()
    assert len(stage.tools.order) == ASK_AFTER
    assert stage.status is Status.REQUIRES_ACTION
    (pending,) = stage.state.pending
    assert (pending.kind, pending.reason) == (
        PendingKind.LOOP,
        "the same call had the same result 6 times",
    )


@pytest.mark.parametrize("has_advisor", [False, True])
async def test_the_third_equal_result_names_the_advisor_if_the_turn_may_ask_it(
    has_advisor: bool,
) -> None:
    setup = replace(SETUP, system_prompt=SystemPrompt(has_advisor=has_advisor))
    stage = Stage(circling, LOOK, setup=setup)
    await stage.ask()
    hints = [
        json.loads(part.result_json).get(HINT, "")
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    named = ["ask the advisor" in hint for hint in hints]
    assert named == [has_advisor and place >= 2 for place in range(ASK_AFTER)]


async def test_in_an_unattended_chat_the_turn_ends_instead() -> None:
    stage = Stage(circling, LOOK, setup=replace(SETUP, is_attended=False))
    await stage.ask()
    assert len(stage.tools.order) == ASK_AFTER
    assert stage.status is Status.WAITING
    (notice,) = stage.messages[-1].content
    assert isinstance(notice, Notice)
    assert "called look 6 times with the same arguments" in notice.text


async def test_a_model_that_goes_in_circles_is_stopped_whatever_the_results_are() -> None:
    numbers = count()

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        stage.tools.answers["look"] = Outcome(ToolOutcome.DONE, f'{{"number": {next(numbers)}}}')
        yield from circling(request)

    stage = Stage(play, LOOK)
    await stage.ask()
    assert len(stage.tools.order) == REPETITIONS_MAX
    assert stage.status is Status.WAITING
    (notice,) = stage.messages[-1].content
    assert isinstance(notice, Notice)
    assert "called look 50 times with the same arguments" in notice.text
    await stage.ask("go on")
    assert len(stage.tools.order) == 2 * REPETITIONS_MAX


async def test_the_same_tool_with_other_arguments_is_no_circle() -> None:
    steps = iter(range(120))

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        step = next(steps, None)
        if step is None:
            yield TextDelta("done")
        else:
            yield ToolCallRequested(ToolCall("a", "look", json.dumps({"at": step})))
        yield Finished()

    stage = Stage(play, LOOK)
    await stage.ask()
    assert len(stage.tools.order) == 120
    assert stage.texts[-1] == ("assistant", "done")


def row(number: int, *parts: Part, is_compressed: bool = False) -> Message:
    return Message(
        MessageId(number), number, Role.ASSISTANT, parts, "", EPOCH, is_compressed=is_compressed
    )


def test_a_circle_is_counted_within_its_turn_over_all_answers_and_without_what_is_not_ours() -> (
    None
):
    same, other = ToolCall("a", "look", "{}"), ToolCall("b", "look", '{"b":1}')
    searched = ToolCall("a", "look", "{}", provider_executed=True)
    turn = MessageId(1)
    assert repeated_call((row(2, same), row(3, other), row(4, same)), turn, 2) == same
    assert repeated_call((row(2, same, same),), turn, 2) is None
    assert repeated_call((row(2, same), row(3, same), row(4, other)), turn, 2) is None
    assert repeated_call((row(1, same), row(2, same)), turn, 2) is None
    assert repeated_call((row(2, same, is_compressed=True), row(3, same)), turn, 2) is None
    assert repeated_call((row(2, searched), row(3, searched)), turn, 2) is None
    assert repeated_call((row(2, same), row(3, same), row(4, Text("done"))), turn, 2) is None
    assert repeated_call((), turn, 1) is None


async def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    stage = Stage(calling(ToolCall("a", "lok", "{}")), LOOK)
    await stage.ask()
    outcome, result_json = told(stage)["a"]
    assert (outcome, json.loads(result_json)) == (
        ToolOutcome.FAILED,
        {
            "ok": False,
            "error": "there is no tool lok",
            "reason": "NOT_RUN",
            "hint": "Did you mean look?",
        },
    )
