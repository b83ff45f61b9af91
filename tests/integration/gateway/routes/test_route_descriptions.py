"""Routes refuse what they do not declare, and the description of the API is served."""

import re
from importlib.resources import files

import msgspec

from gateway.http.application import UserRoute
from support.gateway.chats import NO_CHAT
from support.gateway.routes import every_route
from support.gateway.stack import GatewayStack

PARAMETER = re.compile(r"\{(\w+)\}")
STANDING_FOR = {"message_id": "1", "purpose": "general"}


def path_of(route: UserRoute) -> str:
    return PARAMETER.sub(lambda found: STANDING_FOR.get(found[1], NO_CHAT), route.path)


def user_routes() -> list[UserRoute]:
    return [route for route in every_route() if isinstance(route, UserRoute)]


async def test_every_route_takes_the_parameters_that_are_described(stack: GatewayStack) -> None:
    for route in user_routes():
        reply = await stack.owner.request(route.method, f"{path_of(route)}?zzzz=1")

        known = ", ".join(route.query) or "none"
        assert (reply.status, reply.json()["errors"]) == (
            422,
            [
                {
                    "parameter": "zzzz",
                    "code": "UNKNOWN_PARAMETER",
                    "detail": f"Unknown. Known: {known}.",
                }
            ],
        ), route


async def test_every_route_takes_the_body_that_is_described(stack: GatewayStack) -> None:
    with_body = [(route, route.body) for route in user_routes() if route.body is not None]
    for route, body in with_body:
        reply = await stack.owner.request(route.method, path_of(route), {"zzzz": 1})

        known = ", ".join(field.encode_name for field in msgspec.structs.fields(body)) or "none"
        errors = reply.json()["errors"]
        assert (reply.status, errors[0]) == (
            422,
            {
                "pointer": "/zzzz",
                "code": "UNKNOWN_FIELD",
                "detail": f"Unknown field. Known: {known}.",
            },
        ), route
        required = [
            f"/{field.encode_name}" for field in msgspec.structs.fields(body) if field.required
        ]
        either: tuple[str, ...] = getattr(body, "either", ())
        if getattr(body, "needs_either", False):
            required.insert(0, f"/{either[0]}")
        assert [error["pointer"] for error in errors[1:]] == required, route


async def test_the_openapi_document_is_served_to_everyone_as_it_is_checked_in(
    stack: GatewayStack,
) -> None:
    reply = await stack.anonymous.request("GET", "/openapi.json")

    checked_in = (files("gateway.api") / "openapi.json").read_bytes()
    assert (reply.status, reply.headers["content-type"], reply.body) == (
        200,
        "application/json",
        checked_in,
    )
