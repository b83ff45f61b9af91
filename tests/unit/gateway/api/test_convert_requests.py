from gateway.api.convert.models import model_to_json, override_to_proto, provider_to_json
from gateway.api.convert.usage import limit_to_json, period_to_proto
from gateway.api.inputs.models import LimitPeriod, ProviderType
from gateway.http.request_body import decode
from parley.api.chat.v1 import chat_pb2, chat_service_pb2, model_pb2, usage_pb2
from support.gateway.bodies import body


def test_every_period_has_its_value() -> None:
    values = [period_to_proto(period) for period in LimitPeriod]

    assert values == list(usage_pb2.LimitPeriod.values())[1:]


def test_every_type_of_provider_but_the_demo_s_can_be_asked_for() -> None:
    names = {f"PROVIDER_TYPE_{kind.name}" for kind in ProviderType}
    not_asked = {"PROVIDER_TYPE_UNSPECIFIED", "PROVIDER_TYPE_SCRIPTED"}

    assert names == set(model_pb2.ProviderType.keys()) - not_asked


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
    shown = model_to_json(model_pb2.Model(id="m", name="n"))

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

    assert provider_to_json(provider)["keys"] == [
        {
            "id": "k",
            "provider_id": None,
            "hint": "wxyz",
            "user_id": None,
            "order": 0,
            "created_at": None,
        }
    ]


def test_an_override_that_goes_names_no_model() -> None:
    purpose = model_pb2.MODEL_PURPOSE_ADVISOR

    assert override_to_proto(purpose, None) == model_pb2.ModelOverride(purpose=purpose)


def test_a_limit_says_whom_it_binds() -> None:
    shown = limit_to_json(usage_pb2.SpendLimit(group_id="g", limit_micros=1))

    assert shown == {
        "user_id": None,
        "group_id": "g",
        "everyone": False,
        "limit_micros": 1,
        "period": None,
    }
