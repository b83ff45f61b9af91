import base64
import json
from dataclasses import replace

import pytest

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import File, Reasoning, Text, ToolCall, ToolOutcome
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.language_model import FileData, ModelError, ModelRequest
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.wire import Framing, HttpRequest
from support.chatd.providers.anthropic_requests import (
    asked,
    assistant,
    body,
    messages_of,
    result,
    system,
    target,
    tool,
    user,
)

PNG = b"\x89PNG\r\n\x1a\n..."
PNG_BASE64 = base64.b64encode(PNG).decode()
CALL = ToolCall("toolu_1", "add", '{"a":1}')
CALL_BLOCK: dict[str, object] = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "add",
    "input": {"a": 1},
}
SIGNED = Reasoning("Hm", provider_metadata='{"anthropic":{"signature":"signed"}}')
MARK = {"type": "ephemeral"}
SPEC = ToolSpec("add", "Adds.", '{"type":"object","properties":{}}', Executor.CLIENT)
TOOL = {
    "name": "add",
    "description": "Adds.",
    "input_schema": {"type": "object", "properties": {}},
}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def said(*blocks: dict[str, object]) -> dict[str, object]:
    return {"role": "user", "content": list(blocks)}


def answered(*blocks: dict[str, object]) -> dict[str, object]:
    return {"role": "assistant", "content": list(blocks)}


def test_the_whole_request_is_as_the_provider_wants_it() -> None:
    request = ModelRequest(
        "model-1",
        (system("Be brief."), user("hi"), assistant("Hello"), user("Add.")),
        (SPEC,),
        reasoning_effort="low",
        chat_id="chat-1",
        owner_id="owner-1",
    )

    sent = AnthropicWire().request(request, target())

    assert replace(sent, body=b"") == HttpRequest(
        url="https://api.anthropic.com/v1/messages",
        headers={
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "x-api-key": "key",
            "x-parley-owner-id": "owner-1",
            "x-parley-chat-id": "chat-1",
        },
        body=b"",
        framing=Framing.SERVER_SENT_EVENTS,
    )
    assert json.loads(sent.body) == {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 32000,
        "system": [{**text("Be brief."), "cache_control": MARK}],
        "messages": [
            said(text("hi")),
            answered({**text("Hello"), "cache_control": MARK}),
            said({**text("Add."), "cache_control": MARK}),
        ],
        "tools": [TOOL],
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "metadata": {"user_id": "owner-1"},
    }


def test_the_smallest_request_holds_nothing_else() -> None:
    assert body(asked(user("hi")), target(prompt_caching=False)) == {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 32000,
        "messages": [said(text("hi"))],
    }


def test_options_win_over_our_own() -> None:
    to = replace(
        target(
            context_1m=True,
            betas=["interleaved-thinking-2025-05-14", "context-1m-2025-08-07"],
            extra_headers={"X-Api-Key": "other", "X-Team": "blue"},
            extra_body={"temperature": 0, "max_tokens": 5},
        ),
        base_url="http://gateway.test/anthropic/v1",
    )

    sent = AnthropicWire().request(asked(user("hi")), to)

    assert sent.url == "http://gateway.test/anthropic/v1/messages"
    assert sent.headers == {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14",
        "x-api-key": "other",
        "x-team": "blue",
    }
    assert json.loads(sent.body)["temperature"] == 0
    assert json.loads(sent.body)["max_tokens"] == 5


def test_an_option_that_cannot_be_used_is_refused_before_the_call() -> None:
    with pytest.raises(ModelError) as refused:
        body(asked(user("hi")), target(extra_headers={"X-Team": 7}))

    assert refused.value.kind is ErrorKind.CONFIG
    assert not refused.value.is_retryable
    assert "extra_headers" in refused.value.message


def test_a_prompt_without_a_message_is_refused() -> None:
    with pytest.raises(ModelError) as refused:
        body(asked(system("Be brief.")))

    assert (refused.value.kind, refused.value.is_retryable) == (ErrorKind.GENERIC, False)


def test_adjacent_messages_of_one_side_are_one() -> None:
    assert messages_of(user("a"), user("b"), assistant("c"), assistant("d"), user("e")) == [
        said(text("a"), text("b")),
        answered(text("c"), text("d")),
        said(text("e")),
    ]


def test_a_system_message_in_the_middle_is_said_by_the_user() -> None:
    assert messages_of(user("a"), assistant("b"), system("New rules."), user("c")) == [
        said(text("a")),
        answered(text("b")),
        said(text("New rules."), text("c")),
    ]


def test_a_prompt_begins_and_ends_with_the_user() -> None:
    assert messages_of(assistant("a")) == [
        said(text("[The beginning was left out.]")),
        answered(text("a")),
        said(text("Go on.")),
    ]


def test_results_come_first_and_failures_are_marked() -> None:
    other = ToolCall("toolu_2", "run it!", "{}")
    prompt = (
        user("a"),
        assistant("b", CALL, other),
        tool(result('"5"'), result('"boom"', "toolu_2", ToolOutcome.UNKNOWN)),
        user("c"),
    )

    assert messages_of(*prompt) == [
        said(text("a")),
        answered(
            text("b"),
            CALL_BLOCK,
            {"type": "tool_use", "id": "toolu_2", "name": "run_it_", "input": {}},
        ),
        said(
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("5")]},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [text("boom")],
                "is_error": True,
            },
            text("c"),
        ),
    ]


def test_a_picture_in_a_result_is_sent_as_one_unless_the_tool_failed() -> None:
    content = {"content": [{"type": "image", "media_type": "image/png", "data": PNG_BASE64}]}
    other = ToolCall("toolu_2", "add", "{}")
    prompt = (
        user("a"),
        assistant(CALL, other),
        tool(
            result(json.dumps(content)),
            result(json.dumps(content), "toolu_2", ToolOutcome.FAILED),
        ),
    )

    sent = messages_of(*prompt)

    assert isinstance(sent, list)
    first, second = sent[-1]["content"]
    assert first["content"] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64},
        }
    ]
    assert second["content"] == [text("[an image of type image/png, 11 bytes]")]


def test_arguments_are_always_an_object_that_can_be_read() -> None:
    calls = (
        ToolCall("toolu_1", "add", "[1]"),
        ToolCall("toolu_2", "add", '{"a":"\\ud83d"}'),
        ToolCall("toolu_3", "add", '{"a":NaN}'),
        ToolCall("toolu_4", "add", ""),
    )

    sent = messages_of(user("a"), assistant(*calls), user("b"))

    assert isinstance(sent, list)
    assert [block["input"] for block in sent[1]["content"]] == [{}, {"a": "\ufffd"}, {}, {}]


def test_thoughts_are_sent_back_only_if_they_are_the_providers_own() -> None:
    redacted = Reasoning("", provider_metadata='{"anthropic":{"redacted_data":"secret"}}')
    strange = Reasoning("Aha", provider_metadata='{"openai":{"id":"rs_1"}}')
    bare = Reasoning("So")
    broken = Reasoning("So", provider_metadata="{")

    assert messages_of(user("a"), assistant(SIGNED, redacted, strange, bare, broken, "b")) == [
        said(text("a")),
        answered(
            {"type": "thinking", "thinking": "Hm", "signature": "signed"},
            {"type": "redacted_thinking", "data": "secret"},
            text("b"),
        ),
        said(text("Go on.")),
    ]


def test_an_answer_that_was_interrupted_while_thinking_is_left_out() -> None:
    assert messages_of(user("a"), assistant(SIGNED), user("b")) == [said(text("a"), text("b"))]


def test_half_a_character_is_replaced() -> None:
    assert messages_of(user("a\ud83d")) == [said(text("a\ufffd"))]


def test_caching_marks_leave_the_prompt_alone() -> None:
    request = asked(system("a"), system("b"), user("c"))

    sent = body(request)

    assert sent["system"] == [text("a"), {**text("b"), "cache_control": MARK}]
    assert sent["messages"] == [said({**text("c"), "cache_control": MARK})]
    assert request == asked(system("a"), system("b"), user("c"))


def test_tools_that_may_not_be_called_are_only_described() -> None:
    request = replace(asked(user("a")), tools=(SPEC,), may_call_tools=False)

    sent = body(request)

    assert (sent["tools"], sent["tool_choice"]) == ([TOOL], {"type": "none"})


def test_calls_in_the_history_are_described_even_when_there_are_no_tools() -> None:
    sent = body(asked(user("a"), assistant(CALL), tool(result('"5"'))))

    assert sent["tools"] == [{"name": "add", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("schema_json", "schema"),
    [
        ("", {"type": "object"}),
        ("[]", {"type": "object"}),
        ("{", {"type": "object"}),
        ('{"properties":{},"anyOf":[{}]}', {"type": "object", "properties": {}}),
    ],
)
def test_schemas_are_made_such_as_the_provider_takes(
    schema_json: str, schema: dict[str, object]
) -> None:
    spec = replace(SPEC, input_schema_json=schema_json)

    sent = body(replace(asked(user("a")), tools=(spec,)))

    assert sent["tools"][0]["input_schema"] == schema


@pytest.mark.parametrize(
    ("option", "tools"),
    [
        (True, [{"type": "web_search_20250305", "name": "web_search"}]),
        (
            {"max_uses": 3, "name": "x"},
            [{"type": "web_search_20250305", "max_uses": 3, "name": "web_search"}],
        ),
        (False, None),
    ],
)
def test_the_provider_searches_the_web_when_told_so(option: object, tools: object) -> None:
    assert body(asked(user("a")), target(web_search=option)).get("tools") == tools


def test_a_tool_of_ours_keeps_its_name_from_the_providers_search() -> None:
    request = replace(asked(user("a")), tools=(replace(SPEC, name="web_search"),))

    assert len(body(request, target(web_search=True))["tools"]) == 1


def test_other_tools_of_the_provider_are_passed_on() -> None:
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch"}

    assert body(asked(user("a")), target(server_tools=[fetch]))["tools"] == [fetch]


def files(**files: FileData) -> list[object]:
    parts = tuple(File(name, each.media_type, each.name) for name, each in files.items())
    request = ModelRequest("m", (PromptMessage(Role.USER, parts),), (), files=files)
    sent: list[object] = body(request, target(prompt_caching=False))["messages"][0]["content"]
    return sent


def test_files_are_sent_in_the_form_that_suits_them() -> None:
    assert files(
        a=FileData("cat.png", "image/png", PNG),
        b=FileData("paper.pdf", "application/pdf", b"%PDF"),
        c=FileData("notes.txt", "text/plain", b"hi"),
        d=FileData("data.json", "application/json", b"{}"),
        e=FileData("empty.png", "image/png", b""),
        f=FileData("song.mp3", "audio/mpeg", b"ID3"),
    ) == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64},
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "paper.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
            "title": "notes.txt",
        },
        text('File "data.json":\n{}'),
        text(
            '[The file "song.mp3" of type audio/mpeg cannot be read by this model. '
            "Ask for it in another form if it is needed.]"
        ),
    ]


def test_a_file_that_is_gone_is_asked_for_again() -> None:
    assert messages_of(user(File("gone", "image/png", "cat.png"))) == [
        said(
            text(
                '[The file "cat.png" is no longer stored. '
                "Ask for it to be uploaded again if it is needed.]"
            )
        )
    ]


def test_an_image_that_is_too_large_is_refused_with_what_to_do() -> None:
    with pytest.raises(ModelError) as refused:
        files(a=FileData("cat.png", "image/png", PNG.ljust(5 * 1024 * 1024)))

    assert refused.value.turn_error.kind is ErrorKind.CONFIG
    assert refused.value.message == (
        "Anthropic takes images of less than 5 MiB only. "
        'Edit the message and attach the image "cat.png" in a smaller form.'
    )
    assert not refused.value.is_retryable


def test_an_image_just_below_the_limit_is_sent() -> None:
    assert len(files(a=FileData("cat.png", "image/png", PNG.ljust(5 * 1024 * 1024 - 1)))) == 1


def test_text_cites_only_what_is_still_there() -> None:
    citation = {
        "type": "web_search_result_location",
        "cited_text": "x",
        "encrypted_index": "i",
        "url": "https://example.org/a",
        "title": None,
    }
    cited = Text("So", json.dumps({"anthropic": {"citations": [citation]}}))

    assert messages_of(user("a"), assistant(cited), user("b")) == [
        said(text("a")),
        answered({**text("So"), "citations": [citation]}),
        said(text("b")),
    ]


def test_the_host_header_cannot_be_set_as_an_option() -> None:
    with pytest.raises(ModelError) as refused:
        AnthropicWire().request(asked(user("hi")), target(extra_headers={"host": "evil.test"}))

    assert refused.value.kind is ErrorKind.CONFIG
