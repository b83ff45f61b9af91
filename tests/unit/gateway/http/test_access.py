import random  # noqa: TID251 (an argument)
from typing import Any

import pytest

from gateway.api.contract import access_table
from gateway.http.access_log import AccessLog, AccessLogShare
from gateway.http.addresses import PublicUrl
from gateway.http.application import (
    Application,
    ApplicationDependencies,
    OpenRoute,
    UserRoute,
    host_name,
)
from gateway.http.forwarding import Forwarding
from gateway.http.limits.admission import Admission, AdmissionLimits
from gateway.http.route_access import Access, Need, RouteUndeclared
from parley.clock import FakeClock
from parley.telemetry import InMemoryTelemetry
from support.gateway.routes import every_route

NOBODY: Any = None  # Stands for what putting routes together never asks.


def around() -> ApplicationDependencies:
    return ApplicationDependencies(
        authentication=NOBODY,
        telemetry=InMemoryTelemetry().telemetry,
        public_url=PublicUrl.parse("http://parley.test"),
        allowed_hosts=(),
        new_id=lambda: "id",
        admission=Admission(AdmissionLimits(), FakeClock()),
        forwarding=Forwarding(),
        access_log=AccessLog(AccessLogShare(0.0), random.Random(1)),
    )


async def answer(*arguments: Any) -> Any:
    raise AssertionError("no request is made here")


async def test_every_route_declares_who_may_use_it() -> None:
    declared = {route: access.need for route, access in access_table().items()}
    served = {
        (route.method, route.path): Need.NOTHING if isinstance(route, OpenRoute) else Need.SIGN_IN
        for route in every_route()
    }

    assert served == declared


def test_every_route_behind_a_sign_in_names_roles_and_is_described() -> None:
    assert [route for route, each in access_table().items() if not each.doc.endswith(".")] == []
    assert [
        route
        for route, each in access_table().items()
        if (each.need is Need.SIGN_IN) is not bool(each.roles)
    ] == []


def test_everything_under_the_api_but_signing_in_needs_a_sign_in() -> None:
    assert {
        path for (_, path), access in access_table().items() if access.need is Need.NOTHING
    } == {
        "/",
        "/account",
        "/admin",
        "/admin/{section}",
        "/assets/{name}",
        "/chats/{chat_id}",
        "/races",
        "/races/{race_id}",
        "/settings",
        "/settings/{section}",
        "/sign-in",
        "/service-worker.js",
        "/terminal",
        "/waiting",
        "/docs",
        "/login",
        "/login/code",
        "/login/oidc/{issuer}",
        "/login/oidc/{issuer}/callback",
        "/mcp/login/{server_id}",
        "/mcp/callback",
        "/.well-known/mcp-client.json",
        "/logout",
        "/link",
        "/api/v1/configuration",
        "/api/v1/sign-in",
        "/api/v1/sign-in/link",
        "/api/v1/sign-in/link/password",
        "/api/v1/sign-in/second-factor",
        "/api/v1/sign-in/passkey",
        "/api/v1/sign-in/passkey/options",
        "/connection",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/problems",
        "/problems/{code}",
    }


async def test_a_route_without_a_declaration_does_not_start() -> None:
    with pytest.raises(RouteUndeclared) as refused:
        Application([UserRoute("GET", "/new", answer)], around(), access={})

    assert refused.value.routes == {("GET", "/new")}


async def test_a_declaration_without_a_route_does_not_start() -> None:
    with pytest.raises(RouteUndeclared):
        Application([], around(), access={("GET", "/gone"): Access("Gone.")})


async def test_a_route_cannot_be_more_open_than_declared() -> None:
    with pytest.raises(RouteUndeclared):
        Application(
            [OpenRoute("GET", "/secret", answer)],
            around(),
            access={("GET", "/secret"): Access("A secret.")},
        )


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Example.test:80", "example.test"),
        ("[::1]:80", "::1"),
        ("::1", "::1"),
        ("", ""),
        (" a ", "a"),
    ],
)
def test_a_host_is_compared_without_port_brackets_and_case(header: str, name: str) -> None:
    assert host_name(header) == name
