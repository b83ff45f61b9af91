"""The body that leaves in the Chat Completions format."""

import base64
import json
from typing import Any

import pytest

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
from chatd.providers.completions import CompletionsWire
from chatd.providers.completions.wire import encoded_tool
from support.chatd.providers.completions import target

PNG = b"\x89PNG\r\n\x1a\nrest"
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
MODEL = "model-1"
LOOK = ToolSpec("look", "Look at it", '{"type":"object","properties":{}}', Executor.TOOLRUNNER)
OPENROUTER = "https://openrouter.ai/api/v1"


def said(role: Role, *parts: Part, model_id: str = "") -> PromptMessage:
    return PromptMessage(role, parts, model_id)


def request(*messages: PromptMessage, **fields: Any) -> ModelRequest:
    return ModelRequest(MODEL, messages, fields.pop("tools", ()), **fields)


def body(asked: ModelRequest, to: Target | None = None) -> dict[str, Any]:
    sent = CompletionsWire().request(asked, to or target())
    made = json.loads(sent.body)
    assert isinstance(made, dict)
    return made


def messages(*prompt: PromptMessage, **options: Any) -> Any:
    return body(request(*prompt), target(**options))["messages"]


HI = said(Role.USER, Text("hi"))
CALLED = said(
    Role.ASSISTANT,
    Reasoning("hm"),
    Text("I look."),
    ToolCall("c1", "look", '{"at":1}'),
    model_id=MODEL,
)
FOUND = said(Role.TOOL, ToolResult("c1", "look", '"found"', ToolOutcome.DONE))


def test_equal_tools_are_encoded_once() -> None:
    first = body(request(HI, tools=(LOOK,)))
    before = encoded_tool.cache_info()
    equal = ToolSpec("look", "Look at it", LOOK.input_schema_json, Executor.MCPGATEWAY)
    assert body(request(HI, tools=(equal,)))["tools"] == first["tools"]
    after = encoded_tool.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_a_message_of_one_text_is_that_text(role: Role) -> None:
    assert messages(HI, said(role, Text("hello")))[1:] == [{"role": str(role), "content": "hello"}]


def test_the_whole_request_to_openai() -> None:
    asked = request(
        said(Role.SYSTEM, Text("Be brief.")),
        HI,
        CALLED,
        FOUND,
        tools=(LOOK,),
        output_tokens_max=100,
        reasoning_effort="high",
    )
    sent = CompletionsWire().request(asked, target(ProviderType.OPENAI, model_name="gpt-5"))
    assert sent.url == "https://api.openai.com/v1/chat/completions"
    assert sent.headers == {
        "Authorization": "Bearer sk-1",
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
    }
    assert json.loads(sent.body) == {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"at":1}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 100,
        "reasoning_effort": "high",
        "store": True,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Look at it",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
    }


def test_the_least_request_to_a_compatible_endpoint() -> None:
    sent = CompletionsWire().request(request(HI), target())
    assert sent.url == "https://llm.example/v1/chat/completions"
    assert json.loads(sent.body) == {
        "model": "a-model",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_azure_is_asked_at_its_deployment_with_its_key() -> None:
    to = target(
        ProviderType.AZURE,
        model_name="gpt-4o",
        base_url="https://x.openai.azure.com",
        api_version="2025-01-01-preview",
    )
    sent = CompletionsWire().request(request(HI, output_tokens_max=9), to)
    assert sent.url == (
        "https://x.openai.azure.com/openai/deployments/gpt-4o/chat/completions"
        "?api-version=2025-01-01-preview"
    )
    assert sent.headers["api-key"] == "sk-1"
    assert json.loads(sent.body) == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
    }


@pytest.mark.parametrize(
    ("to", "field"),
    [
        (target(ProviderType.OPENAI, model_name="gpt-4o"), "max_tokens"),
        (target(ProviderType.OPENAI, model_name="o4-mini"), "max_completion_tokens"),
        (target(ProviderType.AZURE, model_name="gpt-4o"), "max_completion_tokens"),
        (target(), "max_tokens"),
        (target(max_tokens_field="max_completion_tokens"), "max_completion_tokens"),
    ],
)
def test_the_limit_of_the_output_has_the_name_the_model_knows(to: Target, field: str) -> None:
    made = body(request(HI, output_tokens_max=9), to)
    assert {name: value for name, value in made.items() if name.startswith("max")} == {field: 9}


def test_options_change_the_body() -> None:
    made = body(
        request(HI, tools=(LOOK,)),
        target(
            stream_usage=False,
            store=False,
            parallel_tool_calls=False,
            temperature=0.5,
            seed=None,
            extra_body={"provider": {"only": ["xai"]}, "top_p": 0.1},
            top_p=0.9,
        ),
    )
    del made["tools"]
    assert made == {
        "model": "a-model",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "store": False,
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "top_p": 0.1,
        "provider": {"only": ["xai"]},
    }


def test_reasoning_models_of_openai_are_not_told_how_to_choose_words() -> None:
    thinking = target(ProviderType.OPENAI, model_name="o4-mini", temperature=0.5, verbosity="low")
    plain = target(ProviderType.OPENAI, model_name="gpt-4o", temperature=0.5)
    assert "temperature" not in body(request(HI), thinking)
    assert body(request(HI), thinking)["verbosity"] == "low"
    assert body(request(HI), plain)["temperature"] == 0.5


def test_extra_headers_are_sent() -> None:
    to = target(extra_headers={"X-Title": "Parley"})
    assert CompletionsWire().request(request(HI), to).headers["X-Title"] == "Parley"


@pytest.mark.parametrize(
    "options",
    [
        {"stream_usage": "yes"},
        {"reasoning_replay": "always"},
        {"max_tokens_field": 5},
        {"extra_body": {"stream": False}},
        {"extra_body": {"messages": []}},
        {"extra_body": "x"},
        {"accepted_files": ["video"]},
        {"extra_headers": {"X": "a\r\nY: b"}},
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as refused:
        body(request(HI), target(**options))
    assert (refused.value.kind, refused.value.is_retryable) == (ErrorKind.CONFIG, False)


def test_a_prompt_of_nothing_is_refused() -> None:
    empty = said(Role.USER, File("empty", "text/plain", "f.txt"))
    for asked in (request(), request(empty, files=FILES)):
        with pytest.raises(ModelError) as refused:
            body(asked)
        assert not refused.value.is_retryable


def test_tools_that_may_not_be_called_are_there_to_be_read() -> None:
    made = body(request(HI, tools=(LOOK,), may_call_tools=False), target(parallel_tool_calls=True))
    assert (made["tool_choice"], "parallel_tool_calls" in made) == ("none", False)
    assert [tool["function"]["name"] for tool in made["tools"]] == ["look"]


def test_without_tools_nothing_is_said_of_them() -> None:
    made = body(request(HI, may_call_tools=False), target(parallel_tool_calls=True))
    assert made.keys() == {"model", "messages", "stream", "stream_options"}


def test_leading_instructions_are_one_message_in_the_role_of_choice() -> None:
    prompt = (said(Role.SYSTEM, Text("a")), said(Role.SYSTEM, Text("b")), HI)
    later = said(Role.SYSTEM, Text("c"))
    assert messages(*prompt, later, system_role="developer") == [
        {"role": "developer", "content": "a\n\nb"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "c"},
    ]


def test_what_a_provider_executed_itself_is_not_sent() -> None:
    searched = said(
        Role.ASSISTANT,
        Text("a"),
        ToolCall("s1", "web_search", "{}", provider_executed=True),
        ToolResult("s1", "web_search", "{}", ToolOutcome.DONE, provider_executed=True),
        Text("b"),
    )
    alone = said(Role.ASSISTANT, ToolCall("s2", "web_search", "{}", provider_executed=True))
    assert messages(HI, searched, alone) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ab"},
    ]


def test_a_message_of_thoughts_alone_is_not_sent() -> None:
    thought = said(Role.ASSISTANT, Reasoning("hm"), model_id=MODEL)
    assert messages(HI, thought, reasoning_replay="reasoning_content") == [
        {"role": "user", "content": "hi"}
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_go_back_in_the_field_that_an_endpoint_wants(field: str) -> None:
    again = said(Role.ASSISTANT, ToolCall("c2", "look", "{}"), model_id=MODEL)
    done = said(Role.ASSISTANT, Text("done"), model_id=MODEL)
    made = messages(HI, CALLED, FOUND, again, done, reasoning_replay=field)
    answers = [message.get(field) for message in made if message["role"] == "assistant"]
    assert answers == ["hm", "", None]


def test_thoughts_are_not_sent_where_nobody_wants_them() -> None:
    made = messages(HI, CALLED, FOUND)
    assert [message.keys() for message in made] == [
        {"role", "content"},
        {"role", "content", "tool_calls"},
        {"role", "tool_call_id", "content"},
    ]


DETAILS = [
    {"type": "reasoning.text", "text": "hm", "signature": "s1", "index": 0},
    {"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "index": 1},
]


def detailed(model_id: str) -> PromptMessage:
    first, second = (json.dumps({"chat": {"reasoning_details": [each]}}) for each in DETAILS)
    return said(
        Role.ASSISTANT,
        Reasoning("hm", provider_metadata=first),
        Text("a"),
        Reasoning("", provider_metadata=second),
        Reasoning("other", provider_metadata='{"anthropic":{"signature":"s2"}}'),
        Reasoning("odd", provider_metadata="not json"),
        model_id=model_id,
    )


def test_signed_details_go_back_to_the_model_that_gave_them() -> None:
    made = messages(HI, detailed(MODEL), base_url=OPENROUTER)
    assert made[1] == {"role": "assistant", "content": "a", "reasoning_details": DETAILS}


@pytest.mark.parametrize(
    ("model_id", "base_url"), [("another", OPENROUTER), (MODEL, "https://llm.example/v1")]
)
def test_signed_details_go_to_nobody_else(model_id: str, base_url: str) -> None:
    made = messages(HI, detailed(model_id), base_url=base_url)
    assert made[1] == {"role": "assistant", "content": "a"}


def test_what_google_wants_back_goes_back_with_the_call() -> None:
    stored = '{"chat":{"extra_content":{"google":{"thought_signature":"s1"}}}}'
    call = ToolCall("c1", "look", "{}", provider_metadata=stored)
    own = messages(HI, said(Role.ASSISTANT, call, model_id=MODEL), FOUND)
    foreign = messages(HI, said(Role.ASSISTANT, call, model_id="another"), FOUND)
    assert own[1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s1"}}
    assert "extra_content" not in foreign[1]["tool_calls"][0]


def test_odd_names_and_long_ids_become_what_openai_takes() -> None:
    long_id = "c" * 41
    made = messages(
        HI,
        said(Role.ASSISTANT, ToolCall(long_id, "ns.look it" + "x" * 60, "{}")),
        said(Role.TOOL, ToolResult(long_id, "ns.look it", '"x"', ToolOutcome.DONE)),
    )
    (call,) = made[1]["tool_calls"]
    assert call["function"]["name"] == ("ns_look_it" + "x" * 60)[:64]
    assert call["id"] == made[2]["tool_call_id"]
    assert len(call["id"]) <= 40


def test_pictures_of_tools_follow_their_results() -> None:
    def shown(call_id: str) -> ToolResult:
        data = base64.b64encode(PNG).decode()
        content = [
            {"type": "text", "text": f"see {call_id}"},
            {"type": "image", "data": data, "mimeType": "image/png"},
        ]
        return ToolResult(call_id, "look", json.dumps({"content": content}), ToolOutcome.DONE)

    prompt = (
        HI,
        said(Role.ASSISTANT, ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")),
        said(Role.TOOL, shown("c1"), shown("c2")),
    )
    results = [
        {
            "role": "tool",
            "tool_call_id": call_id,
            "content": f"see {call_id}\n[an image of type image/png, {len(PNG)} bytes]",
        }
        for call_id in ("c1", "c2")
    ]
    image = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}}
    introduction = {
        "type": "text",
        "text": "The images that the tool results above mention, in their order:",
    }
    assert messages(*prompt, image_detail="low")[2:] == [
        *results,
        {"role": "user", "content": [introduction, image, image]},
    ]
    assert messages(*prompt, accepted_files=["pdf"])[2:] == results


FILES = {
    "image": FileData("a.png", "image/png", PNG),
    "pdf": FileData("b.pdf", "application/pdf", b"%PDF"),
    "sound": FileData("c.mp3", "audio/mpeg", b"ID3"),
    "flac": FileData("d.flac", "audio/flac", b"fLaC"),
    "text": FileData("e.txt", "text/plain", b"words"),
    "empty": FileData("f.txt", "text/plain", b""),
    "video": FileData("g.mp4", "video/mp4", b"x"),
}


def attached(*ids: str, **options: Any) -> Any:
    files = (File(each, FILES[each].media_type, FILES[each].name) for each in ids)
    asked = request(said(Role.USER, Text("see"), *files), files=FILES)
    return body(asked, target(**options))["messages"][0]["content"]


def test_files_are_sent_as_what_they_are() -> None:
    assert attached("image", "pdf", "sound", "text", "empty") == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {
            "type": "file",
            "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        },
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        {"type": "text", "text": 'File "e.txt":\nwords'},
    ]


def test_text_and_placeholders_alone_are_one_text() -> None:
    content = attached("text", "flac", "video", base_url=OPENROUTER)
    assert isinstance(content, str)
    see, text, sound, video = content.split("\n\n")
    assert (see, text) == ("see", 'File "e.txt":\nwords')
    assert "d.flac" in sound
    assert "g.mp4" in video


def test_files_that_a_model_cannot_read_are_told() -> None:
    content = attached("image", "pdf", accepted_files=[])
    assert isinstance(content, str)
    assert "a.png" in content
    assert "b.pdf" in content


def test_marks_for_a_cache_are_on_the_instructions_and_the_last_two_messages() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    called = said(Role.ASSISTANT, ToolCall("c1", "look", "{}"))
    made = messages(said(Role.SYSTEM, Text("s")), HI, HI, called, FOUND, cache_control=True)
    assert made == [
        {"role": "system", "content": [{"type": "text", "text": "s", **mark}]},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "hi", **mark}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "found", **mark}],
        },
    ]


def test_halves_of_characters_are_replaced() -> None:
    assert messages(said(Role.USER, Text("a\ud83d"))) == [{"role": "user", "content": "a\ufffd"}]


def test_an_endpoint_that_does_not_speak_this_format_is_refused() -> None:
    with pytest.raises(ModelError) as refused:
        body(request(HI), target(ProviderType.ANTHROPIC))
    assert refused.value.kind is ErrorKind.CONFIG
