"""What a model may ask a person, and calls that are repeated without effect."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    ASK_USER_QUESTION,
    PROPOSE_PLAN,
    Executor,
    PendingKind,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.turns.domain.asking import asking_problem, asking_tools
from chatd.turns.domain.calls import Asked, AskFirst, CallPlan, error_result, plan_calls
from chatd.turns.domain.loops import HINT, repetitions, with_loop_hint
from support.chatd.turns.asking_scenes import ASKING

ROOT = TurnContext(ChatId("c"), Owner(OwnerId("ann"), "member"), mode=ChatMode.PLAN)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}


@pytest.mark.parametrize(
    ("context", "names"),
    [
        (ROOT, [PROPOSE_PLAN, ASK_USER_QUESTION]),
        (replace(ROOT, mode=ChatMode.ORDINARY), []),
        (replace(ROOT, mode=ChatMode.EXPLORE), []),
        (replace(ROOT, ancestor_ids=(ChatId("root"),)), []),
        (replace(ROOT, is_attended=False), []),
    ],
)
def test_only_a_root_chat_that_plans_and_is_attended_asks_people(
    context: TurnContext, names: list[str]
) -> None:
    assert [spec.name for spec in asking_tools(context)] == names


@pytest.mark.parametrize(
    ("questions", "problem"),
    [
        ([QUESTION], None),
        ([QUESTION] * 4, None),
        ([], "questions must be a list of 1 to 4"),
        ([QUESTION] * 5, "questions must be a list of 1 to 4"),
        ("which?", "questions must be a list of 1 to 4"),
        (["which?"], "questions[0] is no object"),
        ([{**QUESTION, "question": " "}], "questions[0].question is empty"),
        ([{**QUESTION, "options": []}], "questions[0].options must be a list of 2 to 4"),
        (
            [{**QUESTION, "options": [{"label": "a"}, {"label": " "}]}],
            "questions[0].options[1].label is empty",
        ),
        (
            [{**QUESTION, "options": [{"label": "a"}, {"label": "a"}]}],
            "questions[0].options has two with the same label",
        ),
        (
            [{**QUESTION, "options": ["a", "b"]}],
            "questions[0].options[0].label is empty",
        ),
        (
            [{**QUESTION, "header": "x" * 41}],
            "questions[0].header is no text of at most 40 characters",
        ),
    ],
)
def test_a_question_that_nobody_could_answer_is_refused(
    questions: Any, problem: str | None
) -> None:
    assert asking_problem(PendingKind.QUESTION, {"questions": questions}) == problem


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"plan": "# do it"}, None),
        ({"plan": "  "}, "the plan is empty"),
        ({}, "the plan is empty"),
        ({"plan": "x" * 2**20}, "the plan is larger than 64 KiB; shorten it"),
        ({"plan": "x", "title": "t" * 201}, "the title is no text of at most 200 characters"),
    ],
)
def test_a_plan_that_nobody_could_read_is_refused(
    arguments: dict[str, object], problem: str | None
) -> None:
    assert asking_problem(PendingKind.PLAN, arguments) == problem


@pytest.mark.parametrize("kind", ASKING)
async def test_every_action_has_the_deadline_of_its_kind(kind: PendingKind) -> None:
    stage = ASKING[kind]()
    await stage.run()
    asked = {call.kind: call.deadline_s for call in stage.state.pending if call.is_asked}
    seconds = {PendingKind.CLIENT: 300.0}
    is_endless = kind in (PendingKind.QUESTION, PendingKind.PLAN, PendingKind.AGENTS)
    assert asked == {kind: None if is_endless else seconds.get(kind, 86_400.0)}


def test_a_malformed_question_is_told_to_the_model_and_nobody_is_asked() -> None:
    specs = {spec.name: spec for spec in asking_tools(ROOT)}
    bad = ToolCall("a", ASK_USER_QUESTION, '{"questions": []}')
    good = ToolCall("a", ASK_USER_QUESTION, json.dumps({"questions": [QUESTION]}))
    refused = plan_calls((bad,), specs)
    assert refused.asked == ()
    assert "1 to 4" in refused.refused[0].result_json
    assert plan_calls((good,), specs).asked == (Asked(good, PendingKind.QUESTION),)


@pytest.mark.parametrize(
    ("tool", "args_json"),
    [
        (PROPOSE_PLAN, r'{"plan": "a\ud800b"}'),
        (PROPOSE_PLAN, r'{"title": "\uDFFF", "plan": "a"}'),
        (ASK_USER_QUESTION, json.dumps({"questions": [{**QUESTION, "question": "\ud800?"}]})),
        ("execute", r'{"command": "git push \ud800"}'),
    ],
)
def test_half_a_character_which_cannot_be_stored_is_told_to_the_model_and_nobody_is_asked(
    tool: str, args_json: str
) -> None:
    execute = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
    specs = {spec.name: spec for spec in (*asking_tools(ROOT), execute)}
    call = ToolCall("a", tool, args_json)
    plan = plan_calls((call,), specs, lambda _, __: AskFirst(PendingKind.APPROVAL, "\ud800"))
    problem = (
        "an argument holds half of a character; write characters as they are, not as \\u escapes"
    )
    hint = "Nothing ran: send one JSON object with each argument once."
    assert plan == CallPlan(refused=(error_result(call, problem, hint),))


def test_a_whole_character_may_be_written_as_a_pair_of_escapes() -> None:
    specs = {spec.name: spec for spec in asking_tools(ROOT)}
    call = ToolCall("a", PROPOSE_PLAN, r'{"plan": "\ud83d\ude00"}')
    assert plan_calls((call,), specs).asked == (Asked(call, PendingKind.PLAN),)


def row(number: int, role: Role, *parts: Part) -> Message:
    return Message(MessageId(number), number, role, parts, "", NOW)


def history(*results: str) -> list[Message]:
    """Return a turn that made the same call with these results."""
    made = [row(1, Role.USER, Text("go"))]
    for place, result in enumerate(results):
        call_id = f"call_{place}"
        made.append(row(2 * place + 2, Role.ASSISTANT, ToolCall(call_id, "look", "{}")))
        told = ToolResult(call_id, "look", result, ToolOutcome.DONE)
        made.append(row(2 * place + 3, Role.TOOL, told))
    return made


CALL = ToolCall("next", "look", "{}")
SAME = '{"ok": true}'


@pytest.mark.parametrize(
    ("results", "count"),
    [((), 0), ((SAME,), 1), ((SAME,) * 5, 5), ((SAME, SAME, '{"ok": false}'), 1)],
)
def test_only_the_newest_series_of_equal_results_counts(
    results: tuple[str, ...], count: int
) -> None:
    assert repetitions(history(*results), MessageId(1), CALL)[0] == count


def test_the_third_equal_result_carries_a_hint_and_hints_do_not_break_the_series() -> None:
    told = [SAME]
    for _ in range(5):
        told.append(with_loop_hint(history(*told), MessageId(1), CALL, SAME))
    assert [HINT in each for each in told] == [False, False, True, True, True, True]
    assert repetitions(history(*told), MessageId(1), CALL)[0] == 6


def test_another_result_or_another_call_has_no_hint() -> None:
    seen = history(SAME, SAME, SAME)
    assert with_loop_hint(seen, MessageId(1), CALL, '{"ok": false}') == '{"ok": false}'
    other = ToolCall("next", "look", '{"at": 1}')
    assert with_loop_hint(seen, MessageId(1), other, SAME) == SAME
    assert with_loop_hint(seen, MessageId(7), CALL, SAME) == SAME


def command(number: int, **fields: object) -> str:
    """Return the result of a command, each of a process of its own that took a time of its own."""
    process_id = f"0198-{number}"
    told = {
        "ok": False,
        "error": "It ended with exit code 2.",
        "hint": f"All of the output is in ../logs/{process_id}.log: grep finds more.",
        "log_path": f"../logs/{process_id}.log",
        "process_id": process_id,
        "running": False,
        "exit_code": 2,
        "wall_duration_ms": 100 + number,
        "output": "no such file",
    }
    return json.dumps(told | fields)


MAKE = ToolCall("next", "execute", '{"command": "make"}')


def commands(*results: str, between: Sequence[ToolCall] = ()) -> list[Message]:
    """Return a turn that ran the same command with these results, and other calls between them."""
    made = [row(1, Role.USER, Text("go"))]
    for place, result in enumerate(results):
        number = 10 * place
        for other in between if place else ():
            made.append(row(number + 1, Role.ASSISTANT, other))
            told = ToolResult(other.tool_call_id, other.tool_name, SAME, ToolOutcome.DONE)
            made.append(row(number + 2, Role.TOOL, told))
        call = ToolCall(f"call_{place}", MAKE.tool_name, MAKE.args_json)
        made.append(row(number + 3, Role.ASSISTANT, call))
        told = ToolResult(call.tool_call_id, call.tool_name, result, ToolOutcome.FAILED)
        made.append(row(number + 4, Role.TOOL, told))
    return made


@pytest.mark.parametrize(
    ("results", "count"),
    [
        ([command(number) for number in range(6)], 6),
        ([command(0), command(1), command(2, output="another")], 1),
        ([command(0), command(1, exit_code=1), command(2)], 1),
        # A process that runs may have another result the next time.
        ([command(number, running=True) for number in range(6)], 1),
        # A longer one waits for something, or works.
        ([command(number, wall_duration_ms=9_999) for number in range(6)], 6),
        ([command(number, wall_duration_ms=10_000) for number in range(6)], 1),
        # Its result is read again and again, which is a repetition.
        ([command(0, wall_duration_ms=10_000)] * 6, 6),
    ],
)
def test_runs_of_a_command_are_equal_whatever_process_they_are(
    results: list[str], count: int
) -> None:
    assert repetitions(commands(*results), MessageId(1), MAKE)[0] == count


@pytest.mark.parametrize(
    ("tool", "args_json", "count"),
    [
        ("read_file", '{"path": "Makefile"}', 6),
        ("process_list", "{}", 6),
        ("edit_files", '{"files": []}', 1),
        ("execute", '{"command": "touch a"}', 1),
        ("github__push", "{}", 1),
    ],
)
def test_a_command_after_a_call_that_may_have_changed_something_is_no_repetition(
    tool: str, args_json: str, count: int
) -> None:
    between = (ToolCall("other", tool, args_json),)
    made = commands(*(command(number) for number in range(6)), between=between)
    assert repetitions(made, MessageId(1), MAKE)[0] == count


def test_the_third_equal_run_of_a_command_carries_a_hint() -> None:
    told = [command(0), command(1)]
    for number in range(2, 6):
        told.append(with_loop_hint(commands(*told), MessageId(1), MAKE, command(number)))
    assert [HINT in each for each in told] == [False, False, True, True, True, True]
    assert repetitions(commands(*told), MessageId(1), MAKE)[0] == 6
