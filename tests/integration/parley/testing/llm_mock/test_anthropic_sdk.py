"""The official SDK of Anthropic reads the mock as it reads Anthropic."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest

from parley.testing.llm_mock import MockModels

TOOLS: Any = [
    {
        "name": "add",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
        },
    }
]
ECHO: Any = [{"role": "user", "content": "repeat after me: yes, naïve 会話"}]
ASKED: Any = [{"role": "user", "content": "add"}]


@pytest.fixture
async def client(server: MockModels) -> AsyncIterator[anthropic.AsyncAnthropic]:
    # No certificates are needed here, and to read them all takes longer than any test.
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    async with anthropic.AsyncAnthropic(
        base_url=server.url, api_key="k", max_retries=0, http_client=http
    ) as anthropic_client:
        yield anthropic_client


async def streamed(client: anthropic.AsyncAnthropic, model: str, **more: Any) -> Any:
    asked: dict[str, Any] = {"max_tokens": 1000, "messages": ASKED, **more}
    async with asyncio.timeout(10), client.messages.stream(model=model, **asked) as stream:
        return await stream.get_final_message()


async def whole(client: anthropic.AsyncAnthropic, model: str, **more: Any) -> Any:
    asked: dict[str, Any] = {"max_tokens": 1000, "messages": ASKED, **more}
    async with asyncio.timeout(10):
        return await client.messages.create(model=model, **asked)


BOTH = pytest.mark.parametrize("ask", [streamed, whole])


@BOTH
async def test_an_echo_comes_back_with_its_usage(
    client: anthropic.AsyncAnthropic, ask: Any
) -> None:
    answer = await ask(
        client, "mock:input_tokens=5,output_tokens=3,cache_read=2,cache_write=1", messages=ECHO
    )
    assert [block.text for block in answer.content] == ["yes, naïve 会話"]
    assert (answer.stop_reason, answer.role) == ("end_turn", "assistant")
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens) == (5, 3)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (2, 1)


@BOTH
async def test_thoughts_calls_and_the_step_after_them(
    client: anthropic.AsyncAnthropic, ask: Any
) -> None:
    model = "mock:reasoning=3,tools=2,preface=1"
    answer = await ask(client, model, tools=TOOLS)
    kinds = [block.type for block in answer.content]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    calls = answer.content[2:]
    assert [(call.name, call.input) for call in calls] == [("add", {"a": 1})] * 2
    assert answer.stop_reason == "tool_use"
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "3"} for call in calls]
    history = [
        *ASKED,
        {"role": "assistant", "content": [_sent_back(block) for block in answer.content]},
        {"role": "user", "content": results},
    ]
    after = await ask(client, model, tools=TOOLS, messages=history)
    assert [block.type for block in after.content] == ["thinking", "text"]
    assert after.id != answer.id


def _sent_back(block: Any) -> dict[str, Any]:
    fields: dict[str, Any] = block.to_dict()
    return {name: value for name, value in fields.items() if value is not None}


@BOTH
@pytest.mark.parametrize(
    ("words", "stop_reason"),
    [("stop=length", "max_tokens"), ("stop=filter", "refusal"), ("stop=refusal", "refusal")],
)
async def test_an_answer_ends_as_it_is_told(
    client: anthropic.AsyncAnthropic, ask: Any, words: str, stop_reason: str
) -> None:
    assert (await ask(client, f"mock:{words}")).stop_reason == stop_reason


async def test_an_answer_is_no_longer_than_the_request_allows(
    client: anthropic.AsyncAnthropic,
) -> None:
    answer = await whole(client, "mock:deltas=100", max_tokens=5)
    assert (len(answer.content[0].text), answer.stop_reason) == (20, "max_tokens")


async def test_redacted_thoughts_come_without_words(client: anthropic.AsyncAnthropic) -> None:
    answer = await streamed(client, "mock:redacted")
    assert [block.type for block in answer.content] == ["redacted_thinking", "text"]


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("mock:nonsense", anthropic.BadRequestError),
        ("mock:fail=401", anthropic.AuthenticationError),
        ("mock:fail=429", anthropic.RateLimitError),
        ("mock:fail=529", anthropic.OverloadedError),
        ("mock:fail=500", anthropic.InternalServerError),
        ("mock:context=1", anthropic.BadRequestError),
    ],
)
async def test_failures_are_what_the_sdk_takes_them_for(
    client: anthropic.AsyncAnthropic, model: str, error: type[anthropic.APIStatusError]
) -> None:
    with pytest.raises(error):
        await whole(client, model)


async def test_an_error_in_the_stream_is_raised(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.APIStatusError) as raised:
        await streamed(client, "mock:error=4")
    assert raised.value.body == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    }


async def test_the_models_can_be_listed(client: anthropic.AsyncAnthropic) -> None:
    async with asyncio.timeout(10):
        assert "mock" in [model.id async for model in await client.models.list()]


async def test_bedrock_is_read_by_its_own_client(server: MockModels) -> None:
    async with anthropic.AsyncAnthropicBedrock(
        base_url=server.url,
        api_key="k",
        aws_region="us-east-1",
        max_retries=0,
    ) as client:
        async with asyncio.timeout(10):
            asked: Any = {"model": "mock:reasoning=2", "max_tokens": 1000, "messages": ECHO}
            answer = await client.messages.create(**asked)
            pieces = [event async for event in await client.messages.create(stream=True, **asked)]
    assert answer.content[1].text == "yes, naïve 会話"
    deltas = [event.delta for event in pieces if event.type == "content_block_delta"]
    texts = [delta.text for delta in deltas if delta.type == "text_delta"]
    assert "".join(texts) == "yes, naïve 会話"
