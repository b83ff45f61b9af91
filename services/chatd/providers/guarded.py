"""Models behind the circuit breakers of their credentials."""

from collections.abc import Callable
from typing import Protocol

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import (
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    OnEvent,
    RequestSent,
)
from chatd.models.engine.target import Target
from chatd.providers.breaker import Breaker, Breakers
from chatd.providers.classifier import BREAKER_OPEN
from chatd.providers.wire import Wire
from parley.clock import Clock

# A call cancelled after that long without an event counts as a timeout, not as an unwanted answer.
SILENT_S = 45.0


class Models(Protocol):
    """Calls models, as `HttpModels` does."""

    async def answer(
        self, wire: Wire, request: ModelRequest, target: Target, on_event: OnEvent
    ) -> None:
        """Call a model and pass its events to `on_event`."""
        ...


class GuardedModels:
    """Puts every target behind the breaker of its credential."""

    def __init__(
        self,
        models: Models,
        *,
        breakers: Breakers,
        clock: Clock,
        jitter: Callable[[], float],
        silent_s: float = SILENT_S,
    ) -> None:
        self._silent_s = silent_s
        self._models = models
        self._breakers = breakers
        self._clock = clock
        self._jitter = jitter

    def of(self, wire: Wire, target: Target, credential_id: str) -> "GuardedModel":
        """Return the guarded model of a target."""
        breaker = self._breakers.of(target.provider_id, credential_id)
        return GuardedModel(
            self._models,
            wire,
            target,
            breaker=breaker,
            clock=self._clock,
            jitter=self._jitter,
            silent_s=self._silent_s,
        )


class GuardedModel:
    """One target behind its breaker; a `LanguageModel`."""

    def __init__(
        self,
        models: Models,
        wire: Wire,
        target: Target,
        *,
        breaker: Breaker,
        clock: Clock,
        jitter: Callable[[], float],
        silent_s: float = SILENT_S,
    ) -> None:
        self._silent_s = silent_s
        self._models = models
        self._wire = wire
        self._target = target
        self._breaker = breaker
        self._clock = clock
        self._jitter = jitter

    async def answer(self, request: ModelRequest, on_event: OnEvent) -> None:
        """Call the model and pass its events to `on_event`.

        Raises:
            ModelError: The call failed, or the breaker is open; it has the time to wait.
        """
        asked_s = self._clock.monotonic()
        is_retry = request.attempt > 1
        wait_s = self._breaker.admit(asked_s, is_retry=is_retry)
        if wait_s is not None:
            raise self._breaker_open_error(wait_s)
        is_settled = False

        def took(event: ModelEvent) -> None:
            nonlocal is_settled
            if not is_settled and not isinstance(event, Heartbeat | RequestSent):
                is_settled = True
                self._breaker.succeeded(asked_s if is_retry else None)
            on_event(event)

        try:
            await self._models.answer(self._wire, request, self._target, took)
        except ModelError as error:
            is_settled = True
            self._failed(error.kind, error.detail if error.is_unreachable else None)
            raise
        finally:
            if not is_settled:
                self._given_up(asked_s)

    def _given_up(self, asked_s: float) -> None:
        """Report a call that was closed before its first event."""
        if self._clock.monotonic() - asked_s >= self._silent_s:
            self._failed(ErrorKind.STARTUP_TIMEOUT, "it did not begin to answer in time")
        else:
            self._breaker.abandoned()

    def _failed(self, kind: ErrorKind, unreachable: str | None) -> None:
        self._breaker.failed(kind, self._clock.monotonic(), self._jitter(), unreachable)

    def _breaker_open_error(self, wait_s: float) -> ModelError:
        name, unreachable = self._target.provider_name, self._breaker.unreachable
        detail = "too many calls failed; this one was not made"
        kind = ErrorKind.OVERLOADED
        if unreachable is not None:
            kind, detail = ErrorKind.TIMEOUT, f"{unreachable}; {detail}"
        return ModelError(
            kind,
            BREAKER_OPEN.format(provider=name or "the AI provider"),
            is_retryable=True,
            retry_after_s=wait_s,
            provider=name,
            detail=detail,
            is_unreachable=unreachable is not None,
            is_breaker_open=True,
        )
