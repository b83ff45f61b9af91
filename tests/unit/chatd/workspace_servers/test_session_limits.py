"""How many servers run at once, and when they are started again, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspace_servers.engine.session import UNEXPECTED
from chatd.workspace_servers.engine.sessions import OF_CHAT_MAX, OF_OWNER_MAX, ServerSessions
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.tasks import BackgroundTasks
from support.chatd.workspace_servers.counting_reducer import CountingReducer
from support.chatd.workspace_servers.scripted_server import EachScripted
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.supervised import supervision
from support.host.virtual_time import LoopClock, in_virtual_time

PLACE = ServerPlace(CHAT, ANN, WorkspaceLocation("node:1", "workspace"), is_read_only=False)


def named(number: int) -> ServerDefinition:
    return ServerDefinition(f"server{number}", "run", digest=f"digest{number}")


@asynccontextmanager
async def server_sessions(processes: EachScripted) -> AsyncIterator[ServerSessions]:
    async with BackgroundTasks(supervision(LoopClock())) as tasks:
        sessions = ServerSessions(processes, tasks, LoopClock(), CountingReducer())
        try:
            yield sessions
        finally:
            sessions.close()


@in_virtual_time
async def test_a_chat_runs_a_bounded_number_of_servers() -> None:
    async with server_sessions(EachScripted()) as sessions:
        for number in range(OF_CHAT_MAX):
            await sessions.session(PLACE, named(number))
        with pytest.raises(ServerFailed, match="servers of this chat run already"):
            await sessions.session(PLACE, named(OF_CHAT_MAX))


@in_virtual_time
async def test_an_owner_runs_a_bounded_number_of_servers() -> None:
    async with server_sessions(EachScripted()) as sessions:
        for number in range(OF_OWNER_MAX):
            place = replace(PLACE, chat_id=ChatId(f"chat{number}"))
            await sessions.session(place, named(0))
        with pytest.raises(ServerFailed, match="servers of your chats run already"):
            await sessions.session(PLACE, named(0))
        other = replace(PLACE, owner=replace(ANN, id=OwnerId("other")))
        assert (await sessions.session(other, named(0))).is_running


@in_virtual_time
async def test_an_unexpected_error_is_a_failure_with_a_pause_and_not_a_stop() -> None:
    processes = EachScripted(failure=ValueError("unexpected"))
    async with server_sessions(processes) as sessions:
        for _ in range(3):
            with pytest.raises(ServerFailed, match=UNEXPECTED):
                await sessions.session(PLACE, named(0))
        assert len(processes.started) == 1
        assert sessions.failure(PLACE, named(0)) == UNEXPECTED
