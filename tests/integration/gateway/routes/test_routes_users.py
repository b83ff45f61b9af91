"""Users over HTTP: oneself, and everyone for those who manage them."""

from typing import Any

import pytest

from parley.identity import Role
from support.gateway.chats import NO_CHAT
from support.gateway.stack import GatewayStack
from support.gateway.users import client_with

USERS = "/api/v1/users"
ADA = {"login": "ada", "role": "member", "display_name": "Ada", "email": "ada@example.org"}


async def ada(stack: GatewayStack) -> dict[str, Any]:
    made = await stack.owner.request("POST", USERS, ADA, {"Idempotency-Key": "ada"})
    assert made.status == 201, made.body
    document: dict[str, Any] = made.json()
    return document


async def test_a_user_is_created_once_read_and_listed(stack: GatewayStack) -> None:
    key = {"Idempotency-Key": "ada"}
    made = await stack.owner.request("POST", USERS, ADA, key)
    again = await stack.owner.request("POST", USERS, ADA, key)
    user_id = made.json()["id"]
    read = await stack.owner.request("GET", f"{USERS}/{user_id}")
    same = await stack.owner.request(
        "GET", f"{USERS}/{user_id}", None, {"If-None-Match": '"0", W/"1"'}
    )
    first = await stack.owner.request("GET", f"{USERS}?limit=1")
    cursor = first.json()["next_cursor"]
    second = await stack.owner.request("GET", f"{USERS}?limit=1&cursor={cursor}")
    found = await stack.owner.request("GET", f"{USERS}?q=EXAMPLE.org&state=active")

    times = {name: made.json()[name] for name in ("created_at", "updated_at")}
    assert made.json() == ADA | times | {
        "id": user_id,
        "state": "active",
        "version": 1,
        "deactivated_at": None,
        "kind": "person",
    }
    assert (made.status, made.headers["location"]) == (201, f"{USERS}/{user_id}")
    assert (again.json(), read.json()) == (made.json(), made.json())
    assert (read.headers["etag"], same.status, same.body) == ('"1"', 304, b"")
    assert first.json() == {"items": [made.json()], "next_cursor": "ada"}
    assert [user["login"] for user in second.json()["items"]] == ["owner"]
    assert second.json()["next_cursor"] is None
    assert found.json() == {"items": [made.json()], "next_cursor": None}


async def test_a_user_is_changed_from_the_version_that_was_read(stack: GatewayStack) -> None:
    user = await ada(stack)
    path = f"{USERS}/{user['id']}"

    changed = await stack.owner.request(
        "PATCH", path, {"role": "auditor", "email": None}, {"If-Match": '"1"'}
    )
    late = await stack.owner.request("PATCH", path, {"login": "b"}, {"If-Match": '"1"'})
    foreign = await stack.owner.request("PATCH", path, {"login": "b"}, {"If-Match": '"x"'})

    updated = {"updated_at": changed.json()["updated_at"]}
    assert changed.json() == user | updated | {"role": "auditor", "email": None, "version": 2}
    assert (changed.status, changed.headers["etag"]) == (200, '"2"')
    assert [(reply.status, reply.json()["code"]) for reply in (late, foreign)] == [
        (412, "VERSION_CONFLICT")
    ] * 2


async def test_a_user_is_locked_out_let_in_again_and_deleted(stack: GatewayStack) -> None:
    user = await ada(stack)
    path = f"{USERS}/{user['id']}"

    early = await stack.owner.request("DELETE", path)
    locked = await stack.owner.request("POST", f"{path}/deactivate")
    listed = await stack.owner.request("GET", f"{USERS}?state=deactivated")
    back = await stack.owner.request("POST", f"{path}/reactivate", {})
    await stack.owner.request("POST", f"{path}/deactivate")
    deleted = await stack.owner.request("DELETE", path)
    gone = await stack.owner.request("GET", path)

    assert (early.status, early.json()["code"]) == (409, "USER_STILL_ACTIVE")
    assert (locked.status, locked.json()["state"]) == (200, "deactivated")
    assert locked.json()["deactivated_at"] is not None
    assert listed.json()["items"] == [locked.json()]
    assert (back.json()["state"], back.json()["deactivated_at"]) == ("active", None)
    assert (deleted.status, deleted.body) == (204, b"")
    assert (gone.status, gone.json()["code"]) == (404, "USER_NOT_FOUND")


IMPOSSIBLE_USERS: tuple[tuple[object, str], ...] = (
    ({"login": "Not This", "role": "member"}, "/login"),
    ({"login": "deleted-x", "role": "member"}, "/login"),
    ({"login": "x"}, "/role"),
    ({"login": "x", "role": "king"}, "/role"),
    ({"login": "x", "role": "member", "display_name": " "}, "/display_name"),
    ({"login": "x", "role": "member", "email": "a\0"}, "/email"),
    ({"login": "x", "role": "member", "display_name": "a\x1b[2J"}, "/display_name"),
    ({"login": "x", "role": "member", "display_name": "a\u202eb"}, "/display_name"),
    ({"login": "x", "role": "member", "display_name": "a\nb"}, "/display_name"),
    ({"login": "x", "role": "member", "password": "y"}, "/password"),
)


async def test_a_user_that_cannot_be_is_refused(stack: GatewayStack) -> None:
    for body, pointer in IMPOSSIBLE_USERS:
        reply = await stack.owner.request("POST", USERS, body)

        assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
        assert reply.json()["errors"][0]["pointer"] == pointer


async def test_refusals_about_users_are_told_by_their_reasons(stack: GatewayStack) -> None:
    me = (await stack.owner.request("GET", "/api/v1/me")).json()
    taken = await stack.owner.request("POST", USERS, ADA | {"login": "owner"})
    last = await stack.owner.request("POST", f"{USERS}/{me['id']}/deactivate")
    absent = await stack.owner.request("PATCH", f"{USERS}/{NO_CHAT}", {"login": "x"})
    impossible = await stack.owner.request("GET", f"{USERS}/nobody")
    empty = await stack.owner.request("PATCH", f"{USERS}/{me['id']}", {})
    state = await stack.owner.request("GET", f"{USERS}?state=deleted")

    replies = (taken, last, absent, impossible, empty, state)
    assert [(reply.status, reply.json()["code"]) for reply in replies] == [
        (409, "LOGIN_TAKEN"),
        (409, "LAST_OWNER"),
        (404, "USER_NOT_FOUND"),
        (404, "USER_NOT_FOUND"),
        (422, "INVALID_REQUEST"),
        (422, "INVALID_REQUEST"),
    ]


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER, Role.AUDITOR])
async def test_everyone_changes_their_own_name_and_nothing_more(
    stack: GatewayStack, identity_database: str, role: Role
) -> None:
    client = await client_with(stack, identity_database, role)

    before = await client.request("GET", "/api/v1/me")
    changed = await client.request(
        "PATCH", "/api/v1/me", {"display_name": "A", "email": "a@b"}, {"If-Match": '"1"'}
    )
    late = await client.request("PATCH", "/api/v1/me", {"email": None}, {"If-Match": '"1"'})
    higher = await client.request("PATCH", "/api/v1/me", {"role": "owner"})

    assert (before.status, before.headers["etag"]) == (200, '"1"')
    assert changed.json() == before.json() | {"display_name": "A", "email": "a@b"}
    assert (changed.headers["etag"], late.status) == ('"2"', 412)
    assert (higher.status, higher.json()["errors"][0]["pointer"]) == (422, "/role")


@pytest.mark.parametrize(
    ("role", "statuses"),
    [(Role.ADMIN, (200, 201, 403)), (Role.MEMBER, (403,) * 3), (Role.AUDITOR, (200, 403, 403))],
)
async def test_managing_users_is_for_managers_and_never_reaches_above_them(
    stack: GatewayStack, identity_database: str, role: Role, statuses: tuple[int, ...]
) -> None:
    client = await client_with(stack, identity_database, role)
    newcomer = ADA | {"login": "newcomer"}

    replies = (
        await client.request("GET", USERS),
        await client.request("POST", USERS, newcomer),
        await client.request("POST", USERS, newcomer | {"login": "boss", "role": "owner"}),
    )

    assert tuple(reply.status for reply in replies) == statuses
