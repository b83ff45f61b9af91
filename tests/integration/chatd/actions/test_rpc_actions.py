"""Actions over gRPC: listed, read, answered once by their owner, and told to nobody else."""

import asyncio
import json
import uuid
from typing import Any

import grpc
import pytest

from chatd.chats.domain.chat import NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AskedCall,
    CommitStep,
    EnterRequiresAction,
    ExpireAction,
    SetArchived,
)
from chatd.chats.domain.transitions import fence_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import PendingKind
from chatd.errors import ERRORS
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner
from parley.api.chat.v1 import action_pb2, chat_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from support.chatd.chats.chat_people import ANN_ID, text
from support.chatd.chats.followed_chats import follow, until
from support.chatd.chats.served_chats import ServedChats

QUESTIONS = {
    "questions": [
        {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]},
        {"question": "And?", "options": [{"label": "c"}, {"label": "d"}], "multiple": True},
    ]
}
PLAN = {"title": "Plan", "plan": "# first this"}


async def asking(
    served: ServedChats, kind: PendingKind, arguments: dict[str, Any], *, tool: str = "tool"
) -> tuple[str, str]:
    """Bring a new chat of Ann to where it waits for an action; return both ids."""
    chat_id = (await served.ann.create()).id
    action_id = str(uuid.uuid5(uuid.UUID(chat_id), "action"))
    call = ToolCall("call", tool, json.dumps(arguments))
    pending = PendingCall("call", tool, ExecutionId(action_id), kind=kind, reason="because")
    state = await served.state(chat_id)
    step = CommitStep(
        fence_of(state),
        (NewMessage(Role.ASSISTANT, (call,)),),
        asked=(AskedCall(pending, call, ChatMode.PLAN),),
    )
    state = await served.stores.chats.apply(ChatId(chat_id), step)
    await served.stores.chats.apply(ChatId(chat_id), EnterRequiresAction(fence_of(state)))
    return chat_id, action_id


def accept(chat_id: str, action_id: str, **more: Any) -> api.AnswerActionRequest:
    return api.AnswerActionRequest(
        request_id=more.pop("request_id", "answer"),
        chat_id=chat_id,
        action_id=action_id,
        decision=more.pop("decision", api.ACTION_DECISION_ACCEPT),
        **more,
    )


async def result_of(served: ServedChats, chat_id: str) -> dict[str, Any]:
    page = await served.ann.ask(chats_api.ListMessagesRequest(chat_id=chat_id))
    parts = [part for message in page.messages for part in message.content]
    (result,) = [part.tool_result for part in parts if part.HasField("tool_result")]
    told: dict[str, Any] = json.loads(result.result_json)
    return told


async def test_what_chats_wait_for_is_listed_to_their_owner_and_to_nobody_else(
    served: ServedChats,
) -> None:
    first = await asking(served, PendingKind.PLAN, PLAN)
    second = await asking(served, PendingKind.APPROVAL, {"command": "ls"}, tool="execute")
    listed = await served.ann.ask(api.ListActionsRequest())
    assert [(each.chat_id, each.id) for each in listed.actions] == [first, second]
    assert [each.state for each in listed.actions] == [action_pb2.ACTION_STATE_OPEN] * 2
    assert listed.actions[1].reason == "because"
    assert listed.next_page_token == ""
    page = await served.ann.ask(api.ListActionsRequest(page_size=1))
    assert [each.id for each in page.actions] == [first[1]]
    rest = await served.ann.ask(
        api.ListActionsRequest(page_size=1, page_token=page.next_page_token)
    )
    assert [each.id for each in rest.actions] == [second[1]]
    assert list((await served.bob.ask(api.ListActionsRequest())).actions) == []
    chat_id, action_id = first
    get = api.GetActionRequest(chat_id=chat_id, action_id=action_id)
    assert (await served.ann.ask(get)).action.kind == action_pb2.ACTION_KIND_PLAN
    assert (await served.bob.refusal(get)).reason == "CHAT_NOT_FOUND"
    assert (await served.bob.refusal(accept(chat_id, action_id))).reason == "CHAT_NOT_FOUND"
    chat = await served.ann.ask(chats_api.GetChatRequest(chat_id=chat_id))
    assert [each.id for each in chat.chat.required_action.actions] == [action_id]
    assert list(chat.chat.required_action.tool_calls) == []


async def test_answers_to_questions_resume_the_turn_with_a_structured_result(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(served, PendingKind.QUESTION, QUESTIONS)
    answered = await served.ann.ask(
        api.AnswerActionRequest(
            request_id="r",
            chat_id=chat_id,
            action_id=action_id,
            answers=[
                api.QuestionAnswer(selected=["b"]),
                api.QuestionAnswer(selected=["c", "d"], text="both"),
            ],
        )
    )
    assert answered.chat.status == chat_pb2.CHAT_STATUS_RUNNING
    assert answered.action.state == action_pb2.ACTION_STATE_ANSWERED
    assert answered.action.ended_by == served.ann.id
    assert await result_of(served, chat_id) == {
        "ok": True,
        "answers": [
            {"question": "Which?", "selected": ["b"]},
            {"question": "And?", "selected": ["c", "d"], "text": "both"},
        ],
    }
    assert [each.state.chat_id for each in served.claims.started][-1] == chat_id


async def test_a_message_of_a_monitor_does_not_answer_for_its_owner(served: ServedChats) -> None:
    chat_id, action_id = await asking(served, PendingKind.QUESTION, QUESTIONS)
    sending = chats_api.SendMessageRequest(
        request_id="w", chat_id=chat_id, content=[text("woken")], brief=True
    )
    no_context: Any = None
    answer = await OwnerCalls(ERRORS).call(
        Owner(ANN_ID, "member"),
        "parley.api.chat.v1.ChatService/SendMessage",
        lambda: served.chat_servicer.SendMessage(sending, no_context),
    )
    assert (answer.queued, answer.answered_action_id) == (True, "")
    get = api.GetActionRequest(chat_id=chat_id, action_id=action_id)
    assert (await served.ann.ask(get)).action.state == action_pb2.ACTION_STATE_OPEN


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ([], "answers"),
        ([api.QuestionAnswer(selected=["a"])], "answers"),
        ([api.QuestionAnswer(selected=["x"])] * 2, "answers[0].selected"),
        ([api.QuestionAnswer(selected=["a", "b"])] * 2, "answers[0].selected"),
        ([api.QuestionAnswer(selected=["a"]), api.QuestionAnswer()], "answers[1]"),
    ],
)
async def test_an_answer_that_does_not_fit_changes_nothing(
    served: ServedChats, answers: list[api.QuestionAnswer], field: str
) -> None:
    chat_id, action_id = await asking(served, PendingKind.QUESTION, QUESTIONS)
    request = api.AnswerActionRequest(
        request_id="r", chat_id=chat_id, action_id=action_id, answers=answers
    )
    refusal = await served.ann.refusal(request)
    assert (refusal.reason, refusal.violations[0].field) == ("INVALID_REQUEST", field)
    assert (await served.state(chat_id)).status is Status.REQUIRES_ACTION


async def test_an_accepted_plan_ends_the_mode_and_is_the_document_of_the_chat(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    await served.pool.execute("UPDATE chat.chats SET mode = 'plan' WHERE id = $1", chat_id)
    proposed = (await served.ann.ask(api.GetPlanRequest(chat_id=chat_id))).plan
    assert (proposed.text, proposed.state) == ("# first this", action_pb2.ACTION_STATE_OPEN)
    answered = await served.ann.ask(accept(chat_id, action_id, plan="# first that", remark="ok"))
    assert answered.chat.mode == chat_pb2.CHAT_MODE_UNSPECIFIED
    assert served.changed == [chat_id]
    plan = (await served.ann.ask(api.GetPlanRequest(chat_id=chat_id))).plan
    assert (plan.title, plan.text, plan.accepted) == ("Plan", "# first that", True)
    told = await result_of(served, chat_id)
    assert (told["accepted"], told["plan"], told["remark"]) == (True, "# first that", "ok")


async def test_a_refused_plan_goes_back_with_the_remark_and_the_mode_stays(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    await served.pool.execute("UPDATE chat.chats SET mode = 'plan' WHERE id = $1", chat_id)
    refuse = accept(chat_id, action_id, decision=api.ACTION_DECISION_REFUSE, remark="shorter")
    answered = await served.ann.ask(refuse)
    assert answered.chat.mode == chat_pb2.CHAT_MODE_PLAN
    assert await result_of(served, chat_id) == {
        "ok": True,
        "accepted": False,
        "remark": "shorter",
    }


async def test_a_permission_dispatches_exactly_the_call_that_was_asked(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(
        served, PendingKind.APPROVAL, {"command": "ls"}, tool="execute"
    )
    await served.ann.ask(accept(chat_id, action_id))
    state = await served.state(chat_id)
    assert [call.execution_id for call in state.pending] == [action_id]
    (execution,) = await served.stores.chats.executions(
        ChatId(chat_id), MessageId(state.next_message_id - 1)
    )
    assert (execution.execution_id, execution.journal_generation) == (action_id, "j1")
    assert execution.mode is ChatMode.PLAN


async def test_a_permission_for_a_tool_that_is_gone_runs_nothing(served: ServedChats) -> None:
    chat_id, action_id = await asking(served, PendingKind.APPROVAL, {}, tool="gone")
    await served.ann.ask(accept(chat_id, action_id))
    assert (await result_of(served, chat_id))["reason"] == "NOT_RUN"


async def test_a_refusal_is_the_result_of_the_call(served: ServedChats) -> None:
    chat_id, action_id = await asking(served, PendingKind.APPROVAL, {}, tool="execute")
    refuse = accept(chat_id, action_id, decision=api.ACTION_DECISION_REFUSE, remark="never")
    await served.ann.ask(refuse)
    told = await result_of(served, chat_id)
    assert (told["ok"], told["reason"], told["hint"]) == (False, "REFUSED", "never")


async def test_the_second_answer_is_told_of_the_first_and_a_repetition_gets_the_first_outcome(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    await served.ann.ask(accept(chat_id, action_id))
    again = await served.ann.ask(accept(chat_id, action_id))
    assert again.action.state == action_pb2.ACTION_STATE_ANSWERED
    late = await served.ann.refusal(accept(chat_id, action_id, request_id="other"))
    assert (late.reason, late.metadata["state"]) == ("ACTION_ENDED", "answered")
    assert late.metadata["ended_by"] == served.ann.id


async def test_of_two_answers_in_the_same_moment_one_wins(served: ServedChats) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    refuse = accept(
        chat_id, action_id, request_id="no", decision=api.ACTION_DECISION_REFUSE, remark="no"
    )

    async def outcome(request: api.AnswerActionRequest) -> str:
        try:
            await served.ann.ask(request)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "won"

    async with asyncio.TaskGroup() as group:
        both = [group.create_task(outcome(each)) for each in (accept(chat_id, action_id), refuse)]
    assert sorted(task.result() for task in both) == ["FAILED_PRECONDITION", "won"]


async def test_what_is_gone_or_never_was_cannot_be_answered(served: ServedChats) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    nowhere = str(uuid.uuid5(uuid.UUID(chat_id), "nothing"))
    assert (await served.ann.refusal(accept(chat_id, nowhere))).reason == "ACTION_NOT_FOUND"
    await served.ann.ask(chats_api.InterruptRequest(request_id="i", chat_id=chat_id))
    cancelled = await served.ann.refusal(accept(chat_id, action_id))
    assert (cancelled.reason, cancelled.metadata["state"]) == ("ACTION_ENDED", "cancelled")
    other = (await served.ann.create()).id
    assert (await served.ann.refusal(accept(other, action_id))).reason == "ACTION_NOT_FOUND"
    no_plan = await served.ann.refusal(api.GetPlanRequest(chat_id=other))
    assert no_plan.reason == "PLAN_NOT_FOUND"


async def test_what_expired_and_what_another_user_is_asked_cannot_be_answered(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    theirs = await served.bob.refusal(accept(chat_id, action_id))
    assert theirs.reason == "CHAT_NOT_FOUND"
    assert (await served.state(chat_id)).status is Status.REQUIRES_ACTION
    await expire(served, chat_id, action_id)
    late = await served.ann.refusal(accept(chat_id, action_id))
    assert (late.reason, late.metadata["state"]) == ("ACTION_ENDED", "expired")


async def test_a_plain_message_is_the_answer_and_says_so(served: ServedChats) -> None:
    chat_id, action_id = await asking(served, PendingKind.QUESTION, QUESTIONS)
    sent = await served.ann.send(chat_id, "the second one")
    assert sent.answered_action_id == action_id
    assert not sent.HasField("message")
    assert not sent.queued
    assert await result_of(served, chat_id) == {"ok": True, "text": "the second one"}


async def expire(served: ServedChats, chat_id: str, action_id: str) -> None:
    command = ExpireAction(ExecutionId(action_id), None)
    await served.stores.chats.apply(ChatId(chat_id), command)


async def interrupt(served: ServedChats, chat_id: str, action_id: str) -> None:
    await served.ann.ask(chats_api.InterruptRequest(chat_id=chat_id, request_id="stop"))


async def edit(served: ServedChats, chat_id: str, action_id: str) -> None:
    request = chats_api.EditMessageRequest(
        request_id="edit", chat_id=chat_id, message_id=1, content=[text("anew")]
    )
    await served.ann.ask(request)


async def archive(served: ServedChats, chat_id: str, action_id: str) -> None:
    await served.stores.chats.apply(ChatId(chat_id), SetArchived(True))


async def answer(served: ServedChats, chat_id: str, action_id: str) -> None:
    await served.ann.ask(accept(chat_id, action_id))


@pytest.mark.parametrize(
    ("end", "state", "ended_by"),
    [
        (answer, action_pb2.ACTION_STATE_ANSWERED, ANN_ID),
        (expire, action_pb2.ACTION_STATE_EXPIRED, ""),
        (interrupt, action_pb2.ACTION_STATE_CANCELLED, ""),
        (edit, action_pb2.ACTION_STATE_CANCELLED, ""),
        (archive, action_pb2.ACTION_STATE_CANCELLED, ""),
    ],
)
async def test_readers_are_told_how_an_action_ended_and_who_answered(
    served: ServedChats, end: Any, state: int, ended_by: str
) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    live = follow(served.ann, chat_id)
    before = await until(live, "action_required")
    assert [each.id for each in before[-1].action_required.actions] == [action_id]
    await end(served, chat_id, action_id)
    told = (await until(live, "action_ended"))[-1]
    (ended,) = told.action_ended.actions
    assert (ended.id, ended.kind, ended.state, ended.ended_by) == (
        action_id,
        action_pb2.ACTION_KIND_PLAN,
        state,
        ended_by,
    )
    assert (ended.tool_call_id, ended.tool_name) == ("call", "tool")
    stored = await served.ann.ask(api.GetActionRequest(chat_id=chat_id, action_id=action_id))
    assert ended.ended_at == stored.action.ended_at
    live.cancel()


async def test_a_reader_that_was_away_when_an_action_ended_is_told_after_resuming(
    served: ServedChats,
) -> None:
    chat_id, action_id = await asking(served, PendingKind.PLAN, PLAN)
    live = follow(served.ann, chat_id)
    cursor = (await until(live, "action_required"))[-1].cursor
    live.cancel()
    await answer(served, chat_id, action_id)
    resumed = follow(served.ann, chat_id, cursor=cursor)
    told = (await until(resumed, "action_ended"))[-1]
    assert [each.id for each in told.action_ended.actions] == [action_id]
    resumed.cancel()
    later = follow(served.ann, chat_id, cursor=told.cursor)
    await served.finish(chat_id, "done")
    assert "action_ended" not in {
        each.WhichOneof("kind") for each in await until(later, "preview_reset")
    }
    later.cancel()
