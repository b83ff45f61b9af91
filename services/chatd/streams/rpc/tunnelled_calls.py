"""Unary calls received over one shared stream that are not answered yet."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import grpc

from parley.api.chat.v1 import stream_service_pb2 as api
from parley.rpc import TunnelledAnswer

logger = logging.getLogger(__name__)

# Serves a method: name, headers, timeout in seconds, encoded request.
Serve = Callable[[str, Mapping[str, str], float, bytes], Awaitable[TunnelledAnswer]]


class ActiveTunnelledCalls:
    """Serves calls, each in its own task, and answers them in the order in which they end.

    Args:
        serve: Serves one call.
        answer: Is called with each response.
    """

    def __init__(self, serve: Serve, answer: Callable[[api.TunnelledAnswer], None]) -> None:
        self._serve = serve
        self._answer = answer
        self._running: dict[int, asyncio.Task[None]] = {}

    def begin(self, calls: Iterable[api.TunnelledCall], tasks: asyncio.TaskGroup) -> None:
        """Start serving calls; an id that is not answered yet keeps its first call."""
        for call in calls:
            if call.call_id not in self._running:
                self._running[call.call_id] = tasks.create_task(self._served(call))

    def abandon(self, call_id: int) -> None:
        """Cancel a call whose response is no longer wanted."""
        task = self._running.pop(call_id, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Cancel all calls."""
        for call_id in list(self._running):
            self.abandon(call_id)

    async def _served(self, call: api.TunnelledCall) -> None:
        timeout_s = call.timeout_ms / 1000
        try:
            answer = await self._serve(call.method, call.headers, timeout_s, call.request)
        except Exception:
            # The stream is shared: its other calls must not fail with this one.
            logger.exception("a carried call failed", extra={"method": call.method})
            answer = TunnelledAnswer(grpc.StatusCode.INTERNAL, "the call failed")
        self._running.pop(call.call_id, None)
        self._answer(
            api.TunnelledAnswer(
                call_id=call.call_id,
                status=answer.status.value[0],
                message=answer.message,
                details=answer.details,
                response=answer.response,
            )
        )
