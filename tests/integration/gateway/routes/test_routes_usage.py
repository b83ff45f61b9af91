"""Usage, limits and settings over HTTP, and what chatd is asked for them."""

from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import settings_pb2, usage_pb2
from parley.api.chat.v1 import settings_service_pb2 as settings_api
from parley.api.chat.v1 import usage_service_pb2 as usage_api
from parley.rpc import Problem, Violation
from support.gateway.chats import NO_CHAT, last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
SPAN = "start=2026-01-01T00:00:00Z&end=2026-02-01T01:00:00%2B01:00"
START, END = Timestamp(seconds=1767225600), Timestamp(seconds=1769904000)
TOTALS = usage_pb2.UsageTotals(
    cost_micros=5,
    priced_calls=2,
    unpriced_calls=1,
    estimated_calls=1,
    estimated_cost_micros=2,
    fallback_calls=1,
    input_tokens=10,
    output_tokens=20,
    cache_read_tokens=3,
    cache_write_tokens=4,
    model_runtime_ms=99,
)
TOTALS_JSON = {
    "cost_micros": 5,
    "priced_calls": 2,
    "unpriced_calls": 1,
    "estimated_calls": 1,
    "estimated_cost_micros": 2,
    "fallback_calls": 1,
    "input_tokens": 10,
    "output_tokens": 20,
    "cache_read_tokens": 3,
    "cache_write_tokens": 4,
    "model_runtime_ms": 99,
}
ROW_JSON = {"id": "x", "name": None, "totals": TOTALS_JSON, "provider_display_name": None}
INSTALLATION_JSON: dict[str, Any] = {
    "system_prompt": "be kind",
    "include_default_system_prompt": True,
    "plan_mode_instructions": "",
    "compact_on_final_step": False,
    "workspace_ttl_ms": 60000,
    "auto_archive_days": 0,
    "retention_days": 30,
    "running_chats_per_user_max": 0,
    "untrusted_repositories": False,
    "fallback_model_id": None,
    "retention_notice_days": 7,
    "own_model_overrides_allowed": False,
}


async def test_the_usage_of_a_chat_is_its_trees(stack: GatewayStack) -> None:
    stack.chatd.answers["GetChatUsage"] = usage_api.GetChatUsageResponse(
        root_chat_id="r", totals=TOTALS, own_cost_micros=7
    )

    reply = await stack.owner.request("GET", f"/api/v1/chats/{NO_CHAT}/usage")

    assert last_request(stack) == usage_api.GetChatUsageRequest(chat_id=NO_CHAT)
    assert reply.json() == {"root_chat_id": "r", "totals": TOTALS_JSON, "own_cost_micros": 7}


async def test_the_usage_of_a_user_is_summed_over_a_span(stack: GatewayStack) -> None:
    row = usage_pb2.UsageRow(id="x", totals=TOTALS)
    stack.chatd.answers["GetUserUsage"] = usage_api.GetUserUsageResponse(
        totals=TOTALS, by_model=[row], by_chat=[row]
    )

    own = await stack.owner.request("GET", f"/api/v1/me/usage?{SPAN}")
    other = await stack.owner.request("GET", f"/api/v1/users/{NO_CHAT}/usage")

    assert [request for _, request in stack.chatd.calls] == [
        usage_api.GetUserUsageRequest(start=START, end=END),
        usage_api.GetUserUsageRequest(user_id=NO_CHAT),
    ]
    shown = {"totals": TOTALS_JSON, "by_model": [ROW_JSON], "by_chat": [ROW_JSON]}
    assert (own.json(), other.json()) == (shown, shown)


async def test_the_usage_of_everyone_comes_in_pages(stack: GatewayStack) -> None:
    stack.chatd.answers["ListUsage"] = usage_api.ListUsageResponse(
        users=[usage_pb2.UsageRow(id="x", totals=TOTALS)], next_page_token="more"
    )

    reply = await stack.owner.request("GET", f"/api/v1/usage?{SPAN}&limit=1&cursor=a")

    assert last_request(stack) == usage_api.ListUsageRequest(
        start=START, end=END, page_size=1, page_token="a"
    )
    assert reply.json() == {"items": [ROW_JSON], "next_cursor": "more"}


IMPOSSIBLE_SPANS: tuple[tuple[str, str], ...] = (
    ("start=yesterday", "start"),
    ("start=2026-01-01T00:00:00", "start"),
    ("from=2026-01-01T00:00:00Z", "from"),
)


async def test_a_span_that_cannot_be_is_refused(stack: GatewayStack) -> None:
    for query, parameter in IMPOSSIBLE_SPANS:
        reply = await stack.owner.request("GET", f"/api/v1/me/usage?{query}")

        assert (reply.status, reply.json()["errors"][0]["parameter"]) == (422, parameter)


async def test_the_end_that_chatd_refuses_is_a_parameter(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        "end is before the start",
        violations=(Violation("end", "is before the start"),),
    )
    span = "start=2026-02-01T00:00:00Z&end=2026-01-01T00:00:00Z"

    for path in ("me/usage", "usage", f"users/{NO_CHAT}/usage"):
        reply = await stack.owner.request("GET", f"/api/v1/{path}?{span}")

        assert (reply.status, reply.json()["errors"][0]["parameter"]) == (422, "end")


async def test_users_see_where_they_stand(stack: GatewayStack) -> None:
    limit = usage_pb2.SpendLimit(
        everyone=True, limit_micros=100, period=usage_pb2.LIMIT_PERIOD_WEEK
    )
    limited = usage_pb2.SpendStatus(limit=limit, spent_micros=7, resets_at=END)
    stack.chatd.answers["GetSpendStatus"] = usage_api.GetSpendStatusResponse(status=limited)
    bound = await stack.owner.request("GET", "/api/v1/me/spend")
    free = usage_pb2.SpendStatus(spent_micros=7, resets_at=END)
    stack.chatd.answers["GetSpendStatus"] = usage_api.GetSpendStatusResponse(status=free)
    unbound = await stack.owner.request("GET", "/api/v1/me/spend")

    assert bound.json() == {
        "limit": {
            "user_id": None,
            "group_id": None,
            "everyone": True,
            "limit_micros": 100,
            "period": "week",
        },
        "spent_micros": 7,
        "resets_at": "2026-02-01T00:00:00Z",
    }
    assert unbound.json() == bound.json() | {"limit": None}


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("everyone", {"everyone": True}),
        (f"users/{NO_CHAT}", {"user_id": NO_CHAT}),
        (f"groups/{NO_CHAT}", {"group_id": NO_CHAT}),
    ],
)
async def test_a_limit_is_set_and_taken_away(
    stack: GatewayStack, path: str, subject: dict[str, Any]
) -> None:
    limit = usage_pb2.SpendLimit(**subject, limit_micros=100, period=usage_pb2.LIMIT_PERIOD_DAY)
    stack.chatd.answers["SetSpendLimit"] = usage_api.SetSpendLimitResponse(limit=limit)
    url = f"/api/v1/spend-limits/{path}"

    put = await stack.owner.request("PUT", url, {"limit_micros": 100, "period": "day"}, KEY)
    deleted = await stack.owner.request("DELETE", url, None, KEY)

    assert [request for _, request in stack.chatd.calls] == [
        usage_api.SetSpendLimitRequest(request_id="key-1", limit=limit),
        usage_api.SetSpendLimitRequest(request_id="key-1", limit=usage_pb2.SpendLimit(**subject)),
    ]
    nobody = {"user_id": None, "group_id": None, "everyone": False}
    shown = nobody | subject | {"limit_micros": 100, "period": "day"}
    assert (put.status, put.json()) == (200, shown)
    assert (deleted.status, deleted.body) == (204, b"")


async def test_limits_are_listed_in_pages(stack: GatewayStack) -> None:
    stack.chatd.answers["ListSpendLimits"] = usage_api.ListSpendLimitsResponse(
        limits=[usage_pb2.SpendLimit(user_id="u", limit_micros=1)]
    )

    reply = await stack.owner.request("GET", "/api/v1/spend-limits?limit=2")

    assert last_request(stack) == usage_api.ListSpendLimitsRequest(page_size=2)
    assert [limit["user_id"] for limit in reply.json()["items"]] == ["u"]


IMPOSSIBLE_LIMITS: tuple[tuple[str, object, int], ...] = (
    ("everyone", {"limit_micros": 0}, 422),
    ("everyone", {"limit_micros": 1, "period": "year"}, 422),
    ("users/nobody", {"limit_micros": 1}, 404),
    ("groups/nobody", {"limit_micros": 1}, 404),
)


async def test_a_limit_that_cannot_be_is_refused(stack: GatewayStack) -> None:
    for path, body, status in IMPOSSIBLE_LIMITS:
        reply = await stack.owner.request("PUT", f"/api/v1/spend-limits/{path}", body)

        assert (reply.status, stack.chatd.calls) == (status, [])


async def test_the_installations_settings_are_read_and_changed(stack: GatewayStack) -> None:
    settings = settings_pb2.InstallationSettings(**INSTALLATION_JSON)
    stack.chatd.answers |= {
        "GetInstallationSettings": settings_api.GetInstallationSettingsResponse(settings=settings),
        "UpdateInstallationSettings": settings_api.UpdateInstallationSettingsResponse(
            settings=settings
        ),
    }
    patch = {"system_prompt": None, "compact_on_final_step": False, "retention_days": 30}

    read = await stack.owner.request("GET", "/api/v1/settings")
    changed = await stack.owner.request("PATCH", "/api/v1/settings", patch, KEY)

    assert last_request(stack) == settings_api.UpdateInstallationSettingsRequest(
        request_id="key-1",
        settings=settings_pb2.InstallationSettings(retention_days=30),
        update_mask=FieldMask(paths=["system_prompt", "compact_on_final_step", "retention_days"]),
    )
    assert (read.json(), changed.json()) == (INSTALLATION_JSON, INSTALLATION_JSON)


async def test_users_read_and_change_their_own_settings(stack: GatewayStack) -> None:
    settings = settings_pb2.UserSettings(
        custom_prompt="hi", compaction_threshold_percents={"m": 50}
    )
    stack.chatd.answers |= {
        "GetUserSettings": settings_api.GetUserSettingsResponse(settings=settings),
        "UpdateUserSettings": settings_api.UpdateUserSettingsResponse(settings=settings),
    }
    given = {"custom_prompt": "hi", "compaction_threshold_percents": {"m": 50}}
    shown = {**given, "favourite_model_ids": [], "hidden_model_ids": []}

    read = await stack.owner.request("GET", "/api/v1/me/settings")
    changed = await stack.owner.request("PATCH", "/api/v1/me/settings", given, KEY)
    wrong = await stack.owner.request(
        "PATCH", "/api/v1/me/settings", {"compaction_threshold_percents": {"m": 101}}
    )

    assert last_request(stack) == settings_api.UpdateUserSettingsRequest(
        request_id="key-1",
        settings=settings,
        update_mask=FieldMask(paths=["custom_prompt", "compaction_threshold_percents"]),
    )
    assert (read.json(), changed.json()) == (shown, shown)
    assert (wrong.status, wrong.json()["errors"][0]["pointer"]) == (
        422,
        "/compaction_threshold_percents/m",
    )


async def test_users_have_own_models_by_purpose(stack: GatewayStack) -> None:
    override = settings_pb2.OwnModelOverride(
        purpose=settings_pb2.OWN_MODEL_PURPOSE_ROOT,
        mode=settings_pb2.OWN_MODEL_MODE_MODEL,
        model_id="m-1",
    )
    shown = {"purpose": "root", "mode": "model", "model_id": "m-1", "reasoning_effort": None}
    stack.chatd.answers |= {
        "SetOwnModelOverride": settings_api.SetOwnModelOverrideResponse(override=override),
        "ListOwnModelOverrides": settings_api.ListOwnModelOverridesResponse(
            allowed=True, overrides=[override]
        ),
    }
    path = "/api/v1/me/model-overrides"

    body = {"mode": "model", "model_id": "m-1"}
    put = await stack.owner.request("PUT", f"{path}/root", body, KEY)
    listed = await stack.owner.request("GET", path)
    deleted = await stack.owner.request("DELETE", f"{path}/root", None, KEY)
    unknown = await stack.owner.request("PUT", f"{path}/poetry", body)

    assert [request for _, request in stack.chatd.calls] == [
        settings_api.SetOwnModelOverrideRequest(request_id="key-1", override=override),
        settings_api.ListOwnModelOverridesRequest(),
        settings_api.SetOwnModelOverrideRequest(
            request_id="key-1",
            override=settings_pb2.OwnModelOverride(purpose=settings_pb2.OWN_MODEL_PURPOSE_ROOT),
        ),
    ]
    assert (put.status, put.json()) == (200, shown)
    assert listed.json() == {"allowed": True, "items": [shown]}
    assert deleted.status == 204
    assert (unknown.status, unknown.json()["resource"]) == (404, "purpose")
