"""The methods of StreamService over the chats of a `FakeChatd`."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from chatd.streams.rpc.tunnelled_calls import ActiveTunnelledCalls
from parley.api.chat.v1 import stream_service_pb2 as streams_api
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceServicer
from parley.identity import User
from parley.rpc import TunnelledMethods
from support.gateway.fake_chatd import BREAK, FakeChatd, FakeConnection, FakeSubscription

SUBSCRIBE = "/parley.api.chat.v1.StreamService/Subscribe"


class FakeStreamMethods(StreamServiceServicer):
    """The stream methods."""

    def __init__(self, fake: FakeChatd, tunnelled: TunnelledMethods) -> None:
        self._fake = fake
        self._tunnelled = tunnelled

    async def WatchReplicas(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[streams_api.WatchReplicasResponse]:
        yield streams_api.WatchReplicasResponse()
        await asyncio.Event().wait()

    async def Connect(  # noqa: N802
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[streams_api.ConnectResponse]:
        connection = FakeConnection()
        calls = ActiveTunnelledCalls(partial(self._tunnelled.answer, context), connection.answer)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read(request_iterator, connection, calls, tasks))
            try:
                yield streams_api.ConnectResponse()
                while (frame := await connection.frames.get()) is not BREAK:
                    yield frame
            finally:
                reading.cancel()
                calls.close()
                for subscription in connection.subscriptions.values():
                    subscription.ended.set()

    async def _read(
        self,
        requests: Any,
        connection: FakeConnection,
        calls: ActiveTunnelledCalls,
        tasks: asyncio.TaskGroup,
    ) -> None:
        async for request in requests:
            match request.WhichOneof("kind"):
                case "open":
                    self._open(request.open, connection)
                case "open_feed":
                    self._begin(request.open_feed, connection)
                case "renew":
                    connection.subscriptions[request.renew.subscription_id].renewals += 1
                case "confirm":
                    found = connection.subscriptions[request.confirm.subscription_id]
                    found.confirmed_bytes += request.confirm.bytes
                case "close":
                    connection.subscriptions[request.close.subscription_id].ended.set()
                case "calls":
                    self._fake.tunnelled += [call.method for call in request.calls.calls]
                    calls.begin(request.calls.calls, tasks)
                case "abandon":
                    calls.abandon(request.abandon.call_id)

    def _open(self, request: streams_api.OpenSubscription, connection: FakeConnection) -> None:
        chat = self._fake.chats.get(request.chat_id)
        if chat is None or chat.owner_id != self._user(request.authorization).id:
            closed = streams_api.Closed(reason=streams_api.CLOSE_REASON_NOT_FOUND)
            delivery = streams_api.Delivery(subscription_id=request.subscription_id, closed=closed)
            connection.frames.put_nowait(streams_api.ConnectResponse(deliveries=[delivery]))
            return
        self._begin(request, connection)

    def _begin(
        self,
        request: streams_api.OpenSubscription | streams_api.OpenFeed,
        connection: FakeConnection,
    ) -> None:
        subscription = FakeSubscription(request, self._user(request.authorization), connection)
        connection.subscriptions[request.subscription_id] = subscription
        subscription.send()
        self._fake.subscriptions.put_nowait(subscription)

    def _user(self, authorization: str) -> User:
        assert self._fake.guard is not None
        user = self._fake.guard.admit(SUBSCRIBE, f"Bearer {authorization}", None).user
        assert user is not None
        return user
