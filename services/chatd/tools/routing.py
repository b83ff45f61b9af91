"""Combines several `Tools`: each call goes to the executor that offered its tool."""

import asyncio
import logging
from collections.abc import Callable, Mapping

import grpc

from chatd.content.domain.tools import (
    Execution,
    Executor,
    Found,
    InputRequired,
    Outcome,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext

logger = logging.getLogger(__name__)


class RoutedTools:
    """Offers the tools of all executors; an unavailable executor's tools are left out.

    Args:
        executors: The tools of each executor.
        dispatched: Called with each call that is passed to its executor.
    """

    def __init__(
        self,
        executors: Mapping[Executor, Tools],
        dispatched: Callable[[Execution], None] = lambda _: None,
    ) -> None:
        self._executors = executors
        self._dispatched = dispatched

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of all executors that answer.

        Raises:
            ChatError: One of them raised it, for example because the chat was deleted meanwhile.
        """

        async def ask(executor: Executor, tools: Tools) -> tuple[ToolSpec, ...]:
            try:
                return await tools.list_tools(context)
            except grpc.aio.AioRpcError as error:
                logger.warning(
                    "%s offers no tools now: %s", executor, error.code().name, exc_info=error
                )
                return ()

        try:
            async with asyncio.TaskGroup() as group:
                *others, own = self._executors.items()
                asked = [group.create_task(ask(*entry)) for entry in others]
                # The last one needs no task: it is asked here, while the others answer.
                last = await ask(*own)
        except ExceptionGroup as failures:
            # From an exception group the turn could not distinguish a deleted chat from a defect.
            raise failures.exceptions[0] from None
        return (*[spec for task in asked for spec in task.result()], *last)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Forward the call to its executor."""
        return await self._executor(execution).execute(execution)

    async def find(self, execution: Execution) -> Found:
        """Forward the request to the call's executor."""
        return await self._executor(execution).find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Forward the cancellation to the call's executor."""
        await self._executor(execution).cancel(execution)

    def _executor(self, execution: Execution) -> Tools:
        self._dispatched(execution)
        return self._executors[execution.dispatch.executor]
