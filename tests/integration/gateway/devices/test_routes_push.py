"""Push subscriptions over HTTP, and what chatd is asked for them."""

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import push_service_pb2 as api
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
ID = "00000000-0000-0000-0000-0000000000d1"
PATH = "/api/v1/me/push-subscriptions"
BODY = {
    "endpoint": "https://push.example.com/1",
    "p256dh": "BAAA",
    "auth": "AAAA",
    "name": "laptop",
}
SHOWN = {
    "id": ID,
    "name": "laptop",
    "host": "push.example.com",
    "created_at": "2026-01-01T00:00:00Z",
    "last_sent_at": None,
    "last_error": None,
}


def stored() -> api.PushSubscription:
    at = Timestamp(seconds=1767225600)
    return api.PushSubscription(id=ID, name="laptop", host="push.example.com", created_at=at)


async def test_a_device_is_stored_listed_tested_and_deleted(stack: GatewayStack) -> None:
    answers = stack.chatd.answers
    answers["GetPushKey"] = api.GetPushKeyResponse(public_key="BAAA")
    read = await stack.owner.request("GET", "/api/v1/push-key")
    assert (read.status, read.json()) == (200, {"public_key": "BAAA"})
    answers["CreatePushSubscription"] = api.CreatePushSubscriptionResponse(
        push_subscription=stored()
    )
    made = await stack.owner.request("POST", PATH, BODY, headers=KEY)
    assert (made.status, made.json()) == (201, SHOWN)
    asked = last_request(stack)
    assert (asked.endpoint, asked.p256dh, asked.auth, asked.name) == tuple(BODY.values())
    answers["ListPushSubscriptions"] = api.ListPushSubscriptionsResponse(
        push_subscriptions=[stored()]
    )
    listed = await stack.owner.request("GET", PATH)
    assert listed.json() == {"push_subscriptions": [SHOWN]}
    answers["TestPushSubscription"] = api.TestPushSubscriptionResponse()
    tested = await stack.owner.request("POST", f"{PATH}/{ID}/test", headers=KEY)
    assert (tested.status, tested.body) == (204, b"")
    answers["DeletePushSubscription"] = api.DeletePushSubscriptionResponse()
    deleted = await stack.owner.request("DELETE", f"{PATH}/{ID}", headers=KEY)
    assert (deleted.status, last_request(stack).push_subscription_id) == (204, ID)
    unknown = await stack.owner.request("DELETE", f"{PATH}/none", headers=KEY)
    assert (unknown.status, unknown.json()["code"]) == (404, "RESOURCE_NOT_FOUND")
    missing = await stack.owner.request("POST", PATH, {"name": "laptop"}, headers=KEY)
    assert missing.status == 422
