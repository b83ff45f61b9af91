import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import ModelError
from chatd.providers.anthropic.metadata import AnthropicMetadata, SearchError, written
from chatd.providers.anthropic.searches import (
    SanitisedPrompt,
    Violation,
    sanitised_prompt,
    violations,
)
from support.chatd.providers.anthropic_requests import (
    assistant,
    messages_of,
    search_call,
    search_result,
    user,
)

SIGNED = Reasoning("Hm", provider_metadata='{"anthropic":{"signature":"signed"}}')
NOTE = Text('[web_search gave [{"title":"A"}]]')
NO_METADATA = AnthropicMetadata()


def guard(*messages: PromptMessage) -> SanitisedPrompt:
    return sanitised_prompt(messages, "Anthropic")


def test_a_whole_search_is_sent_back_as_it_was() -> None:
    sent = messages_of(user("a"), assistant(search_call(), search_result(), "b"), user("c"))

    assert isinstance(sent, list)
    assert sent[1]["content"] == [
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "a"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "url": "https://example.org/a",
                    "title": "A",
                    "encrypted_content": "secret",
                }
            ],
        },
        {"type": "text", "text": "b"},
    ]


def test_a_search_that_failed_is_sent_back_as_it_was() -> None:
    failed = search_result(own=AnthropicMetadata(search=SearchError("unavailable")))

    sent = messages_of(user("a"), assistant(search_call(), failed, "b"), user("c"))

    assert isinstance(sent, list)
    assert sent[1]["content"][1]["content"] == {
        "type": "web_search_tool_result_error",
        "error_code": "unavailable",
    }


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ((assistant(search_call(), search_result()),), {}),
        ((user(search_call()),), {(0, 0): Violation.OUTSIDE_ANSWER}),
        ((assistant(search_call()), user("a")), {(0, 0): Violation.CALL_WITHOUT_RESULT}),
        ((assistant(search_call()),), {}),  # The provider paused and goes on from there.
        ((assistant(search_result()),), {(0, 0): Violation.RESULT_WITHOUT_CALL}),
        (
            (assistant(search_call()), assistant(search_result())),
            {(0, 0): Violation.CALL_WITHOUT_RESULT, (1, 0): Violation.RESULT_WITHOUT_CALL},
        ),
        (
            (assistant(search_result(), search_call()),),
            {(0, 0): Violation.RESULT_BEFORE_CALL},
        ),
        (
            (
                assistant(search_call(), search_result()),
                assistant(search_call(), search_result()),
            ),
            {(1, 0): Violation.DUPLICATE_ID, (1, 1): Violation.DUPLICATE_ID},
        ),
        (
            (assistant(search_call(args_json=""), search_result()),),
            {(0, 0): Violation.INVALID_CALL},
        ),
        (
            (assistant(search_call("odd"), search_result("odd")),),
            {(0, 0): Violation.INVALID_CALL},
        ),
        (
            (assistant(search_call(), search_result(own=NO_METADATA)),),
            {(0, 1): Violation.INVALID_RESULT},
        ),
    ],
)
def test_what_the_provider_would_refuse_is_found(
    messages: tuple[PromptMessage, ...], found: dict[tuple[int, int], Violation]
) -> None:
    assert violations(messages) == found


def test_a_whole_prompt_is_left_as_it_is() -> None:
    messages = (user("a"), assistant(search_call(), search_result(), "b"))

    assert sanitised_prompt(messages, "Anthropic") == SanitisedPrompt(messages, is_intact=True)


def test_a_search_that_was_interrupted_is_left_out() -> None:
    messages = user("a"), assistant("b", search_call()), assistant(search_call()), user("c")
    assert guard(*messages) == SanitisedPrompt(
        (user("a"), assistant("b"), user("c")), is_intact=False
    )


def test_even_after_signed_thoughts_a_search_that_was_interrupted_is_left_out() -> None:
    assert guard(user("a"), assistant(SIGNED, search_call()), user("c")) == SanitisedPrompt(
        (user("a"), assistant(SIGNED), user("c")), is_intact=False
    )


def test_an_answer_that_was_paused_is_sent_back_as_it_is_to_be_gone_on_with() -> None:
    searching = (user("a"), assistant(SIGNED, search_call()))
    sent = messages_of(*searching)
    assert isinstance(sent, list)
    assert [message["role"] for message in sent] == ["user", "assistant"]
    assert [block["type"] for block in sent[1]["content"]] == ["thinking", "server_tool_use"]

    went_on = messages_of(*searching, assistant(search_result(), "b"), user("c"))
    assert isinstance(went_on, list)
    assert [block["type"] for block in went_on[1]["content"]] == [
        "thinking",
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]


def test_what_a_result_said_stays_when_the_result_cannot() -> None:
    messages = (
        user("a"),
        assistant(search_call(), search_result(own=NO_METADATA), "b"),
        assistant(search_call("srvtoolu_2"), search_result("srvtoolu_2"), "c"),
    )

    assert sanitised_prompt(messages, "Anthropic") == SanitisedPrompt(
        (user("a"), assistant(NOTE, "b"), messages[2]), is_intact=False
    )


def test_the_latest_answer_is_not_changed_under_signed_thoughts() -> None:
    with pytest.raises(ModelError) as refused:
        guard(user("a"), assistant(SIGNED, search_call(), search_result(own=NO_METADATA), "b"))

    assert (refused.value.kind, refused.value.is_retryable) == (ErrorKind.GENERIC, False)
    assert "Start a new chat" in refused.value.message
    assert refused.value.provider == "Anthropic"


def test_an_older_answer_is_mended_under_signed_thoughts() -> None:
    older = assistant(SIGNED, search_call(), search_result(own=NO_METADATA), "b")

    assert guard(user("a"), older, user("c"), assistant("d")) == SanitisedPrompt(
        (user("a"), assistant(SIGNED, NOTE, "b"), user("c"), assistant("d")), is_intact=False
    )


def test_other_tools_of_the_provider_are_sent_back_as_text() -> None:
    call = ToolCall("srvtoolu_1", "bash_code_execution", "{}", provider_executed=True)
    result = ToolResult(
        "srvtoolu_1", "bash_code_execution", '"4"', ToolOutcome.DONE, provider_executed=True
    )

    assert guard(user("a"), assistant(SIGNED, call, result, "b")) == SanitisedPrompt(
        (user("a"), assistant(SIGNED, Text("[bash_code_execution gave 4]"), "b")),
        is_intact=False,
    )


def test_bytes_that_the_provider_fetched_never_become_text() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" * 100}
    call = ToolCall("srvtoolu_1", "web_fetch", "{}", provider_executed=True)
    result = ToolResult(
        "srvtoolu_1", "web_fetch", json.dumps(source), ToolOutcome.DONE, provider_executed=True
    )

    assert guard(user("a"), assistant(call, result)).messages[1] == assistant(
        '[web_fetch gave {"type": "base64", "media_type": "application/pdf", '
        '"data": "[bytes left out]"}]'
    )


def test_a_search_that_a_program_made_is_sent_back_as_text() -> None:
    made = ToolCall(
        "srvtoolu_1",
        "web_search",
        "{}",
        provider_executed=True,
        provider_metadata=written(AnthropicMetadata(caller="code_execution_20260120")),
    )

    assert guard(user("a"), assistant(made, search_result())).messages[1] == assistant(NOTE)


def test_citations_go_with_the_searches_they_cite() -> None:
    citation = {
        "type": "web_search_result_location",
        "cited_text": "x",
        "encrypted_index": "i",
        "url": "https://example.org/a",
        "title": "A",
    }
    cited = Text("So", json.dumps({"anthropic": {"citations": [citation]}}))

    sent = messages_of(user("a"), assistant(search_result(), cited), user("b"))

    assert isinstance(sent, list)
    assert sent[1]["content"] == [
        {"type": "text", "text": NOTE.text},
        {"type": "text", "text": "So"},
    ]


IDS = st.sampled_from(["srvtoolu_1", "srvtoolu_2", "odd"])
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.just(Text("t")),
    st.just(SIGNED),
    st.builds(search_call, IDS, st.sampled_from(["{}", "", "[]"])),
    st.builds(search_result, IDS, st.sampled_from([None, NO_METADATA])),
    st.builds(lambda call_id: ToolCall(call_id, "web_fetch", "{}", provider_executed=True), IDS),
)
MESSAGES = st.lists(
    st.builds(
        lambda is_user, parts: user(*parts) if is_user else assistant(*parts),
        st.booleans(),
        st.lists(PARTS, min_size=1, max_size=5),
    ),
    max_size=5,
).map(tuple)


@given(MESSAGES)
def test_any_prompt_is_mended_or_refused(messages: tuple[PromptMessage, ...]) -> None:
    try:
        made = sanitised_prompt(messages, "Anthropic")
    except ModelError:
        return
    assert not violations(made.messages)
    assert all(message.content for message in made.messages)
    assert made.is_intact == (made.messages == messages)
