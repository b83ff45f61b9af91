"""Work that a call begins and that goes on when the call is gone."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error, carried out of its task without ending the others of the group."""

    error: Exception


class Unbroken:
    """Runs work to its end in tasks that the process owns.

    A command that claimed a chat must also start it, or the chat would wait for a runner until
    somebody notices.
    """

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns; cancelling this leaves it alone."""

        async def carried() -> _Done[T] | _Failed:
            try:
                return _Done(await work())
            except Exception as error:
                return _Failed(error)

        ended = await asyncio.shield(self._tasks.create_task(carried()))
        if isinstance(ended, _Failed):
            raise ended.error
        return ended.value
