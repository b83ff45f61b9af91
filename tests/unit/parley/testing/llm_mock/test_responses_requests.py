"""What the mock takes from a client of Responses, and what it refuses as OpenAI does."""

import pytest

from parley.testing.llm_mock.exchange.placeholders import identity_of
from parley.testing.llm_mock.exchange.request import ParsedRequest, ToolDefinition
from parley.testing.llm_mock.providers.openai.responses_encoding import SEAL
from support.testing.mock_requests import OPENAI_HEADERS, Json, asked, refusal

PATH = "/v1/responses"
KEPT = identity_of(0, 1, is_stored=True, is_reasoned=True)
FORGOTTEN = identity_of(0, 2, is_stored=False, is_reasoned=True)
USER: Json = {"role": "user", "content": [{"type": "input_text", "text": "add"}]}
ANSWER: Json = {"role": "assistant", "content": [{"type": "output_text", "text": "3"}]}
CALL: Json = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}
RESULT: Json = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
TOOL: Json = {"type": "function", "name": "add", "parameters": {"type": "object"}}


def thought(identity: str, **changes: object) -> Json:
    return {"type": "reasoning", "id": f"rs_{identity}00", "summary": [], **changes}


SEALED = thought(FORGOTTEN, encrypted_content=f"{SEAL}{FORGOTTEN}")


def body(*items: Json, **changes: object) -> Json:
    whole = {"model": "mock", "input": list(items) or "hi", **changes}
    return {name: value for name, value in whole.items() if value is not None}


def test_a_right_request_is_understood() -> None:
    whole = body(
        {"role": "developer", "content": "be kind"},
        USER,
        SEALED,
        {**CALL, "id": f"fc_{FORGOTTEN}00"},
        RESULT,
        tools=[TOOL, {"type": "web_search"}],
        stream=True,
        store=False,
        include=["reasoning.encrypted_content"],
        max_output_tokens=50,
    )
    assert asked(PATH, whole, OPENAI_HEADERS) == ParsedRequest(
        model="mock",
        is_streamed=True,
        said="add",
        tools=(ToolDefinition("add", {"type": "object"}),),
        rounds_done=1,
        output_tokens_max=50,
        wants_encrypted=True,
    )


@pytest.mark.parametrize(
    "items",
    [
        (USER, thought(KEPT), ANSWER),
        (USER, thought(KEPT), {**ANSWER, "id": f"msg_{KEPT}00", "type": "message"}, USER),
        (USER, {"type": "item_reference", "id": f"rs_{KEPT}00"}, ANSWER),
        (USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, ANSWER),
    ],
)
def test_what_the_provider_kept_may_come_back(items: tuple[Json, ...]) -> None:
    assert asked(PATH, body(*items), OPENAI_HEADERS).model == "mock"


@pytest.mark.parametrize(
    ("whole", "status", "param", "code"),
    [
        (body(model=None), 400, "model", "missing_required_parameter"),
        (body(input=None), 400, "input", "missing_required_parameter"),
        (body(input=[]), 400, "input", "empty_array"),
        (body(surprise=1), 400, "surprise", "unknown_parameter"),
        (body(messages=[]), 400, "messages", "unknown_parameter"),
        (body(max_output_tokens=8), 400, "max_output_tokens", "integer_below_min_value"),
        (body(reasoning={"effort": "extreme"}), 400, "reasoning.effort", "invalid_value"),
        (
            body(previous_response_id="resp_1"),
            400,
            "previous_response_id",
            "previous_response_not_found",
        ),
        (body({"role": "tool", "content": "x"}), 400, "input[0].role", "invalid_value"),
        (body({"type": "poem"}), 400, "input[0].type", "invalid_value"),
        (
            body({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
            400,
            "input[0].content[0].type",
            "invalid_value",
        ),
        (body({**USER, "name": "x"}), 400, "input[0].name", "unknown_parameter"),
        (body(USER, RESULT), 400, "input", ""),
        (body(USER, RESULT, CALL), 400, "input", ""),
        (body(USER, CALL), 400, "input", ""),
        (
            body(USER, {**CALL, "call_id": "x" * 65}, {**RESULT, "call_id": "x" * 65}),
            400,
            "input[1].call_id",
            "string_above_max_length",
        ),
        (body(USER, {**CALL, "id": "call_1"}, RESULT), 400, "input[1].id", "invalid_value"),
        (body(USER, SEALED), 400, "input", ""),
        (body(USER, SEALED, USER), 400, "input", ""),
        (body(USER, SEALED, SEALED, ANSWER), 400, "input", ""),
        (body(USER, thought(FORGOTTEN), ANSWER), 404, "input", ""),
        (body(USER, thought("x"), ANSWER), 404, "input", ""),
        (
            body(USER, thought(KEPT, encrypted_content="x"), ANSWER),
            400,
            "",
            "invalid_encrypted_content",
        ),
        (body(USER, {**ANSWER, "id": f"msg_{KEPT}00"}), 400, "input", ""),
        (body(tools=[{"type": "function"}]), 400, "tools[0].name", "missing_required_parameter"),
        (body(tools=[{"type": "function", "name": "a.b"}]), 400, "tools[0].name", "invalid_value"),
    ],
    ids=lambda value: str(value) if not isinstance(value, dict) else "",
)
def test_what_openai_refuses_is_refused_with_its_codes(
    whole: Json, status: int, param: str, code: str
) -> None:
    refused = refusal(PATH, whole, OPENAI_HEADERS)
    assert (refused.status, refused.param, refused.code) == (status, param, code)


def test_a_key_is_needed() -> None:
    assert refusal(PATH, body(), {}).status == 401
    assert asked("/openai/v1/responses", body(), {"api-key": "k"}).model == "mock"
