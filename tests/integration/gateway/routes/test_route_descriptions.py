"""The description of the API says what the routes really take."""

import re

import msgspec

from gateway.http.application import UserRoute
from gateway.routes.files import UPLOADED_TYPES
from support.gateway.chats import NO_CHAT
from support.gateway.routes import every_route
from support.gateway.stack import GatewayStack

PARAMETER = re.compile(r"\{(\w+)\}")
STANDING_FOR = {"message_id": "1", "purpose": "title"}


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


async def test_the_description_is_served_to_everyone(stack: GatewayStack) -> None:
    reply = await stack.anonymous.request("GET", "/openapi.json")

    document = reply.json()
    assert (reply.status, document["openapi"], document["info"]["title"]) == (
        200,
        "3.1.1",
        "Parley",
    )
    sent = document["paths"]["/api/v1/chats/{chat_id}/messages"]["post"]
    assert sent["operationId"] == "postChatsChatIdMessages"
    assert (sent["x-scope"], sent["x-roles"]) == ("chat:write", ["admin", "member", "owner"])
    assert sent["requestBody"] == {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/SendMessageBody"}}
        },
    }
    assert [parameter["name"] for parameter in sent["parameters"]] == [
        "chat_id",
        "Idempotency-Key",
    ]
    upload = document["paths"]["/api/v1/files"]["post"]
    assert upload["x-scope"] == "file:write"
    assert upload["requestBody"]["content"].keys() == set(UPLOADED_TYPES)
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len(operations) == len(user_routes())
    assert len({operation["operationId"] for operation in operations}) == len(operations)
