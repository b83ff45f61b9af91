"""uvicorn inside our own task group: our socket, our signals, our end."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from gateway.settings import HttpAddress
from parley.process import ConfigurationError

GRACE_S: Final = 5
KEEP_ALIVE_S: Final = 75
BACKLOG: Final = 2048


class HttpAddressUnusable(ConfigurationError):
    """Nothing can listen at the address.

    Attributes:
        address: The address.
    """

    def __init__(self, address: HttpAddress, reason: str) -> None:
        super().__init__(
            f"cannot serve HTTP on {address} ({reason}): stop whoever has it, or set "
            "GATEWAY_HTTP_LISTEN to another host:port"
        )
        self.address = address


@asynccontextmanager
async def serve_http(app: ASGIApp, address: HttpAddress) -> AsyncIterator[HttpAddress]:
    """Serve `app` until the context ends, then let running answers end; give the bound address.

    Raises:
        HttpAddressUnusable: Nothing can listen there.
    """
    listening = _bind(address)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
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
    server = _Server(config)
    bound = HttpAddress(address.host, listening.getsockname()[1])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listening]))
        try:
            yield bound
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
    """uvicorn without a say in signals: the process has its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
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
