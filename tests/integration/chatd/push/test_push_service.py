"""PushService over gRPC: users keep their devices, and endpoints are not returned."""

import asyncio
from typing import Any

import pytest

from chatd.push.clients.endpoints import NOT_HTTP
from chatd.push.domain.subscription import SUBSCRIPTIONS_MAX
from parley.api.chat.v1 import push_service_pb2 as api
from support.chatd.chats.served_chats import ServedChats
from support.net.push_service import Browser, loopback_push_service, verified_claims

ABSENT = "00000000-0000-0000-0000-00000000dead"
BROWSER = Browser()
AUDITED = "SELECT action, object_id FROM chat.audit_outbox ORDER BY at"


def creating(request_id: str = "r", **given: Any) -> api.CreatePushSubscriptionRequest:
    fields = {"endpoint": "https://push.example.com/1", "name": "laptop", **BROWSER.keys()}
    return api.CreatePushSubscriptionRequest(request_id=request_id, **{**fields, **given})


async def test_a_subscription_is_shown_without_its_endpoint_and_keys(served: ServedChats) -> None:
    created = (await served.ann.ask(creating())).push_subscription
    assert (created.name, created.host, created.last_error) == ("laptop", "push.example.com", "")
    assert created.HasField("created_at")
    assert not created.HasField("last_sent_at")
    listed = (await served.ann.ask(api.ListPushSubscriptionsRequest())).push_subscriptions
    assert list(listed) == [created]
    assert not any(secret in str(listed) for secret in (*BROWSER.keys().values(), "/1"))
    assert not (await served.bob.ask(api.ListPushSubscriptionsRequest())).push_subscriptions


async def test_a_repeated_request_and_the_same_endpoint_keep_the_subscription(
    served: ServedChats,
) -> None:
    created = (await served.ann.ask(creating())).push_subscription
    assert (await served.ann.ask(creating())).push_subscription == created
    reused = await served.ann.refusal(creating(name="other"))
    assert reused.reason == "REQUEST_ID_REUSED"
    renewed = (await served.ann.ask(creating("s", name="phone"))).push_subscription
    assert (renewed.id, renewed.name) == (created.id, "phone")
    bobs = (await served.bob.ask(creating())).push_subscription
    assert bobs.id != created.id
    assert len((await served.ann.ask(api.ListPushSubscriptionsRequest())).push_subscriptions) == 1


async def test_a_key_whose_subscription_was_renewed_is_not_taken_for_another_endpoint(
    served: ServedChats,
) -> None:
    created = (await served.ann.ask(creating("k"))).push_subscription
    renewed = (await served.ann.ask(creating("k2"))).push_subscription
    other = creating("k", endpoint="https://push.example.com/2")
    assert (await served.ann.refusal(other)).reason == "REQUEST_ID_REUSED"
    await served.ann.ask(creating("k3", endpoint="https://push.example.com/2"))
    assert (await served.ann.refusal(other)).reason == "REQUEST_ID_REUSED"
    again = (await served.ann.ask(creating("k"))).push_subscription
    assert {created.id, renewed.id, again.id} == {created.id}


async def test_a_user_has_at_most_twenty_subscriptions(served: ServedChats) -> None:
    requests = [
        creating(f"r{number}", endpoint=f"https://push.example.com/{number}")
        for number in range(SUBSCRIPTIONS_MAX)
    ]
    async with asyncio.TaskGroup() as tasks:
        for request in requests:
            tasks.create_task(served.ann.ask(request))
    more = creating("more", endpoint="https://push.example.com/more")
    refused = await served.ann.refusal(more)
    assert (refused.reason, refused.metadata["subscriptions_max"]) == (
        "TOO_MANY_PUSH_SUBSCRIPTIONS",
        "20",
    )
    again = creating("again", endpoint="https://push.example.com/3", name="again")
    assert (await served.ann.ask(again)).push_subscription.name == "again"
    assert (await served.bob.ask(more)).push_subscription.host == "push.example.com"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("endpoint", "http://push.example.com/1"),
        ("endpoint", "https://localhost/1"),
        ("endpoint", "https://a.localhost./1"),
        ("endpoint", "https://10.0.0.1/1"),
        ("endpoint", "https://[::1]/1"),
        ("endpoint", "https://[::ffff:169.254.169.254]/1"),
        ("endpoint", "https://ann:secret@push.example.com/1"),
        ("endpoint", "https://push.example.com:5432/1"),
        ("endpoint", "ftp://push.example.com/1"),
        ("endpoint", "not a url"),
        ("endpoint", "https://a..b/1"),
        ("endpoint", "https://]/1"),
        ("endpoint", "https://a]b/1"),
        ("endpoint", "https://%5d/1"),
        ("endpoint", f"https://{'a' * 64}.example.com/1"),
        ("endpoint", "https://push.example.com:65536/1"),
        ("p256dh", "AAAA"),
        ("p256dh", "%%%"),
        ("p256dh", "B" + "A" * 86),
        ("auth", "AAAA"),
        ("auth", "A" * 24),
        ("name", "two\nlines"),
    ],
)
async def test_bad_fields_are_refused_by_their_names(
    strict: ServedChats, field: str, value: str
) -> None:
    refused = await strict.ann.refusal(creating(**{field: value}))
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", field)


async def test_a_subscription_belongs_to_its_user(served: ServedChats) -> None:
    created = (await served.ann.ask(creating())).push_subscription
    for subscription_id, person in ((created.id, served.bob), (ABSENT, served.ann)):
        for request in (
            api.DeletePushSubscriptionRequest(request_id="d", push_subscription_id=subscription_id),
            api.TestPushSubscriptionRequest(request_id="t", push_subscription_id=subscription_id),
        ):
            assert (await person.refusal(request)).reason == "RESOURCE_NOT_FOUND"
    deleting = api.DeletePushSubscriptionRequest(request_id="d", push_subscription_id=created.id)
    await served.ann.ask(deleting)
    assert (await served.ann.refusal(deleting)).reason == "RESOURCE_NOT_FOUND"
    assert [tuple(row) for row in await served.pool.fetch(AUDITED)] == [
        ("push_subscription.put", created.id),
        ("push_subscription.deleted", created.id),
    ]


async def test_a_test_notification_is_signed_and_a_refusal_says_why(served: ServedChats) -> None:
    async with loopback_push_service() as push:

        async def testing(name: str) -> api.TestPushSubscriptionRequest:
            asked = creating(name, endpoint=push.endpoint(name), name=name)
            made = (await served.ann.ask(asked)).push_subscription
            return api.TestPushSubscriptionRequest(request_id="t", push_subscription_id=made.id)

        await served.ann.ask(await testing("a"))
        (arrived,) = push.of("a")
        public_key = (await served.ann.ask(api.GetPushKeyRequest())).public_key
        claims = verified_claims(arrived.headers["authorization"], public_key)
        assert (claims["aud"], claims["sub"]) == (push.url, "mailto:operator@example.com")
        assert b'"kind":"test"' in BROWSER.decrypt(arrived.body)
        push.answers["/b"] = "403 Forbidden"
        refused = await served.ann.refusal(await testing("b"))
        problem = "the push service does not accept the key of this installation (403)"
        assert (refused.reason, refused.metadata["problem"]) == ("PUSH_NOT_ACCEPTED", problem)
        listed = (await served.ann.ask(api.ListPushSubscriptionsRequest())).push_subscriptions
        shown = [(each.name, each.last_error, each.HasField("last_sent_at")) for each in listed]
        assert shown == [("a", "", True), ("b", problem, False)]
        # What another protocol greets with would tell of services inside.
        push.answers["/greeting"] = "SSH secret-greeting"
        refused = await served.ann.refusal(await testing("greeting"))
        assert refused.metadata["problem"] == NOT_HTTP
        push.answers["/c"] = "410 Gone"
        ended = await testing("c")
        assert (await served.ann.refusal(ended)).reason == "PUSH_NOT_ACCEPTED"
        assert (await served.ann.refusal(ended)).reason == "RESOURCE_NOT_FOUND"
