"""What a stream of Responses means."""

import pytest

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import Source, ToolCall
from chatd.models.domain.language_model import (
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    SourceCited,
    TextDelta,
    TextEnded,
    ToolCallRequested,
    ToolInputDelta,
    UsageReported,
)
from chatd.providers.responses import ResponsesDecoder
from chatd.providers.responses.item_origins import ItemOrigin, encoded_origin
from chatd.providers.wire import Failure, ProviderFailed
from support.chatd.providers.responses_events import (
    added,
    completed,
    done,
    event,
    message,
    stored,
    taken,
    text_delta,
)

USED = UsageReported(
    input_tokens=5,
    output_tokens=7,
    reasoning_tokens=2,
    cache_read_tokens=4,
    cache_write_tokens=3,
)
STOPPED = [USED, Finished(FinishReason.STOP)]
HELLO = [TextDelta("Hello", "0.0"), TextEnded(encoded_origin(ItemOrigin("msg_1")))]
FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add"}
CALLED = ToolCallRequested(
    ToolCall("call_1", "add", '{"a":1}', provider_metadata=encoded_origin(ItemOrigin("fc_1")))
)


def summary_delta(summary_index: int, delta: str) -> bytes:
    kind = "response.reasoning_summary_text.delta"
    return event(kind, output_index=0, summary_index=summary_index, delta=delta)


def failure(*datas: bytes) -> Failure:
    with pytest.raises(ProviderFailed) as caught:
        taken(*datas)
    return caught.value.failure


def test_a_text_comes_in_deltas_and_ends_with_its_id() -> None:
    assert taken(
        event("response.created", response={"status": "in_progress"}),
        event("response.in_progress", response={"status": "in_progress"}),
        added(0, type="message", id="msg_1", content=[]),
        event("response.content_part.added", output_index=0, content_index=0),
        text_delta(0, "Hel"),
        text_delta(0, "lo"),
        event("response.output_text.done", output_index=0, text="Hello"),
        done(0, **message("msg_1", "Hello", phase="final_answer")),
        completed(message("msg_1", "Hello")),
    ) == [
        TextDelta("Hel", "0.0"),
        TextDelta("lo", "0.0"),
        TextEnded(encoded_origin(ItemOrigin("msg_1", phase="final_answer"))),
        *STOPPED,
    ]


def test_summaries_are_blocks_and_the_thought_ends_with_what_the_provider_wants_back() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("One", "Two")]
    mark = encoded_origin(ItemOrigin("rs_1", "sealed"))
    events = taken(
        added(0, type="reasoning", id="rs_1", summary=[]),
        event(
            "response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="One"
        ),
        event("response.reasoning_summary_part.done", output_index=0, summary_index=0),
        event(
            "response.reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Two"
        ),
        done(0, type="reasoning", id="rs_1", summary=summary, encrypted_content="sealed"),
        completed(),
    )
    assert events == [
        ReasoningDelta("One", "0.s0"),
        ReasoningDelta("Two", "0.s1"),
        ReasoningEnded(mark),
        *STOPPED,
    ]
    assert [(part.text, part.provider_metadata) for part in stored(events)] == [  # type: ignore[union-attr] # They are thoughts.
        ("One", ""),
        ("Two", mark),
    ]


def test_raw_thoughts_are_thoughts() -> None:
    assert taken(
        added(0, type="reasoning", id="rs_1"),
        event("response.reasoning_text.delta", output_index=0, content_index=0, delta="Hm."),
        done(0, type="reasoning", id="rs_1", content=[{"type": "reasoning_text", "text": "Hm."}]),
        completed(),
    ) == [
        ReasoningDelta("Hm.", "0.0"),
        ReasoningEnded(encoded_origin(ItemOrigin("rs_1"))),
        *STOPPED,
    ]


def test_a_thought_without_words_is_kept() -> None:
    assert taken(
        added(0, type="reasoning", id="rs_1", encrypted_content="begun"),
        done(0, type="reasoning", id="rs_1", summary=[], encrypted_content="sealed"),
        completed(),
    ) == [ReasoningEnded(encoded_origin(ItemOrigin("rs_1", "sealed"))), *STOPPED]


def test_a_thought_that_ends_after_the_text_does_not_mark_the_text() -> None:
    assert taken(
        added(0, type="reasoning", id="rs_1"),
        event("response.reasoning_text.delta", output_index=0, delta="Hm."),
        added(1, type="message", id="msg_1"),
        text_delta(1, "4"),
        done(1, **message("msg_1", "4")),
        done(0, type="reasoning", id="rs_1", content=[{"type": "reasoning_text", "text": "Hm."}]),
        completed({"type": "reasoning", "id": "rs_other"}, message("msg_other", "4")),
    ) == [
        ReasoningDelta("Hm.", "0.0"),
        TextDelta("4", "1.0"),
        TextEnded(encoded_origin(ItemOrigin("msg_1"))),
        *STOPPED,
    ]


def test_a_wordless_thought_does_not_mark_another_one_that_is_open() -> None:
    assert taken(
        event("response.reasoning_text.delta", output_index=0, delta="Hm."),
        done(1, type="reasoning", id="rs_2", encrypted_content="sealed"),
        completed(),
    ) == [
        ReasoningDelta("Hm.", "0.0"),
        ReasoningEnded(),
        ReasoningEnded(encoded_origin(ItemOrigin("rs_2", "sealed"))),
        *STOPPED,
    ]


def test_arguments_come_in_deltas_and_the_call_once() -> None:
    assert taken(
        added(0, **FUNCTION, arguments=""),
        event("response.function_call_arguments.delta", output_index=0, delta='{"a"'),
        event("response.function_call_arguments.delta", output_index=0, delta=":1}"),
        event("response.function_call_arguments.done", output_index=0, arguments='{"a":1}'),
        done(0, **FUNCTION, arguments='{"a":1}', status="completed"),
        completed({**FUNCTION, "arguments": '{"a":1}'}),
    ) == [
        ToolInputDelta("call_1", "add", '{"a"'),
        ToolInputDelta("call_1", "add", ":1}"),
        CALLED,
        USED,
        Finished(FinishReason.TOOL_CALLS),
    ]


def test_a_call_without_a_call_id_goes_by_its_item() -> None:
    item = {**FUNCTION, "call_id": None, "arguments": "{}"}
    call = ToolCall("fc_1", "add", "{}", provider_metadata=encoded_origin(ItemOrigin("fc_1")))
    assert taken(done(0, **item), completed())[0] == ToolCallRequested(call)


def test_the_text_for_a_custom_tool_becomes_its_arguments() -> None:
    item = {**FUNCTION, "type": "custom_tool_call", "input": 'say "hi"'}
    call = ToolCall(
        "call_1",
        "add",
        '{"input":"say \\"hi\\""}',
        provider_metadata=encoded_origin(ItemOrigin("fc_1")),
    )
    events = taken(
        added(0, **item),
        event("response.custom_tool_call_input.delta", output_index=0, delta="say"),
        done(0, **item),
        completed(),
    )
    assert events[0] == ToolCallRequested(call)


def test_a_call_that_was_cut_short_is_not_made() -> None:
    assert taken(
        done(0, **FUNCTION, arguments='{"a', status="incomplete"),
        event(
            "response.incomplete",
            response={
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [],
            },
        ),
    ) == [Finished(FinishReason.LENGTH)]


def test_sources_follow_the_text_once_each() -> None:
    cited = {"type": "url_citation", "url": "https://a.example", "title": "A"}
    other = {"type": "url_citation", "url": "https://b.example", "title": "B"}
    item = message("msg_1", "Hello")
    item["content"][0]["annotations"] = [cited, cited, other, {"type": "file_citation"}]
    assert taken(
        added(0, type="message", id="msg_1"),
        text_delta(0, "Hello"),
        event("response.output_text.annotation.added", output_index=0, annotation=cited),
        done(0, **item),
        completed(item),
    ) == [
        *HELLO,
        SourceCited(Source("msg_1_0", "https://a.example", "A")),
        SourceCited(Source("msg_1_1", "https://b.example", "B")),
        *STOPPED,
    ]


def test_a_refusal_is_shown_and_ends_as_one() -> None:
    item = message("msg_1") | {"content": [{"type": "refusal", "refusal": "I will not."}]}
    assert taken(
        added(0, type="message", id="msg_1"),
        event("response.refusal.delta", output_index=0, content_index=0, delta="I will not."),
        event("response.refusal.done", output_index=0, refusal="I will not."),
        done(0, **item),
        completed(item),
    ) == [
        TextDelta("I will not.", "0.0"),
        TextEnded(encoded_origin(ItemOrigin("msg_1", is_refusal=True))),
        USED,
        Finished(FinishReason.CONTENT_FILTER, "I will not."),
    ]


def test_what_was_never_streamed_comes_with_the_end() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "Hm."}]}
    assert taken(
        completed(reasoning, message("msg_1", "Hello"), {**FUNCTION, "arguments": '{"a":1}'})
    ) == [
        ReasoningDelta("Hm.", "0.s0"),
        ReasoningEnded(encoded_origin(ItemOrigin("rs_1"))),
        TextDelta("Hello", "1.0"),
        TextEnded(encoded_origin(ItemOrigin("msg_1"))),
        CALLED,
        USED,
        Finished(FinishReason.TOOL_CALLS),
    ]


def test_the_rest_of_a_text_comes_with_its_item() -> None:
    assert taken(text_delta(0, "Hel"), done(0, **message("msg_1", "Hello", "!")), completed()) == [
        TextDelta("Hel", "0.0"),
        TextDelta("lo", "0.0"),
        TextDelta("!", "0.1"),
        TextEnded(encoded_origin(ItemOrigin("msg_1"))),
        *STOPPED,
    ]


def test_the_rest_of_a_text_comes_with_the_end() -> None:
    assert taken(text_delta(0, "Hel"), completed(message("msg_1", "Hello"))) == [
        TextDelta("Hel", "0.0"),
        TextDelta("lo", "0.0"),
        TextEnded(encoded_origin(ItemOrigin("msg_1"))),
        *STOPPED,
    ]


def test_places_that_are_counted_from_one_are_not_told_twice() -> None:
    assert taken(
        text_delta(1, "Hello"),
        done(1, **message("msg_1", "Hello")),
        completed(message("x", "Hello")),
    ) == [TextDelta("Hello", "1.0"), TextEnded(encoded_origin(ItemOrigin("msg_1"))), *STOPPED]


def test_what_only_the_provider_understands_is_kept_for_it() -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    assert taken(done(0, **item), completed(item)) == [
        ReasoningEnded(encoded_origin(ItemOrigin("cmp_1", item=item))),
        *STOPPED,
    ]


def test_events_and_items_that_nobody_knows_are_passed_over() -> None:
    assert taken(
        b"",
        event("response.tomorrow", anything=[1, {}]),
        event("tomorrow"),
        b'{"no": "type", "error": null}',
        done(0, type="tomorrow", id="t_1"),
        text_delta(1, "Hello"),
        completed(),
        b"[DONE]",
        b"garbage after the end",
    ) == [TextDelta("Hello", "1.0"), *STOPPED]


def test_fields_may_come_in_any_order_and_with_spaces() -> None:
    assert taken(
        b'{"delta": "Hel", "output_index": 0, "type": "response.output_text.delta"}',
        b'{"type": "response.output_text.delta", "output_index": 0, "delta": "lo"}',
        completed(usage=None),
    ) == [TextDelta("Hel", "0.0"), TextDelta("lo", "0.0"), Finished(FinishReason.STOP)]


def test_usage_may_say_little() -> None:
    assert taken(completed(usage={"input_tokens": 3, "output_tokens": None})) == [
        UsageReported(input_tokens=3),
        Finished(FinishReason.STOP),
    ]


@pytest.mark.parametrize(
    ("reason", "finished"),
    [
        ("max_output_tokens", Finished(FinishReason.LENGTH)),
        ("content_filter", Finished(FinishReason.CONTENT_FILTER)),
        ("boredom", Finished(FinishReason.OTHER, "boredom")),
    ],
)
@pytest.mark.parametrize("kind", ["response.incomplete", "response.completed"])
def test_an_incomplete_answer_says_why(kind: str, reason: str, finished: Finished) -> None:
    whole = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []}
    assert taken(event(kind, response=whole)) == [finished]


def test_a_failed_answer_costs_what_it_cost_and_says_why() -> None:
    decoder = ResponsesDecoder()
    error = {"code": "server_error", "message": "Something broke."}
    usage = {"input_tokens": 3, "output_tokens": 1}
    whole = {"status": "failed", "error": error, "usage": usage}
    told = iter(decoder.decode(event("response.failed", response=whole)))
    assert next(told) == UsageReported(input_tokens=3, output_tokens=1)
    with pytest.raises(ProviderFailed) as caught:
        next(told)
    assert caught.value.failure == Failure(
        "server_error: Something broke.",
        body=b'{"error":{"code":"server_error","message":"Something broke."}}',
    )


def test_an_answer_that_was_cancelled_failed() -> None:
    told = failure(event("response.cancelled", response={"status": "cancelled"}))
    assert told == Failure("the answer ended as cancelled")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            event("error", code="rate_limit_exceeded", message="Slow down.", param=None),
            Failure(
                "rate_limit_exceeded: Slow down.",
                body=b'{"error":{"code":"rate_limit_exceeded","message":"Slow down."}}',
            ),
        ),
        (
            event("error", error={"type": "invalid_request_error", "message": "No."}),
            Failure(
                "invalid_request_error: No.",
                body=b'{"error":{"type":"invalid_request_error","message":"No."}}',
            ),
        ),
        (
            b'{"error": {"code": 429, "message": "Busy."}}',
            Failure(
                "429: Busy.", status_code=429, body=b'{"error":{"code":429,"message":"Busy."}}'
            ),
        ),
        (
            event("error", status=503, message="Gone.", error=None),
            Failure("Gone.", status_code=503, body=b'{"error":{"message":"Gone."}}'),
        ),
        (
            event("error", error="It broke."),
            Failure('"It broke."', body=b'{"error":{"message":"\\"It broke.\\""}}'),
        ),
    ],
)
def test_an_error_in_the_stream_is_told_with_the_status_it_names(
    data: bytes, told: Failure
) -> None:
    assert failure(text_delta(0, "Hel"), data) == told


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        b"{",
        b"[]",
        b"7",
        b'"text"',
        b"\xff\xfe",
        b'{"type":"response.output_text.delta","delta":null}',
        b'{"type":"response.output_text.delta","delta":"\xff"}',
        b'{"type":"response.output_item.done"}',
        b'{"type":"response.output_item.done","item":7}',
        b'{"type":"response.completed"}',
        b'{"type":"response.completed","response":{"output":[{"type":"message","content":7}]}}',
        b'{"type":"response.completed","response":' + b"[" * 100_000,
    ],
)
def test_garbage_is_a_failure_with_the_garbage_in_it(data: bytes) -> None:
    told = failure(data)
    assert (told.body, told.status_code, told.is_cut_off) == (data[:4096], 0, False)


def test_a_stream_without_its_last_event_was_cut_off() -> None:
    assert failure(text_delta(0, "Hello"), b"[DONE]").is_cut_off
    assert failure().is_cut_off
