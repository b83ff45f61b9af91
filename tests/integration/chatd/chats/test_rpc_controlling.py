import json
import uuid
from datetime import UTC
from typing import Any

import pytest

from chatd.chats.domain.chat import NewMessage, PendingCall
from chatd.chats.domain.commands import (
    AskedCall,
    CommitStep,
    EnterRequiresAction,
    FailTurn,
    FinishInterruption,
)
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, ExecutionId
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from support.chatd.chats.chat_people import ANN_ID, text
from support.chatd.chats.served_chats import ServedChats

WAITING = chat_pb2.CHAT_STATUS_WAITING
RUNNING = chat_pb2.CHAT_STATUS_RUNNING
INTERRUPTING = chat_pb2.CHAT_STATUS_INTERRUPTING
ERROR = chat_pb2.CHAT_STATUS_ERROR


async def queue_of(served: ServedChats, chat_id: str) -> list[Any]:
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat_id))
    return list(page.queued_messages)


async def said_in_queue(served: ServedChats, chat_id: str) -> list[str]:
    return [queued.content[0].text.text for queued in await queue_of(served, chat_id)]


async def ask_client(served: ServedChats, chat_id: str) -> None:
    """Bring a running chat to where it waits for two client tools."""
    chats = served.stores.chats
    calls = tuple(ToolCall(name, "ask", "{}") for name in ("call-1", "call-2"))
    asked = tuple(
        AskedCall(
            PendingCall(
                call.tool_call_id,
                call.tool_name,
                ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), call.tool_call_id))),
                kind=PendingKind.CLIENT,
                deadline_s=300.0,
            ),
            call,
        )
        for call in calls
    )
    state = await served.state(chat_id)
    message = NewMessage(Role.ASSISTANT, calls)
    state = await chats.apply(ChatId(chat_id), CommitStep(fence_of(state), (message,), asked=asked))
    await chats.apply(ChatId(chat_id), EnterRequiresAction(fence_of(state)))


def results(chat_id: str, *call_ids: str, output: str = "1") -> api.SubmitToolResultsRequest:
    return api.SubmitToolResultsRequest(
        request_id=f"results {call_ids} {output}",
        chat_id=chat_id,
        results=[api.ClientToolResult(tool_call_id=each, output_json=output) for each in call_ids],
    )


async def test_a_chat_that_waits_for_its_client_tells_what_for_and_until_when(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await ask_client(served, chat.id)

    deadline_at = (await served.state(chat.id)).deadline_at
    waiting = (await served.ann.ask(api.GetChatRequest(chat_id=chat.id))).chat
    listed = (await served.ann.ask(api.ListChatsRequest())).chats[0]
    answered = (await served.ann.ask(results(chat.id, "call-1", "call-2"))).chat

    assert waiting.status == chat_pb2.CHAT_STATUS_REQUIRES_ACTION
    assert list(waiting.required_action.tool_calls) == [
        chat_pb2.WaitingCall(tool_call_id=name, tool_name="ask", args_json="{}")
        for name in ("call-1", "call-2")
    ]
    assert waiting.required_action.deadline_at.ToDatetime(tzinfo=UTC) == deadline_at
    assert not listed.HasField("required_action")
    assert not answered.HasField("required_action")


async def test_a_message_that_waits_can_be_dropped(served: ServedChats) -> None:
    chat = await served.ann.create()
    for said in ("one", "two"):
        await served.ann.send(chat.id, said)
    first = (await queue_of(served, chat.id))[0]
    request = api.DeleteQueuedMessageRequest(
        request_id="d", chat_id=chat.id, queued_message_id=first.id
    )
    answer = await served.ann.ask(request)
    assert answer.chat.queue_length == 1
    assert await said_in_queue(served, chat.id) == ["two"]
    # Repeating it succeeds, a new request finds nothing.
    assert (await served.ann.ask(request)).chat.queue_length == 1
    request.request_id = "e"
    problem = await served.ann.refusal(request)
    assert problem.reason == "QUEUED_MESSAGE_NOT_FOUND"
    assert problem.metadata == {"queued_message_id": first.id}


async def test_a_promoted_message_goes_before_the_others(served: ServedChats) -> None:
    chat = await served.ann.create()
    for said in ("one", "two", "three"):
        await served.ann.send(chat.id, said)
    third = (await queue_of(served, chat.id))[2]
    request = api.PromoteQueuedMessageRequest(
        request_id="p", chat_id=chat.id, queued_message_id=third.id
    )
    answer = await served.ann.ask(request)
    assert (answer.chat.status, answer.chat.queue_length) == (INTERRUPTING, 3)
    assert await said_in_queue(served, chat.id) == ["three", "one", "two"]
    state = await served.state(chat.id)
    await served.stores.chats.apply(ChatId(chat.id), FinishInterruption(fence_of(state), ()))
    assert await served.ann.texts(chat.id) == ["hello", "three"]
    assert await said_in_queue(served, chat.id) == ["one", "two"]
    assert len(served.claims.started) == 1


async def test_a_promoted_message_of_a_failed_chat_starts_here(served: ServedChats) -> None:
    chat = await served.ann.create()
    for said in ("one", "two"):
        await served.ann.send(chat.id, said)
    state = await served.state(chat.id)
    error = TurnError("It broke.", ErrorKind.OVERLOADED, "too much", "acme", 529, is_retryable=True)
    await served.stores.chats.apply(ChatId(chat.id), FailTurn(fence_of(state), error))
    failed = await served.ann.get(chat.id)
    assert failed.status == ERROR
    assert failed.last_error == chat_pb2.ChatError(
        message="It broke.",
        detail="too much",
        kind=chat_pb2.ERROR_KIND_OVERLOADED,
        provider="acme",
        status_code=529,
        retryable=True,
        next_step="Send the message again later, or choose another model.",
    )
    second = (await queue_of(served, chat.id))[1]
    answer = await served.ann.ask(
        api.PromoteQueuedMessageRequest(
            request_id="p", chat_id=chat.id, queued_message_id=second.id
        )
    )
    assert (answer.chat.status, answer.chat.HasField("last_error")) == (RUNNING, False)
    assert await served.ann.texts(chat.id) == ["hello", "two"]
    assert [each.state.owner_epoch for each in served.claims.started] == [1, 2]


async def test_an_interrupt_stops_the_turn_it_names_and_no_other(served: ServedChats) -> None:
    chat = await served.ann.create()

    async def interrupt(turn_message_id: int) -> Any:
        request = api.InterruptRequest(
            request_id=served.ann.fresh(), chat_id=chat.id, turn_message_id=turn_message_id
        )
        return (await served.ann.ask(request)).chat.status

    free = served.claims.free
    assert await interrupt(7) == RUNNING
    assert await interrupt(1) == INTERRUPTING
    assert await interrupt(0) == INTERRUPTING
    assert (len(served.claims.started), served.claims.free) == (1, free)


async def test_an_interrupt_of_a_chat_that_waits_for_its_client_starts_the_next_message(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await ask_client(served, chat.id)
    await served.ann.send(chat.id, "next")
    answer = await served.ann.ask(api.InterruptRequest(request_id="i", chat_id=chat.id))
    assert (answer.chat.status, answer.chat.queue_length) == (RUNNING, 0)
    assert len(served.claims.started) == 2


async def test_a_chat_with_an_answer_can_be_compacted_once_it_rests(served: ServedChats) -> None:
    chat = await served.ann.create()
    request = api.RequestCompactionRequest(request_id="c", chat_id=chat.id)
    problem = await served.ann.refusal(request)
    assert problem.reason == "TRANSITION_NOT_ALLOWED"
    assert problem.metadata == {"status": "running", "command": "RequestCompaction"}
    await served.finish(chat.id)
    assert (await served.ann.ask(request)).chat.status == RUNNING
    assert (await served.state(chat.id)).is_compaction_requested
    assert len(served.claims.started) == 2
    # Repeated while it runs, the first answer counts.
    assert (await served.ann.ask(request)).chat.status == RUNNING


async def test_a_chat_without_an_answer_has_nothing_to_compact(served: ServedChats) -> None:
    chat = await served.ann.create()
    state = await served.state(chat.id)
    error = TurnError("It broke.", ErrorKind.GENERIC)
    await served.stores.chats.apply(ChatId(chat.id), FailTurn(fence_of(state), error))
    request = api.RequestCompactionRequest(request_id="c", chat_id=chat.id)
    assert (await served.ann.refusal(request)).reason == "NOTHING_TO_COMPACT"


async def test_results_of_client_tools_go_into_the_history_in_the_order_of_their_calls(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await ask_client(served, chat.id)
    assert (await served.ann.get(chat.id)).status == chat_pb2.CHAT_STATUS_REQUIRES_ACTION
    request = results(chat.id, "call-2", "call-1", output='{"x": 1}')
    request.results[0].is_error = True
    for _ in range(2):
        assert (await served.ann.ask(request)).chat.status == RUNNING
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id, after_id=2))
    told = [(message.created_by, message.content[0].tool_result) for message in page.messages]
    done, failed = message_pb2.TOOL_OUTCOME_DONE, message_pb2.TOOL_OUTCOME_FAILED
    assert told == [
        (
            ANN_ID,
            message_pb2.ToolResultPart(
                tool_call_id=call_id,
                tool_name="ask",
                result_json='{"x": 1}',
                outcome=outcome,
                is_error=outcome == failed,
            ),
        )
        for call_id, outcome in (("call-1", done), ("call-2", failed))
    ]
    assert len(served.claims.started) == 2


@pytest.mark.parametrize(
    ("call_ids", "output", "problem"),
    [
        (("call-1",), "1", {"tool_call_id": "call-2", "problem": "missing"}),
        (("call-1", "call-1"), "1", {"tool_call_id": "call-1", "problem": "duplicate"}),
        (("call-1", "call-2"), "{", {"tool_call_id": "call-1", "problem": "invalid_json"}),
        (
            ("call-1", "call-2", "x"),
            "1",
            {"tool_call_id": "x", "problem": "unexpected"},
        ),
    ],
)
async def test_results_that_do_not_fit_are_refused(
    served: ServedChats, call_ids: tuple[str, ...], output: str, problem: dict[str, str]
) -> None:
    chat = await served.ann.create()
    await ask_client(served, chat.id)
    refused = await served.ann.refusal(results(chat.id, *call_ids, output=output))
    assert (refused.reason, refused.metadata) == ("BAD_TOOL_RESULT", problem)


async def test_unknown_and_missing_results_are_all_named_with_their_places(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await ask_client(served, chat.id)
    refused = await served.ann.refusal(results(chat.id, "x", "call-1", "y"))
    assert [(each.field, each.description) for each in refused.violations] == [
        ("results", "has no result of the call call-2, which waits for one"),
        ("results[0].tool_call_id", "names no call that waits for a result of the client"),
        ("results[2].tool_call_id", "names no call that waits for a result of the client"),
    ]


async def test_results_that_nobody_asked_for_are_refused(served: ServedChats) -> None:
    chat = await served.ann.create()
    refused = await served.ann.refusal(results(chat.id, "call-1"))
    assert refused.reason == "TRANSITION_NOT_ALLOWED"


async def test_an_impossible_chat_refuses_until_it_is_reconciled(served: ServedChats) -> None:
    chat = await served.ann.create()
    reconcile = api.ReconcileChatRequest(request_id="r", chat_id=chat.id)
    assert (await served.ann.refusal(reconcile)).reason == "TRANSITION_NOT_ALLOWED"
    await served.finish(chat.id)
    await served.pool.execute(
        "ALTER TABLE chat.chat_exec DROP CONSTRAINT chat_exec_error_is_told;"
        "UPDATE chat.chat_exec SET snapshot_version = snapshot_version + 1,"
        f" last_error = '{json.dumps({'message': 'odd', 'kind': 'generic'})}'"
    )
    send = api.RequestCompactionRequest(request_id="c", chat_id=chat.id)
    assert (await served.ann.refusal(send)).reason == "INVALID_STATE"
    answer = await served.ann.ask(reconcile)
    assert (answer.chat.status, answer.chat.last_error.kind) == (
        ERROR,
        chat_pb2.ERROR_KIND_GENERIC,
    )


async def test_a_queued_message_is_reworded_given_another_effort_and_moved(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("runs")
    for each in ("one", "two", "three"):
        await served.ann.send(chat.id, each)
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))
    one, two, three = (each.id for each in page.queued_messages)

    async def change(queued_id: str, key: str, **values: Any) -> list[str]:
        answer = await served.ann.ask(
            api.UpdateQueuedMessageRequest(
                request_id=key, chat_id=chat.id, queued_message_id=queued_id, **values
            )
        )
        return [each.content[0].text.text for each in answer.queued_messages]

    assert await change(three, "a", place=1) == ["three", "one", "two"]
    assert await change(three, "b", place=2) == ["one", "three", "two"]
    assert await change(one, "c", place=99) == ["three", "two", "one"]
    assert await change(two, "d", content=[text("second")]) == ["three", "second", "one"]
    effort = chat_pb2.REASONING_EFFORT_HIGH
    reworded = await change(two, "e", content=[text("2")], reasoning_effort=effort, place=1)
    assert reworded == ["2", "three", "one"]
    # A repeated request changes nothing.
    assert await change(three, "a", place=1) == ["2", "three", "one"]
    changed = (await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))).queued_messages[0]
    assert (changed.id, changed.reasoning_effort) == (two, effort)
    await served.ann.send(chat.id, "four")
    await served.finish(chat.id, "done")
    left = await queue_of(served, chat.id)
    assert [each.content[0].text.text for each in left] == ["three", "one", "four"]
    (newest, *_) = (await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))).messages
    assert newest.content[0].text.text == "2"


async def test_a_queued_message_that_runs_already_cannot_be_changed(served: ServedChats) -> None:
    chat = await served.ann.create("runs")
    await served.ann.send(chat.id, "one")
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))
    queued_id = page.queued_messages[0].id
    await served.finish(chat.id, "done")
    request = api.UpdateQueuedMessageRequest(
        request_id="r", chat_id=chat.id, queued_message_id=queued_id, place=1
    )
    assert (await served.ann.refusal(request)).reason == "QUEUED_MESSAGE_NOT_FOUND"
    request.place = 0
    assert (await served.ann.refusal(request)).reason == "INVALID_REQUEST"
    unknown = api.UpdateQueuedMessageRequest(
        request_id="r2", chat_id=chat.id, queued_message_id=queued_id, model_id="none"
    )
    assert (await served.ann.refusal(unknown)).reason in {
        "MODEL_NOT_FOUND",
        "QUEUED_MESSAGE_NOT_FOUND",
    }
