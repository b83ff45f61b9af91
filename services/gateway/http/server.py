"""Runs uvicorn in the process's task group, with its own socket and without signal handlers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from gateway.http.addresses import HttpAddress
from gateway.http.limits.client_keys import ClientKeys
from gateway.http.limits.connections import OpenConnections
from gateway.http.limits.refused_input import RefusedInput
from gateway.http.limits.start_queue import StartQueue
from gateway.http.protocol import BoundedProtocol, HeadLimits
from parley.clock import Clock
from parley.process import ConfigurationError

GRACE_S: Final = 5
KEEP_ALIVE_S: Final = 75
BACKLOG: Final = 2048
#: How many connections are accepted in one iteration of the event loop. uvloop accepts one for each
#: listening socket, so clients that reconnect continuously would keep all others in the backlog.
ACCEPTS_PER_ITERATION: Final = 32
#: Frame limit of a WebSocket; larger than the limit of a terminal, which returns its own error.
FRAME_BYTES_MAX: Final = 128 * 1024
PING_S: Final = 15.0


class HttpAddressUnusable(ConfigurationError):
    """The address cannot be bound.

    Attributes:
        address: The address.
    """

    def __init__(self, address: HttpAddress, reason: str) -> None:
        super().__init__(
            f"cannot serve HTTP on {address} ({reason}): stop the process that uses it, or set "
            "GATEWAY_HTTP_LISTEN to another host:port"
        )
        self.address = address


class ListeningSocketFailed(Exception):
    """The kernel accepts no connections at the listening socket any more.

    Attributes:
        address: The address of the socket.
    """

    def __init__(self, address: HttpAddress) -> None:
        super().__init__(f"no connection is accepted on {address} any more")
        self.address = address


@asynccontextmanager
async def serve_http(
    app: ASGIApp,
    address: HttpAddress,
    *,
    public_url: str,
    open_connections: OpenConnections,
    clock: Clock,
    limits: HeadLimits | None = None,
) -> AsyncIterator[HttpAddress]:
    """Serve `app` until the context ends, then wait for running responses; yield the bound address.

    Args:
        app: The application.
        address: The address to listen on.
        public_url: The origin in the types of problems.
        open_connections: Limits the open connections.
        clock: The clock of the rate limit of log lines.
        limits: Limits of a request head.

    Raises:
        HttpAddressUnusable: It cannot be bound.
        ExceptionGroup: Of `ListeningSocketFailed`; the body of the context is cancelled.
    """
    listening = _bind(address)
    start_queue = StartQueue()
    # uvicorn accepts any protocol factory, whatever its types declare.
    protocol: Any = partial(
        BoundedProtocol,
        public_url=public_url,
        limits=limits or HeadLimits(),
        open_connections=open_connections,
        start_queue=start_queue,
        client_keys=ClientKeys(),
        refused_input=RefusedInput(clock),
    )
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="wsproto",
        ws_max_size=FRAME_BYTES_MAX,
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_per_message_deflate=False,
        lifespan="off",
        loop="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    bound = HttpAddress(address.host, listening.getsockname()[1])
    server = _Server(config, start_queue, listening, bound)
    sockets = [listening, *(listening.dup() for _ in range(ACCEPTS_PER_ITERATION - 1))]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=sockets))
        try:
            yield bound
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
    """uvicorn without signal handlers: the process has its own."""

    def __init__(
        self,
        config: uvicorn.Config,
        start_queue: StartQueue,
        listening: socket.socket,
        address: HttpAddress,
    ) -> None:
        super().__init__(config)
        self._start_queue = start_queue
        self._listening = listening
        self._address = address

    async def on_tick(self, counter: int) -> bool:
        """Fail if the listening socket has failed, which event loops do not report."""
        should_exit = await super().on_tick(counter)
        if not (should_exit or self._listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)):
            raise ListeningSocketFailed(self._address)
        return should_exit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the running requests; those that wait are never started."""
        try:
            await super().shutdown(sockets)
        finally:
            # Requests that are cancelled now would start those that wait for them.
            self._start_queue.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers."""
        yield


def _bind(address: HttpAddress) -> socket.socket:
    family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
    try:
        listening = socket.create_server(
            (address.host, address.port), family=family, backlog=BACKLOG
        )
    except OSError as error:
        raise HttpAddressUnusable(address, error.strerror or str(error)) from error
    listening.setblocking(False)
    return listening
