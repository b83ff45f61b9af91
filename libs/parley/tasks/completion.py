"""Work that continues when its caller is cancelled."""

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


def name_of(work: Coroutine[Any, Any, Any]) -> str:
    """Return the name of the coroutine function of the work."""
    return str(getattr(work, "__qualname__", type(work).__name__))


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error as a value: raised in a task group it would cancel the other tasks."""

    error: Exception


class Shielding(Protocol):
    """Completes work: `ShieldedTasks` or `BackgroundTasks`."""

    async def complete(self, work: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Return the result of work, or raise its error; cancelling this lets the work go on."""
        ...


class ShieldedTasks:
    """Owns work from entering its context to leaving it; leaving waits for work in progress."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._group.__aexit__(kind, error, traceback)

    async def complete(self, work: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Return the result of work, or raise its error; cancelling this lets the work go on."""
        return await complete(self._group, work, context)


async def complete(
    group: asyncio.TaskGroup, work: Coroutine[Any, Any, T], context: Context | None = None
) -> T:
    """Run work in a task of `group`; its errors are not raised in the group."""
    task = group.create_task(captured(work), name=name_of(work), context=context)
    try:
        outcome = await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_log_failure)
        raise
    return result_of(outcome)


def result_of(outcome: _Done[T] | _Failed) -> T:
    """Return the value of a captured outcome, or raise its error."""
    match outcome:
        case _Done(value):
            return value
        case _Failed(error):
            raise error


async def captured(work: Coroutine[Any, Any, T]) -> _Done[T] | _Failed:
    """Await work and return its result or error as a value."""
    try:
        return _Done(await work)
    except Exception as error:
        return _Failed(error)


def _log_failure(task: "asyncio.Task[_Done[Any] | _Failed]") -> None:
    """Log an error whose caller was cancelled."""
    if task.cancelled() or task.exception() is not None:
        return
    outcome = task.result()
    if isinstance(outcome, _Failed):
        name = task.get_name()
        logger.warning("%s failed after its caller was cancelled: %r", name, outcome.error)
