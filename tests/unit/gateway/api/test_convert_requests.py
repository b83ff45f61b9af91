import msgspec
import pytest

from gateway.api.json_output import to_json
from gateway.http.problems.errors import HttpProblem
from gateway.http.request_body import decode
from parley.api.chat.v1 import (
    chat_pb2,
    chat_service_pb2,
    model_pb2,
    model_service_pb2,
    usage_pb2,
)
from support.gateway.bodies import body


def test_a_limit_without_a_period_is_one_of_a_month() -> None:
    limit = body("PUT /spend-limits/everyone")

    def period(**given: object) -> int:
        filled = usage_pb2.SpendLimit()
        text = msgspec.json.encode({"limit_micros": 1, **given})
        limit.fill(filled, decode(text, limit.type))
        return filled.period

    month = usage_pb2.LIMIT_PERIOD_MONTH
    assert (period(), period(period=None), period(period="month")) == (month, month, month)
    assert period(period="day") == usage_pb2.LIMIT_PERIOD_DAY


def test_what_is_created_is_enabled_unless_the_body_says_otherwise() -> None:
    created = body("POST /providers")

    def enabled(**given: object) -> bool:
        provider = model_pb2.Provider()
        text = msgspec.json.encode({"name": "a", "type": "openai", **given})
        created.fill(provider, decode(text, created.type))
        return provider.enabled

    assert (enabled(), enabled(enabled=None), enabled(enabled=False)) == (True, True, False)


def test_an_empty_key_of_a_provider_is_refused_and_null_removes_the_stored_ones() -> None:
    patch, asked = body("PATCH /providers/{provider_id}"), model_service_pb2.UpdateProviderRequest()

    assert patch.fill(asked, decode(b'{"key":null}', patch.type)) == ["key"]
    assert asked == model_service_pb2.UpdateProviderRequest()
    with pytest.raises(HttpProblem):
        decode(b'{"key":""}', patch.type)


def test_a_patch_names_only_what_was_given_and_null_is_given() -> None:
    patch = body("PATCH /chats/{chat_id}")
    chat = chat_pb2.Chat()

    given = patch.fill(chat, decode(b'{"model_id":null,"pin_order":3}', patch.type))

    assert (chat, sorted(given)) == (chat_pb2.Chat(pin_order=3), ["model_id", "pin_order"])


def test_a_json_object_is_sent_with_its_numbers_as_written() -> None:
    created, asked = body("POST /chats"), chat_service_pb2.CreateChatRequest()
    text = (
        b'{"content":[{"type":"text","text":"x"}],"client_tools":[{"name":"t","input_schema":'
        b'{"a": 12345678901234567890, "b": [1.50]}}]}'
    )

    created.fill(asked, decode(text, created.type))

    assert asked.client_tools[0].input_schema_json == '{"a":12345678901234567890,"b":[1.50]}'


def test_a_tool_s_output_is_sent_byte_for_byte() -> None:
    submitted = body("POST /chats/{chat_id}/tool-results")
    asked = chat_service_pb2.SubmitToolResultsRequest()
    text = b'{"results":[{"tool_call_id":"t","output": [1.0 ,  "\xc3\xa9"] }]}'

    submitted.fill(asked, decode(text, submitted.type))

    assert asked.results == [
        chat_service_pb2.ClientToolResult(tool_call_id="t", output_json='[1.0 ,  "é"]')
    ]


def test_what_is_unknown_of_a_model_is_null() -> None:
    shown = to_json(model_pb2.Model(id="m", name="n"))

    absent = {name for name, value in shown.items() if value is None}
    assert absent == {
        "effective_context_limit_tokens",
        "default_effort",
        "max_effort",
        "prices",
        "effective_prices",
        "etag",
    }


def test_a_key_is_shown_by_its_hint() -> None:
    provider = model_pb2.Provider(id="p", keys=[model_pb2.ProviderKey(id="k", hint="wxyz")])

    assert to_json(provider)["keys"] == [
        {
            "id": "k",
            "provider_id": None,
            "hint": "wxyz",
            "user_id": None,
            "order": 0,
            "created_at": None,
        }
    ]


def test_a_limit_says_whom_it_binds() -> None:
    shown = to_json(
        usage_pb2.SpendLimit(group_id="g", limit_micros=1, period=usage_pb2.LIMIT_PERIOD_DAY)
    )

    assert shown == {
        "user_id": None,
        "group_id": "g",
        "everyone": False,
        "limit_micros": 1,
        "period": "day",
    }
