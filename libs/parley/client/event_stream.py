"""Follows a chat across lost connections, stopping processes and restarts.

Each stream begins at the cursor of the last event that was yielded, so that no event is lost or
repeated. If the server cannot resume, the follower yields `Resync` and begins again.
"""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import grpc

from parley.api.chat.v1 import stream_service_pb2 as api
from parley.client.conversion import event_of
from parley.client.errors import CallFailed, NotFound, Unavailable
from parley.client.events import ChatEvent, Resync
from parley.client.replicas import Replicas
from parley.client.retries import Backoff, failure_of
from parley.clock import Clock
from parley.rpc import LIMITS, Problem

# The statuses of streams of a killed process, and of those that reached their maximum age.
_RESUMABLE: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
_EXPECTED_CLOSES: Final = frozenset({api.CLOSE_REASON_GOING_AWAY, api.CLOSE_REASON_RESYNC})


class Follower:
    """Reads one chat once; its state is the cursor and how the last stream ended."""

    def __init__(
        self,
        replicas: Replicas,
        request: api.SubscribeRequest,
        *,
        backoff: Backoff,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._replicas = replicas.ranked(request.chat_id)
        self._request = request
        self._backoff = backoff
        self._clock = clock
        self._rng = rng
        self._turn = 0
        self._failures = 0
        self._closed = api.CLOSE_REASON_UNSPECIFIED
        self._failure: CallFailed = _lost()

    async def events(self) -> AsyncGenerator[ChatEvent, None]:
        """Yield the events after the request's cursor, until the reader leaves.

        Raises:
            CallFailed: The chat cannot be followed, or no replica could be reached for too long.
        """
        while True:
            async with aclosing(self._stream()) as stream:
                async for event in stream:
                    yield event
            match self._closed:
                case api.CLOSE_REASON_NOT_FOUND:
                    raise _gone(self._request.chat_id)
                case api.CLOSE_REASON_RESYNC:
                    self._request.cursor = ""
                    yield Resync()
                case _:
                    self._turn += 1
            await self._pause()

    async def _stream(self) -> AsyncGenerator[ChatEvent, None]:
        """Yield the events of one stream, and store its cursor and how it ended."""
        self._closed, self._failure = api.CLOSE_REASON_UNSPECIFIED, _lost()
        replica = self._replicas[self._turn % len(self._replicas)]
        call = replica.streams.Subscribe(self._request, timeout=LIMITS.stream_deadline_s)
        try:
            async for response in call:
                if response.HasField("closed"):
                    self._closed = response.closed.reason
                    return
                self._failures = 0
                self._request.cursor = response.event.cursor or self._request.cursor
                event = event_of(response.event)
                if event is not None:
                    yield event
        except grpc.aio.AioRpcError as error:
            self._failure = failure_of(error)
            if self._failure.reason == "RESYNC":
                self._closed = api.CLOSE_REASON_RESYNC
            elif self._failure.problem.status not in _RESUMABLE:
                raise self._failure from error
        finally:
            call.cancel()

    async def _pause(self) -> None:
        """Wait before the next stream, unless this one had events and ended regularly.

        Raises:
            CallFailed: Too many streams in a row had no events.
        """
        self._failures += 1
        if self._failures == 1 and self._closed in _EXPECTED_CLOSES:
            return
        if self._failures >= self._backoff.attempts_max:
            raise self._failure
        # A retry hint is that of one replica; those not tried yet gave none.
        is_hint_ours = self._failures >= len(self._replicas)
        hint_s = self._failure.problem.retry_after_s if is_hint_ours else None
        await self._clock.sleep(self._backoff.delay_s(self._failures, self._rng, hint_s))


def _lost() -> CallFailed:
    message = "the stream ended without an error; follow again"
    return Unavailable(Problem.of("STREAM_ENDED", message))


def _gone(chat_id: str) -> CallFailed:
    message = "there is no such chat any more, or this token may not see it"
    metadata = {"chat_id": chat_id}
    return NotFound(Problem.of("CHAT_NOT_FOUND", message, metadata))
