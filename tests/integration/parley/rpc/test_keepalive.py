"""A call that only waits: probes keep its connection, and do not cost it."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.rpc.options import Options, channel_options, server_options

#: So much faster do probes come here; grpc makes at most one in a second.
FASTER = 20
METHOD = "/parley.test.Waiting/Wait"


def faster(options: Options) -> Options:
    return tuple(
        (name, value // FASTER)
        if name.endswith("_ms") and isinstance(value, int)
        else (name, value)
        for name, value in options
    )


@pytest.mark.slow
async def test_a_wait_of_many_probes_is_answered(tmp_path: Path) -> None:
    waits = 0

    async def wait(request: bytes, context: object) -> bytes:
        nonlocal waits
        waits += 1
        # More than two minutes of the real probes.
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=140 / FASTER)
        return b"waited"

    server = grpc.aio.server(options=faster(server_options()))
    handler: Any = grpc.unary_unary_rpc_method_handler(wait)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("parley.test.Waiting", {"Wait": handler}),)
    )
    address = f"unix:{tmp_path}/s"
    server.add_insecure_port(address)
    await server.start()
    try:
        options = faster(channel_options([]))
        async with asyncio.timeout(20), grpc.aio.insecure_channel(address, options) as channel:
            call: Any = channel.unary_unary(METHOD)
            assert await call(b"") == b"waited"
    finally:
        await server.stop(0)
    assert waits == 1
