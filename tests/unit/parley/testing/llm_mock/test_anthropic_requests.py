"""What the mock takes from a client of Anthropic, and what it refuses as Anthropic does."""

import pytest

from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition
from parley.testing.llm_mock.providers.anthropic.encoding import signature_of
from support.testing.mock_requests import ANTHROPIC_HEADERS, Json, asked, refusal

PATH = "/v1/messages"
USER: Json = {"role": "user", "content": "hi"}
TOOL: Json = {
    "name": "add",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "how": {"enum": ["fast", "slow"]}},
        "required": ["a", "how"],
    },
}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}
THOUGHT: Json = {"type": "thinking", "thinking": "hm", "signature": signature_of("hm")}


def body(*messages: Json, **changes: object) -> Json:
    whole = {"model": "mock", "max_tokens": 100, "messages": list(messages) or [USER], **changes}
    return {name: value for name, value in whole.items() if value is not None}


def said(*blocks: Json | str, role: str = "user") -> Json:
    words = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    return {"role": role, "content": words}


def calls(*blocks: Json) -> Json:
    return said(*blocks, role="assistant")


def test_a_right_request_is_understood() -> None:
    whole = body(
        said("add"),
        calls(THOUGHT, CALL),
        said(RESULT),
        tools=[TOOL],
        stream=True,
        system=[{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
        thinking={"type": "enabled", "budget_tokens": 1024},
        max_tokens=2000,
    )
    assert asked(PATH, whole, ANTHROPIC_HEADERS) == ParsedRequest(
        model="mock",
        is_streamed=True,
        said="add",
        tools=(ToolDefinition("add", TOOL["input_schema"]),),
        rounds_done=1,
        output_tokens_max=2000,
    )


def test_no_tool_is_offered_to_a_request_that_wants_no_call() -> None:
    whole = body(tools=[TOOL], tool_choice={"type": "none"})
    assert asked(PATH, whole, ANTHROPIC_HEADERS).tools == ()


@pytest.mark.parametrize(
    ("whole", "beginning"),
    [
        (body(model=None), "model: Field required"),
        (body(max_tokens=None), "max_tokens: Field required"),
        (body(max_tokens=0), "max_tokens: "),
        (body(surprise=1), "surprise: Extra inputs are not permitted"),
        (body(stream="yes"), "stream: "),
        (body(messages=[]), "messages: at least one message"),
        (body({"role": "system", "content": "x"}), 'messages: Unexpected role "system"'),
        (body({"role": "tool", "content": "x"}), "messages.0.role: "),
        (body({"content": "x"}), "messages.0.role: Field required"),
        (body(said("x", role="assistant")), "messages: first message must use"),
        (body(said("")), "messages: text content blocks must be non-empty"),
        (body(said(" ")), "messages: text content blocks must contain non-whitespace"),
        (body(said()), "messages.0: all messages must have non-empty content"),
        (body(said({"type": "poem"})), "messages.0.content.0.type: "),
        (body(said({"type": "text"})), "messages.0.content.0.text: Field required"),
        (body(said({"type": "text", "text": "x", "extra": 1})), "messages.0.content.0.extra: "),
        (body(USER, said("x ", role="assistant")), "messages: final assistant content"),
        (body(said(RESULT)), "messages.0.content.0: unexpected `tool_use_id`"),
        (body(USER, calls(CALL), USER, tools=[TOOL]), "messages.2: `tool_use` ids were found"),
        (body(USER, calls(CALL), tools=[TOOL]), "messages.2: `tool_use` ids were found"),
        (body(USER, calls(CALL), said("x", RESULT)), "messages.2: `tool_use` ids were found"),
        (body(USER, calls(CALL, CALL), said(RESULT, RESULT)), "messages.1: `tool_use` ids must"),
        (body(USER, calls(CALL), said(RESULT, RESULT)), "messages.2: each tool_use must"),
        (
            body(USER, calls({**CALL, "id": "a b"}), said(RESULT)),
            "messages.1.content.0.tool_use.id",
        ),
        (body(USER, calls({**CALL, "input": "{}"}), said(RESULT)), "messages.1.content.0.input: "),
        (body(said(CALL)), "messages.0.content.0: `tool_use` blocks can only"),
        (
            body(USER, calls({**THOUGHT, "signature": "x"})),
            "messages.1.content.0: Invalid `signature`",
        ),
        (
            body(USER, calls({"type": "redacted_thinking", "data": "x"})),
            "messages.1.content.0: Invalid `data`",
        ),
        (body(tools=[TOOL, TOOL]), "tools: Tool names must be unique"),
        (
            body(tools=[{"name": "a.b", "input_schema": {"type": "object"}}]),
            "tools.0.custom.name: ",
        ),
        (body(tools=[{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
        (body(tools=[{"name": "a", "input_schema": {}}]), "tools.0.custom.input_schema.type: "),
        (body(tool_choice={"type": "auto"}), "tool_choice may only be specified"),
        (body(thinking={"type": "enabled"}), "thinking.enabled.budget_tokens: Field required"),
        (
            body(thinking={"type": "enabled", "budget_tokens": 99}),
            "thinking.enabled.budget_tokens: Input should be greater",
        ),
        (
            body(thinking={"type": "enabled", "budget_tokens": 2000}),
            "`max_tokens` must be greater than `thinking.budget_tokens`",
        ),
        (
            body(thinking={"type": "adaptive"}, temperature=0.5),
            "`temperature` may only be set to 1",
        ),
        (
            body(
                said(*[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5)
            ),
            "A maximum of 4 blocks with cache_control",
        ),
        (
            body(said({"type": "image", "source": {"type": "base64", "media_type": "image/bmp"}})),
            "messages.0.content.0.image.source.base64.media_type: ",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_anthropic_refuses_is_refused_in_its_words(whole: Json, beginning: str) -> None:
    refused = refusal(PATH, whole, ANTHROPIC_HEADERS)
    assert (refused.status, refused.message[: len(beginning)]) == (400, beginning)


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'"text"', b'{"model": "\xff"}', b"[" * 5000])
def test_a_body_that_is_no_object_is_refused(broken: bytes) -> None:
    assert refusal(PATH, broken, ANTHROPIC_HEADERS).status == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"anthropic-version": "2023-06-01"}, 401),
        ({"anthropic-version": "2023-06-01", "authorization": "Bearer "}, 401),
        ({"x-api-key": "k"}, 400),
        ({"x-api-key": "k", "anthropic-version": "latest"}, 400),
    ],
)
def test_a_key_and_a_version_are_needed(headers: dict[str, str], status: int) -> None:
    assert refusal(PATH, body(), headers).status == status


def test_bedrock_takes_the_model_from_the_path_and_refuses_it_in_the_body() -> None:
    path = "/model/arn%3Aaws%3Ax%2Fmock/invoke-with-response-stream"
    headers = {"authorization": "Bearer k"}
    right = body(model=None, anthropic_version="bedrock-2023-05-31")
    question = asked(path, right, headers)
    assert (question.model, question.is_streamed) == ("arn:aws:x/mock", True)
    for wrong in ({**right, "model": "m"}, {**right, "stream": True}, body(model=None)):
        assert refusal(path, wrong, headers).status == 400
    assert refusal(path, right, {}).status == 403
