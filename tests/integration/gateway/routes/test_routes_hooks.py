"""Hooks over HTTP, and what chatd is asked for them."""

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import hook_pb2
from parley.api.chat.v1 import hook_service_pb2 as api
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
ID = "00000000-0000-0000-0000-0000000000c1"
PATH = "/api/v1/hooks"
BODY = {
    "name": "policy",
    "url": "https://hooks.example.com/",
    "events": ["pre_tool_use", "stop"],
    "tools": ["exec*"],
    "timeout_ms": 500,
    "fail_policy": "open",
}
SHOWN = {
    **BODY,
    "id": ID,
    "disabled": False,
    "created_at": "2026-01-01T00:00:00Z",
    "previous_secret_until": None,
}
GIVEN = hook_pb2.Hook(
    name="policy",
    url="https://hooks.example.com/",
    events=[hook_pb2.HOOK_EVENT_PRE_TOOL_USE, hook_pb2.HOOK_EVENT_STOP],
    tools=["exec*"],
    timeout_ms=500,
    fail_policy=hook_pb2.HOOK_FAIL_POLICY_OPEN,
)


def stored() -> hook_pb2.Hook:
    hook = hook_pb2.Hook(id=ID, etag="3", created_at=Timestamp(seconds=1767225600))
    hook.MergeFrom(GIVEN)
    return hook


async def test_a_hook_is_created_read_changed_tested_and_deleted(stack: GatewayStack) -> None:
    answers = stack.chatd.answers
    answers["CreateHook"] = api.CreateHookResponse(hook=stored(), secret="whsec_x")
    made = await stack.owner.request("POST", PATH, BODY, headers=KEY)
    assert (made.status, made.json()) == (201, {"hook": SHOWN, "secret": "whsec_x"})
    assert (made.headers["location"], made.headers["etag"]) == (f"{PATH}/{ID}", '"3"')
    assert last_request(stack).hook == GIVEN
    answers["ListHooks"] = api.ListHooksResponse(hooks=[stored()])
    listed = await stack.owner.request("GET", PATH)
    assert listed.json() == {"items": [SHOWN]}
    answers["GetHook"] = api.GetHookResponse(hook=stored())
    read = await stack.owner.request("GET", f"{PATH}/{ID}")
    assert (read.json(), read.headers["etag"]) == (SHOWN, '"3"')
    answers["UpdateHook"] = api.UpdateHookResponse(hook=stored())
    changed = await stack.owner.request(
        "PATCH", f"{PATH}/{ID}", {"disabled": True}, headers={**KEY, "If-Match": '"3"'}
    )
    assert changed.json() == SHOWN
    asked = last_request(stack)
    assert (asked.hook, asked.update_mask) == (
        hook_pb2.Hook(id=ID, etag="3", disabled=True),
        FieldMask(paths=["disabled"]),
    )
    delivery = hook_pb2.HookDelivery(
        dispatch_id=ID,
        event=hook_pb2.HOOK_EVENT_STOP,
        outcome=hook_pb2.HOOK_OUTCOME_FAILED,
        problem="it is down",
        notice="Ask for a review.",
        duration_ms=12,
        attempts=1,
        created_at=Timestamp(seconds=1767225600),
    )
    shown = {
        "dispatch_id": ID,
        "chat_id": None,
        "event": "stop",
        "tool_name": None,
        "outcome": "failed",
        "http_status": 0,
        "problem": "it is down",
        "notice": "Ask for a review.",
        "duration_ms": 12,
        "attempts": 1,
        "created_at": "2026-01-01T00:00:00Z",
    }
    answers["TestHook"] = api.TestHookResponse(delivery=delivery)
    tested = await stack.owner.request("POST", f"{PATH}/{ID}/test", {}, headers=KEY)
    assert (tested.status, tested.json()) == (200, shown)
    rotated = stored()
    rotated.previous_secret_until.FromSeconds(1767229200)
    answers["RotateHookSecret"] = api.RotateHookSecretResponse(hook=rotated, secret="whsec_y")
    rotation = await stack.owner.request(
        "POST", f"{PATH}/{ID}/rotate-secret", {"overlap_s": 3600}, headers=KEY
    )
    until = {"previous_secret_until": "2026-01-01T01:00:00Z"}
    assert (rotation.status, rotation.json()) == (
        200,
        {"hook": {**SHOWN, **until}, "secret": "whsec_y"},
    )
    assert last_request(stack).overlap_s == 3600
    answers["ListHookDeliveries"] = api.ListHookDeliveriesResponse(deliveries=[delivery])
    log = await stack.owner.request("GET", f"{PATH}/{ID}/deliveries?limit=7")
    assert log.json() == {"items": [shown]}
    assert last_request(stack).page_size == 7
    answers["DeleteHook"] = api.DeleteHookResponse()
    deleted = await stack.owner.request("DELETE", f"{PATH}/{ID}", headers=KEY)
    assert deleted.status == 204
