"""Processes of workspace servers at a real toolrunner, over channels that break."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chatd.primitives.domain.ids import ChatId
from chatd.workspace_servers.clients.server_process import NodeServerProcesses
from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.rpc import Channels
from support.chatd.workspaces.workspace_calls import ANN
from support.toolrunner.node import Client, House, connected, node

DEFINITION = ServerDefinition("plain", "sleep", ("600",), digest="digest")


class BrokenCall:
    """A stream that ends before its first message."""

    async def write(self, _: object) -> None:
        """Fail as a call does that was closed."""
        raise asyncio.InvalidStateError("the call is done")

    def cancel(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class BrokenStreams:
    """A channel on which requests work, and streams do not."""

    channel: Any

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return self.channel.unary_unary(*args, **kwargs)

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        return self.channel.unary_stream(*args, **kwargs)

    def stream_stream(self, *_: Any, **__: Any) -> Callable[[], BrokenCall]:
        return BrokenCall


@pytest.fixture
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    found = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(60), node(found):
        yield found


async def process_of(client: Client) -> process_pb2.Process:
    request = api.ListProcessesRequest(context=client.context)
    (found,) = (await client.processes.ListProcesses(request)).processes
    return found


async def test_a_server_that_cannot_be_attached_to_is_killed(house: House) -> None:
    async with connected(house) as client:
        channel: Any = BrokenStreams(client.channel)
        processes = NodeServerProcesses(
            Channels((house.address,), lambda _: channel), client.new_id
        )
        location = WorkspaceLocation(str(house.address), client.context.workspace_id)
        place = ServerPlace(ChatId(client.chat_id), ANN, location, is_read_only=False)
        with pytest.raises(ServerFailed, match="it ended"):
            async with processes.opened(place, DEFINITION):
                pass
        started = await process_of(client)
        ended = (await client.wait(started.process_id)).process
        assert ended.state == process_pb2.PROCESS_STATE_EXITED
