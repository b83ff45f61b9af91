"""Idempotent file changes, journaled before execution; a repeat gets the stored response."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import assert_never

from parley.rpc import detached
from parley.tasks import Shielding
from toolrunner.filesystem.errors import FileRefused
from toolrunner.journal.journal import Begun, Known, NotBegun, first_response
from toolrunner.journal.records import FileEffect
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.errors import FileWorkerGone, ReadOnly

#: After these errors nothing was changed, so that the request may be repeated.
UNCHANGED = (FileRefused, FileWorkerGone, ReadOnly)


@dataclass
class _Turn:
    """The lock of one request id, with the number of its users."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


@dataclass
class IdempotentEffects:
    """Runs each effect once; concurrent and repeated requests get the same response."""

    journal: JournalThread
    tasks: Shielding
    _turns: dict[tuple[bool, str], _Turn] = field(default_factory=dict)

    async def run(self, effect: FileEffect, act: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the serialised response, also for a repeated request.

        Raises:
            ToolrunnerError: It is refused, or its outcome is unknown.
            FileRefused: It is refused, and nothing was changed.
        """
        return await self.tasks.complete(self._run(effect, act), context=detached())

    async def _run(self, effect: FileEffect, act: Callable[[], Awaitable[bytes]]) -> bytes:
        async with self._turn(effect):
            beginning = await self.journal.run(lambda journal: journal.begin(effect, None))
            match beginning:
                case Known(execution):
                    return first_response(execution)
                case Begun():
                    return await self._act(effect, act)
                case NotBegun():
                    raise AssertionError("a change may always begin")
                case _:
                    assert_never(beginning)

    @asynccontextmanager
    async def _turn(self, effect: FileEffect) -> AsyncIterator[None]:
        """Serialise requests with the same id."""
        name = (effect.key is not None, effect.request_id)
        turn = self._turns.setdefault(name, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[name]

    async def _act(self, effect: FileEffect, act: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            response = await act()
        except UNCHANGED:
            await self.journal.run(lambda journal: journal.withdraw(effect))
            raise
        except Exception:
            await self.journal.run(lambda journal: journal.lose(effect))
            raise
        await self.journal.run(lambda journal: journal.finish(effect, response, None))
        return response
