"""Models, providers, their keys and overrides over HTTP, and what chatd is asked for them."""

from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import chat_pb2, model_pb2
from parley.api.chat.v1 import model_service_pb2 as api
from parley.rpc import Problem, Violation
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
MODEL = model_pb2.Model(
    id="m-1",
    provider_id="p-1",
    name="big",
    display_name="big",
    enabled=True,
    context_limit_tokens=1000,
    effective_context_limit_tokens=1000,
    max_effort=chat_pb2.REASONING_EFFORT_HIGH,
    prices=model_pb2.Prices(input="3.75"),
    effective_prices=model_pb2.Prices(input="3.75", output="15"),
    options_json='{"a": 1}',
    etag="7",
    provider_display_name="Acme",
)
MODEL_JSON: dict[str, Any] = {
    "id": "m-1",
    "provider_id": "p-1",
    "name": "big",
    "display_name": "big",
    "enabled": True,
    "is_default": False,
    "context_limit_tokens": 1000,
    "effective_context_limit_tokens": 1000,
    "output_limit_tokens": 0,
    "compaction_threshold_percent": 0,
    "default_effort": None,
    "max_effort": "high",
    "prices": {"input": 3.75, "output": None, "cache_read": None, "cache_write": None},
    "effective_prices": {
        "input": 3.75,
        "output": 15,
        "cache_read": None,
        "cache_write": None,
    },
    "options": {"a": 1},
    "from_environment": False,
    "etag": "7",
    "provider_display_name": "Acme",
    "is_favourite": False,
    "is_hidden": False,
    "effective_compaction_threshold_percent": 0,
}
STORED_KEY = model_pb2.ProviderKey(
    id="k-1", hint="wxyz", order=1, provider_id="p-1", created_at=Timestamp(seconds=0)
)
KEY_JSON = {
    "id": "k-1",
    "provider_id": "p-1",
    "hint": "wxyz",
    "user_id": None,
    "order": 1,
    "created_at": "1970-01-01T00:00:00Z",
}
PROVIDER = model_pb2.Provider(
    id="p-1",
    name="main",
    display_name="Main",
    type=model_pb2.PROVIDER_TYPE_OPENAI_COMPATIBLE,
    base_url="https://models.test",
    enabled=True,
    keys=[STORED_KEY],
    etag="3",
)
PROVIDER_JSON: dict[str, Any] = {
    "id": "p-1",
    "name": "main",
    "display_name": "Main",
    "type": "openai_compatible",
    "base_url": "https://models.test",
    "enabled": True,
    "user_keys_allowed": False,
    "keys": [KEY_JSON],
    "options": {},
    "created_at": None,
    "from_environment": False,
    "etag": "3",
}
CONFLICT = Problem(
    grpc.StatusCode.ABORTED, "VERSION_CONFLICT", "Somebody changed it.", {"etag": "8"}
)


async def test_models_are_listed_in_pages_and_read_with_their_tag(stack: GatewayStack) -> None:
    stack.chatd.answers["ListModels"] = api.ListModelsResponse(
        models=[MODEL], next_page_token="more"
    )
    stack.chatd.answers["GetModel"] = api.GetModelResponse(model=MODEL)
    listed = await stack.owner.request("GET", "/api/v1/models?limit=1&cursor=here")
    asked = last_request(stack)
    read = await stack.owner.request("GET", "/api/v1/models/m-1")
    same = await stack.owner.request("GET", "/api/v1/models/m-1", None, {"If-None-Match": '"7"'})

    assert asked == api.ListModelsRequest(page_size=1, page_token="here")
    assert listed.json() == {"items": [MODEL_JSON], "next_cursor": "more"}
    assert (read.status, read.headers["etag"], read.json()) == (200, '"7"', MODEL_JSON)
    assert (same.status, same.headers["etag"], same.body) == (304, '"7"', b"")


async def test_a_model_that_chatd_does_not_know_is_not_there(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND", "no model m-2", {"resource": "model"}
    )

    for model_id in ("m-2", "%00"):
        reply = await stack.owner.request("GET", f"/api/v1/models/{model_id}")
        assert (reply.status, reply.json()["code"]) == (404, "RESOURCE_NOT_FOUND")
        assert reply.json()["resource"] == "model"


async def test_a_model_is_made_known(stack: GatewayStack) -> None:
    stack.chatd.answers["CreateModel"] = api.CreateModelResponse(model=MODEL)
    body = {
        "provider_id": "p-1",
        "name": "big",
        "display_name": "Big",
        "is_default": True,
        "context_limit_tokens": 1000,
        "output_limit_tokens": 10,
        "compaction_threshold_percent": 80,
        "default_effort": "low",
        "max_effort": "high",
        "prices": {"input": 3.75},
        "options": {"a": [1.50]},
    }

    reply = await stack.owner.request("POST", "/api/v1/models", body, KEY)

    assert last_request(stack) == api.CreateModelRequest(
        request_id="key-1",
        model=model_pb2.Model(
            provider_id="p-1",
            name="big",
            display_name="Big",
            enabled=True,
            is_default=True,
            context_limit_tokens=1000,
            output_limit_tokens=10,
            compaction_threshold_percent=80,
            default_effort=chat_pb2.REASONING_EFFORT_LOW,
            max_effort=chat_pb2.REASONING_EFFORT_HIGH,
            prices=model_pb2.Prices(input="3.75"),
            options_json='{"a":[1.5]}',
        ),
    )
    assert (reply.status, reply.json()) == (201, MODEL_JSON)
    assert (reply.headers["location"], reply.headers["etag"]) == ("/api/v1/models/m-1", '"7"')


async def test_a_model_changes_only_where_the_patch_says_so(stack: GatewayStack) -> None:
    stack.chatd.answers["UpdateModel"] = api.UpdateModelResponse(model=MODEL)
    body = {"enabled": False, "max_effort": None, "prices": None, "options": {"a": 1}}

    reply = await stack.owner.request(
        "PATCH", "/api/v1/models/m-1", body, KEY | {"If-Match": '"7"'}
    )

    assert last_request(stack) == api.UpdateModelRequest(
        request_id="key-1",
        model=model_pb2.Model(id="m-1", etag="7", options_json='{"a":1}'),
        update_mask=FieldMask(paths=["enabled", "max_effort", "prices", "options_json"]),
    )
    assert (reply.status, reply.headers["etag"], reply.json()) == (200, '"7"', MODEL_JSON)


@pytest.mark.parametrize(
    ("condition", "refusal", "status", "code"),
    [
        ({"If-Match": '"6"'}, CONFLICT, 412, "VERSION_CONFLICT"),
        ({"If-Match": 'W/"7"'}, None, 412, "VERSION_CONFLICT"),
        (
            {"If-Match": '"abc"'},
            Problem(
                grpc.StatusCode.INVALID_ARGUMENT,
                "INVALID_REQUEST",
                "model.etag is no etag",
                violations=(Violation("model.etag", "is no etag"),),
            ),
            412,
            "VERSION_CONFLICT",
        ),
        ({"If-Match": "7"}, None, 422, "INVALID_REQUEST"),
        ({"If-Match": '"7" "8"'}, None, 422, "INVALID_REQUEST"),
        ({"If-Match": '"5", "6"'}, CONFLICT, 412, "VERSION_CONFLICT"),
        ({}, CONFLICT, 409, "VERSION_CONFLICT"),
    ],
)
async def test_a_change_made_from_another_version_is_refused(
    stack: GatewayStack,
    condition: dict[str, str],
    refusal: Problem | None,
    status: int,
    code: str,
) -> None:
    stack.chatd.refusal = refusal

    for path in ("/api/v1/models/m-1", "/api/v1/providers/p-1"):
        reply = await stack.owner.request("PATCH", path, {"enabled": True}, condition)
        assert (reply.status, reply.json()["code"]) == (status, code)


async def test_models_and_providers_are_forgotten(stack: GatewayStack) -> None:
    model = await stack.owner.request("DELETE", "/api/v1/models/m-1", None, KEY)
    provider = await stack.owner.request("DELETE", "/api/v1/providers/p-1", None, KEY)

    assert [request for _, request in stack.chatd.calls] == [
        api.DeleteModelRequest(request_id="key-1", model_id="m-1"),
        api.DeleteProviderRequest(request_id="key-1", provider_id="p-1"),
    ]
    assert [(reply.status, reply.body) for reply in (model, provider)] == [(204, b"")] * 2


async def test_purposes_get_models_of_their_own(stack: GatewayStack) -> None:
    override = model_pb2.ModelOverride(
        purpose=model_pb2.MODEL_PURPOSE_TITLE,
        model_id="m-1",
        reasoning_effort=chat_pb2.REASONING_EFFORT_LOW,
    )
    shown = {"purpose": "title", "model_id": "m-1", "reasoning_effort": "low"}
    stack.chatd.answers["SetModelOverride"] = api.SetModelOverrideResponse(override=override)
    stack.chatd.answers["ListModelOverrides"] = api.ListModelOverridesResponse(overrides=[override])
    path = "/api/v1/model-overrides"

    body = {"model_id": "m-1", "reasoning_effort": "low"}
    put = await stack.owner.request("PUT", f"{path}/title", body, KEY)
    listed = await stack.owner.request("GET", path)
    deleted = await stack.owner.request("DELETE", f"{path}/title", None, KEY)
    unknown = await stack.owner.request("PUT", f"{path}/poetry", body)

    assert [request for _, request in stack.chatd.calls] == [
        api.SetModelOverrideRequest(request_id="key-1", override=override),
        api.ListModelOverridesRequest(),
        api.SetModelOverrideRequest(
            request_id="key-1",
            override=model_pb2.ModelOverride(purpose=model_pb2.MODEL_PURPOSE_TITLE),
        ),
    ]
    assert (put.status, put.json()) == (200, shown)
    assert listed.json() == {"items": [shown]}
    assert deleted.status == 204
    assert (unknown.status, unknown.json()["resource"]) == (404, "purpose")


async def test_providers_are_made_known_listed_read_and_changed(stack: GatewayStack) -> None:
    stack.chatd.answers |= {
        "CreateProvider": api.CreateProviderResponse(provider=PROVIDER),
        "UpdateProvider": api.UpdateProviderResponse(provider=PROVIDER),
        "ListProviders": api.ListProvidersResponse(providers=[PROVIDER]),
        "GetProvider": api.GetProviderResponse(provider=PROVIDER),
    }
    body = {
        "name": "main",
        "type": "openai_compatible",
        "base_url": "https://models.test",
        "user_keys_allowed": True,
        "options": {"region": "x"},
    }

    made = await stack.owner.request("POST", "/api/v1/providers", body, KEY)
    listed = await stack.owner.request("GET", "/api/v1/providers?limit=5")
    read = await stack.owner.request("GET", "/api/v1/providers/p-1")
    patch = {"type": "azure", "base_url": None, "display_name": "M"}
    changed = await stack.owner.request(
        "PATCH", "/api/v1/providers/p-1", patch, KEY | {"If-Match": '"3"'}
    )

    create, list_, _, update = (request for _, request in stack.chatd.calls)
    assert create == api.CreateProviderRequest(
        request_id="key-1",
        provider=model_pb2.Provider(
            name="main",
            type=model_pb2.PROVIDER_TYPE_OPENAI_COMPATIBLE,
            base_url="https://models.test",
            enabled=True,
            user_keys_allowed=True,
            options_json='{"region":"x"}',
        ),
    )
    assert list_ == api.ListProvidersRequest(page_size=5)
    assert update == api.UpdateProviderRequest(
        request_id="key-1",
        provider=model_pb2.Provider(
            id="p-1", etag="3", type=model_pb2.PROVIDER_TYPE_AZURE, display_name="M"
        ),
        update_mask=FieldMask(paths=["display_name", "type", "base_url"]),
    )
    assert (made.status, made.headers["location"]) == (201, "/api/v1/providers/p-1")
    assert listed.json() == {"items": [PROVIDER_JSON], "next_cursor": None}
    for reply in (made, read, changed):
        assert (reply.headers["etag"], reply.json()) == ('"3"', PROVIDER_JSON)


@pytest.mark.parametrize(("given", "told"), [("sk-new", "sk-new"), (None, "")])
async def test_a_key_comes_with_a_change_of_its_provider(
    stack: GatewayStack, given: str | None, told: str
) -> None:
    stack.chatd.answers["UpdateProvider"] = api.UpdateProviderResponse(provider=PROVIDER)
    body = {"base_url": "https://other.test", "key": given}

    reply = await stack.owner.request("PATCH", "/api/v1/providers/p-1", body, KEY)

    assert last_request(stack) == api.UpdateProviderRequest(
        request_id="key-1",
        provider=model_pb2.Provider(id="p-1", base_url="https://other.test"),
        update_mask=FieldMask(paths=["base_url", "key"]),
        key=told,
    )
    assert (reply.status, reply.json()) == (200, PROVIDER_JSON)


async def test_the_keys_of_a_provider_are_ordered_over_the_version_that_was_read(
    stack: GatewayStack,
) -> None:
    stack.chatd.answers["SetProviderKeyOrder"] = api.SetProviderKeyOrderResponse(provider=PROVIDER)
    path = "/api/v1/providers/p-1/key-order"

    reply = await stack.owner.request(
        "PUT", path, {"key_ids": ["k-2", "k-1"]}, KEY | {"If-Match": '"2"'}
    )
    without = await stack.owner.request("PUT", path, {}, KEY)

    assert last_request(stack) == api.SetProviderKeyOrderRequest(
        request_id="key-1", provider_id="p-1", key_ids=["k-2", "k-1"], etag="2"
    )
    assert (reply.status, reply.headers["etag"], reply.json()) == (200, '"3"', PROVIDER_JSON)
    assert (without.status, without.json()["errors"][0]["pointer"]) == (422, "/key_ids")


async def test_a_provider_is_checked(stack: GatewayStack) -> None:
    stack.chatd.answers["CheckProvider"] = api.CheckProviderResponse(
        keys=[
            api.KeyCheck(key_id="k-1", works=True),
            api.KeyCheck(works=False, problem="It was refused."),
        ],
        model_names=["big", "small"],
    )

    reply = await stack.owner.request("POST", "/api/v1/providers/p-1/check")

    assert last_request(stack) == api.CheckProviderRequest(provider_id="p-1")
    assert (reply.status, reply.json()) == (
        200,
        {
            "keys": [
                {"key_id": "k-1", "works": True, "problem": None},
                {"key_id": None, "works": False, "problem": "It was refused."},
            ],
            "model_names": ["big", "small"],
        },
    )


async def test_keys_come_in_and_their_values_never_go_out(stack: GatewayStack) -> None:
    stack.chatd.answers |= {
        "AddProviderKey": api.AddProviderKeyResponse(key=STORED_KEY),
        "ListProviderKeys": api.ListProviderKeysResponse(
            keys=[STORED_KEY],
            providers=[api.ProviderName(id="p-1", name="main", display_name="Main")],
        ),
    }
    body = {"provider_id": "p-1", "key": "sk-secret-wxyz"}
    own = "/api/v1/me/provider-keys"

    added = await stack.owner.request("POST", "/api/v1/provider-keys", body, KEY)
    own_added = await stack.owner.request("POST", own, body, KEY)
    listed = await stack.owner.request("GET", own)
    deleted = await stack.owner.request("DELETE", "/api/v1/provider-keys/k-1", None, KEY)
    own_deleted = await stack.owner.request("DELETE", f"{own}/k-1", None, KEY)

    given: dict[str, Any] = {"request_id": "key-1", "provider_id": "p-1", "key": "sk-secret-wxyz"}
    gone = api.DeleteProviderKeyRequest(request_id="key-1", key_id="k-1")
    assert [request for _, request in stack.chatd.calls] == [
        api.AddProviderKeyRequest(**given),
        api.AddProviderKeyRequest(**given, personal=True),
        api.ListProviderKeysRequest(),
        gone,
        gone,
    ]
    assert [
        (reply.status, reply.headers["location"], reply.json()) for reply in (added, own_added)
    ] == [
        (201, "/api/v1/provider-keys/k-1", KEY_JSON),
        (201, "/api/v1/me/provider-keys/k-1", KEY_JSON),
    ]
    assert listed.json() == {
        "items": [KEY_JSON],
        "providers": [{"id": "p-1", "name": "main", "display_name": "Main"}],
    }
    assert (deleted.status, own_deleted.status) == (204, 204)
    replies = (added, own_added, listed, deleted, own_deleted)
    assert [reply for reply in replies if b"secret" in reply.body] == []


IMPOSSIBLE_BODIES: tuple[tuple[str, object, str], ...] = (
    ("models", {"provider_id": "p", "name": "n", "prices": {"input": -1}}, "/prices/input"),
    ("models", {"provider_id": "p", "name": "n", "prices": {"inptu": 1}}, "/prices/inptu"),
    ("models", {"provider_id": "p", "name": "n", "options": []}, "/options"),
    ("models", {"provider_id": "p"}, "/name"),
    ("providers", {"name": "Not This", "type": "openai"}, "/name"),
    ("providers", {"name": "x", "type": "scripted"}, "/type"),
    ("providers", {"name": "x", "type": "openai", "keys": []}, "/keys"),
    ("provider-keys", {"provider_id": "p", "key": ""}, "/key"),
    ("provider-keys", {"provider_id": "p", "key": "a\0"}, "/key"),
)


async def test_what_cannot_be_configured_is_refused_here(stack: GatewayStack) -> None:
    for path, body, pointer in IMPOSSIBLE_BODIES:
        reply = await stack.owner.request("POST", f"/api/v1/{path}", body)

        assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
        assert reply.json()["errors"][0]["pointer"] == pointer
        assert stack.chatd.calls == []


async def test_a_taken_name_and_a_bad_option_are_told_as_they_were_written(
    stack: GatewayStack,
) -> None:
    body = {"name": "main", "type": "openai"}
    stack.chatd.refusal = Problem(
        grpc.StatusCode.ALREADY_EXISTS,
        "NAME_TAKEN",
        "Another provider has this name; choose another one.",
        {"resource": "provider", "name": "main"},
    )
    taken = await stack.owner.request("POST", "/api/v1/providers", body)
    stack.chatd.refusal = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        "too long",
        violations=(Violation("provider.options_json", "is too long"),),
    )
    wrong = await stack.owner.request("POST", "/api/v1/providers", body)

    assert (taken.status, taken.json()["code"], taken.json()["name"]) == (
        409,
        "NAME_TAKEN",
        "main",
    )
    assert (wrong.status, wrong.json()["errors"][0]["pointer"]) == (422, "/options")
