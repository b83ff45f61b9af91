"""What the mock takes from a client of Chat Completions, and what it refuses as OpenAI does."""

import pytest

from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition
from support.testing.mock_requests import OPENAI_HEADERS, Json, asked, refusal

PATH = "/v1/chat/completions"
USER: Json = {"role": "user", "content": "hi"}
TOOL: Json = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
}
CALL: Json = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "add", "arguments": "{}"},
}
CALLS: Json = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "call_1", "content": "3"}


def body(*messages: Json, **changes: object) -> Json:
    whole = {"model": "mock", "messages": list(messages) or [USER], **changes}
    return {name: value for name, value in whole.items() if value is not None}


def test_a_right_request_is_understood() -> None:
    whole = body(
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "add"}]},
        CALLS,
        RESULT,
        tools=[TOOL],
        stream=True,
        stream_options={"include_usage": True},
        max_completion_tokens=50,
    )
    assert asked(PATH, whole, OPENAI_HEADERS) == ParsedRequest(
        model="mock",
        is_streamed=True,
        said="add",
        tools=(ToolDefinition("add", TOOL["function"]["parameters"]),),
        rounds_done=1,
        output_tokens_max=50,
        wants_usage=True,
    )


@pytest.mark.parametrize(
    ("whole", "param", "code"),
    [
        (body(model=None), "", ""),
        (body(messages=None), "messages", "missing_required_parameter"),
        (body(messages=[]), "messages", "empty_array"),
        (body(surprise=1), "surprise", "unknown_parameter"),
        (body({"content": "x"}), "messages[0].role", "missing_required_parameter"),
        (body({"role": "robot", "content": "x"}), "messages[0].role", "invalid_value"),
        (body({"role": "user", "content": None}), "messages[0].content", ""),
        (body({"role": "user", "content": 3}), "messages[0].content", "invalid_value"),
        (
            body({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
            "messages[0].content[0].type",
            "invalid_value",
        ),
        (body(RESULT), "messages.[0].role", ""),
        (body(USER, CALLS, tools=[TOOL]), "messages", ""),
        (body(USER, CALLS, USER, RESULT, tools=[TOOL]), "messages.[2].role", ""),
        (body(USER, CALLS, RESULT, RESULT, tools=[TOOL]), "messages.[3].role", ""),
        (body(USER, {**CALLS, "tool_calls": []}), "messages[1].content", ""),
        (
            body(USER, {**CALLS, "content": "x", "tool_calls": []}),
            "messages[1].tool_calls",
            "empty_array",
        ),
        (
            body(USER, {**CALLS, "tool_calls": [{**CALL, "id": "x" * 41}]}, RESULT),
            "messages[1].tool_calls[0].id",
            "string_above_max_length",
        ),
        (body(tools=[]), "tools", "empty_array"),
        (body(tool_choice="auto"), "tool_choice", ""),
        (body(parallel_tool_calls=True), "parallel_tool_calls", ""),
        (
            body(tools=[{"type": "function", "function": {"name": "a.b"}}]),
            "tools[0].function.name",
            "invalid_value",
        ),
        (
            body(tools=[{"type": "function", "function": {"name": "a" * 65}}]),
            "tools[0].function.name",
            "string_above_max_length",
        ),
        (body(stream_options={"include_usage": True}), "stream_options", ""),
        (body(model="gpt-5", max_tokens=3), "max_tokens", "unsupported_parameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_openai_refuses_is_refused_with_its_codes(whole: Json, param: str, code: str) -> None:
    refused = refusal(PATH, whole, OPENAI_HEADERS)
    assert (refused.status, refused.param, refused.code) == (400, param, code)


def test_a_key_is_needed_and_azure_takes_it_in_a_header_of_its_own() -> None:
    assert refusal(PATH, body(), {}).status == 401
    assert refusal(PATH, body(), {"api-key": "k"}).status == 401
    assert refusal("/openai/v1/chat/completions", body(), {}).status == 401
    assert asked("/openai/v1/chat/completions", body(), {"api-key": "k"}).model == "mock"


def test_a_deployment_of_azure_names_the_model() -> None:
    path = "/openai/deployments/mock%3Adeltas%3D1/chat/completions?api-version=2025-01-01"
    assert asked(path, body(model=None), {"api-key": "k"}).model == "mock:deltas=1"
