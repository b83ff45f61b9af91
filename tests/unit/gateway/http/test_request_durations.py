"""How long requests took, by route, in the numbers that a scraper reads."""

import random  # noqa: TID251 (an argument)
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gateway.http.access_log import AccessLog, AccessLogShare
from gateway.http.addresses import PublicUrl
from gateway.http.application import Application, ApplicationDependencies, OpenRoute
from gateway.http.forwarding import Forwarding
from gateway.http.limits.admission import Admission, AdmissionLimits
from gateway.http.route_access import Access, Need
from parley.clock import FakeClock
from parley.telemetry import InMemoryTelemetry

NOBODY: Any = None


async def answer(request: Request) -> Response:
    return PlainTextResponse("hello")


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("GET", "/hello", ("GET", "/hello", "200")),
        ("GET", "/other", ("GET", "", "404")),
        ("BREW", "/hello", ("_OTHER", "/hello", "405")),
    ],
)
async def test_a_request_is_counted_with_its_route_and_a_method_that_exists(
    method: str, path: str, labels: tuple[str, str, str]
) -> None:
    telemetry = InMemoryTelemetry().telemetry
    application = Application(
        [OpenRoute("GET", "/hello", answer)],
        ApplicationDependencies(
            authentication=NOBODY,
            telemetry=telemetry,
            public_url=PublicUrl.parse("http://parley.test"),
            allowed_hosts=(),
            new_id=lambda: "id",
            admission=Admission(AdmissionLimits(), FakeClock()),
            forwarding=Forwarding(),
            access_log=AccessLog(AccessLogShare(0.0), random.Random(1)),
        ),
        access={("GET", "/hello"): Access("Says hello.", need=Need.NOTHING)},
    )

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        """Let the answer go."""

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"parley.test")],
    }
    await application(scope, receive, send)
    names = ("http_request_method", "http_route", "http_response_status_code")
    counted = telemetry.registry.get_sample_value(
        "http_server_request_duration_seconds_count", dict(zip(names, labels, strict=True))
    )
    assert counted == 1
