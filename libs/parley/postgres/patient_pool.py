"""A pool that refuses in time when all its connections are taken for longer than a caller waits."""

from collections.abc import Generator
from types import TracebackType
from typing import Any

import asyncpg
from asyncpg.pool import PoolAcquireContext, PoolConnectionProxy

from parley.postgres.errors import PoolExhausted


class PatientPool(asyncpg.Pool):
    """Bounds the wait for a connection; asyncpg would let it last until somebody cancels.

    Its own bound costs a task for each statement, so it is asked for only when nobody is idle.
    """

    __slots__ = ("_patience_s",)

    def __init__(self, *arguments: Any, patience_s: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._patience_s = patience_s

    def acquire(self, *, timeout: float | None = None) -> Any:
        """Give a connection; see `asyncpg.Pool.acquire`.

        Raises:
            PoolExhausted: None became free in time.
        """
        if timeout is not None or not self._is_exhausted():
            return super().acquire(timeout=timeout)
        return _Acquiring(super().acquire(timeout=self._patience_s), self._patience_s)

    def _is_exhausted(self) -> bool:
        # Nothing public tells: counting connections would miss one that is still being opened.
        return bool(self._queue.empty())  # type: ignore[attr-defined]


class _Acquiring:
    """An acquisition under way whose end by time says what it means."""

    __slots__ = ("_acquiring", "_patience_s")

    def __init__(self, acquiring: "PoolAcquireContext[asyncpg.Record]", patience_s: float) -> None:
        self._acquiring = acquiring
        self._patience_s = patience_s

    def __await__(self) -> Generator[Any, None, "PoolConnectionProxy[asyncpg.Record]"]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> "PoolConnectionProxy[asyncpg.Record]":
        try:
            return await self._acquiring.__aenter__()
        except TimeoutError as error:
            raise PoolExhausted(self._patience_s) from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._acquiring.__aexit__(kind, error, traceback)
