from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import action_pb2, chat_pb2, chat_service_pb2, event_pb2, message_pb2
from parley.client import (
    ActionEnded,
    ActionKind,
    ActionRequired,
    ActionState,
    CallProgress,
    Chat,
    ChatEvent,
    ChatStatus,
    ContextFile,
    EndedAction,
    ErrorKind,
    Fallback,
    File,
    FileReference,
    HistoryReset,
    Message,
    MessageCommitted,
    MessageOrigin,
    MessagePage,
    Notice,
    PartStreamed,
    PreviewReset,
    PreviewTruncated,
    QueueChanged,
    QueuedMessage,
    Reasoning,
    RequiredCall,
    RetryScheduled,
    Role,
    RunningCall,
    RunningCalls,
    SentMessage,
    Skill,
    Source,
    StatusChanged,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    TurnError,
    TurnFailed,
    Usage,
    UserPart,
)
from parley.client.conversion import (
    chat_of,
    content_to_proto,
    event_of,
    message_of,
    page_of,
    part_of,
    sent_of,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEWER_THAN_US = 999
ENDED_PLAN = EndedAction(
    "a", ActionKind.PLAN, "t", "propose_plan", ActionState.ANSWERED, NOON, "ann"
)


def at_noon() -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(NOON)
    return timestamp


def text_part(text: str) -> message_pb2.Part:
    return message_pb2.Part(text=message_pb2.TextPart(text=text))


def test_a_chat_keeps_what_readers_see_of_it() -> None:
    error = chat_pb2.ChatError(
        message="slow down", kind=chat_pb2.ERROR_KIND_RATE_LIMIT, provider="acme", retryable=True
    )
    proto = chat_pb2.Chat(
        id="c",
        owner_id="ada",
        title="Hello",
        status=chat_pb2.CHAT_STATUS_ERROR,
        archived=True,
        last_error=error,
        versions=chat_pb2.Versions(snapshot=7),
        queue_length=2,
        place_in_line=3,
        model_id="m",
        workspace_id="w",
        labels={"team": "blue"},
        created_at=at_noon(),
    )

    assert chat_of(proto) == Chat(
        id="c",
        owner_id="ada",
        title="Hello",
        status=ChatStatus.ERROR,
        snapshot_version=7,
        is_archived=True,
        last_error=TurnError(ErrorKind.RATE_LIMIT, "slow down", provider="acme", is_retryable=True),
        queue_length=2,
        place_in_line=3,
        model_id="m",
        workspace_id="w",
        labels={"team": "blue"},
        created_at=NOON,
    )


def test_every_kind_of_part_has_a_value() -> None:
    protos = {
        "text": text_part("hi"),
        "reasoning": message_pb2.Part(
            reasoning=message_pb2.ReasoningPart(text="hm", created_at=at_noon())
        ),
        "tool_call": message_pb2.Part(
            tool_call=message_pb2.ToolCallPart(
                tool_call_id="t", tool_name="read", args_json="{}", provider_executed=True
            )
        ),
        "tool_result": message_pb2.Part(
            tool_result=message_pb2.ToolResultPart(
                tool_call_id="t",
                tool_name="read",
                outcome=message_pb2.TOOL_OUTCOME_UNKNOWN,
                files=[message_pb2.FilePart(file_id="f", media_type="text/csv", name="a.csv")],
            )
        ),
        "source": message_pb2.Part(
            source=message_pb2.SourcePart(source_id="s", url="https://example.org", title="E")
        ),
        "file": message_pb2.Part(
            file=message_pb2.FilePart(file_id="f", media_type="text/plain", name="a.txt")
        ),
        "file_reference": message_pb2.Part(
            file_reference=message_pb2.FileReferencePart(
                file_name="a.py", start_line=1, end_line=2, content="x"
            )
        ),
        "context_file": message_pb2.Part(
            context_file=message_pb2.ContextFilePart(path="AGENTS.md", truncated=True)
        ),
        "skill": message_pb2.Part(skill=message_pb2.SkillPart(name="k", description="d")),
        "notice": message_pb2.Part(notice=message_pb2.NoticePart(text="n")),
        "fallback": message_pb2.Part(
            fallback=message_pb2.FallbackPart(
                failed_model_id="a", model_id="b", kind="overloaded", text="It is down."
            )
        ),
    }

    assert {kind: part_of(proto) for kind, proto in protos.items()} == {
        "text": Text("hi"),
        "reasoning": Reasoning("hm", created_at=NOON),
        "tool_call": ToolCall("t", "read", "{}", is_provider_executed=True),
        "tool_result": ToolResult(
            "t", "read", outcome=ToolOutcome.UNKNOWN, files=(File("f", "text/csv", "a.csv"),)
        ),
        "source": Source("s", "https://example.org", "E"),
        "file": File("f", "text/plain", "a.txt"),
        "file_reference": FileReference("a.py", 1, 2, "x"),
        "context_file": ContextFile("AGENTS.md", is_truncated=True),
        "skill": Skill("k", "d"),
        "notice": Notice("n"),
        "fallback": Fallback("a", "b", "overloaded", "It is down."),
    }
    assert protos.keys() == {
        field.name for field in message_pb2.Part.DESCRIPTOR.oneofs_by_name["kind"].fields
    }


def test_every_kind_of_event_has_a_value() -> None:
    queued = chat_pb2.QueuedMessage(id="q", content=[text_part("later")])
    error = chat_pb2.ChatError(message="no key", kind=chat_pb2.ERROR_KIND_MISSING_KEY)
    protos = (
        event_pb2.ChatEvent(
            cursor="1",
            message_part=event_pb2.MessagePartEvent(
                role=message_pb2.ROLE_ASSISTANT,
                part=text_part("he"),
                history_version=4,
                generation_attempt=2,
                seq=9,
                part_index=1,
            ),
        ),
        event_pb2.ChatEvent(
            cursor="2",
            message=message_pb2.Message(
                id=1, chat_id="c", role=message_pb2.ROLE_USER, content=[text_part("hi")]
            ),
        ),
        event_pb2.ChatEvent(
            cursor="3",
            status=event_pb2.StatusEvent(status=chat_pb2.CHAT_STATUS_RUNNING, place_in_line=2),
        ),
        event_pb2.ChatEvent(cursor="4", error=error),
        event_pb2.ChatEvent(
            cursor="5", queue_update=event_pb2.QueueEvent(queued_messages=[queued])
        ),
        event_pb2.ChatEvent(
            cursor="6",
            action_required=event_pb2.ActionRequiredEvent(
                tool_calls=[
                    event_pb2.RequiredCall(tool_call_id="t", tool_name="ask", args_json="{}")
                ],
                deadline_at=at_noon(),
            ),
        ),
        event_pb2.ChatEvent(
            cursor="7",
            retry=chat_pb2.RetryState(attempt=2, delay_ms=1500, retrying_at=at_noon(), error=error),
        ),
        event_pb2.ChatEvent(cursor="8", preview_reset=event_pb2.PreviewResetEvent()),
        event_pb2.ChatEvent(cursor="9", preview_truncated=event_pb2.PreviewTruncatedEvent()),
        event_pb2.ChatEvent(cursor="10", history_reset=event_pb2.HistoryResetEvent(truncated=True)),
        event_pb2.ChatEvent(
            cursor="11",
            action_ended=event_pb2.ActionEndedEvent(
                actions=[
                    event_pb2.EndedAction(
                        id="a",
                        kind=action_pb2.ACTION_KIND_PLAN,
                        tool_call_id="t",
                        tool_name="propose_plan",
                        state=action_pb2.ACTION_STATE_ANSWERED,
                        ended_at=at_noon(),
                        ended_by="ann",
                    )
                ]
            ),
        ),
    )
    only_over_http = (
        event_pb2.ChatEvent(process_output=event_pb2.ProcessOutputEvent()),
        event_pb2.ChatEvent(process_ended=event_pb2.ProcessEndedEvent()),
    )
    no_key = TurnError(ErrorKind.MISSING_KEY, "no key")
    expected: list[ChatEvent] = [
        PartStreamed("1", Role.ASSISTANT, Text("he"), 1, 4, 2, 9),
        MessageCommitted("2", Message(1, "c", Role.USER, (Text("hi"),))),
        StatusChanged("3", ChatStatus.RUNNING, 2),
        TurnFailed("4", no_key),
        QueueChanged("5", (QueuedMessage("q", (Text("later"),)),)),
        ActionRequired("6", (RequiredCall("t", "ask", "{}"),), NOON),
        RetryScheduled("7", 2, 1.5, NOON, no_key),
        PreviewReset("8"),
        PreviewTruncated("9"),
        HistoryReset("10", is_truncated=True),
        ActionEnded("11", (ENDED_PLAN,)),
    ]

    assert [event_of(proto) for proto in protos] == expected
    assert [event_of(proto) for proto in only_over_http] == [None, None]
    assert {proto.WhichOneof("kind") for proto in (*protos, *only_over_http)} == {
        field.name for field in event_pb2.ChatEvent.DESCRIPTOR.oneofs_by_name["kind"].fields
    }


def live_result(number: int, told: message_pb2.ToolResultPart) -> event_pb2.ChatEvent:
    told.tool_call_id, told.tool_name = "t", "execute"
    part = event_pb2.MessagePartEvent(
        role=message_pb2.ROLE_TOOL, part=message_pb2.Part(tool_result=told), seq=number
    )
    return event_pb2.ChatEvent(cursor=str(number), message_part=part)


def test_live_results_fold_into_the_running_calls_until_the_result_is_there() -> None:
    calls, known = RunningCalls(), []
    progress = message_pb2.CallProgress(progress=1, total=2, message="half")
    outcome = message_pb2.TOOL_OUTCOME_DONE
    parts = (
        message_pb2.ToolResultPart(process_id="p1", result_delta="on"),
        message_pb2.ToolResultPart(result_delta="e\n", progress=progress),
        message_pb2.ToolResultPart(result_reset=True, result_delta="two\n"),
        message_pb2.ToolResultPart(result_json="{}", outcome=outcome),
        message_pb2.ToolResultPart(result_delta="again"),
    )
    for number, told in enumerate(parts, start=1):
        event = event_of(live_result(number, told))
        assert event is not None
        calls.apply(event)
        known.append(dict(calls.calls))
    calls.apply(PreviewReset("6"))
    half = CallProgress(1.0, 2.0, "half")
    assert known == [
        {"t": RunningCall("t", "execute", "on", "p1")},
        {"t": RunningCall("t", "execute", "one\n", "p1", half)},
        {"t": RunningCall("t", "execute", "two\n", "p1", half)},
        {},
        {"t": RunningCall("t", "execute", "again")},
    ]
    assert calls.calls == {}


def test_what_is_newer_than_this_client_is_left_out_or_unspecified() -> None:
    message = message_pb2.Message(
        id=1,
        chat_id="c",
        role=NEWER_THAN_US,  # type: ignore[arg-type]
        content=[message_pb2.Part(), text_part("hi")],
    )

    assert message_of(message) == Message(1, "c", Role.UNSPECIFIED, (Text("hi"),))
    assert event_of(event_pb2.ChatEvent(cursor="1")) is None
    empty_part = event_pb2.MessagePartEvent(seq=1)
    assert event_of(event_pb2.ChatEvent(cursor="1", message_part=empty_part)) is None


def test_messages_and_queued_ones_tell_who_sent_them() -> None:
    origins = {
        word: message_pb2.MessageOrigin.Value(f"MESSAGE_ORIGIN_{word.name}")
        for word in MessageOrigin
    }
    messages = {word: message_pb2.Message(origin=each) for word, each in origins.items()}
    assert {word: message_of(each).origin for word, each in messages.items()} == {
        word: word for word in MessageOrigin
    }
    queued = chat_pb2.QueuedMessage(id="q", origin=message_pb2.MESSAGE_ORIGIN_GOAL)
    page = page_of(chat_service_pb2.ListMessagesResponse(queued_messages=[queued]))
    assert page.queued == (QueuedMessage("q", (), origin=MessageOrigin.GOAL),)
    newer = message_pb2.Message(origin=NEWER_THAN_US)  # type: ignore[arg-type]
    assert message_of(newer).origin is MessageOrigin.UNSPECIFIED


def test_a_message_tells_unpriced_from_free() -> None:
    unpriced = message_pb2.Message(usage=message_pb2.Usage(input_tokens=1))
    free = message_pb2.Message(usage=message_pb2.Usage(input_tokens=1, cost_micros=0))

    assert message_of(unpriced).usage == Usage(input_tokens=1, cost_micros=None)
    assert message_of(free).usage == Usage(input_tokens=1, cost_micros=0)
    assert message_of(message_pb2.Message()).usage is None


def test_a_sent_message_went_into_the_history_or_into_the_queue() -> None:
    chat = chat_pb2.Chat(id="c", status=chat_pb2.CHAT_STATUS_RUNNING)
    queued = chat_pb2.QueuedMessage(id="q", content=[text_part("later")])
    response = chat_service_pb2.SendMessageResponse(chat=chat, queued_message=queued, replayed=True)

    assert sent_of(response) == SentMessage(
        chat=Chat("c", "", "", ChatStatus.RUNNING),
        queued=QueuedMessage("q", (Text("later"),)),
        is_replay=True,
    )


def test_a_page_keeps_its_order_and_its_queue() -> None:
    response = chat_service_pb2.ListMessagesResponse(
        messages=[message_pb2.Message(id=2), message_pb2.Message(id=1)],
        has_more=True,
        queued_messages=[chat_pb2.QueuedMessage(id="q")],
    )

    assert page_of(response) == MessagePage(
        (Message(2, "", Role.UNSPECIFIED, ()), Message(1, "", Role.UNSPECIFIED, ())),
        has_more=True,
        queued=(QueuedMessage("q", ()),),
    )


def test_a_caller_writes_text_files_and_references() -> None:
    written: list[UserPart] = [File("f"), FileReference("a.py", 1, 2, "x")]

    assert content_to_proto("hi") == [text_part("hi")]
    assert [part_of(part) for part in content_to_proto(written)] == written


def test_the_text_of_a_message_is_its_text_parts_only() -> None:
    message = Message(1, "c", Role.ASSISTANT, (Reasoning("hm"), Text("hel"), Text("lo")))

    assert message.text == "hello"
