"""PushService: the push subscriptions of the caller."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import grpc

from chatd.models.rpc.administration import made_id
from chatd.primitives.rpc import fields
from chatd.push.clients.vapid import VapidKey
from chatd.push.domain.delivery import Result
from chatd.push.domain.notification import TEST
from chatd.push.domain.subscription import PushNotAccepted
from chatd.push.engine.delivery import PushDelivery
from chatd.push.rpc.convert import (
    CheckUrl,
    address_of,
    host_of,
    name_of,
    subscription_to_proto,
)
from chatd.push.store.subscriptions import NewSubscription, PostgresSubscriptions
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import push_service_pb2 as api
from parley.api.chat.v1.push_service_pb2_grpc import PushServiceServicer
from parley.telemetry import audit

Context = grpc.aio.ServicerContext


@dataclass(frozen=True, slots=True)
class PushPorts:
    """The dependencies of PushService.

    Attributes:
        subscriptions: The stored subscriptions.
        key: Returns the key pair of the installation.
        delivery: Delivers tests.
        check_url: Raises SendFailed for an address that must not be used.
    """

    subscriptions: PostgresSubscriptions
    key: Callable[[], Awaitable[VapidKey]]
    delivery: PushDelivery
    check_url: CheckUrl


class PushServicer(PushServiceServicer):
    """Serves push subscriptions; the server's error table converts errors to problems."""

    def __init__(self, ports: PushPorts) -> None:
        self._ports = ports

    async def GetPushKey(
        self, request: api.GetPushKeyRequest, context: Context
    ) -> api.GetPushKeyResponse:
        """Read the public key that browsers need."""
        return api.GetPushKeyResponse(public_key=(await self._ports.key()).public_key)

    async def ListPushSubscriptions(
        self, request: api.ListPushSubscriptionsRequest, context: Context
    ) -> api.ListPushSubscriptionsResponse:
        """List the caller's subscriptions."""
        found = await self._ports.subscriptions.of_owner(caller_as_owner().id)
        return api.ListPushSubscriptionsResponse(
            push_subscriptions=map(subscription_to_proto, found)
        )

    async def CreatePushSubscription(
        self, request: api.CreatePushSubscriptionRequest, context: Context
    ) -> api.CreatePushSubscriptionResponse:
        """Store a subscription; one with the same endpoint is replaced and keeps its id."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        address = address_of(request, self._ports.check_url)
        stored = await self._ports.subscriptions.put(
            NewSubscription(
                made_id(request, key.key, owner),
                owner.id,
                name_of(request),
                host_of(address.endpoint),
                address,
                key.body_hash,
            )
        )
        audit("push_subscription.put", user_id=owner.id, subscription_id=stored.id)
        return api.CreatePushSubscriptionResponse(push_subscription=subscription_to_proto(stored))

    async def DeletePushSubscription(
        self, request: api.DeletePushSubscriptionRequest, context: Context
    ) -> api.DeletePushSubscriptionResponse:
        """Delete a subscription."""
        owner, subscription_id = caller_as_owner(), _id_of(request.push_subscription_id)
        await self._ports.subscriptions.delete(owner.id, subscription_id)
        audit("push_subscription.deleted", user_id=owner.id, subscription_id=subscription_id)
        return api.DeletePushSubscriptionResponse()

    async def TestPushSubscription(
        self, request: api.TestPushSubscriptionRequest, context: Context
    ) -> api.TestPushSubscriptionResponse:
        """Send a test notification."""
        owner_id, subscription_id = caller_as_owner().id, _id_of(request.push_subscription_id)
        target = await self._ports.subscriptions.target(owner_id, subscription_id)
        answer = await self._ports.delivery.test(target, TEST)
        if answer.result is not Result.SENT:
            raise PushNotAccepted(answer.problem)
        return api.TestPushSubscriptionResponse()


def _id_of(text: str) -> str:
    return fields.uuid_of(text, "push_subscription_id")
