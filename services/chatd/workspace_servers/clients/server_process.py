"""Runs servers as processes of workspaces, through their nodes.

The server runs below a shell, because the output of a process has one stream: standard output goes
there, and of standard error the last bytes follow when the server ended. A line with its exit code
comes in between, so that a child that keeps standard error open hides no end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc

from chatd.users.clients.existence import user_of
from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.messages import EXITED
from chatd.workspace_servers.domain.ports import ServerPipes, ServerPlace
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspaces.clients.failures import plain_problem
from parley.api.workspace.v1 import process_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.rpc import Address, Channels, acting_for

logger = logging.getLogger(__name__)

ANSWER_S: Final = 30.0
KILL_S: Final = 5.0
#: A node accepts at most so much input at once.
PIECE_BYTES: Final = 64 * 1024
#: Output that waits to be read; a server that prints faster than that is ended.
LOG_BYTES: Final = 4 * 1024 * 1024
FELL_BEHIND: Final = workspace_pb2.STREAM_END_REASON_RESYNC
SCRIPT: Final = (
    'exec 4>&1; { "$@" 2>&1 >&4 4>&-; printf "\\n' + EXITED + '%s\\n" "$?" >&4; } '
    "| tail -c 2000 >&4"
)


class NodeServerProcesses:
    """Starts servers at the nodes of their workspaces.

    Args:
        channels: Channels to nodes.
        new_id: Returns the id of a request.
    """

    def __init__(self, channels: Channels, new_id: Callable[[], str]) -> None:
        self._channels = channels
        self._new_id = new_id

    @asynccontextmanager
    async def opened(
        self, place: ServerPlace, definition: ServerDefinition
    ) -> AsyncIterator[ServerPipes]:
        """Start a server; it is ended, with all that it started, when the context ends.

        Raises:
            ServerFailed: It cannot be started.
        """
        context = _context(place)
        stub = ProcessServiceStub(self._channels.also(Address.parse(place.location.address)))
        try:
            with acting_for(user_of(place.owner)):
                started = await stub.StartProcess(
                    api.StartProcessRequest(
                        context=context,
                        request_id=f"mcp-server-{self._new_id()}",
                        spec=_spec(definition),
                    ),
                    timeout=ANSWER_S,
                )
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        process = started.process
        if process.start_error:
            raise ServerFailed(process.start_error)
        with acting_for(user_of(place.owner)):
            call: Any = stub.Attach()
        opening = api.AttachOpen(context=context, process_id=process.process_id, owns_process=True)
        pipes = _AttachedPipes(call)
        is_owned = False
        try:
            await pipes.open(opening)
            is_owned = True
            yield pipes
        finally:
            call.cancel()
            if not is_owned:
                with acting_for(user_of(place.owner)):
                    await self._kill(stub, opening)

    async def _kill(self, stub: ProcessServiceStub, opening: api.AttachOpen) -> None:
        """End a process that no attachment owns yet."""
        request = api.SignalProcessRequest(
            context=opening.context,
            request_id=f"mcp-server-{self._new_id()}",
            process_id=opening.process_id,
            signal=process_pb2.PROCESS_SIGNAL_KILL,
        )
        try:
            await stub.SignalProcess(request, timeout=KILL_S)
        except grpc.aio.AioRpcError as error:
            logger.warning("a workspace server was not killed: %s", plain_problem(error).message)


class _AttachedPipes:
    """The pipes of a process, by an attachment that owns it."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def open(self, opening: api.AttachOpen) -> None:
        """Attach to the process; the attachment owns it when this returns.

        Raises:
            ServerFailed: The process ended, or the node is gone.
        """
        try:
            await self._call.write(api.AttachRequest(open=opening))
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        except (grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise ServerFailed("it ended") from error
        await self.read()

    async def write(self, data: bytes) -> None:
        """Write to its input.

        Raises:
            ServerFailed: It ended, or does not read.
        """
        try:
            for begin in range(0, len(data), PIECE_BYTES):
                await self._call.write(api.AttachRequest(stdin=data[begin : begin + PIECE_BYTES]))
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        except (grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise ServerFailed("it ended") from error

    async def read(self) -> bytes:
        """Return the next piece of its output; empty at the end.

        Raises:
            ServerFailed: The node is gone.
        """
        try:
            while isinstance(answer := await self._call.read(), api.AttachResponse):
                match answer.WhichOneof("kind"):
                    case "chunk":
                        return answer.chunk.data
                    case "opened":
                        return b"\n"
                    case "heartbeat":
                        continue
                    case "closed" if answer.closed.reason == FELL_BEHIND:
                        raise ServerFailed("it printed faster than its output was read")
                    case _:
                        return b""
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        return b""


def _context(place: ServerPlace) -> workspace_pb2.WorkspaceContext:
    profile = (
        sandbox_pb2.SANDBOX_PROFILE_READ_ONLY
        if place.is_read_only
        else sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE
    )
    return workspace_pb2.WorkspaceContext(
        workspace_id=place.location.workspace_id,
        epoch=place.location.epoch,
        chat_id=place.chat_id,
        profile=profile,
        turn_id=place.turn_id,
    )


def _spec(definition: ServerDefinition) -> process_pb2.ProcessSpec:
    program = (definition.command, *definition.arguments)
    return process_pb2.ProcessSpec(
        argv=process_pb2.ArgumentVector(
            arguments=("sh", "-c", SCRIPT, f"mcp-server-{definition.name}", *program)
        ),
        environment=dict(definition.environment),
        stdin_mode=process_pb2.STDIN_MODE_PIPE,
        background=True,
        log_bytes=LOG_BYTES,
        needs_owner=True,
    )


def _failure(error: grpc.aio.AioRpcError) -> ServerFailed:
    return ServerFailed(f"its workspace refused: {plain_problem(error).message}")
