"""One model call with timeouts: it ends answered, failed, timed out or superseded."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from chatd.chats.domain.chat import ChatState
from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import (
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    RequestSent,
)
from chatd.turns.engine.answer import Answer
from parley.clock import Clock
from parley.tasks import first_of


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Limits of a model call: time to first event, between events, in all; and answer size.

    A heartbeat counts as an event, so that a model may think for as long as the provider sends
    heartbeats; the total limit holds nevertheless.
    """

    startup_s: float = 60.0
    silence_s: float = 600.0
    total_s: float = 3600.0
    characters_max: int = 16 * 1024 * 1024
    parts_max: int = 2000


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer is complete."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The call failed."""

    error: ModelError


@dataclass(frozen=True, slots=True)
class Superseded:
    """The chat changed; the answer is no longer wanted."""

    state: ChatState


StreamEnd = Answered | Broken | Superseded


class _AnswerTooLong(Exception):
    """An answer that exceeds the size limits."""


class ModelStream:
    """Reads one answer."""

    def __init__(
        self, model: LanguageModel, limits: StreamLimits, clock: Clock, provider: str = ""
    ) -> None:
        self._provider = provider  # Its display name; may be empty.
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
        """Fill `answer` until the stream ends, or `superseded` returns."""
        return await first_of(
            self._fill(request, answer), self._until_silent, partial(_ending, superseded)
        )

    async def _fill(self, request: ModelRequest, answer: Answer) -> StreamEnd:
        try:
            await self._model.answer(request, partial(self._on_event, answer))
        except ModelError as error:
            return Broken(error)
        except _AnswerTooLong:
            return Broken(self._endless())
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This task was not cancelled: the provider's connection was closed underneath.
            return Broken(self._cut_off("the connection was reset"))
        if answer.finished is None:
            return Broken(self._cut_off("the stream ended without its last event"))
        return Answered()

    def _on_event(self, answer: Answer, event: ModelEvent) -> None:
        if answer.finished is not None:
            return
        answer.on_event(event)
        if isinstance(event, RequestSent):
            return  # The provider sent nothing yet.
        self._last_event_s = self._clock.monotonic()
        limits = self._limits
        if answer.length > limits.characters_max or answer.parts_count > limits.parts_max:
            raise _AnswerTooLong

    async def _until_silent(self) -> StreamEnd:
        while True:
            wait_s, error = self._next_alarm()
            if wait_s <= 0:
                return Broken(error)
            await self._clock.sleep(wait_s)

    def _next_alarm(self) -> tuple[float, ModelError]:
        """Return the time until the next timeout, and its error."""
        now_s, limits = self._clock.monotonic(), self._limits
        if self._last_event_s is None:
            wait_s = self._opened_s + limits.startup_s - now_s
            kind, what = ErrorKind.STARTUP_TIMEOUT, "did not begin to answer in time"
        else:
            wait_s = self._last_event_s + limits.silence_s - now_s
            kind, what = ErrorKind.STREAM_SILENCE_TIMEOUT, "stopped sending data"
        left_s = self._opened_s + limits.total_s - now_s
        if left_s < wait_s:
            return left_s, self._too_long()
        is_unreachable = kind is ErrorKind.STARTUP_TIMEOUT
        message = f"{self._name} {what}."
        return wait_s, self._error(kind, message, is_retryable=True, is_unreachable=is_unreachable)

    @property
    def _name(self) -> str:
        return self._provider or "The AI provider"

    def _cut_off(self, detail: str) -> ModelError:
        message = f"{self._name} is temporarily unavailable."
        return self._error(ErrorKind.TIMEOUT, message, is_retryable=True, detail=detail)

    def _too_long(self) -> ModelError:
        message = "The answer took longer than it may. Ask for less at once."
        detail = f"{self._limits.total_s:g} s"
        return self._error(ErrorKind.TIMEOUT, message, is_retryable=False, detail=detail)

    def _endless(self) -> ModelError:
        message = f"{self._name} sent more than an answer may hold. Ask for less at once."
        limits = self._limits
        detail = f"at most {limits.characters_max} characters in {limits.parts_max} parts"
        return self._error(ErrorKind.GENERIC, message, is_retryable=False, detail=detail)

    def _error(
        self,
        kind: ErrorKind,
        message: str,
        *,
        is_retryable: bool,
        detail: str = "",
        is_unreachable: bool = False,
    ) -> ModelError:
        return ModelError(
            kind,
            message,
            is_retryable=is_retryable,
            provider=self._provider,
            detail=detail,
            is_unreachable=is_unreachable,
        )


async def _ending(superseded: Callable[[], Awaitable[ChatState]]) -> StreamEnd:
    return Superseded(await superseded())
