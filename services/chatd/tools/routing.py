"""One `Tools` out of several: each call goes to the executor that offered its tool."""

import asyncio
import logging
from collections.abc import Mapping

import grpc

from chatd.content.domain.tools import Execution, Executor, Found, Outcome, Tools, ToolSpec
from chatd.primitives.domain.ids import ChatId, Owner

logger = logging.getLogger(__name__)


class RoutedTools:
    """Offers what every executor offers; one that is down costs its own tools, not the turn."""

    def __init__(self, executors: Mapping[Executor, Tools]) -> None:
        self._executors = executors

    async def list_tools(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        """Return the tools of all executors that answer.

        Raises:
            ChatError: One of them says so, for example that the chat was deleted meanwhile.
        """

        async def ask(executor: Executor, tools: Tools) -> tuple[ToolSpec, ...]:
            try:
                return await tools.list_tools(chat_id, owner)
            except grpc.aio.AioRpcError as error:
                logger.warning(
                    "%s offers no tools now: %s", executor, error.code().name, exc_info=error
                )
                return ()

        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(ask(*entry)) for entry in self._executors.items()]
        except ExceptionGroup as failures:
            # In a group the turn could not tell a chat that is gone from a defect.
            raise failures.exceptions[0] from None
        return tuple(spec for task in asked for spec in task.result())

    async def execute(self, execution: Execution) -> Outcome:
        """Pass the call on to its executor."""
        return await self._executors[execution.dispatch.executor].execute(execution)

    async def find(self, execution: Execution) -> Found:
        """Ask the executor of the call."""
        return await self._executors[execution.dispatch.executor].find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Tell the executor of the call."""
        await self._executors[execution.dispatch.executor].cancel(execution)
