"""The order of the rules that say what a turn does next."""

import json
from dataclasses import replace

from chatd.chats.domain.chat import ChatState, Message, PendingCall, Status
from chatd.chats.domain.pieces import CHAT_SUMMARIZED
from chatd.content.domain.messages import ErrorKind, Role, Visibility
from chatd.content.domain.parts import Notice, Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import PendingKind
from chatd.models.domain.estimates import estimated_tokens
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId
from chatd.turns.domain.compaction import CompactionSource, ContextUse
from chatd.turns.domain.steps import (
    CallModel,
    Compact,
    EnterAction,
    Fail,
    Finish,
    RunTools,
    StepLimit,
    StepPolicy,
    next_action,
)
from parley.clock.fake import EPOCH

RUNNING = ChatState(
    ChatId("c"), Status.RUNNING, 9, 9, 1, MessageId(9), owner_epoch=1, turn_id=MessageId(1)
)
POLICY = StepPolicy(context_limit_tokens=1000)
LOCAL = PendingCall("a", "execute", ExecutionId("e"))
CLIENT = PendingCall("b", "pick_file", ExecutionId("f"), kind=PendingKind.CLIENT)
FULL = ModelUse("demo", input_tokens=300, cache_read_tokens=300, cache_write_tokens=100)


def row(
    number: int,
    role: Role,
    *parts: Part,
    use: ModelUse | None = None,
    visibility: Visibility = Visibility.BOTH,
    is_compressed: bool = False,
) -> Message:
    return Message(
        MessageId(number), number, role, parts, "", EPOCH, visibility, is_compressed, use=use
    )


def user(number: int, text: str = "hi") -> Message:
    return row(number, Role.USER, Text(text))


def answer(number: int, use: ModelUse | None = None) -> Message:
    return row(number, Role.ASSISTANT, Text("ok"), use=use)


def called(number: int, use: ModelUse | None = None) -> Message:
    return row(number, Role.ASSISTANT, ToolCall("a", "execute", "{}"), use=use)


def result(number: int, name: str = "execute", outcome: ToolOutcome = ToolOutcome.DONE) -> Message:
    return row(number, Role.TOOL, ToolResult("a", name, "{}", outcome))


def summary(number: int, source: str = "automatic") -> tuple[Message, ...]:
    told = ToolResult("s", CHAT_SUMMARIZED, json.dumps({"source": source}), ToolOutcome.DONE)
    boundary = row(
        number, Role.USER, Text("so far"), visibility=Visibility.MODEL, is_compressed=True
    )
    return (
        boundary,
        row(
            number + 1,
            Role.ASSISTANT,
            ToolCall("s", CHAT_SUMMARIZED, "{}"),
            visibility=Visibility.USER,
            is_compressed=True,
        ),
        row(number + 2, Role.TOOL, told, is_compressed=True),
    )


def state(**changes: object) -> ChatState:
    return replace(RUNNING, **changes)  # type: ignore[arg-type]


def test_open_calls_come_first_and_the_clients_after_them() -> None:
    history = (user(1), called(2))
    both = state(pending=(LOCAL, CLIENT), is_compaction_requested=True)
    assert next_action(both, history, POLICY) == RunTools()
    only_client = state(pending=(CLIENT,), is_compaction_requested=True)
    assert next_action(only_client, history, POLICY) == EnterAction()


def test_results_that_an_owner_recorded_before_it_died_come_before_the_wait_for_a_client() -> None:
    recorded = replace(LOCAL, is_recorded=True)
    taken_over = state(pending=(CLIENT, recorded))
    assert next_action(taken_over, (user(1), called(2)), POLICY) == RunTools()


def test_a_wish_for_a_summary_comes_before_the_end_of_the_turn() -> None:
    wish = state(is_compaction_requested=True)
    history = (user(1), answer(2))
    assert next_action(wish, history, POLICY) == Compact(
        CompactionSource.MANUAL, ContextUse(0, 1000)
    )
    assert next_action(wish, (user(1),), POLICY) == Finish()


def test_after_a_summary_by_hand_the_turn_is_over_and_after_another_it_goes_on() -> None:
    by_hand = (user(1), answer(2), *summary(3, "manual"))
    assert next_action(RUNNING, by_hand, POLICY) == Finish()
    assert next_action(RUNNING, (*by_hand, user(6)), POLICY) == CallModel()
    assert next_action(RUNNING, (user(1), answer(2), *summary(3)), POLICY) == CallModel()


def test_a_question_is_answered_and_an_answer_ends_the_turn() -> None:
    assert next_action(RUNNING, (user(1),), POLICY) == CallModel()
    assert next_action(RUNNING, (user(1), answer(2)), POLICY) == Finish()
    assert next_action(RUNNING, (user(1), called(2), result(3)), POLICY) == CallModel()
    search = ToolCall("s", "web_search", "{}", provider_executed=True)
    searched = row(2, Role.ASSISTANT, search, Text("found"))
    assert next_action(RUNNING, (user(1), searched), POLICY) == Finish()


def test_a_tool_that_ends_turns_ends_only_its_own_and_only_with_success() -> None:
    policy = StepPolicy(ending_tools=frozenset({"propose"}))
    asked = row(2, Role.ASSISTANT, ToolCall("a", "propose", "{}"))
    ended = (user(1), asked, result(3, "propose"))
    failed = (user(1), asked, result(3, "propose", ToolOutcome.FAILED))
    assert next_action(RUNNING, ended, policy) == Finish()
    assert next_action(RUNNING, failed, policy) == CallModel()
    assert next_action(state(turn_id=4), (*ended, user(4)), policy) == CallModel()


def test_steps_are_counted_in_the_present_turn_without_summaries() -> None:
    policy = StepPolicy(steps_max=2)
    one = (user(1), called(2), result(3))
    two = (*one, called(4), result(5))
    assert next_action(RUNNING, (*one, *summary(4)), policy) == CallModel()
    limit = next_action(RUNNING, two, policy)
    assert isinstance(limit, StepLimit)
    assert isinstance(limit.notice.content[0], Notice)
    assert next_action(state(turn_id=6), (*two, user(6)), policy) == CallModel()


def test_use_counts_what_was_read_from_and_written_to_caches_and_what_came_since() -> None:
    history = (user(1), called(2, FULL), row(3, Role.TOOL, Text("x" * 41)))
    assert next_action(RUNNING, history, POLICY) == Compact(
        CompactionSource.AUTOMATIC, ContextUse(711, 1000)
    )
    assert estimated_tokens((Text("x" * 41),)) == 11
    almost = StepPolicy(context_limit_tokens=1016)
    assert next_action(RUNNING, history, almost) == CallModel()


def test_a_huge_new_message_counts_before_the_model_saw_it() -> None:
    small = ModelUse("demo", input_tokens=10)
    history = (user(1), answer(2, small), user(3, "x" * 4000))
    assert isinstance(next_action(state(turn_id=3), history, POLICY), Compact)


def test_use_before_the_boundary_does_not_count() -> None:
    history = (user(1), called(2, FULL), result(3), *summary(4), user(7))
    assert next_action(RUNNING, history, POLICY) == CallModel()


def test_a_summary_whose_own_answer_was_too_large_ends_the_turn() -> None:
    history = (user(1), *summary(2), called(5, FULL), result(6))
    action = next_action(RUNNING, history, POLICY)
    assert isinstance(action, Fail)
    assert action.error.kind is ErrorKind.CONTEXT_OVERFLOW
    with_more = (user(1), *summary(2), user(5), called(6, FULL), result(7))
    assert isinstance(next_action(RUNNING, with_more, POLICY), Compact)


def test_the_fourth_summary_of_a_turn_is_an_error() -> None:
    history = (user(1), called(2, FULL), result(3))
    assert isinstance(next_action(state(compactions=2), history, POLICY), Compact)
    assert isinstance(next_action(state(compactions=3), history, POLICY), Fail)


def test_a_last_answer_is_summarised_only_as_long_as_that_may_help() -> None:
    history = (user(1), answer(2, FULL))
    assert isinstance(next_action(RUNNING, history, POLICY), Compact)
    assert next_action(state(compactions=3), history, POLICY) == Finish()
    off = StepPolicy(context_limit_tokens=1000, is_final_step_compacted=False)
    assert next_action(RUNNING, history, off) == Finish()


def test_a_threshold_that_is_none_is_the_usual_one_and_a_hundred_is_never() -> None:
    use = ContextUse(700, 1000)
    assert [use.is_over(percent) for percent in (-1, 70, 71, 100, 101)] == [
        True,
        True,
        False,
        False,
        True,
    ]
