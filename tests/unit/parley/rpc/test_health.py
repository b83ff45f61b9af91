"""What watchers of the health service are told, whatever happens while they are told."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from grpc_health.v1 import health_pb2

from parley.rpc.health import Health

SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)


@dataclass
class SlowContext:
    """A call whose messages take as long to leave as a test wants."""

    written: list[Any] = field(default_factory=list)
    is_writing: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, message: Any) -> None:
        self.written.append(message)
        self.is_writing.set()
        await self.may_go_on.wait()


async def test_an_end_that_comes_while_a_status_leaves_is_told_with_the_last_status() -> None:
    health, context = Health(["chat"], domain="chat.parley"), SlowContext()
    request = health_pb2.HealthCheckRequest(service="chat")
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(health.Watch(request, context))
        await context.is_writing.wait()
        health.set_serving(False)
        health.finish()
        context.may_go_on.set()
    assert context.written == [SERVING, NOT_SERVING]
