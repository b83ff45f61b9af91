"""The official SDK of OpenAI reads the mock as it reads OpenAI, in both of its protocols."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from parley.testing.llm_mock import MockModels

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]
TOOLS: Any = [{"type": "function", "name": "add", "parameters": SCHEMA, "strict": False}]
ECHO: Any = [{"role": "user", "content": "repeat after me: yes, naïve 会話"}]
ASKED: Any = [{"role": "user", "content": "add"}]


@pytest.fixture
async def client(server: MockModels) -> AsyncIterator[openai.AsyncOpenAI]:
    # No certificates are needed here, and to read them all takes longer than any test.
    http = openai.DefaultAsyncHttpxClient(verify=False)
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=http
    ) as openai_client:
        yield openai_client


async def streamed_chat(client: openai.AsyncOpenAI, model: str, **more: Any) -> Any:
    asked: dict[str, Any] = {"messages": ASKED, "stream_options": {"include_usage": True}, **more}
    state = ChatCompletionStreamState()
    async with asyncio.timeout(10):
        async for chunk in await client.chat.completions.create(model=model, stream=True, **asked):
            state.handle_chunk(chunk)
    return state.current_completion_snapshot


async def whole_chat(client: openai.AsyncOpenAI, model: str, **more: Any) -> Any:
    async with asyncio.timeout(10):
        return await client.chat.completions.create(model=model, **{"messages": ASKED, **more})


async def streamed_response(client: openai.AsyncOpenAI, model: str, **more: Any) -> Any:
    asked = {"input": ASKED, **more}
    async with asyncio.timeout(10), client.responses.stream(model=model, **asked) as stream:
        async for event in stream:
            if event.type in ("response.completed", "response.incomplete"):
                return event.response
    return event


async def whole_response(client: openai.AsyncOpenAI, model: str, **more: Any) -> Any:
    async with asyncio.timeout(10):
        return await client.responses.create(model=model, **{"input": ASKED, **more})


CHATS = pytest.mark.parametrize("ask", [streamed_chat, whole_chat])
RESPONSES = pytest.mark.parametrize("ask", [streamed_response, whole_response])
WORDS = "mock:input_tokens=5,output_tokens=3,cache_read=2,reasoning_tokens=1"


@CHATS
async def test_a_chat_echoes_with_its_usage(client: openai.AsyncOpenAI, ask: Any) -> None:
    answer = await ask(client, WORDS, messages=ECHO)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("yes, naïve 会話", "stop")
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (7, 3, 10)
    assert usage.prompt_tokens_details.cached_tokens == 2
    assert usage.completion_tokens_details.reasoning_tokens == 1


@CHATS
async def test_a_chat_calls_tools_and_goes_on_after_them(
    client: openai.AsyncOpenAI, ask: Any
) -> None:
    answer = await ask(client, "mock:reasoning=2,tools=2", tools=CHAT_TOOLS)
    (choice,) = answer.choices
    calls = choice.message.tool_calls
    assert [(c.function.name, c.function.arguments) for c in calls] == [("add", '{"a":1}')] * 2
    assert choice.finish_reason == "tool_calls"
    results = [{"role": "tool", "tool_call_id": call.id, "content": "3"} for call in calls]
    sent_back = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in calls
    ]
    history = [*ASKED, {"role": "assistant", "tool_calls": sent_back}, *results]
    after = await ask(client, "mock:reasoning=2,tools=2", tools=CHAT_TOOLS, messages=history)
    assert after.choices[0].finish_reason == "stop"
    assert after.choices[0].message.content


@CHATS
@pytest.mark.parametrize(
    ("words", "reason"), [("stop=length", "length"), ("stop=filter", "content_filter")]
)
async def test_a_chat_ends_as_it_is_told(
    client: openai.AsyncOpenAI, ask: Any, words: str, reason: str
) -> None:
    answer = await ask(client, f"mock:{words}")
    assert answer.choices[0].finish_reason == reason


@CHATS
async def test_a_refusal_of_a_chat_has_a_field_of_its_own(
    client: openai.AsyncOpenAI, ask: Any
) -> None:
    message = (await ask(client, "mock:stop=refusal")).choices[0].message
    assert (message.refusal, message.content or "") == ("I cannot help with that.", "")


async def test_a_chat_has_usage_only_when_asked_for(client: openai.AsyncOpenAI) -> None:
    assert (await streamed_chat(client, "mock", stream_options=None)).usage is None
    assert (await streamed_chat(client, "mock:usage=missing")).usage is None


@RESPONSES
async def test_a_response_echoes_with_its_usage(client: openai.AsyncOpenAI, ask: Any) -> None:
    answer = await ask(client, WORDS, input=ECHO)
    assert (answer.output[0].content[0].text, answer.status) == ("yes, naïve 会話", "completed")
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (7, 3, 10)
    assert usage.input_tokens_details.cached_tokens == 2
    assert usage.output_tokens_details.reasoning_tokens == 1


@RESPONSES
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_response_calls_tools_and_goes_on_after_them(
    client: openai.AsyncOpenAI, ask: Any, is_stored: bool
) -> None:
    more = {"tools": TOOLS, "store": is_stored, "include": ["reasoning.encrypted_content"]}
    answer = await ask(client, "mock:reasoning=2,tools=2", **more)
    assert [item.type for item in answer.output] == ["reasoning", "function_call", "function_call"]
    assert answer.output[0].summary[0].text
    calls = answer.output[1:]
    assert [(call.name, call.arguments) for call in calls] == [("add", '{"a":1}')] * 2
    sent_back = [_sent_back(item) for item in answer.output]
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "3"} for call in calls
    ]
    after = await ask(
        client, "mock:reasoning=2,tools=2", **more, input=[*ASKED, *sent_back, *results]
    )
    assert [item.type for item in after.output] == ["reasoning", "message"]


def _sent_back(item: Any) -> dict[str, Any]:
    fields: dict[str, Any] = item.to_dict(exclude_none=True)
    fields.pop("parsed_arguments", None)
    return fields


@RESPONSES
@pytest.mark.parametrize(
    ("words", "reason"), [("stop=length", "max_output_tokens"), ("stop=filter", "content_filter")]
)
async def test_a_response_ends_as_it_is_told(
    client: openai.AsyncOpenAI, ask: Any, words: str, reason: str
) -> None:
    answer = await ask(client, f"mock:{words}")
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", reason)


@RESPONSES
async def test_a_refusal_of_a_response_is_a_part_of_its_own(
    client: openai.AsyncOpenAI, ask: Any
) -> None:
    answer = await ask(client, "mock:stop=refusal")
    assert answer.output[0].content[0].refusal == "I cannot help with that."


@pytest.mark.parametrize("ask", [whole_chat, whole_response])
@pytest.mark.parametrize(
    ("model", "error", "code"),
    [
        ("mock:nonsense", openai.BadRequestError, None),
        ("mock:fail=401", openai.AuthenticationError, "invalid_api_key"),
        ("mock:fail=404", openai.NotFoundError, "model_not_found"),
        ("mock:fail=429", openai.RateLimitError, "rate_limit_exceeded"),
        ("mock:fail=quota", openai.RateLimitError, "insufficient_quota"),
        ("mock:fail=503", openai.InternalServerError, None),
        ("mock:context=1", openai.BadRequestError, "context_length_exceeded"),
    ],
)
async def test_failures_are_what_the_sdk_takes_them_for(
    client: openai.AsyncOpenAI,
    ask: Any,
    model: str,
    error: type[openai.APIStatusError],
    code: str | None,
) -> None:
    with pytest.raises(error) as raised:
        await ask(client, model)
    assert raised.value.code == code


async def test_an_error_in_the_stream_of_a_chat_is_raised(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIError):
        await streamed_chat(client, "mock:error=4")


async def test_an_error_in_the_stream_of_a_response_is_its_last_event(
    client: openai.AsyncOpenAI,
) -> None:
    event = await streamed_response(client, "mock:error=4")
    assert (event.type, event.code) == ("error", "server_error")


async def test_the_models_can_be_listed(client: openai.AsyncOpenAI) -> None:
    async with asyncio.timeout(10):
        assert "mock" in [model.id async for model in await client.models.list()]


@pytest.mark.parametrize("ask", [streamed_chat, whole_chat])
async def test_azure_is_read_by_its_own_client(server: MockModels, ask: Any) -> None:
    async with openai.AsyncAzureOpenAI(
        azure_endpoint=server.url, api_key="k", api_version="2025-01-01-preview", max_retries=0
    ) as client:
        answer = await ask(client, "mock:deltas=2", messages=ECHO)
    assert answer.choices[0].message.content == "yes, naïve 会話"
    assert server.stats().by_path == {
        "/openai/deployments/mock:deltas=2/chat/completions": 1,
    }
