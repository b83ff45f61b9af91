"""The standard health service: one status per service, watched without polling."""

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthServicer

from parley.rpc.problem import Problem, message_of, trailers

HEALTH = "grpc.health.v1.Health"
#: Trailing metadata with the reason why a process does not serve, percent-encoded.
REASON = "parley-health-reason"

_Response = health_pb2.HealthCheckResponse


class Health(HealthServicer):  # type: ignore[misc]
    """Answers whether this process serves; the empty service name means the whole process.

    grpc's own servicer keeps its watchers until their clients disconnect, which would delay every
    drain to its timeout; this one ends them with `finish`.
    """

    def __init__(self, services: Iterable[str], *, domain: str) -> None:
        self._services = frozenset({"", *services})
        self._domain = domain
        self._is_serving = True
        self._reason = ""
        self._changed = asyncio.Event()
        self._is_finished = False

    @property
    def is_serving(self) -> bool:
        """Whether the services are reported as serving."""
        return self._is_serving

    def set_serving(self, is_serving: bool, reason: str = "") -> None:
        """Report that all services serve, or that none does and why."""
        self._reason = "" if is_serving else reason
        if is_serving != self._is_serving:
            self._is_serving = is_serving
            self._announce()

    def finish(self) -> None:
        """End every watch after its last status."""
        self._is_finished = True
        self._announce()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 (the name is the proto's)
        """Return the status of one service."""
        if request.service not in self._services:
            problem = Problem.of(
                "SERVICE_UNKNOWN",
                f"no service {request.service!r} here; list the services by reflection",
            )
            await context.abort(
                problem.status, message_of(problem), trailers(problem, domain=self._domain)
            )
        if self._reason:
            # The response message has no field for it.
            context.set_trailing_metadata(((REASON, quote(self._reason, safe=" ")),))
        return _Response(status=self._status(request.service))

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802 (the name is the proto's)
        """Return the status of every service."""
        statuses = {name: _Response(status=self._status(name)) for name in self._services}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 (the name is the proto's)
        """Send the status of one service now and whenever it changes."""
        sent = None
        while True:
            # Read before the status: a change during the write is sent in the next iteration.
            changed, is_finished = self._changed, self._is_finished
            status = self._status(request.service)
            if status != sent:
                await context.write(_Response(status=status))
                sent = status
            if is_finished:
                return
            await changed.wait()

    def _status(self, service: str) -> Any:
        if service not in self._services:
            return _Response.SERVICE_UNKNOWN
        return _Response.SERVING if self._is_serving else _Response.NOT_SERVING

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
