"""The body that leaves for Responses."""

import base64
import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import (
    File,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import FileData, ModelError, ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.responses import ResponsesWire
from chatd.providers.responses.item_origins import ItemOrigin, encoded_origin
from chatd.providers.wire import Framing
from parley.settings import Secret

PNG = b"\x89PNG\r\n\x1a\n picture"
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
ADD = ToolSpec("add", "Adds.", '{"type":"object","properties":null}', Executor.TOOLRUNNER)
ADD_TOOL = {
    "type": "function",
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
HI = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}


def target(
    model_name: str = "gpt-5",
    provider_type: ProviderType = ProviderType.OPENAI,
    base_url: str = "",
    **options: object,
) -> Target:
    return Target("p", provider_type, "OpenAI", model_name, base_url, Secret("key"), options)


def user(*parts: Part) -> PromptMessage:
    return PromptMessage(Role.USER, parts or (Text("Hi"),))


def asked(*messages: PromptMessage, **fields: Any) -> ModelRequest:
    fields = {"tools": (), **fields}
    return ModelRequest("gpt", messages or (user(),), **fields)


def body(request: ModelRequest, at: Target | None = None) -> Any:
    return json.loads(ResponsesWire().request(request, at or target()).body)


def test_a_whole_request_leaves_as_it_should() -> None:
    request = asked(
        PromptMessage(Role.SYSTEM, (Text("Be brief."),)),
        user(),
        PromptMessage(
            Role.ASSISTANT,
            (
                Reasoning("Hm.", provider_metadata=encoded_origin(ItemOrigin("rs_1", "sealed"))),
                ToolCall(
                    "call_1", "add", '{"a":1}', provider_metadata=encoded_origin(ItemOrigin("fc_1"))
                ),
            ),
        ),
        PromptMessage(Role.TOOL, (ToolResult("call_1", "add", '"3"', ToolOutcome.DONE),)),
        tools=(ADD,),
        output_tokens_max=4000,
        reasoning_effort="high",
        chat_id="chat-1",
        owner_id="user-1",
    )
    at = target(
        store=False,
        reasoning_summary="auto",
        parallel_tool_calls=False,
        service_tier="flex",
        verbosity="low",
        web_search=True,
        safety_identifier="tenant-7",
        extra_body={"truncation": "auto", "stream": False},
        extra_headers={"X-Team": "a"},
    )
    sent = ResponsesWire().request(request, at)
    assert (sent.url, sent.headers, sent.framing) == (
        "https://api.openai.com/v1/responses",
        {"Authorization": "Bearer key", "Content-Type": "application/json", "X-Team": "a"},
        Framing.SERVER_SENT_EVENTS,
    )
    assert json.loads(sent.body) == {
        "model": "gpt-5",
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            HI,
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "sealed",
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "add",
                "arguments": '{"a":1}',
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "3"},
        ],
        "store": False,
        "tools": [ADD_TOOL, {"type": "web_search"}],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "include": ["reasoning.encrypted_content", "web_search_call.action.sources"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "max_output_tokens": 4000,
        "service_tier": "flex",
        "text": {"verbosity": "low"},
        "safety_identifier": "tenant-7",
        "prompt_cache_key": "chat-1",
        "truncation": "auto",
        "stream": True,
    }


def test_the_least_request_stores_and_asks_for_thoughts() -> None:
    assert body(asked()) == {
        "model": "gpt-5",
        "input": [HI],
        "store": True,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }


def test_a_model_that_does_not_think_is_asked_for_no_thoughts() -> None:
    assert body(asked(reasoning_effort="high"), target("gpt-4o", reasoning_summary="auto")) == {
        "model": "gpt-4o",
        "input": [HI],
        "store": True,
        "stream": True,
    }


def test_tools_that_may_not_be_called_are_there_to_be_read() -> None:
    extra = {"tools": [{"type": "code_interpreter"}], "tool_choice": "required"}
    sent = body(asked(tools=(ADD,), may_call_tools=False), target(extra_body=extra))
    assert (sent["tools"], sent["tool_choice"]) == (
        [ADD_TOOL, {"type": "code_interpreter"}],
        "none",
    )


def test_an_effort_is_clamped_to_what_the_model_takes() -> None:
    assert body(asked(reasoning_effort="max"))["reasoning"] == {"effort": "high"}


def test_fewer_tokens_than_the_provider_takes_are_not_asked_for() -> None:
    assert body(asked(output_tokens_max=1))["max_output_tokens"] == 16


def test_an_owner_is_told_only_as_a_digest() -> None:
    sent = body(asked(owner_id="user-1"), target(safety_identifier=True))["safety_identifier"]
    assert len(sent) == 64
    assert "user-1" not in sent
    assert "safety_identifier" not in body(asked(owner_id="u"), target(safety_identifier=False))


def test_azure_and_others_are_not_told_the_chat_unless_wanted() -> None:
    azure = target(provider_type=ProviderType.AZURE, base_url="https://a.example")
    assert "prompt_cache_key" not in body(asked(chat_id="chat-1"), azure)
    assert "prompt_cache_key" not in body(asked(chat_id="c"), target(prompt_cache_key=False))


def test_azure_gets_the_same_body_at_its_own_address() -> None:
    azure = target(provider_type=ProviderType.AZURE, base_url="https://a.example")
    sent = ResponsesWire().request(asked(), azure)
    assert (sent.url, sent.headers["api-key"]) == ("https://a.example/openai/v1/responses", "key")
    assert json.loads(sent.body) == body(asked())


def test_a_compatible_endpoint_knows_only_the_system() -> None:
    other = target("x", ProviderType.OPENAI_COMPATIBLE, "https://x.example/v1")
    sent = body(asked(PromptMessage(Role.SYSTEM, (Text("Be brief."),)), user()), other)
    assert sent["input"][0]["role"] == "system"


def test_files_go_as_the_format_takes_them() -> None:
    files = {
        "png": FileData("a.png", "image/png", PNG),
        "pdf": FileData("a.pdf", "application/pdf", b"%PDF"),
        "text": FileData("a.txt", "text/plain", b"words"),
        "audio": FileData("a.mp3", "audio/mpeg", b"ID3"),
        "empty": FileData("e.png", "image/png", b""),
    }
    parts = [File(each, data.media_type, data.name) for each, data in files.items()]
    gone = File("gone", "image/png", "gone.png")
    content = body(asked(user(*parts, gone), files=files))["input"][0]["content"]
    assert content[:3] == [
        {"type": "input_image", "image_url": PNG_URL, "detail": "auto"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": f"data:application/pdf;base64,{base64.b64encode(b'%PDF').decode()}",
        },
        {"type": "input_text", "text": 'File "a.txt":\nwords'},
    ]
    assert [each["type"] for each in content[3:]] == ["input_text", "input_text"]


def test_a_message_of_nothing_but_an_empty_file_is_left_out() -> None:
    empty = user(File("empty", "image/png"))
    files = {"empty": FileData("e.png", "image/png", b"")}
    assert body(asked(empty, user(), files=files))["input"] == [HI]


def test_pictures_in_results_go_as_pictures() -> None:
    data = base64.b64encode(PNG).decode()
    result = {
        "content": [
            {"type": "text", "text": "Here."},
            {"type": "image", "mimeType": "image/png", "data": data},
        ]
    }
    told = ToolResult("call_1", "look", json.dumps(result), ToolOutcome.DONE)
    sent = body(asked(user(), PromptMessage(Role.TOOL, (told,))))
    assert sent["input"][1] == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": "Here."},
            {"type": "input_image", "image_url": PNG_URL, "detail": "auto"},
        ],
    }


def test_base64_that_is_no_picture_does_not_become_words() -> None:
    result = {"content": [{"type": "image", "mimeType": "image/png", "data": "QUJD" * 1000}]}
    told = ToolResult("call_1", "look", json.dumps(result), ToolOutcome.DONE)
    assert (
        b"QUJDQUJD"
        not in ResponsesWire()
        .request(asked(user(), PromptMessage(Role.TOOL, (told,))), target())
        .body
    )


def test_nothing_to_answer_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ModelError) as caught:
        ResponsesWire().request(ModelRequest("gpt", (), ()), target())
    assert (caught.value.kind, caught.value.is_retryable) == (ErrorKind.GENERIC, False)


@pytest.mark.parametrize("store", [True, False])
def test_the_official_types_agree_with_what_is_sent(store: bool) -> None:
    from openai.types.responses import ResponseInputItemParam

    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    answer = (
        Reasoning("Hm.", provider_metadata=encoded_origin(ItemOrigin("rs_1", "sealed"))),
        ToolCall(
            "ws_1",
            "web_search",
            "{}",
            provider_executed=True,
            provider_metadata=encoded_origin(ItemOrigin("ws_1", item=search)),
        ),
        Text("Hi.", encoded_origin(ItemOrigin("msg_1", phase="commentary"))),
        ToolCall("call_1", "add", "{}", provider_metadata=encoded_origin(ItemOrigin("fc_1"))),
    )
    file = File("png", "image/png", "a.png")
    request = asked(
        PromptMessage(Role.SYSTEM, (Text("Be brief."),)),
        user(Text("Look."), file),
        PromptMessage(Role.ASSISTANT, answer),
        PromptMessage(Role.TOOL, (ToolResult("call_1", "add", "3", ToolOutcome.DONE),)),
        files={"png": FileData("a.png", "image/png", PNG)},
    )
    sent = body(request, target(store=store))["input"]
    assert len(sent) == (7 if not store else 5)
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)
    for item in sent:
        adapter.validate_python(item)
