"""Text and the end of a chat completion."""

import pytest

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import Source, Text, ToolCall
from chatd.models.domain.language_model import Finished, SourceCited, TextDelta, ToolCallRequested
from chatd.providers.completions import CompletionsDecoder
from chatd.providers.wire import ProviderFailed
from support.chatd.providers.completions import DONE, chunk, data, decoded

HELLO = (chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"))
STOP = chunk("stop")
HELLO_EVENTS = (TextDelta("Hel"), TextDelta("lo"), Finished())


def test_an_answer_is_its_deltas_and_ends_at_done() -> None:
    decoder = CompletionsDecoder()
    events = [event for each in (*HELLO, STOP) for event in decoder.decode(each)]
    assert events == [TextDelta("Hel"), TextDelta("lo")]
    assert list(decoder.decode(DONE)) == [Finished()]
    assert list(decoder.decode(chunk(content="late"))) == []
    assert list(decoder.end()) == []


def test_an_answer_without_done_ends_with_the_body() -> None:
    assert decoded(*HELLO, STOP).events == HELLO_EVENTS


@pytest.mark.parametrize("ending", [(), (DONE,)])
def test_an_answer_without_a_reason_to_finish_was_cut_off(ending: tuple[bytes, ...]) -> None:
    answer = decoded(*HELLO, *ending)
    assert answer.events == HELLO_EVENTS[:2]
    assert answer.failure is not None
    assert answer.failure.is_cut_off


def test_an_empty_reason_is_none() -> None:
    answer = decoded(chunk("", content="Hel"), chunk("", content="lo"))
    assert answer.failure is not None
    assert answer.failure.is_cut_off


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("STOP", FinishReason.STOP),
        ("end_turn", FinishReason.STOP),
        ("eos", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("max_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("something_new", FinishReason.OTHER),
        ("tool_calls", FinishReason.STOP),
        ("function_call", FinishReason.STOP),
    ],
)
def test_reasons_to_finish_are_those_of_all_endpoints(told: str, reason: FinishReason) -> None:
    assert decoded(*HELLO, chunk(told), DONE).finished == Finished(reason)


def test_a_reason_may_come_with_the_last_delta_and_twice() -> None:
    answer = decoded(*HELLO[:2], chunk("stop", content="lo"), chunk("stop", content=""), DONE)
    assert answer.events == HELLO_EVENTS


def test_chunks_without_choices_or_delta_say_nothing() -> None:
    nothing = (
        data({"choices": []}),
        data({"choices": None}),
        data({"choices": [{"index": 0}]}),
        data({"choices": [{"index": 0, "delta": None, "finish_reason": None}]}),
        data({"prompt_filter_results": [{"prompt_index": 0}], "choices": []}),
        data({}),
        b"  ",
        b"",
    )
    assert decoded(*nothing, *HELLO, *nothing, STOP, *nothing, DONE).events == HELLO_EVENTS


def test_only_the_first_of_several_choices_is_read() -> None:
    def both(first: str, second: str, reason: str | None = None) -> bytes:
        choices = [
            {"index": 1, "delta": {"content": second}, "finish_reason": "length"},
            {"index": 0, "delta": {"content": first}, "finish_reason": reason},
        ]
        return data({"choices": choices})

    assert decoded(both("Hel", "B"), both("lo", "y", "stop")).events == HELLO_EVENTS


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "Hel"}, "lo", {"type": "image_url"}, 5]
    assert decoded(chunk(content=parts), STOP).content == (Text("Hello"),)


def test_a_refusal_is_shown_and_told() -> None:
    answer = decoded(chunk(refusal="I will "), chunk(refusal="not."), STOP, DONE)
    assert answer.content == (Text("I will not."),)
    assert answer.finished == Finished(FinishReason.CONTENT_FILTER, "I will not.")


def test_what_azure_blocked_an_answer_for_is_told() -> None:
    results = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False}}
    choice = {
        "index": 0,
        "delta": {},
        "finish_reason": "content_filter",
        "content_filter_results": results,
    }
    answer = decoded(data({"choices": [choice]}), DONE)
    assert answer.events == (Finished(FinishReason.CONTENT_FILTER, "hate"),)


def test_thinking_in_tags_is_text() -> None:
    assert decoded(chunk(content="<think>a</think>b"), STOP).content == (Text("<think>a</think>b"),)


def test_cited_sources_come_once_each_after_the_text() -> None:
    def cited(url: str, title: str = "") -> dict[str, object]:
        return {"type": "url_citation", "url_citation": {"url": url, "title": title}}

    flat = {"type": "url_citation", "url": "https://c.example", "title": "C"}
    annotations = [cited("https://a.example", "A"), {"type": "file_citation"}, "odd", flat]
    answer = decoded(
        chunk(content="so", annotations=annotations),
        chunk(content=" it is", annotations=[cited("https://a.example"), cited("")]),
        STOP,
    )
    assert answer.events == (
        TextDelta("so"),
        TextDelta(" it is"),
        SourceCited(Source("source_1", "https://a.example", "A")),
        SourceCited(Source("source_2", "https://c.example", "C")),
        Finished(),
    )


def test_lists_of_search_endpoints_are_sources() -> None:
    lists = {
        "citations": ["https://a.example", "https://b.example", None],
        "search_results": [{"title": "A", "url": "https://a.example", "date": None}],
    }
    choice = {"index": 0, "delta": {"content": "so"}, "finish_reason": "stop"}
    assert decoded(data({"choices": [choice], **lists})).content == (
        Text("so"),
        Source("source_1", "https://a.example", "A"),
        Source("source_2", "https://b.example"),
    )


@pytest.mark.parametrize(
    "garbage",
    [
        b"{",
        b"null",
        b"5",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"{'choices': []}",
        b'{"choices": 5}',
        b'{"choices": [5]}',
        b'{"choices": [{"delta": "x"}]}',
        b'{"choices": [{"delta": {"content": 5}}]}',
        b'{"choices": [{"delta": {"tool_calls": [5]}}]}',
        b'{"error":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"choices": [{"delta": {"content": "cut',
        b"[DONE",
    ],
)
def test_garbage_fails_as_garbage(garbage: bytes) -> None:
    answer = decoded(*HELLO, garbage)
    assert answer.events == HELLO_EVENTS[:2]
    assert answer.failure is not None
    assert (answer.failure.is_cut_off, answer.failure.is_transport) == (False, False)
    assert answer.failure.body == garbage[: 16 * 1024]


def test_what_is_not_quite_json_is_read() -> None:
    def raw(content: bytes) -> bytes:
        return b'{"choices":[{"index":0,"delta":{"content":"' + content + b'"}}]}'

    answer = decoded(raw(b"a\xff"), raw(b"b\x00"), raw(rb"c\u0000"), raw(b"\xc3"), STOP)
    assert answer.content == (Text("a\ufffdb\0c\0\ufffd"),)


def test_characters_that_were_split_between_deltas_are_joined() -> None:
    halves = (rb"\ud83d", rb"\ude00 and ", rb"\ud83d")
    split = [b'{"choices":[{"delta":{"content":"' + half + b'"}}]}' for half in halves]
    assert decoded(*split, STOP).events == (
        TextDelta("\U0001f600 and "),
        TextDelta("\ufffd"),
        Finished(),
    )


def test_an_answer_that_ended_stays_ended_after_a_failure() -> None:
    decoder = CompletionsDecoder()
    list(decoder.decode(STOP))
    with pytest.raises(ProviderFailed):
        list(decoder.decode(data({"error": {"message": "no"}})))
    assert list(decoder.end()) == []


def test_calls_after_text_come_when_the_answer_is_complete() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    answer = decoded(*HELLO, chunk(tool_calls=[call]), chunk("tool_calls"))
    assert answer.events[-2:] == (
        ToolCallRequested(ToolCall("c1", "f", "{}")),
        Finished(FinishReason.TOOL_CALLS),
    )
