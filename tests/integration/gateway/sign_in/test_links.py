"""Administrators let users in by one-time links, which work once and for a time."""

import asyncio
import hashlib
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from parley.identity import Role
from parley.settings import ConfigurationError
from support.gateway.browser import PASSWORD, Browser, invited, link_for, new_user
from support.gateway.stack import GatewayStack, gateway_stack
from support.gateway.users import USER_ID, client_with

DAY_S = 24 * 3600


def token_of(url: str) -> str:
    return urlsplit(url).query.removeprefix("token=")


async def test_an_invited_user_sets_a_password_and_is_signed_in(stack: GatewayStack) -> None:
    user_id = await new_user(stack, display_name="Ada <b>")
    made = await stack.owner.request("POST", f"/api/v1/users/{user_id}/sign-in-links")
    browser = Browser(stack)
    page = await browser.open(made.json()["url"])
    reply = await browser.submit(page, "/link", password=PASSWORD, repeated=PASSWORD)
    me = await browser.call("GET", "/api/v1/me")
    home = await browser.open("/account")

    assert (made.status, made.json()["purpose"]) == (201, "invitation")
    assert made.json()["url"].startswith("http://parley.test:8080/link?token=")
    assert b"Welcome, Ada &lt;b&gt;" in page.body
    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert (me.json()["id"], me.json()["signed_in_by"]) == (user_id, "session")
    assert b"Signed in as Ada &lt;b&gt; (member)." in home.body


async def test_a_program_uses_a_link_by_json(stack: GatewayStack) -> None:
    user_id = await new_user(stack)
    token = token_of(await link_for(stack, user_id))
    path = "/api/v1/sign-in/link"

    offered = await stack.anonymous.request("POST", path, {"token": token})
    used = await stack.anonymous.request(
        "POST", f"{path}/password", {"token": token, "password": PASSWORD}
    )
    again = await stack.anonymous.request("POST", path, {"token": token})

    assert offered.json() == {
        "purpose": "invitation",
        "login": "ada",
        "display_name": "ada",
        "expires_at": offered.json()["expires_at"],
    }
    assert used.status == 200
    assert used.json()["session"]["method"] == "sign_in_link"
    assert (again.status, again.json()["code"], again.json()["state"]) == (
        403,
        "SIGN_IN_LINK_INVALID",
        "spent",
    )


async def test_looking_at_a_link_does_not_spend_it(stack: GatewayStack) -> None:
    url = await link_for(stack, await new_user(stack))
    pages = [await Browser(stack).open(url) for _ in range(3)]

    assert [page.status for page in pages] == [200, 200, 200]


async def test_racing_uses_of_a_link_set_one_password(stack: GatewayStack) -> None:
    token = token_of(await link_for(stack, await new_user(stack)))
    path = "/api/v1/sign-in/link/password"
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        uses = [
            tasks.create_task(
                stack.anonymous.request(
                    "POST", path, {"token": token, "password": f"{PASSWORD} {number}"}
                )
            )
            for number in range(4)
        ]

    assert sorted(use.result().status for use in uses) == [200, 403, 403, 403]


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_a_link_that_does_not_work_says_why_to_browsers_and_programs(
    stack: GatewayStack, accept: str
) -> None:
    user_id = await new_user(stack)
    old = await link_for(stack, user_id)
    newer = await link_for(stack, user_id)
    replies = {}
    for name, url in (("foreign", "/link?token=foreign"), ("revoked", old), ("none", "/link")):
        path = f"/link?{urlsplit(url).query}"
        replies[name] = await stack.anonymous.request("GET", path, None, {"Accept": accept})
    stack.clock.advance(3 * DAY_S)
    path = f"/link?{urlsplit(newer).query}"
    replies["expired"] = await stack.anonymous.request("GET", path, None, {"Accept": accept})

    assert {reply.status for reply in replies.values()} == {403}
    kind = "text/html; charset=utf-8" if accept == "text/html" else "application/problem+json"
    assert {reply.headers["content-type"] for reply in replies.values()} == {kind}
    said = {
        "foreign": b"The link is not of this installation, or is not complete.",
        "none": b"The link is not of this installation, or is not complete.",
        "revoked": b"The link was taken back or replaced by a newer one; use the newest one.",
        "expired": b"The link has expired; ask an administrator for a new one.",
    }
    assert {name: said[name] in reply.body for name, reply in replies.items()} == dict.fromkeys(
        said, True
    )


async def test_a_link_can_be_taken_back_and_is_listed_without_its_token(
    stack: GatewayStack,
) -> None:
    user_id = await new_user(stack)
    path = f"/api/v1/users/{user_id}/sign-in-links"
    made = (await stack.owner.request("POST", path, {"lifetime_s": 600})).json()
    gone = await stack.owner.request("DELETE", f"{path}/{made['id']}")
    again = await stack.owner.request("DELETE", f"{path}/{made['id']}")
    unknown = await stack.owner.request("DELETE", f"{path}/{user_id}")
    listed = await stack.owner.request("GET", path)
    page = await Browser(stack).open(made["url"])

    assert (gone.status, again.status, page.status) == (204, 204, 403)
    assert (unknown.status, unknown.json()["code"]) == (404, "SIGN_IN_LINK_NOT_FOUND")
    (link,) = listed.json()["items"]
    assert link["revoked_at"] is not None
    assert token_of(made["url"]).encode() not in listed.body


async def test_a_repeated_request_makes_no_second_link(stack: GatewayStack) -> None:
    path = f"/api/v1/users/{await new_user(stack)}/sign-in-links"
    key = {"Idempotency-Key": "once"}
    made = await stack.owner.request("POST", path, {}, key)
    again = await stack.owner.request("POST", path, {}, key)

    assert (again.status, again.json()["code"]) == (409, "SECRET_ALREADY_SHOWN")
    assert again.json()["id"] == made.json()["id"]


async def test_a_reset_ends_all_sessions_and_the_old_password(stack: GatewayStack) -> None:
    browser = await invited(stack)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    made = await stack.owner.request("POST", f"/api/v1/users/{user_id}/sign-in-links", {})
    new = "eleven loud turtles sing"
    elsewhere = Browser(stack)
    page = await elsewhere.open(made.json()["url"])
    reply = await elsewhere.submit(page, "/link", password=new, repeated=new)
    old_session = await browser.call("GET", "/api/v1/me")
    path = "/api/v1/sign-in"
    old = await stack.anonymous.request("POST", path, {"login": "ada", "password": PASSWORD})
    right = await stack.anonymous.request("POST", path, {"login": "ada", "password": new})

    assert made.json()["purpose"] == "password_reset"
    assert b"Set a new password" in page.body
    assert (reply.status, old_session.status, old.status, right.status) == (303, 401, 401, 200)


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("short", "12 to 256 characters"),
        ("passwordpassword", "common or easy to guess"),
        ("ada.lovelace", "common or easy to guess"),
        ("Summer2026!!", "common or easy to guess"),
    ],
)
async def test_a_bad_password_is_refused_and_the_link_still_works(
    stack: GatewayStack, password: str, said: str
) -> None:
    user_id = await new_user(stack, "ada.lovelace")
    url = await link_for(stack, user_id)
    browser = Browser(stack)
    page = await browser.open(url)
    refused = await browser.submit(page, "/link", password=password, repeated=password)
    different = await browser.submit(refused, "/link", password=PASSWORD, repeated=PASSWORD + "x")
    accepted = await browser.submit(different, "/link", password=PASSWORD, repeated=PASSWORD)
    json = await stack.anonymous.request(
        "POST", "/api/v1/sign-in/link/password", {"token": "x", "password": "short"}
    )

    assert (refused.status, said in refused.body.decode()) == (422, True)
    assert b"The body" not in refused.body
    assert (different.status, b"not the same" in different.body) == (422, True)
    assert accepted.status == 303
    assert (json.status, json.json()["errors"][0]["pointer"]) == (422, "/password")


async def test_a_password_that_is_known_from_a_breach_is_refused(
    tmp_path: Path, identity_database: str
) -> None:
    known = "an unusual sentence about eleven lamps"
    file = tmp_path / "hashes.txt"
    digests = (hashlib.sha1(each.encode()).hexdigest() for each in (known, "other"))
    file.write_text("".join(f"{each.upper()}:3\n" for each in sorted(digests)))
    async with gateway_stack(tmp_path, identity_database, breached_passwords_file=file) as stack:
        token = (await link_for(stack, await new_user(stack))).partition("token=")[2]
        path = "/api/v1/sign-in/link/password"
        refused, accepted = [
            await stack.anonymous.request("POST", path, {"token": token, "password": each})
            for each in (known, PASSWORD)
        ]

    (error,) = refused.json()["errors"]
    assert (refused.status, error["pointer"]) == (422, "/password")
    assert "known from a breach" in error["detail"]
    assert accepted.status < 300


@pytest.mark.parametrize("content", [None, "no hashes"])
async def test_a_list_of_breached_passwords_that_cannot_be_used_is_told(
    tmp_path: Path, identity_database: str, content: str | None
) -> None:
    file = tmp_path / "hashes.txt"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ConfigurationError, match="GATEWAY_BREACHED_PASSWORDS_FILE cannot be used"):
        async with gateway_stack(tmp_path, identity_database, breached_passwords_file=file):
            pass


async def test_links_are_made_by_those_whose_role_is_not_lower(
    stack: GatewayStack, identity_database: str
) -> None:
    admin = await client_with(stack, identity_database, Role.ADMIN)
    owner_id = (await stack.owner.request("GET", "/api/v1/me")).json()["id"]
    member_id = await new_user(stack, "member")
    other_admin_id = await new_user(stack, "other", role="admin")
    statuses = {
        name: (await admin.request("POST", f"/api/v1/users/{user_id}/sign-in-links")).status
        for name, user_id in {
            "owner": owner_id,
            "member": member_id,
            "other admin": other_admin_id,
            "themselves": USER_ID,
            "nobody": "00000000-0000-0000-0000-0000000000ff",
        }.items()
    }

    assert statuses == {
        "owner": 403,
        "member": 201,
        "other admin": 403,
        "themselves": 201,
        "nobody": 404,
    }


async def test_deactivation_ends_sessions_and_links(stack: GatewayStack) -> None:
    browser = await invited(stack)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    url = await link_for(stack, user_id)
    await stack.owner.request("POST", f"/api/v1/users/{user_id}/deactivate")
    session = await browser.call("GET", "/api/v1/me")
    link = await Browser(stack).open(url)
    made = await stack.owner.request("POST", f"/api/v1/users/{user_id}/sign-in-links")
    password = await stack.anonymous.request(
        "POST", "/api/v1/sign-in", {"login": "ada", "password": PASSWORD}
    )

    assert (session.status, link.status, password.status) == (401, 403, 401)
    assert (made.status, made.json()["code"]) == (409, "USER_DEACTIVATED")


async def test_neither_passwords_nor_tokens_are_stored(
    stack: GatewayStack, identity_database: str
) -> None:
    user_id = await new_user(stack)
    token = token_of(await link_for(stack, user_id))
    made = await stack.anonymous.request(
        "POST", "/api/v1/sign-in/link/password", {"token": token, "password": PASSWORD}
    )
    key = await stack.owner.request("POST", "/api/v1/me/api-keys", {"name": "x"})
    secrets = [PASSWORD, token, key.json()["key"].split("_")[2]]
    secrets += [each.partition("=")[2].partition(";")[0] for each in made.set_cookies]
    connection = await asyncpg.connect(identity_database)
    tables = await connection.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'identity'"
    )
    dump = ""
    for table in tables:
        rows = await connection.fetch(f"SELECT t::text FROM identity.{table[0]} t")
        dump += "\n".join(row[0] for row in rows)
    await connection.close()

    assert "$argon2id$v=19$m=19456,t=2,p=1$" in dump
    assert [secret for secret in secrets if secret in dump] == []
