"""Work that is finished even if whoever asked for it has gone."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from parley.rpc import detached

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class Effects:
    """Runs effects in the tasks of their owner, outside of the calls that ask for them.

    An entry in the journal whose effect was cancelled halfway would be one nobody can complete.
    """

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns, or raise what it raises."""
        task = self._tasks.create_task(_captured(work), context=detached())
        match await asyncio.shield(task):
            case _Done(value):
                return value
            case _Failed(error):
                raise error


async def _captured(work: Coroutine[Any, Any, T]) -> _Done[T] | _Failed:
    try:
        return _Done(await work)
    except Exception as error:
        return _Failed(error)
