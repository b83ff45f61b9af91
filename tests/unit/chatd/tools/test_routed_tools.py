"""Tools of several executors, and what is told when one of them refuses."""

import asyncio

import pytest

from chatd.content.domain.tools import Execution, Executor, Found, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.tools.routing import RoutedTools

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")


class ToolsOfNoChat:
    """Tools of a chat that was deleted."""

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        raise ChatNotFound(context.chat_id)

    async def execute(self, execution: Execution) -> Outcome:
        raise ChatNotFound(execution.chat_id)

    async def find(self, execution: Execution) -> Found:
        raise ChatNotFound(execution.chat_id)

    async def cancel(self, execution: Execution) -> None:
        raise ChatNotFound(execution.chat_id)


class ToolsThatNoteTheirTask(ToolsOfNoChat):
    """Tools that note which task asks for them."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[object] | None] = []

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        self.tasks.append(asyncio.current_task())
        return (ToolSpec("look", "Look at it", "{}", Executor.CHATD),)


async def test_tools_of_several_executors_take_one_task_less_than_there_are_executors() -> None:
    noted = ToolsThatNoteTheirTask()
    listed = await RoutedTools(dict.fromkeys(Executor, noted)).list_tools(TurnContext(CHAT, ANN))
    assert len(listed) == len(noted.tasks) == len(Executor)
    assert len(set(noted.tasks) - {asyncio.current_task()}) == len(Executor) - 1


async def test_that_a_chat_is_gone_is_told_as_it_is_and_not_in_a_group() -> None:
    tools = RoutedTools({each: ToolsOfNoChat() for each in Executor})
    with pytest.raises(ChatNotFound):
        await tools.list_tools(TurnContext(CHAT, ANN))
