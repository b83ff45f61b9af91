"""The gateway's routes, put together without anything behind them."""

import asyncio
import random  # noqa: TID251 (chance is an argument here)
from dataclasses import fields
from typing import Any

from gateway.http.application import AnyRoute
from gateway.identity.engine.user_names import UserNames
from gateway.identity.wiring import Identity
from gateway.routes.table import routes
from gateway.routes.wiring import Dependencies, open_handlers
from gateway.streams.event_stream import StreamLimits
from parley.clock import FakeClock
from parley.process import OpenFiles, Process
from parley.telemetry import InMemoryTelemetry

NOBODY: Any = None  # Stands for what putting routes together never asks.


def every_route() -> tuple[AnyRoute, ...]:
    """Return every route; none of them can be called."""
    nobody = Identity(*[NOBODY] * len(fields(Identity)))
    names = UserNames(NOBODY)
    behind = Dependencies(nobody, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, asyncio.Event(), names)
    process = Process(
        service="gateway",
        instance="gateway-1",
        stopping=behind.draining,
        clock=FakeClock(),
        telemetry=InMemoryTelemetry("gateway").telemetry,
        random=random.Random(1),
        new_id=lambda: "id",
        open_files=OpenFiles(limit=4096, limit_at_start=1024),
    )
    return routes(open_handlers(behind, process, login_token=None, limits=StreamLimits()))
