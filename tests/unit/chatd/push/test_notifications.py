"""Which changes of chats are notified, and what devices show of them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chatd.chats.domain.chat import ChatState, PendingCall, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.tools import InputRequired, PendingKind
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.push.domain.delivery import Answer, Result, backoff_s, result_of_answer
from chatd.push.domain.notification import (
    PAYLOAD_BYTES_MAX,
    TEST,
    ChatEvent,
    ChatFacts,
    NotificationKind,
    Verdict,
    after_failure,
    after_turn,
    notification_of,
    payload_of,
    plain_text,
    verdict_of,
)
from chatd.turns.domain.turn import Ending, TurnEnded

CHAT = ChatId("00000000-0000-4000-8000-00000000000c")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
STATE = ChatState(CHAT, Status.WAITING, 9, 7, 0, MessageId(5))
ERROR = TurnError("The provider is down.", ErrorKind.OVERLOADED)
FINISHED, FAILED, ASKS = (
    NotificationKind.FINISHED,
    NotificationKind.FAILED,
    NotificationKind.ASKS,
)


def ended(ending: Ending, text: str = "", **state: Any) -> TurnEnded:
    return TurnEnded(ending, ANN, replace(STATE, **state), text)


def asking(kind: PendingKind, **more: Any) -> TurnEnded:
    call = PendingCall("t1", "execute", kind=kind, **more)
    return ended(Ending.ASKED_CLIENT, status=Status.REQUIRES_ACTION, pending=(call,))


def event(kind: NotificationKind, text: str, **more: Any) -> ChatEvent:
    return ChatEvent(kind, CHAT, 7, text, ANN.id, **more)


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (ended(Ending.FINISHED, "Done."), event(FINISHED, "Done.")),
        (ended(Ending.FINISHED, " "), None),
        (ended(Ending.FINISHED, "Done.", status=Status.RUNNING), None),
        (ended(Ending.INTERRUPTED, "Do"), None),
        (
            ended(Ending.FAILED, status=Status.ERROR, last_error=ERROR),
            event(FAILED, "The provider is down."),
        ),
        (
            asking(PendingKind.QUESTION),
            event(ASKS, "A question waits for your answer.", tool_call_id="t1"),
        ),
        (asking(PendingKind.PLAN), event(ASKS, "A plan waits for your decision.")),
        (
            asking(PendingKind.APPROVAL, reason="It writes."),
            event(ASKS, "May execute run? It writes."),
        ),
        (asking(PendingKind.LOOP), event(ASKS, "May execute run?")),
        (
            asking(
                PendingKind.LOGIN, question=InputRequired("r", PendingKind.LOGIN, "Sign in to X.")
            ),
            event(ASKS, "Sign in to X."),
        ),
        (asking(PendingKind.ELICITATION), event(ASKS, "A question waits for your answer.")),
        (asking(PendingKind.CLIENT), None),
        (asking(PendingKind.AGENTS), None),
        (asking(PendingKind.QUESTION, is_recorded=True), None),
    ],
)
def test_the_end_of_a_turn_is_told_or_not(turn: TurnEnded, told: ChatEvent | None) -> None:
    assert after_turn(turn) == told


def test_a_failure_outside_of_a_turn_is_told_and_other_states_are_not() -> None:
    failed = replace(STATE, status=Status.ERROR, last_error=ERROR)
    assert after_failure(failed) == ChatEvent(FAILED, CHAT, 7, "The provider is down.")
    assert after_failure(replace(STATE, status=Status.RUNNING)) is None


FACTS = ChatFacts(ANN.id, "Leaks", True, False, Status.WAITING, 7, 0)


@pytest.mark.parametrize(
    ("kind", "facts", "verdict"),
    [
        (FINISHED, FACTS, Verdict.TELL),
        (FINISHED, replace(FACTS, is_root=False), Verdict.DROP),
        (FINISHED, replace(FACTS, is_archived=True), Verdict.DROP),
        (FINISHED, replace(FACTS, status=Status.RUNNING), Verdict.DROP),
        (FINISHED, replace(FACTS, history_version=8), Verdict.DROP),
        (FINISHED, replace(FACTS, queue_length=1), Verdict.DROP),
        (FINISHED, replace(FACTS, is_scheduled=True), Verdict.DROP),
        (FINISHED, replace(FACTS, has_goal=True), Verdict.WAIT),
        (FAILED, FACTS, Verdict.DROP),
        (FAILED, replace(FACTS, status=Status.ERROR, has_goal=True), Verdict.TELL),
        (ASKS, replace(FACTS, status=Status.REQUIRES_ACTION, queue_length=1), Verdict.TELL),
        (ASKS, replace(FACTS, status=Status.REQUIRES_ACTION, is_root=False), Verdict.DROP),
    ],
)
def test_a_chat_that_changed_or_continues_by_itself_is_not_told(
    kind: NotificationKind, facts: ChatFacts, verdict: Verdict
) -> None:
    assert verdict_of(event(kind, ""), facts) is verdict


def test_a_label_says_more_than_the_answer_and_an_answer_is_shown_without_marks() -> None:
    answered = event(FINISHED, "# Done\n\n- **All** `tests` of [snake_case](x) pass.\n")
    assert notification_of(answered, "Leaks").body == "Done All tests of snake_case pass."
    assert notification_of(answered, "Leaks", "Tests pass now").body == "Tests pass now"
    assert notification_of(event(FINISHED, "```\n```"), "Leaks").body == "The answer is ready."
    assert plain_text("a * b < c_d_e") == "a b < c_d_e"


def test_a_payload_is_small_and_says_where_it_leads() -> None:
    shown = notification_of(event(ASKS, "Which?"), "Leaks")
    assert json.loads(payload_of(shown)) == {
        "kind": "asks",
        "chat_id": CHAT,
        "title": "Leaks",
        "body": "Which?",
        "path": f"/chats/{CHAT}",
    }
    assert json.loads(payload_of(TEST))["kind"] == "test"
    largest = notification_of(event(FINISHED, "\x01🙂" * 5000), "🙂" * 500)
    assert len(payload_of(largest)) <= PAYLOAD_BYTES_MAX


@pytest.mark.parametrize(
    ("status", "retry_after", "result", "retry_after_s"),
    [
        (201, "", Result.SENT, None),
        (302, "", Result.REFUSED, None),
        (400, "", Result.REFUSED, None),
        (401, "", Result.REFUSED, None),
        (403, "", Result.REFUSED, None),
        (404, "", Result.GONE, None),
        (410, "", Result.GONE, None),
        (413, "", Result.REFUSED, None),
        (429, "120", Result.LIMITED, 120.0),
        (429, "Thu, 19 Nov 2026 00:00:00 GMT", Result.LIMITED, None),
        (503, "5", Result.FAILED, 5.0),
    ],
)
def test_answers_of_push_services(
    status: int, retry_after: str, result: Result, retry_after_s: float | None
) -> None:
    answer = result_of_answer(status, retry_after)
    assert (answer.result, answer.retry_after_s) == (result, retry_after_s)
    assert bool(answer.problem) == (result is not Result.SENT)


def test_a_device_is_left_alone_for_longer_after_each_failure_or_as_it_asks() -> None:
    failed = Answer(Result.FAILED)
    assert [backoff_s(failed, count) for count in (1, 2, 3, 99)] == [30, 60, 120, 3600]
    assert backoff_s(Answer(Result.LIMITED, "", 5.0), 9) == 5
    assert backoff_s(Answer(Result.LIMITED, "", 1e9), 1) == 24 * 3600
