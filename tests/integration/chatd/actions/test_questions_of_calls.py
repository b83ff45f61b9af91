"""What running calls ask, over gRPC: shown, answered, and cancelled with the chat."""

import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chatd.chats.domain.chat import NewMessage, PendingCall, Status
from chatd.chats.domain.commands import AskedCall, CommitStep, EnterRequiresAction, SuspendCall
from chatd.chats.domain.tool_results import asking_call
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.cleanup.cancelled_calls import CancelledCalls
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Ended,
    Execution,
    Executor,
    ExecutorUnreachable,
    InputAction,
    InputAnswer,
    InputRequired,
    PendingKind,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.cancellations import KEPT, Cancellations
from chatd.tools.mcpgateway import McpTools
from parley.api.chat.v1 import action_pb2, chat_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.clock import FakeClock
from support.chatd.chats.chat_people import ANN_ID, text
from support.chatd.chats.served_chats import ServedChats
from support.chatd.turns.journaling_tools import JournalingTools
from support.mcpgateway.asking_runtime import asking_mcp_tools

SPEC = ToolSpec("git__clone", "", "{}", Executor.MCPGATEWAY, "j1", original_name="clone")
CALL = ToolCall("call", SPEC.name, '{"url": "x"}')
SCHEMA = {"properties": {"branch": {"type": "string", "enum": ["a", "b"]}}, "required": ["branch"]}
FORM = InputRequired("r1", PendingKind.ELICITATION, "Which branch?", json.dumps(SCHEMA))
LOGIN = InputRequired("r1", PendingKind.LOGIN, "Sign in.", url="https://example.com/login")


@dataclass(frozen=True, slots=True)
class Asking:
    """A chat whose call asks at a real executor."""

    served: ServedChats
    journal: JournalingTools
    tools: McpTools
    execution: Execution
    action_id: str

    @property
    def chat_id(self) -> str:
        return self.execution.chat_id

    @property
    def cancellations(self) -> Cancellations:
        return Cancellations(CancelledCalls(self.served.pool), self.tools, FakeClock())

    def answer(self, **given: Any) -> api.AnswerActionRequest:
        fields: dict[str, Any] = {
            "request_id": "r",
            "decision": api.ACTION_DECISION_ACCEPT,
            **given,
        }
        return api.AnswerActionRequest(chat_id=self.chat_id, action_id=self.action_id, **fields)

    async def pending(self) -> tuple[PendingCall, ...]:
        return (await self.served.state(self.chat_id)).pending

    async def left(self) -> int:
        """Return how many calls are to be cancelled."""
        count: int = await self.served.pool.fetchval("SELECT count(*) FROM chat.cancelled_calls")
        return count


async def begin(
    served: ServedChats, journal: JournalingTools, tools: McpTools, *, is_stored: bool = True
) -> Asking:
    """Bring a new chat of Ann to where its call asks, and waits for that if it `is_stored`."""
    chat_id = ChatId((await served.ann.create()).id)
    chats = served.stores.chats
    execution_id = ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), "execution")))
    dispatch = Dispatch(execution_id, CALL, Executor.MCPGATEWAY, "j1")
    state = await served.state(chat_id)
    context = TurnContext(chat_id, Owner(OwnerId(ANN_ID), "member"))
    execution = Execution(context, state.owner_epoch, dispatch, SPEC)
    message_id = state.next_message_id
    step = CommitStep(fence_of(state), (NewMessage(Role.ASSISTANT, (CALL,)),), (dispatch,))
    state = await chats.apply(chat_id, step)
    question = await tools.execute(execution)
    assert isinstance(question, InputRequired)
    pending = PendingCall(
        CALL.tool_call_id,
        CALL.tool_name,
        execution_id,
        kind=question.kind,
        question=question,
        question_id=ExecutionId(str(uuid.uuid5(uuid.UUID(execution_id), question.request_id))),
    )
    asking = Asking(served, journal, tools, execution, str(pending.question_id))
    if not is_stored:
        return asking
    asked = AskedCall(pending, asking_call(pending, CALL))
    state = await chats.apply(chat_id, SuspendCall(fence_of(state), message_id, asked))
    await chats.apply(chat_id, EnterRequiresAction(fence_of(state)))
    return asking


@pytest.fixture
async def journal() -> JournalingTools:
    journal = JournalingTools(SPEC)
    journal.questions["clone"] = (FORM,)
    return journal


@pytest.fixture
async def tools(journal: JournalingTools, tmp_path: Path) -> AsyncIterator[McpTools]:
    async with asking_mcp_tools(journal, tmp_path) as tools:
        yield tools


@pytest.fixture
async def asking(served: ServedChats, journal: JournalingTools, tools: McpTools) -> Asking:
    return await begin(served, journal, tools)


async def test_what_a_call_asks_is_shown_with_its_chat_and_listed(asking: Asking) -> None:
    served = asking.served
    (listed,) = (await served.ann.ask(api.ListActionsRequest())).actions
    chat = (await served.ann.ask(chats_api.GetChatRequest(chat_id=asking.chat_id))).chat
    (shown,) = chat.required_action.actions
    for action in (listed, shown):
        assert (action.id, action.kind, action.tool_name, json.loads(action.args_json)) == (
            asking.action_id,
            action_pb2.ACTION_KIND_ELICITATION,
            SPEC.name,
            {"message": "Which branch?", "schema": SCHEMA},
        )
    assert chat.status == chat_pb2.CHAT_STATUS_REQUIRES_ACTION


async def test_an_answer_is_stored_with_the_call_and_taken_once(asking: Asking) -> None:
    request = asking.answer(content_json='{"branch": "a"}')
    answered = await asking.served.ann.ask(request)
    assert answered.action.state == action_pb2.ACTION_STATE_ANSWERED
    assert json.loads(answered.action.answer_json) == {"accepted": True, "content": {"branch": "a"}}
    (call,) = await asking.pending()
    assert (call.is_dispatched, call.execution_id, call.answer) == (
        True,
        asking.execution.dispatch.execution_id,
        InputAnswer("r1", InputAction.ACCEPT, '{"branch": "a"}'),
    )
    assert (await asking.served.state(asking.chat_id)).status is Status.RUNNING
    assert (await asking.served.ann.ask(request)).action == answered.action
    second = await asking.served.ann.refusal(asking.answer(request_id="other"))
    assert second.reason == "ACTION_ENDED"


async def test_a_refusal_is_passed_on_as_one(asking: Asking) -> None:
    await asking.served.ann.ask(asking.answer(decision=api.ACTION_DECISION_REFUSE))
    (call,) = await asking.pending()
    assert call.answer == InputAnswer("r1", InputAction.DECLINE)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "content_json#/branch"),
        ({"content_json": "[]"}, "content"),
        ({"content_json": "{"}, "content"),
        ({"content_json": '{"branch": "c"}'}, "content_json#/branch"),
        ({"content_json": '{"branch": 1}'}, "content_json#/branch"),
        ({"content_json": '{"branch": "a", "more": 1}'}, "content_json#/more"),
        ({"content_json": '{"branch": "a"}', "remark": "well"}, "remark"),
        ({"content_json": '{"branch": "a"}', "remember": True}, "remember"),
        ({"content_json": '{"branch": "a"}', "arguments_digest": "0"}, "arguments_digest"),
        ({"content_json": "{}", "decision": api.ACTION_DECISION_REFUSE}, "content"),
        ({"decision": api.ACTION_DECISION_UNSPECIFIED}, "decision"),
        ({"answers": [api.QuestionAnswer(text="a")]}, "answers"),
        ({"plan": "# p"}, "plan"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused(
    asking: Asking, given: dict[str, Any], field: str
) -> None:
    refusal = await asking.served.ann.refusal(asking.answer(**given))
    assert (refusal.reason, [each.field for each in refusal.violations]) == (
        "INVALID_REQUEST",
        [field],
    )
    (call,) = await asking.pending()
    assert call.is_suspended


async def test_a_login_needs_no_content(
    served: ServedChats, journal: JournalingTools, tools: McpTools
) -> None:
    journal.questions["clone"] = (LOGIN,)
    asking = await begin(served, journal, tools)
    refusal = await served.ann.refusal(asking.answer(content_json="{}"))
    assert [each.field for each in refusal.violations] == ["content"]
    await served.ann.ask(asking.answer())
    (call,) = await asking.pending()
    assert call.answer == InputAnswer("r1", InputAction.ACCEPT)


async def deleted(asking: Asking) -> None:
    await asking.served.ann.ask(chats_api.DeleteChatRequest(request_id="d", chat_id=asking.chat_id))


async def archived(asking: Asking) -> None:
    await asking.served.stores.trees.set_archived(
        ChatId(asking.chat_id), owner_id=OwnerId(ANN_ID), archived=True
    )


async def edited(asking: Asking) -> None:
    request = chats_api.EditMessageRequest(
        request_id="e",
        chat_id=asking.chat_id,
        message_id=1,
        content=[text("something else")],
    )
    await asking.served.ann.ask(request)


@pytest.mark.parametrize("give_up", [deleted, archived, edited], ids=lambda each: each.__name__)
async def test_a_call_of_a_chat_that_gives_it_up_is_cancelled_for_as_long_as_it_takes(
    asking: Asking, give_up: Any
) -> None:
    await give_up(asking)
    assert await asking.left() == 1
    asking.journal.is_reachable = False
    with pytest.raises(ExecutorUnreachable):
        await asking.tools.find(asking.execution)
    await asking.cancellations.cancel_due()
    assert await asking.left() == 1
    asking.journal.is_reachable = True
    await asking.cancellations.cancel_due()
    assert await asking.left() == 1, "the process that took it may still try"
    await asking.served.pool.execute("UPDATE chat.cancelled_calls SET try_at = now()")
    await asking.cancellations.cancel_due()
    assert (await asking.left(), asking.journal.waiting()) == (0, set())
    found = await asking.tools.find(replace(asking.execution, owner_epoch=99))
    assert isinstance(found, Ended)
    assert found.outcome.outcome is ToolOutcome.CANCELLED


@pytest.mark.parametrize("give_up", [deleted, edited], ids=lambda each: each.__name__)
async def test_a_call_that_runs_is_cancelled_too_because_it_could_ask_later(
    served: ServedChats, journal: JournalingTools, tools: McpTools, give_up: Any
) -> None:
    asking = await begin(served, journal, tools, is_stored=False)
    assert (await asking.pending())[0].is_dispatched
    await give_up(asking)
    assert await asking.left() == 1
    await asking.cancellations.cancel_due()
    assert (await asking.left(), journal.waiting()) == (0, set())


async def test_a_call_is_cancelled_again_if_its_chat_had_a_newer_owner_meanwhile(
    asking: Asking,
) -> None:
    await edited(asking)
    calls = CancelledCalls(asking.served.pool)
    (taken,) = await calls.take(10, KEPT)
    await asking.served.pool.execute("UPDATE chat.chat_exec SET owner_epoch = owner_epoch + 1")
    await calls.delete(taken)
    assert await asking.left() == 1
    await calls.delete(replace(taken, owner_epoch=taken.owner_epoch + 1))
    assert await asking.left() == 0
