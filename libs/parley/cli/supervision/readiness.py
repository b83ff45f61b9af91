"""Readiness checks of a process over the network."""

import asyncio
import os
from contextlib import suppress
from typing import Protocol, assert_never
from urllib.parse import unquote, urlsplit

from parley.cli.stack.plan import Readiness, Sign

ANSWER_S_MAX = 2.0
HTTP_PORT = 80
#: Trailing metadata of a health check; the same as in parley.rpc, which is slow to import.
HEALTH_REASON = "parley-health-reason"


class Probe(Protocol):
    """Runs readiness checks."""

    async def is_ready(self, signs: tuple[Readiness, ...]) -> bool:
        """Return whether all of `signs` succeed now."""
        ...


class NetworkProbe:
    """Checks with a new connection each time."""

    async def is_ready(self, signs: tuple[Readiness, ...]) -> bool:
        """Return whether all of `signs` succeed now; no answer in time counts as a failure."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                for readiness in signs:
                    if await reason_not_ready(readiness) is not None:
                        return False
        except TimeoutError:
            return False
        return True

    async def problem(self, signs: tuple[Readiness, ...]) -> str:
        """Return the reason a process reports for not serving; empty if there is none."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                for readiness in signs:
                    is_grpc = readiness.sign is Sign.GRPC_HEALTH
                    if is_grpc and await _connection_problem(readiness.target) is None:
                        return (await _health(readiness.target))[1]
        except TimeoutError:
            return f"it does not answer within {ANSWER_S_MAX:g} s"
        return ""


async def reason_not_ready(readiness: Readiness) -> str | None:
    """Return why a check fails; None if it succeeds."""
    match readiness.sign:
        case Sign.ACCEPTS:
            return await _connection_problem(readiness.target)
        case Sign.GRPC_HEALTH:
            # A channel that finds no listener pauses before it retries; a socket does not.
            problem = await _connection_problem(readiness.target)
            if problem is not None:
                return problem
            is_serving, reason = await _health(readiness.target)
            return None if is_serving else reason or "it does not serve"
        case Sign.HTTP_OK:
            return await _http_problem(readiness.target)
        case _:
            assert_never(readiness.sign)


async def _connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        return await asyncio.open_unix_connection(rest)
    host, _, port = rest.rpartition(":")
    return await asyncio.open_connection(host.strip("[]"), int(port))


async def _connection_problem(address: str) -> str | None:
    try:
        _, writer = await _connect(address)
    except OSError as error:
        return _no_connection(error)
    await _close(writer)
    return None


def _no_connection(error: OSError) -> str:
    return f"no connection: {os.strerror(error.errno) if error.errno else error}"


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _health(address: str) -> tuple[bool, str]:
    """Return whether a process serves, and the reason it reports if not."""
    # grpc takes longer to import than the rest of the supervisor together.
    import grpc
    from grpc_health.v1 import (
        health_pb2,
        health_pb2_grpc,
    )

    target = address if address.startswith("unix:") else address.partition(":")[2]
    async with grpc.aio.insecure_channel(target, (("grpc.enable_http_proxy", 0),)) as channel:
        try:
            call = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=ANSWER_S_MAX
            )
            answer = await call
            said = await call.trailing_metadata()
        except grpc.aio.AioRpcError:
            return False, ""
    reason = "".join(unquote(value) for name, value in said if name == HEALTH_REASON)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING), reason


async def _http_problem(url: str) -> str | None:
    parts = urlsplit(url)
    try:
        reader, writer = await _connect(f"tcp:{parts.hostname}:{parts.port or HTTP_PORT}")
    except OSError as error:
        return _no_connection(error)
    path = parts.path or "/"
    try:
        head = (f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close", "", "")
        writer.write("\r\n".join(head).encode())
        status_line = await reader.readline()
    except OSError as error:
        return _no_connection(error)
    finally:
        await _close(writer)
    status = status_line.decode("latin-1").partition(" ")[2].strip()
    if status.split(" ")[0] == "200":
        return None
    return f"GET {path} is answered {status}" if status else "the answer is not HTTP"
