"""One shared stream to one chatd process.

The read loop never waits for a client: each frame is passed on at once, and a client whose queue is
full is handled by its own stream. Requests are sent by one writer.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc

from gateway.streams.event_source import Ending
from gateway.streams.frames import Frames
from gateway.streams.subscription import LinkSubscription
from gateway.streams.tunnel import CallTunnel, LinkLost
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.frame_pb2 import EncodedConnectResponse, EncodedDelivery
from parley.clock import Clock
from parley.identity import ServiceName
from parley.rpc import LIMITS, CallTokens

CONNECT = "/parley.api.chat.v1.StreamService/Connect"
# Heartbeats are sent after 10 s of silence.
SILENCE_S_MAX = 30.0

# Calls are put together before they leave.
_Request = api.ConnectRequest | api.TunnelledCall

_log = logging.getLogger(__name__)


class Link:
    """Multiplexes subscriptions over one stream to a process until it breaks."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        signer: CallTokens,
        *,
        frames: Frames,
        is_shared: Callable[[str], bool],
        moving: Callable[[LinkSubscription], None],
        clock: Clock,
    ) -> None:
        """Create a link; `run` connects it.

        Args:
            channel: The channel to the process.
            signer: Signs tokens for the users.
            frames: Creates the frames for clients.
            is_shared: Returns whether several clients follow a chat.
            moving: Called with each subscription that has to move to another process.
            clock: The clock.
        """
        self._channel = channel
        self._signer = signer
        self._frames = frames
        self._is_shared = is_shared
        self._on_orphaned = moving
        self._clock = clock
        self._subscriptions: dict[int, LinkSubscription] = {}
        self._requests: asyncio.Queue[_Request | None] = asyncio.Queue()
        self._held: list[_Request | None] = []  # At most one: a request after a batch of calls.
        self._tunnel = CallTunnel(self._requests.put_nowait)
        self._up: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._heard_at = clock.monotonic()
        self.is_over = False

    @property
    def tunnel(self) -> CallTunnel | None:
        """The call tunnel over the stream; None unless it is connected."""
        is_up = self._up.done() and self._up.result() and not self.is_over
        return self._tunnel if is_up else None

    async def wait_connected(self) -> None:
        """Wait until the stream is connected.

        Raises:
            LinkLost: It could not be connected, or has ended.
        """
        if self.is_over or not await asyncio.shield(self._up):
            raise LinkLost

    def add(self, subscription: LinkSubscription) -> None:
        """Add a subscription, continued after the last event that was passed on.

        Raises:
            LinkLost: The stream has ended.
        """
        if self.is_over:
            raise LinkLost
        self._subscriptions[subscription.id] = subscription
        subscription.placed(self)
        token = self._token(subscription)
        if subscription.chat_id:
            opening = api.OpenSubscription(
                subscription_id=subscription.id,
                chat_id=subscription.chat_id,
                cursor=subscription.cursor,
                after_id=subscription.after_id,
                authorization=token,
            )
            self._requests.put_nowait(api.ConnectRequest(open=opening))
        else:
            feed = api.OpenFeed(
                subscription_id=subscription.id, cursor=subscription.cursor, authorization=token
            )
            self._requests.put_nowait(api.ConnectRequest(open_feed=feed))

    def remove(self, subscription: LinkSubscription) -> None:
        """Remove a subscription."""
        subscription.link = None
        if self._subscriptions.pop(subscription.id, None) is not None and not self.is_over:
            closing = api.CloseSubscription(subscription_id=subscription.id)
            self._requests.put_nowait(api.ConnectRequest(close=closing))

    def confirm(self, subscription_id: int, size: int) -> None:
        """Confirm how many bytes of a subscription were sent to the client."""
        confirming = api.ConfirmDelivery(subscription_id=subscription_id, bytes=size)
        self._requests.put_nowait(api.ConnectRequest(confirm=confirming))

    def renew_all(self) -> None:
        """Renew the tokens of all subscriptions."""
        for subscription in self._subscriptions.values():
            renewing = api.RenewSubscription(
                subscription_id=subscription.id, authorization=self._token(subscription)
            )
            self._requests.put_nowait(api.ConnectRequest(renew=renewing))

    def close(self) -> None:
        """End the stream."""
        self._requests.put_nowait(None)

    def subscriptions(self) -> list[LinkSubscription]:
        """Return the current subscriptions."""
        return list(self._subscriptions.values())

    def left(self) -> list[LinkSubscription]:
        """Remove and return the subscriptions, after the stream has ended."""
        left, self._subscriptions = list(self._subscriptions.values()), {}
        return left

    async def run(self) -> None:
        """Run the stream until it breaks."""
        call = self._open()
        try:
            async with asyncio.TaskGroup() as tasks:
                helpers = (
                    tasks.create_task(self._write(call)),
                    tasks.create_task(self._end_silence(call)),
                )
                await self._read(call)
                for helper in helpers:
                    helper.cancel()
        finally:
            self.is_over = True
            call.cancel()
            self._tunnel.close()
            if not self._up.done():
                self._up.set_result(False)

    def _open(self) -> Any:
        method = self._channel.stream_stream(
            CONNECT,
            request_serializer=api.ConnectRequest.SerializeToString,
            response_deserializer=EncodedConnectResponse.FromString,
        )
        return method(timeout=LIMITS.stream_deadline_s)

    async def _write(self, call: Any) -> None:
        try:
            while (request := await self._next_request()) is not None:
                await call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
            return  # The reader detects it too, with the reason.
        call.cancel()

    async def _next_request(self) -> api.ConnectRequest | None:
        """Return the next request; waiting calls are sent in one batch."""
        request = self._held.pop() if self._held else await self._requests.get()
        if not isinstance(request, api.TunnelledCall):
            return request
        calls = [request]
        size = len(request.request)
        while size < LIMITS.frame_bytes_max // 2 and not self._requests.empty():
            following = self._requests.get_nowait()
            if not isinstance(following, api.TunnelledCall):
                self._held.append(following)
                break
            calls.append(following)
            size += len(following.request)
        return api.ConnectRequest(calls=api.TunnelledCalls(calls=calls))

    async def _end_silence(self, call: Any) -> None:
        while (left_s := self._heard_at + SILENCE_S_MAX - self._clock.monotonic()) > 0:
            await self._clock.sleep(left_s)
        _log.warning("a chatd said nothing for %g s", SILENCE_S_MAX)
        call.cancel()

    async def _read(self, call: Any) -> None:
        try:
            await call.initial_metadata()
            while isinstance(frame := await call.read(), EncodedConnectResponse):
                self._heard_at = self._clock.monotonic()
                if not self._up.done():
                    self._up.set_result(True)
                for answer in frame.answers:
                    self._tunnel.take(answer)
                for delivery in frame.deliveries:
                    try:
                        self._deliver(delivery)
                    except Exception:
                        # The stream has many subscriptions, which must not end because of this one.
                        _log.exception("an event could not be passed on")
                        self._give_up(delivery.subscription_id)
        except grpc.aio.AioRpcError as error:
            _log.warning("the stream to a chatd broke off: %s", error.code().name)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The call was cancelled here, because the stream has ended.

    def _give_up(self, subscription_id: int) -> None:
        """End the stream of one client, which reconnects."""
        subscription = self._subscriptions.get(subscription_id)
        if subscription is not None:
            self.remove(subscription)
            subscription.end(Ending.GOING_AWAY)

    def _deliver(self, delivery: EncodedDelivery) -> None:
        subscription = self._subscriptions.get(delivery.subscription_id)
        if subscription is None:
            return
        if not subscription.opened.done() and not delivery.HasField("closed"):
            subscription.opened.set_result(None)
        is_shared = self._is_shared(subscription.chat_id)
        for encoded in delivery.events:
            subscription.received_bytes += len(encoded)
            subscription.take(self._frames.of(subscription.chat_id, encoded, is_shared=is_shared))
        for encoded in delivery.feed_events:
            subscription.received_bytes += len(encoded)
            subscription.take(self._frames.of_feed(encoded))
        if delivery.HasField("closed"):
            self._closed(subscription, delivery.closed.reason)

    def _closed(self, subscription: LinkSubscription, reason: int) -> None:
        self._subscriptions.pop(subscription.id, None)
        subscription.link = None
        match reason:
            case api.CLOSE_REASON_RESYNC:
                if not subscription.opened.done():
                    subscription.opened.set_result(None)
                subscription.end(Ending.RESYNC)
            case api.CLOSE_REASON_NOT_FOUND:
                subscription.end(Ending.NOT_FOUND)
            case api.CLOSE_REASON_GOING_AWAY | api.CLOSE_REASON_INTERNAL:
                self._on_orphaned(subscription)
            case _:
                return

    def _token(self, subscription: LinkSubscription) -> str:
        return self._signer.call_token(ServiceName.CHATD, subscription.user)
