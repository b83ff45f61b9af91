"""Groups over HTTP: managing them and their members, and seeing one's own."""

from typing import Any

import pytest

from parley.identity import Role
from support.gateway.chats import NO_CHAT
from support.gateway.stack import GatewayStack
from support.gateway.users import USER_ID, client_with

GROUPS = "/api/v1/groups"
USERS = "/api/v1/users"


async def made(stack: GatewayStack, name: str) -> dict[str, Any]:
    reply = await stack.owner.request("POST", GROUPS, {"name": name}, {"Idempotency-Key": name})
    assert reply.status == 201, reply.body
    document: dict[str, Any] = reply.json()
    return document


async def test_a_group_is_created_once_read_renamed_listed_and_deleted(
    stack: GatewayStack,
) -> None:
    key = {"Idempotency-Key": "one"}
    first = await stack.owner.request("POST", GROUPS, {"name": "Research"}, key)
    again = await stack.owner.request("POST", GROUPS, {"name": "Research"}, key)
    group = first.json()
    path = f"{GROUPS}/{group['id']}"
    read = await stack.owner.request("GET", path)
    same = await stack.owner.request("GET", path, None, {"If-None-Match": '"1"'})
    renamed = await stack.owner.request("PATCH", path, {"name": "Sales"}, {"If-Match": '"1"'})
    late = await stack.owner.request("PATCH", path, {"name": "x"}, {"If-Match": '"1"'})
    foreign = await stack.owner.request("PATCH", path, {"name": "x"}, {"If-Match": '"x"'})
    other = await made(stack, "Art")
    page = await stack.owner.request("GET", f"{GROUPS}?limit=1")
    rest = await stack.owner.request("GET", f"{GROUPS}?limit=1&cursor={page.json()['next_cursor']}")
    found = await stack.owner.request("GET", f"{GROUPS}?q=SALE")
    deleted = [await stack.owner.request("DELETE", path) for _ in range(2)]
    gone = await stack.owner.request("GET", path)

    times = {name: group[name] for name in ("created_at", "updated_at")}
    assert group == times | {
        "id": group["id"],
        "name": "Research",
        "member_count": 0,
        "version": 1,
    }
    assert (first.status, first.headers["location"], first.headers["etag"]) == (201, path, '"1"')
    assert (again.json(), read.json(), same.status) == (group, group, 304)
    sales = group | {"name": "Sales", "version": 2, "updated_at": renamed.json()["updated_at"]}
    assert (renamed.status, renamed.headers["etag"], renamed.json()) == (200, '"2"', sales)
    assert [reply.json()["code"] for reply in (late, foreign)] == ["VERSION_CONFLICT"] * 2
    assert page.json() == {"items": [other], "next_cursor": other["id"]}
    assert rest.json() == found.json() == {"items": [sales], "next_cursor": None}
    assert [(reply.status, reply.body) for reply in deleted] == [(204, b"")] * 2
    assert (gone.status, gone.json()["code"]) == (404, "GROUP_NOT_FOUND")


async def test_users_join_and_leave_groups(stack: GatewayStack) -> None:
    group = await made(stack, "one")
    ada = (await stack.owner.request("POST", USERS, {"login": "ada", "role": "member"})).json()
    member = f"{GROUPS}/{group['id']}/members/{ada['id']}"

    joined = [await stack.owner.request("PUT", member) for _ in range(2)]
    members = await stack.owner.request("GET", f"{GROUPS}/{group['id']}/members")
    of_ada = await stack.owner.request("GET", f"{USERS}/{ada['id']}/groups")
    left = [await stack.owner.request("DELETE", member) for _ in range(2)]
    nobody = await stack.owner.request("GET", f"{GROUPS}/{group['id']}/members")
    nowhere = await stack.owner.request("GET", f"{USERS}/{ada['id']}/groups")

    updated = {"updated_at": joined[0].json()["updated_at"]}
    with_ada = group | updated | {"member_count": 1, "version": 2}
    assert [(reply.status, reply.json()) for reply in joined] == [(200, with_ada)] * 2
    assert [(user["login"], user["version"]) for user in members.json()["items"]] == [("ada", 2)]
    assert of_ada.json() == {"items": [with_ada], "next_cursor": None}
    assert [(reply.status, reply.body) for reply in left] == [(204, b"")] * 2
    assert nobody.json() == nowhere.json() == {"items": [], "next_cursor": None}


REFUSED: tuple[tuple[str, str, object, int, str], ...] = (
    ("POST", "", {"name": "TAKEN"}, 409, "NAME_TAKEN"),
    ("POST", "", {"name": " "}, 422, "INVALID_REQUEST"),
    ("POST", "", {"name": "a\nb"}, 422, "INVALID_REQUEST"),
    ("POST", "", {"name": "x" * 65}, 422, "INVALID_REQUEST"),
    ("POST", "", {}, 422, "INVALID_REQUEST"),
    ("PATCH", "/{group}", {}, 422, "INVALID_REQUEST"),
    ("PATCH", "/{group}", {"name": None}, 422, "INVALID_REQUEST"),
    ("PATCH", f"/{NO_CHAT}", {"name": "x"}, 404, "GROUP_NOT_FOUND"),
    ("GET", "/nothing", None, 404, "GROUP_NOT_FOUND"),
    ("DELETE", f"/{NO_CHAT}", None, 404, "GROUP_NOT_FOUND"),
    ("GET", f"/{NO_CHAT}/members", None, 404, "GROUP_NOT_FOUND"),
    ("PUT", f"/{NO_CHAT}/members/{{user}}", None, 404, "GROUP_NOT_FOUND"),
    ("PUT", f"/{{group}}/members/{NO_CHAT}", None, 404, "USER_NOT_FOUND"),
    ("DELETE", "/{group}/members/nobody", None, 404, "USER_NOT_FOUND"),
    ("GET", "?cursor=x", None, 422, "INVALID_REQUEST"),
    ("GET", f"?q={'x' * 129}", None, 422, "INVALID_REQUEST"),
    ("GET", "?q=%00", None, 422, "INVALID_REQUEST"),
)


async def test_refusals_about_groups_are_told_by_their_reasons(stack: GatewayStack) -> None:
    group = await made(stack, "taken")
    me = (await stack.owner.request("GET", "/api/v1/me")).json()
    for method, path, body, status, code in REFUSED:
        named = path.replace("{group}", group["id"]).replace("{user}", me["id"])
        reply = await stack.owner.request(method, f"{GROUPS}{named}", body)

        assert (reply.status, reply.json()["code"]) == (status, code), (method, path, body)
    taken = await stack.owner.request("POST", GROUPS, {"name": "Taken"})
    assert (taken.json()["resource"], taken.json()["name"]) == ("group", "Taken")
    absent = await stack.owner.request("GET", f"{USERS}/{NO_CHAT}/groups")
    assert (absent.status, absent.json()["code"]) == (404, "USER_NOT_FOUND")


@pytest.mark.parametrize(
    ("role", "managing", "overseeing"),
    [(Role.ADMIN, 200, 200), (Role.MEMBER, 403, 403), (Role.AUDITOR, 403, 200)],
)
async def test_managers_manage_groups_and_everyone_sees_their_own(
    stack: GatewayStack, identity_database: str, role: Role, managing: int, overseeing: int
) -> None:
    own, other = await made(stack, "own"), await made(stack, "other")
    client = await client_with(stack, identity_database, role)
    joined = await stack.owner.request("PUT", f"{GROUPS}/{own['id']}/members/{USER_ID}")

    managed = (
        await client.request("PATCH", f"{GROUPS}/{other['id']}", {"name": "x"}),
        await client.request("PUT", f"{GROUPS}/{other['id']}/members/{USER_ID}"),
    )
    overseen = (
        await client.request("GET", GROUPS),
        await client.request("GET", f"{GROUPS}/{own['id']}/members"),
        await client.request("GET", f"{USERS}/{USER_ID}/groups"),
    )
    mine = await client.request("GET", "/api/v1/me/groups")
    read = await client.request("GET", f"{GROUPS}/{own['id']}")
    hidden = await client.request("GET", f"{GROUPS}/{other['id']}")

    assert {reply.status for reply in managed} == {managing}
    assert {reply.status for reply in overseen} == {overseeing}
    assert (read.status, read.json()) == (200, joined.json())
    assert mine.json()["items"][0]["name"] == "own"
    # To a member, what is not theirs looks like what is not there.
    assert hidden.status == (404 if role is Role.MEMBER else 200)
