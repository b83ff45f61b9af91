"""One call of a model, watched: it ends when it is answered, broken, silent or not wanted."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from chatd.domain.chat import ChatState, ErrorKind
from chatd.domain.model import Finished, ModelError, ModelEvent, ModelRequest
from chatd.domain.ports import LanguageModel
from chatd.engine.answer import Answer
from chatd.engine.tasks import first_of
from parley.clock import Clock


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How long a model may take: to its first event, between two, and in all."""

    startup_s: float = 60.0
    silence_s: float = 600.0
    total_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer is complete."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The call failed."""

    error: ModelError


@dataclass(frozen=True, slots=True)
class Superseded:
    """The chat moved; the answer is not wanted as it would have been."""

    state: ChatState


StreamEnd = Answered | Broken | Superseded


class ModelStream:
    """Reads one answer."""

    def __init__(self, model: LanguageModel, limits: StreamLimits, clock: Clock) -> None:
        self._model = model
        self._limits = limits
        self._clock = clock
        self._opened_s = clock.monotonic()
        self._last_event_s: float | None = None

    async def read(
        self,
        request: ModelRequest,
        answer: Answer,
        superseded: Callable[[], Awaitable[ChatState]],
    ) -> StreamEnd:
        """Fill `answer` until the stream ends, or `superseded` says that it is not wanted."""
        return await first_of(
            self._fill(request, answer), self._until_silent, partial(_ending, superseded)
        )

    async def _fill(self, request: ModelRequest, answer: Answer) -> StreamEnd:
        stream = self._model.stream(request)
        try:
            return await self._consume(stream, answer)
        except ModelError as error:
            return Broken(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled us: the provider's connection was torn down underneath.
            return Broken(_cut_off("the connection was reset"))
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def _consume(self, stream: AsyncIterator[ModelEvent], answer: Answer) -> StreamEnd:
        async for event in stream:
            self._last_event_s = self._clock.monotonic()
            answer.take(event)
            if isinstance(event, Finished):
                return Answered()
        return Broken(_cut_off("the stream ended without its last event"))

    async def _until_silent(self) -> StreamEnd:
        while True:
            wait_s, error = self._next_alarm()
            if wait_s <= 0:
                return Broken(error)
            await self._clock.sleep(wait_s)

    def _next_alarm(self) -> tuple[float, ModelError]:
        """Return how long to wait for which failure."""
        now_s, limits = self._clock.monotonic(), self._limits
        if self._last_event_s is None:
            wait_s = self._opened_s + limits.startup_s - now_s
            error = _too_late(ErrorKind.STARTUP_TIMEOUT, "did not begin to answer in time")
        else:
            wait_s = self._last_event_s + limits.silence_s - now_s
            error = _too_late(ErrorKind.STREAM_SILENCE_TIMEOUT, "stopped sending data")
        if limits.total_s is not None and self._opened_s + limits.total_s - now_s < wait_s:
            wait_s = self._opened_s + limits.total_s - now_s
            error = _too_late(ErrorKind.TIMEOUT, "took too long")
        return wait_s, error


async def _ending(superseded: Callable[[], Awaitable[ChatState]]) -> StreamEnd:
    return Superseded(await superseded())


def _too_late(kind: ErrorKind, what: str) -> ModelError:
    return ModelError(kind, f"The AI provider {what}.", is_retryable=True)


def _cut_off(detail: str) -> ModelError:
    message = "The AI provider is temporarily unavailable."
    return ModelError(ErrorKind.TIMEOUT, message, is_retryable=True, detail=detail)
