"""Users find each other by name, and see the names of those whose ids they meet."""

import pytest

from parley.identity import Role
from support.gateway.browser import new_user
from support.gateway.stack import GatewayStack
from support.gateway.users import USER_ID, client_with

PATH = "/api/v1/people"


@pytest.mark.parametrize(
    ("query", "logins"),
    [
        ("grace", ["grace"]),
        ("HOPPER", ["grace"]),
        ("a", ["ada", "grace"]),
        ("%", []),
        ("example.com", []),
    ],
)
async def test_members_find_others_by_name_and_never_by_address(
    stack: GatewayStack, identity_database: str, query: str, logins: list[str]
) -> None:
    await new_user(stack, login="grace", display_name="Grace Hopper", email="grace@example.com")
    member = await client_with(stack, identity_database, Role.MEMBER)
    found = await member.request("GET", f"{PATH}?q={query.replace('%', '%25')}")

    assert [each["login"] for each in found.json()["items"]] == logins


async def test_a_name_is_what_is_shown_and_nothing_else(
    stack: GatewayStack, identity_database: str
) -> None:
    grace = await new_user(stack, login="grace", display_name="Grace Hopper")
    member = await client_with(stack, identity_database, Role.MEMBER)
    named = await member.request("GET", f"{PATH}?id={grace}&id={USER_ID}&id=none")
    await stack.owner.request("POST", f"/api/v1/users/{grace}/deactivate")
    found = await member.request("GET", f"{PATH}?q=grace")
    gone = await member.request("GET", f"{PATH}?id={grace}")

    assert named.json() == {
        "items": [
            {"id": grace, "login": "grace", "display_name": "Grace Hopper", "state": "active"},
            {"id": USER_ID, "login": "ada", "display_name": "Ada", "state": "active"},
        ]
    }
    assert found.json() == {"items": []}
    assert [each["state"] for each in gone.json()["items"]] == ["deactivated"]


@pytest.mark.parametrize("query", ["", "q=", "q=%20", "q=a&id=b", f"q={'a' * 65}", "q=a&limit=51"])
async def test_what_names_nobody_is_refused(stack: GatewayStack, query: str) -> None:
    refused = await stack.owner.request("GET", f"{PATH}?{query}")

    assert (refused.status, refused.json()["code"]) == (422, "INVALID_REQUEST")


async def test_nobody_finds_anybody_without_signing_in(stack: GatewayStack) -> None:
    assert (await stack.anonymous.request("GET", f"{PATH}?q=a")).status == 401
