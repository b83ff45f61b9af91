"""Whatever is sent is understood or refused, and nothing else."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from parley.clock import FakeClock
from parley.testing.llm_mock.behaviour.options import Behaviour
from parley.testing.llm_mock.exchange.parsing import sample_arguments
from parley.testing.llm_mock.exchange.request import HttpRequest
from parley.testing.llm_mock.http.handler import ReadyAnswer, RequestHandler
from parley.testing.llm_mock.http.statistics import RequestCounters
from parley.testing.llm_mock.playback.recording import RecordingQueue
from support.session.examples import examples
from support.testing.mock_requests import ANTHROPIC_HEADERS, OPENAI_HEADERS

WORDS = (
    "model messages input role content type text tool_use tool_result tool_calls id name arguments "
    "function function_call function_call_output call_id tool_use_id tools input_schema thinking "
    "signature reasoning summary user assistant tool system max_tokens stream image source mock"
)
PATHS = ("/v1/messages", "/v1/responses", "/v1/chat/completions", "/model/mock/invoke")
SCHEMA_WORDS = "type properties required items minItems enum anyOf const object array string"

words = st.sampled_from(WORDS.split())
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2000) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]), "content": values},
        optional={"tool_calls": values, "tool_call_id": words, "type": words},
    ),
    max_size=4,
)
schema_words = st.sampled_from(SCHEMA_WORDS.split())
schemas = st.recursive(
    st.none() | st.integers(0, 3) | schema_words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(schema_words, inner, max_size=4),
    max_leaves=15,
)


@given(
    st.sampled_from(PATHS),
    st.fixed_dictionaries(
        {}, optional={"messages": messages, "input": messages | values, "tools": values}
    ),
    values,
)
@settings(max_examples=examples(300), deadline=None)
def test_any_body_is_answered(path: str, body: dict[str, Any], more: object) -> None:
    clock = FakeClock()
    desk = RequestHandler(
        clock, 0, Behaviour(tools=1), RecordingQueue(()), RequestCounters(clock, 1)
    )
    whole = {"model": "mock", "max_tokens": 10, "anthropic_version": "2023-06-01", **body}
    headers = {**ANTHROPIC_HEADERS, **OPENAI_HEADERS}
    for sent in (whole, {**whole, "system": more}, more):
        request = HttpRequest("POST", path, path, {}, headers, json.dumps(sent).encode())
        answer = desk.answer(request)
        assert isinstance(answer, ReadyAnswer)
        assert answer.data[9:12] in (b"200", b"400", b"404")


@given(schemas)
def test_any_schema_has_arguments(schema: object) -> None:
    assert isinstance(json.loads(sample_arguments({"type": "object", "properties": schema})), dict)
    json.loads(sample_arguments(schema))


def test_arguments_are_what_the_schema_asks_for() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": ["string", "null"]},
            "kind": {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
            "deep": {"type": "object", "properties": {"x": {"const": 7}}, "required": ["x"]},
            "left_out": {"type": "string"},
        },
        "required": ["name", "kind", "tags", "deep"],
    }
    assert json.loads(sample_arguments(schema)) == {
        "name": "mock",
        "kind": 5,
        "tags": ["a"],
        "deep": {"x": 7},
    }
