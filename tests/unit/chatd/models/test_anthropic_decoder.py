import json

import pytest

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import Source, ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ProviderToolResult,
    ReasoningDelta,
    ReasoningEnded,
    SourceCited,
    TextDelta,
    TextEnded,
    ToolCallRequested,
    ToolInputDelta,
    UsageReported,
)
from support.chatd.providers.anthropic_events import (
    answer,
    block,
    call_block,
    decoded,
    ending,
    event,
    message_start,
    text_block,
)

USED = UsageReported(input_tokens=3, output_tokens=7)
CITATION = {
    "type": "web_search_result_location",
    "cited_text": "It is so.",
    "url": "https://example.org/a",
    "title": "A",
    "encrypted_index": "index-1",
}


def middle(*events: list[bytes]) -> list[ModelEvent]:
    """Return what comes between the first usage and the last."""
    return decoded(answer(*events))[1:-2]


def test_a_text_is_told_as_it_comes() -> None:
    assert decoded(answer(text_block(0, "Hel", "lo"))) == [
        UsageReported(input_tokens=3, output_tokens=1),
        TextDelta("Hel", "0"),
        TextDelta("lo", "0"),
        TextEnded(),
        USED,
        Finished(FinishReason.STOP),
    ]


def test_a_text_that_is_there_from_the_beginning_is_told() -> None:
    begun = {"type": "text", "text": "Well, "}

    assert middle(block(0, begun, {"type": "text_delta", "text": "yes"})) == [
        TextDelta("Well, ", "0"),
        TextDelta("yes", "0"),
        TextEnded(),
    ]


def test_a_thought_keeps_its_signature() -> None:
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm"},
        {"type": "signature_delta", "signature": "signed"},
    )

    assert middle(thought) == [
        ReasoningDelta("Hm", "0"),
        ReasoningEnded('{"anthropic":{"signature":"signed"}}'),
    ]


def test_a_thought_without_words_keeps_its_signature() -> None:
    thought = block(
        0, {"type": "thinking", "thinking": ""}, {"type": "signature_delta", "signature": "signed"}
    )

    assert middle(thought) == [ReasoningEnded('{"anthropic":{"signature":"signed"}}')]


def test_a_thought_that_nobody_may_read_is_kept() -> None:
    assert middle(block(0, {"type": "redacted_thinking", "data": "secret"})) == [
        ReasoningEnded('{"anthropic":{"redacted_data":"secret"}}')
    ]


def test_a_call_is_made_once_its_arguments_are_complete() -> None:
    assert middle(call_block(0, "toolu_1", "add", "", '{"a"', ":1}")) == [
        ToolInputDelta("toolu_1", "add", '{"a"'),
        ToolInputDelta("toolu_1", "add", ":1}"),
        ToolCallRequested(ToolCall("toolu_1", "add", '{"a":1}')),
    ]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert middle(call_block(0, "toolu_1", "now")) == [
        ToolCallRequested(ToolCall("toolu_1", "now", "{}"))
    ]


def test_arguments_that_come_at_once_are_taken() -> None:
    begun = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}

    assert middle(block(0, begun)) == [ToolCallRequested(ToolCall("toolu_1", "add", '{"a": 1}'))]


def test_calls_that_come_side_by_side_are_kept_apart() -> None:
    first = call_block(0, "toolu_1", "add", '{"a":1}')
    second = call_block(1, "toolu_2", "add", '{"a":2}')
    interleaved = [each for pair in zip(first, second, strict=True) for each in pair]

    assert middle(interleaved) == [
        ToolInputDelta("toolu_1", "add", '{"a":1}'),
        ToolInputDelta("toolu_2", "add", '{"a":2}'),
        ToolCallRequested(ToolCall("toolu_1", "add", '{"a":1}')),
        ToolCallRequested(ToolCall("toolu_2", "add", '{"a":2}')),
    ]


def test_a_web_search_keeps_what_the_provider_wants_back() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    hit = {
        "type": "web_search_result",
        "title": "A",
        "url": "https://example.org/a",
        "encrypted_content": "secret",
        "page_age": None,
    }
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [hit],
    }
    asked = block(0, call, {"type": "input_json_delta", "partial_json": '{"query":"a"}'})

    called, found = middle(asked, block(1, result))

    assert called == ToolCallRequested(
        ToolCall("srvtoolu_1", "web_search", '{"query":"a"}', provider_executed=True)
    )
    assert isinstance(found, ProviderToolResult)
    assert json.loads(found.result.provider_metadata) == {"anthropic": {"search": [hit]}}
    assert found.result.result_json == '[{"title":"A","url":"https://example.org/a"}]'
    assert found.result.outcome is ToolOutcome.DONE


def test_a_search_that_failed_is_told_as_failed() -> None:
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": error}

    (found,) = middle(block(0, result))

    assert isinstance(found, ProviderToolResult)
    assert found.result.outcome is ToolOutcome.FAILED
    assert json.loads(found.result.provider_metadata) == {"anthropic": {"search": error}}


@pytest.mark.parametrize(
    ("call_type", "name", "result_type", "content", "is_failed"),
    [
        (
            "server_tool_use",
            "web_fetch",
            "web_fetch_tool_result",
            {"type": "web_fetch_result"},
            False,
        ),
        (
            "server_tool_use",
            "bash_code_execution",
            "bash_code_execution_tool_result",
            {"type": "bash_code_execution_tool_result_error"},
            True,
        ),
        ("mcp_tool_use", "ask", "mcp_tool_result", [{"type": "text", "text": "hi"}], False),
        ("server_tool_use", "tool_search_tool_regex", "tool_search_tool_result", {}, False),
        ("server_tool_use", "advisor", "advisor_tool_result", {"type": "advisor_result"}, False),
    ],
)
def test_calls_that_the_provider_runs_come_in_order_with_their_results(
    call_type: str, name: str, result_type: str, content: object, is_failed: bool
) -> None:
    call = {"type": call_type, "id": "srvtoolu_1", "name": name, "input": {"q": 1}}
    result = {"type": result_type, "tool_use_id": "srvtoolu_1", "content": content}

    assert middle(text_block(0, "a"), block(1, call), block(2, result), text_block(3, "b")) == [
        TextDelta("a", "0"),
        TextEnded(),
        ToolCallRequested(ToolCall("srvtoolu_1", name, '{"q": 1}', provider_executed=True)),
        ProviderToolResult(
            ToolResult(
                "srvtoolu_1",
                name,
                json.dumps(content),
                ToolOutcome.FAILED if is_failed else ToolOutcome.DONE,
                provider_executed=True,
            )
        ),
        TextDelta("b", "3"),
        TextEnded(),
    ]


def test_a_result_of_mcp_that_is_an_error_failed() -> None:
    result = {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": []}

    assert middle(block(0, result)) == [
        ProviderToolResult(ToolResult("m", "mcp", "[]", ToolOutcome.FAILED, provider_executed=True))
    ]


def test_sources_are_named_once_and_after_their_text() -> None:
    cited = block(
        0,
        {"type": "text", "text": "", "citations": []},
        {"type": "citations_delta", "citation": CITATION},
        {"type": "text_delta", "text": "So"},
        {"type": "citations_delta", "citation": CITATION},
        {"type": "text_delta", "text": " it is"},
    )

    delta, more, ended, source = middle(cited)

    assert (delta, more) == (TextDelta("So", "0"), TextDelta(" it is", "0"))
    assert isinstance(ended, TextEnded)
    assert json.loads(ended.provider_metadata) == {"anthropic": {"citations": [CITATION, CITATION]}}
    assert source == SourceCited(Source("https://example.org/a", "https://example.org/a", "A"))


def test_a_passage_of_a_document_is_a_source_without_an_address() -> None:
    citation = {
        "type": "page_location",
        "cited_text": "x",
        "document_index": 2,
        "document_title": "Paper",
        "start_page_number": 1,
        "end_page_number": 2,
    }
    cited = block(
        0, {"type": "text", "text": "So"}, {"type": "citations_delta", "citation": citation}
    )

    assert middle(cited) == [
        TextDelta("So", "0"),
        TextEnded(),
        SourceCited(Source("document-2", "", "Paper")),
    ]


def test_what_is_newer_than_this_code_is_ignored() -> None:
    datas = [
        event("ping"),
        message_start(),
        event("weather", index="north", delta=[1]),
        *block(0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "text": 7}),
        *block(1, {"type": "text", "text": ""}, {"type": "smell_delta", "text": ["rose"]}),
        *ending(),
        event("error", error={"type": "overloaded_error"}),
    ]

    assert decoded(datas) == [
        UsageReported(),
        TextEnded(),
        UsageReported(),
        Finished(FinishReason.STOP),
    ]


def test_blocks_that_nobody_ended_end_with_the_answer() -> None:
    datas = [message_start(), *call_block(0, "toolu_1", "add", "{}")[:-1], *ending("tool_use")]

    assert ToolCallRequested(ToolCall("toolu_1", "add", "{}")) in decoded(datas)


def test_half_a_character_is_replaced() -> None:
    half = (
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}'
    )
    datas = [message_start(), *text_block(0)[:1], half, *ending()]

    assert TextDelta("a\ufffd", "0") in decoded(datas)
