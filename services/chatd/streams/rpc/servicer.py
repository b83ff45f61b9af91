"""StreamService: sends committed events of chats, then live events."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import grpc

from chatd.primitives.rpc.fields import chat_id_of
from chatd.streams.rpc.connection import Connection
from chatd.streams.rpc.requests import StreamRequestHandler, Streams
from chatd.streams.rpc.tunnelled_calls import ActiveTunnelledCalls
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.frame_pb2 import EncodedSubscribeResponse, EncodedWatchChatsResponse
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceServicer
from parley.rpc import TunnelledMethods, answers_encoded, current_caller

TAKEN_BYTES = 64 * 1024


class StreamServicer(StreamServiceServicer):
    """Subscriptions to chats, chat lists and replicas."""

    def __init__(self, streams: Streams, tunnelled: TunnelledMethods) -> None:
        self._streams = streams
        self._tunnelled = tunnelled

    @answers_encoded
    async def Subscribe(  # type: ignore[override]  # Encoded messages.
        self, request: api.SubscribeRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[bytes]:
        """Send the events after the cursor, then live events."""
        hubs, access = self._streams.hubs, self._streams.access
        chat_id = chat_id_of(request.chat_id)
        something = asyncio.Event()
        subscription = await access.open(
            chat_id,
            caller_as_owner().id,
            cursor=request.cursor,
            after_id=request.after_id,
            wake=lambda _: something.set(),
        )
        try:
            while True:
                await something.wait()
                something.clear()
                while events := subscription.next_events(TAKEN_BYTES):
                    for event in events:
                        yield EncodedSubscribeResponse(event=event).SerializeToString()
                        subscription.confirm(len(event))
                if subscription.closed is not None:
                    closed = api.Closed(reason=subscription.closed.value)
                    yield EncodedSubscribeResponse(closed=closed).SerializeToString()
                    return
        finally:
            access.leave(subscription)
            hubs.leave(chat_id, subscription)

    @answers_encoded
    async def WatchChats(  # type: ignore[override]  # Encoded messages.
        self, request: api.WatchChatsRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[bytes]:
        """Send the changes of the caller's chat list since the cursor, then live changes."""
        feeds, user_id = self._streams.feeds, caller_as_owner().id
        something = asyncio.Event()
        subscription = await feeds.follow(user_id, request.cursor, lambda _: something.set())
        try:
            while True:
                await something.wait()
                something.clear()
                while events := subscription.next_events(TAKEN_BYTES):
                    for event in events:
                        yield EncodedWatchChatsResponse(event=event).SerializeToString()
                if subscription.closed is not None:
                    closed = api.Closed(reason=subscription.closed.value)
                    yield EncodedWatchChatsResponse(closed=closed).SerializeToString()
                    return
        finally:
            feeds.leave(user_id, subscription)

    async def WatchReplicas(
        self, request: api.WatchReplicasRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.WatchReplicasResponse]:
        """Send all processes, and all of them again at each change."""
        async for replicas in self._streams.replicas.changes():
            yield api.WatchReplicasResponse(
                replicas=[
                    api.Replica(
                        worker_id=each.worker_id, address=each.address, draining=each.is_draining
                    )
                    for each in replicas
                ]
            )

    @answers_encoded
    async def Connect(  # type: ignore[override]  # Encoded messages.
        self, request: AsyncIterator[api.ConnectRequest], context: grpc.aio.ServicerContext
    ) -> None:
        """Serve subscriptions and tunnelled calls until the client closes the stream."""
        service = current_caller().service
        assert service is not None  # The method's rule admits services only.
        connection = Connection(self._streams.clock)
        calls = ActiveTunnelledCalls(partial(self._tunnelled.answer, context), connection.answer)
        handler = StreamRequestHandler(self._streams, connection, service, calls)
        try:
            async with asyncio.TaskGroup() as tasks:
                writers = (
                    tasks.create_task(connection.write_all(context.write)),
                    tasks.create_task(connection.send_heartbeats()),
                )
                async for each in request:
                    handler.handle(each, tasks)
                for writer in writers:
                    writer.cancel()
                calls.close()
        finally:
            connection.close()
