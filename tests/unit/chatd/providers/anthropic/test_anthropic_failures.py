"""How answers of Anthropic end, well or badly."""

import pytest

from chatd.content.domain.messages import FinishReason
from chatd.models.domain.language_model import (
    Finished,
    UsageReported,
)
from chatd.providers.wire import Failure, ProviderFailed
from support.chatd.providers.anthropic_events import (
    answer,
    call_block,
    decoded,
    event,
    message_start,
    text_block,
)


def failure_of(*datas: bytes) -> Failure:
    with pytest.raises(ProviderFailed) as failed:
        decoded(datas)
    return failed.value.failure


def test_usage_is_merged_and_the_last_counts() -> None:
    datas = [
        message_start(
            input_tokens=10,
            output_tokens=1,
            cache_read_input_tokens=100,
            cache_creation_input_tokens=20,
        ),
        event(
            "message_delta",
            delta={"stop_reason": "end_turn"},
            usage={
                "output_tokens": 50,
                "input_tokens": None,
                "output_tokens_details": {"thinking_tokens": 30},
            },
        ),
        event("message_stop"),
    ]

    assert decoded(datas)[-2] == UsageReported(
        input_tokens=10,
        output_tokens=50,
        reasoning_tokens=30,
        cache_read_tokens=100,
        cache_write_tokens=20,
    )


@pytest.mark.parametrize(
    ("stop_reason", "finished"),
    [
        ("end_turn", Finished(FinishReason.STOP)),
        ("stop_sequence", Finished(FinishReason.STOP)),
        ("tool_use", Finished(FinishReason.TOOL_CALLS)),
        ("max_tokens", Finished(FinishReason.LENGTH)),
        (
            "model_context_window_exceeded",
            Finished(FinishReason.LENGTH, "The context window is full."),
        ),
        ("pause_turn", Finished(FinishReason.PAUSED)),
        ("refusal", Finished(FinishReason.CONTENT_FILTER)),
        ("something_new", Finished(FinishReason.OTHER)),
    ],
)
def test_the_reason_to_stop_is_told(stop_reason: str, finished: Finished) -> None:
    assert decoded(answer(stop_reason=stop_reason))[-1] == finished


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No exploits."}
    delta = {"stop_reason": "refusal", "stop_details": details}
    datas = [message_start(), event("message_delta", delta=delta), event("message_stop")]

    assert decoded(datas)[-1] == Finished(FinishReason.CONTENT_FILTER, "cyber: No exploits.")


@pytest.mark.parametrize(
    ("kind", "status_code"),
    [("overloaded_error", 529), ("rate_limit_error", 429), ("api_error", 500), ("novel", 0)],
)
def test_an_error_in_the_stream_fails_the_call(kind: str, status_code: int) -> None:
    error = event("error", error={"type": kind, "message": "Sorry"})

    assert failure_of(message_start(), error) == Failure(
        f"{kind}: Sorry", status_code=status_code, body=error
    )


def test_an_error_without_a_shape_fails_the_call() -> None:
    error = event("error", error="broken")

    assert failure_of(error) == Failure('error: "broken"', body=error)


def test_an_answer_cut_before_its_last_event_failed() -> None:
    datas = answer(text_block(0, "a"), call_block(1, "toolu_1", "add", "{}"))

    for kept in range(len(datas)):
        assert failure_of(*datas[:kept]) == Failure(
            "the stream ended before message_stop", is_cut_off=True
        )


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"null",
        b"[]",
        b"<html>",
        b"\xff\xfe",
        b"[DONE]",
        b'{"type":null}',
        b'{"type":"message_stop"}',
        b'{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"a"}}',
        b'{"type":"content_block_start","index":0}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}',
        b'{"type":"message_start","message":{"usage":{"input_tokens":"many"}}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":1}}',
        b"[" * 100_000,
    ],
)
def test_garbage_fails_the_call(garbage: bytes) -> None:
    assert failure_of(garbage) == Failure(
        "the stream holds an event that cannot be read",
        body=garbage[: 64 * 1024],
        is_garbled=True,
    )
