"""Cancels calls at their executors that their chats gave up before the calls had a result.

Such a call may have no owner that could do it: its chat waited without one, was edited, archived or
deleted, or its executor did not respond to the owner that was interrupted. The commit that gives it
up stores it, and a loop of any process cancels it, again and again until it is over.
"""

import logging
from datetime import timedelta
from typing import Final, Protocol

from chatd.chats.store.cleanup.cancelled_calls import CancelledCall
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    ExecutorUnreachable,
    InputRequired,
    StillRunning,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.telemetry import OutageLog

LOOK_EVERY_S: Final = 1.0
CALLS_MAX: Final = 50
#: Longer than any executor keeps a session that nobody answers.
KEPT: Final = timedelta(days=7)

logger = logging.getLogger(__name__)


class CancelledCalls(Protocol):
    """The stored calls."""

    async def take(self, calls_max: int, kept: timedelta) -> tuple[CancelledCall, ...]:
        """Return calls that no other process tries now; those older than `kept` are marked."""
        ...

    async def delete(self, call: CancelledCall) -> None:
        """Forget a call that is over, if its executor was asked by the newest owner's epoch."""
        ...


class Cancellations:
    """Cancels stored calls.

    Args:
        calls: The stored calls.
        tools: The tools of all executors.
        clock: The clock.
    """

    def __init__(self, calls: CancelledCalls, tools: Tools, clock: Clock) -> None:
        self._calls = calls
        self._tools = tools
        self._clock = clock
        self._outages = OutageLog(logger, clock, "calls wait to be cancelled")

    async def run(self) -> None:
        """Cancel until cancelled; while the database cannot be reached, calls wait."""
        while True:
            try:
                await self.cancel_due()
                self._outages.succeeded()
            except DatabaseUnavailable as outage:
                self._outages.failed(outage)
            await self._clock.sleep(LOOK_EVERY_S)

    async def cancel_due(self) -> None:
        """Cancel the calls whose time has come; those that are not over are tried again later."""
        for call in await self._calls.take(CALLS_MAX, KEPT):
            execution_id = call.dispatch.execution_id
            if call.is_old:
                logger.warning("a call was never cancelled", extra={"execution_id": execution_id})
            elif not await self._is_over(call):
                continue
            await self._calls.delete(call)

    async def _is_over(self, call: CancelledCall) -> bool:
        execution = Execution(
            TurnContext(call.chat_id, call.owner),
            call.owner_epoch,
            call.dispatch,
            _spec_of(call.dispatch),
        )
        try:
            await self._tools.cancel(execution)
            if call.dispatch.executor is Executor.TOOLRUNNER:
                return True  # It responds when the processes have ended.
            found = await self._tools.find(execution)
        except ExecutorUnreachable:
            return False
        return not isinstance(found, StillRunning | InputRequired)


def _spec_of(dispatch: Dispatch) -> ToolSpec:
    name, generation = dispatch.call.tool_name, dispatch.journal_generation
    return ToolSpec(name, "", "{}", dispatch.executor, generation)
