"""Actions: answered once, in any order; the last answer resumes, and everything else ends them."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.chats.domain.chat import ChatState, NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    BusyBehavior,
    EditMessage,
    ExpireAction,
    Resolved,
    SendMessage,
    SetArchived,
    SubmitToolResults,
)
from chatd.chats.domain.errors import ActionNotOpen, BadToolResult
from chatd.chats.domain.transitions import decide, impossibility
from chatd.chats.domain.writes import (
    ActionOutcome,
    AnswerPending,
    AppendMessages,
    CancelActions,
    EndActions,
    EnqueueMessage,
    RecordDispatches,
    SetMode,
    StoredAnswer,
)
from chatd.content.domain.messages import ChatMode, MessageOrigin, Role
from chatd.content.domain.parts import (
    File,
    HookContext,
    Notice,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.prompts import hook_context_text
from chatd.content.domain.tools import Dispatch, Executor, PendingKind
from chatd.primitives.domain.ids import ExecutionId, MessageId
from support.chatd.chats.transition_states import (
    AT_REST,
    CLIENT,
    FACTS,
    HELLO,
    NOW,
    OTHER,
    QUEUED,
    TARGET,
)

QUESTION = PendingCall("q", "ask_user_question", ExecutionId("q-id"), kind=PendingKind.QUESTION)
PLAN = PendingCall("p", "propose_plan", ExecutionId("p-id"), kind=PendingKind.PLAN)
APPROVAL = PendingCall(
    "x", "execute", ExecutionId("x-id"), kind=PendingKind.APPROVAL, deadline_s=60.0
)
RESULT = ToolResult("q", "ask_user_question", '{"ok": true}', ToolOutcome.DONE)


def waiting(*pending: PendingCall, queue_length: int = 0) -> ChatState:
    earliest = min((call.deadline_s for call in pending if call.deadline_s), default=None)
    return replace(
        AT_REST,
        status=Status.REQUIRES_ACTION,
        pending=pending,
        deadline_at=None if earliest is None else NOW + timedelta(seconds=earliest),
        queue_length=queue_length,
    )


def answer(call: PendingCall, result: ToolResult, mode: ChatMode | None = None) -> AnswerAction:
    assert call.execution_id is not None
    return AnswerAction(call.execution_id, Resolved(result, mode), '{"said": 1}', "ann", OTHER)


def test_the_last_answer_resumes_with_all_results_in_the_order_of_the_calls() -> None:
    first = decide(waiting(QUESTION, CLIENT), answer(QUESTION, RESULT))
    recorded = replace(QUESTION, is_recorded=True)
    stored = EndActions(
        (StoredAnswer(ExecutionId("q-id"), '{"said": 1}', RESULT),), ActionOutcome.ANSWERED, "ann"
    )
    assert first.writes == (stored,)
    assert first.state.pending == (recorded, CLIENT)
    assert first.state.status is Status.REQUIRES_ACTION
    told = ToolResult("call_1", "ask", "{}", ToolOutcome.DONE)
    last = decide(first.state, SubmitToolResults((told,), "ann", OTHER))
    assert last.state.status is Status.RUNNING
    assert last.state.pending == ()
    answers, _ = last.writes
    assert answers == AnswerPending(
        (recorded, replace(CLIENT, is_recorded=True)), "No answer was stored.", (told,), "ann"
    )


def test_a_single_answer_is_appended_as_the_result_of_its_call() -> None:
    decision = decide(waiting(QUESTION), answer(QUESTION, RESULT))
    appended, _ = decision.writes
    assert appended == AppendMessages((NewMessage(Role.TOOL, (RESULT,), "ann"),))
    assert (decision.state.status, decision.state.worker_id) == (Status.RUNNING, OTHER)


@pytest.mark.parametrize("call", [QUESTION, CLIENT])
def test_an_action_is_answered_once(call: PendingCall) -> None:
    state = waiting(QUESTION, CLIENT)
    after = decide(state, answer(call, replace_id(RESULT, call))).state
    with pytest.raises(ActionNotOpen):
        decide(after, answer(call, replace_id(RESULT, call)))


def replace_id(result: ToolResult, call: PendingCall) -> ToolResult:
    return ToolResult(call.tool_call_id, call.tool_name, result.result_json, result.outcome)


def test_no_client_submits_the_result_of_a_call_that_waits_for_a_person() -> None:
    forged = ToolResult("x", "execute", '{"ok": true}', ToolOutcome.DONE)
    with pytest.raises(BadToolResult):
        decide(waiting(APPROVAL), SubmitToolResults((forged,), "ann", OTHER))
    with pytest.raises(BadToolResult):
        decide(waiting(APPROVAL, CLIENT), SubmitToolResults((forged,), "ann", OTHER))


def test_a_permission_records_the_dispatch_in_the_same_commit() -> None:
    call = ToolCall("x", "execute", '{"command": "rm -r x"}')
    dispatch = Dispatch(ExecutionId("x-id"), call, Executor.TOOLRUNNER, "j7", ChatMode.PLAN)
    command = AnswerAction(
        ExecutionId("x-id"), Approved(MessageId(6), dispatch), "{}", "ann", OTHER
    )
    decision = decide(waiting(APPROVAL), command)
    assert decision.state.status is Status.RUNNING
    assert decision.state.pending == (PendingCall("x", "execute", ExecutionId("x-id")),)
    ended, recorded = decision.writes
    assert ended == EndActions(
        (StoredAnswer(ExecutionId("x-id"), "{}"),), ActionOutcome.ANSWERED, "ann"
    )
    assert recorded == RecordDispatches(MessageId(6), (dispatch,))


def test_an_allowed_call_waits_for_the_other_answers() -> None:
    dispatch = Dispatch(
        ExecutionId("x-id"), ToolCall("x", "execute", "{}"), Executor.TOOLRUNNER, ""
    )
    command = AnswerAction(
        ExecutionId("x-id"), Approved(MessageId(6), dispatch), "{}", "ann", OTHER
    )
    state = decide(waiting(APPROVAL, QUESTION), command).state
    assert (state.status, state.deadline_at) == (Status.REQUIRES_ACTION, None)
    resumed = decide(state, answer(QUESTION, RESULT))
    assert resumed.state.status is Status.RUNNING
    assert [call.is_dispatched for call in resumed.state.pending] == [True, False]
    assert impossibility(resumed.state) is None


def test_accepting_a_plan_changes_the_mode_in_the_same_commit() -> None:
    accepted = ToolResult("p", "propose_plan", "{}", ToolOutcome.DONE)
    decision = decide(waiting(PLAN), answer(PLAN, accepted, ChatMode.ORDINARY))
    assert decision.writes[-1] == SetMode(ChatMode.ORDINARY)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (QUESTION, {"ok": True, "text": "hello"}),
        (PLAN, {"ok": True, "accepted": False, "remark": "hello"}),
    ],
)
def test_a_plain_message_answers_a_question_and_refuses_a_plan_with_a_remark(
    call: PendingCall, told: dict[str, object]
) -> None:
    decision = decide(waiting(CLIENT, call), SendMessage(HELLO, QUEUED, OTHER))
    (ended,) = decision.writes
    assert isinstance(ended, EndActions)
    (stored,) = ended.answers
    assert stored.result is not None
    assert json.loads(stored.result.result_json) == told
    assert decision.state.queue_length == 0


def test_what_a_hook_adds_to_an_answer_is_in_the_result_of_the_question() -> None:
    added = HookContext("user_prompt_submit", "policy", "Be brief.")
    message = replace(HELLO, content=(*HELLO.content, added))
    (ended,) = decide(waiting(CLIENT, QUESTION), SendMessage(message, QUEUED, OTHER)).writes
    assert isinstance(ended, EndActions)
    (stored,) = ended.answers
    assert stored.result is not None
    told = json.loads(stored.result.result_json)
    assert told == {"ok": True, "text": "hello", "hook_context": [hook_context_text(added)]}
    assert json.loads(stored.answer_json) == {"text": "hello"}


def test_a_notice_to_an_answer_is_in_the_result_of_the_question() -> None:
    message = replace(HELLO, content=(*HELLO.content, Notice("Mind the gap.", "policy")))
    (ended,) = decide(waiting(CLIENT, QUESTION), SendMessage(message, QUEUED, OTHER)).writes
    assert isinstance(ended, EndActions)
    (stored,) = ended.answers
    assert stored.result is not None
    told = json.loads(stored.result.result_json)
    assert told == {"ok": True, "text": "hello", "hook_notice": ["Mind the gap."]}


def test_files_and_messages_that_answer_nothing_are_queued() -> None:
    file = NewMessage(Role.USER, (Text("see"), File("f", "text/plain", "a.txt")), "ann")
    queued = decide(waiting(QUESTION), SendMessage(file, QUEUED, OTHER))
    assert queued.writes == (EnqueueMessage(QUEUED, file),)
    assert decide(waiting(APPROVAL), SendMessage(HELLO, QUEUED, OTHER)).state.queue_length == 1


@pytest.mark.parametrize("call", [QUESTION, PLAN])
@pytest.mark.parametrize("origin", MessageOrigin)
def test_only_a_message_that_a_caller_of_the_api_sent_is_an_answer_others_are_queued(
    call: PendingCall, origin: MessageOrigin
) -> None:
    message = replace(HELLO, origin=origin)
    decision = decide(waiting(call), SendMessage(message, QUEUED, OTHER))
    is_answer = origin in (MessageOrigin.PERSON, MessageOrigin.PROGRAM)
    assert (EnqueueMessage(QUEUED, message) in decision.writes) is not is_answer
    assert (decision.state.status is Status.RUNNING) is is_answer


def test_an_urgent_message_gives_up_on_the_question() -> None:
    urgent = SendMessage(HELLO, QUEUED, OTHER, BusyBehavior.INTERRUPT)
    decision = decide(waiting(QUESTION), urgent)
    assert CancelActions() in decision.writes
    assert decision.state.status is Status.RUNNING


def test_a_deadline_ends_its_own_action_and_the_next_one_is_rearmed() -> None:
    late = replace(CLIENT, deadline_s=300.0)
    state = waiting(APPROVAL, late, QUESTION)
    decision = decide(state, ExpireAction(ExecutionId("x-id"), OTHER))
    (ended,) = decision.writes
    assert isinstance(ended, EndActions)
    assert ended.outcome is ActionOutcome.EXPIRED
    assert decision.state.deadline_at == NOW + timedelta(seconds=300)
    after = decide(decision.state, ExpireAction(late.execution_id, OTHER)).state
    assert (after.deadline_at, after.status) == (None, Status.REQUIRES_ACTION)


@pytest.mark.parametrize(("queue_length", "expected"), [(0, Status.WAITING), (2, Status.ERROR)])
def test_archiving_gives_up_on_what_is_asked(queue_length: int, expected: Status) -> None:
    decision = decide(waiting(QUESTION, queue_length=queue_length), SetArchived(archived=True))
    assert (decision.state.status, decision.state.archived) == (expected, True)
    assert CancelActions() in decision.writes
    assert impossibility(decision.state) is None


def test_an_edit_ends_the_actions_of_what_it_deletes() -> None:
    decision = decide(waiting(QUESTION), EditMessage(TARGET.id, HELLO, OTHER), FACTS)
    assert CancelActions() in decision.writes
    assert decision.state.pending == ()
