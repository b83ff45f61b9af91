"""Calls that a server comes to late, because its event loop is busy with something else."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import grpc

from parley.rpc import LIMITS
from parley.rpc.options import Options, server_options

METHOD = "/parley.test.Busy/Ask"
UNACCEPTED = "grpc.server_max_unrequested_time_in_server"
#: The longest wait of a call that answers once, and what its deadline adds to that.
WAIT_S, SPARE_S = 300, 30
#: grpc counts whole seconds.
BUSY_S, SHORT_S = 2.5, 1


class BusyServer:
    """A server in a thread of its own, whose event loop stands still while it is told to."""

    def __init__(self, address: str, options: Options) -> None:
        self._address = address
        self._options = options
        self.is_serving = Event()
        self.is_busy = Event()
        self.may_go_on = Event()
        self.is_over = Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async def ask(request: bytes, context: object) -> bytes:
            if request == b"be busy":
                asyncio.get_running_loop().call_soon(self._stand_still)
            return b"answer"

        handler: Any = grpc.unary_unary_rpc_method_handler(ask)
        methods = grpc.method_handlers_generic_handler("parley.test.Busy", {"Ask": handler})
        server = grpc.aio.server(handlers=[methods], options=self._options)
        server.add_insecure_port(self._address)
        await server.start()
        self.is_serving.set()
        await asyncio.to_thread(self.is_over.wait, 30)
        await server.stop(0)

    def _stand_still(self) -> None:
        self.is_busy.set()
        self.may_go_on.wait(30)


async def answers_of_a_busy_server(address: str, options: Options) -> list[bytes | str]:
    """Return what several calls are answered that came while the server stood still."""
    server = BusyServer(address, options)
    with ThreadPoolExecutor(1) as thread:
        running = asyncio.get_running_loop().run_in_executor(thread, server.run)
        try:
            await asyncio.to_thread(server.is_serving.wait, 10)
            async with asyncio.timeout(20), grpc.aio.insecure_channel(address) as channel:
                ask: Any = channel.unary_unary(METHOD)
                calls = [ask(b"be busy", timeout=20)]
                await asyncio.to_thread(server.is_busy.wait, 10)
                calls += [ask(b"", timeout=20) for _ in range(4)]
                # The time that passes is grpc's own.
                await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=BUSY_S)
                server.may_go_on.set()
                answers = [await answer_of(call) for call in calls]
        finally:
            server.may_go_on.set()
            server.is_over.set()
            await running
    return answers


async def answer_of(call: Any) -> bytes | str:
    try:
        answer: bytes = await call
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return answer


async def test_a_call_that_was_not_taken_up_for_long_is_answered_and_not_cancelled(
    tmp_path: Path,
) -> None:
    impatient = tuple(
        (name, SHORT_S) if name == UNACCEPTED else (name, value) for name, value in server_options()
    )
    # What grpc does by itself after half a minute, so much sooner.
    cancelled = await answers_of_a_busy_server(f"unix:{tmp_path}/impatient", impatient)
    assert "CANCELLED" in cancelled
    assert (
        await answers_of_a_busy_server(f"unix:{tmp_path}/ours", server_options()) == [b"answer"] * 5
    )


def test_the_deadline_of_the_longest_wait_passes_before_a_server_gives_a_call_up() -> None:
    assert dict(server_options())[UNACCEPTED] == LIMITS.unaccepted_s > WAIT_S + SPARE_S
