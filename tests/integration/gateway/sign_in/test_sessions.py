"""People see their sessions and end them, here and everywhere."""

from datetime import timedelta

from gateway.identity.engine.sign_in import SESSION_IDLE
from support.gateway.browser import PASSWORD, Browser, invited
from support.gateway.stack import GatewayStack

SESSIONS = "/api/v1/me/sessions"
SIGN_IN = "/api/v1/sign-in"
ADA = {"login": "ada", "password": PASSWORD}


async def signed_in(stack: GatewayStack, user_agent: str = "Firefox") -> Browser:
    browser = Browser(stack, {"User-Agent": user_agent})
    reply = await browser.call("POST", SIGN_IN, ADA)
    assert reply.status == 200, reply.body
    return browser


async def test_sessions_are_listed_with_where_they_come_from(stack: GatewayStack) -> None:
    first = await invited(stack)
    stack.clock.advance(60)
    second = await signed_in(stack, "Lynx/2.9 " + "x" * 300)
    items = (await second.call("GET", SESSIONS)).json()["items"]

    assert [
        (each["method"], each["address"], each["user_agent"], each["is_current"]) for each in items
    ] == [
        ("password", "127.0.0.1", ("Lynx/2.9 " + "x" * 300)[:256], True),
        ("sign_in_link", "127.0.0.1", "", False),
    ]
    assert [set(each) for each in items] == [
        {
            "id",
            "method",
            "address",
            "user_agent",
            "is_current",
            "created_at",
            "last_seen_at",
            "expires_at",
        }
    ] * 2
    stack.clock.advance((SESSION_IDLE - timedelta(seconds=30)).total_seconds())
    third = await signed_in(stack)
    left = (await third.call("GET", SESSIONS)).json()["items"]
    assert [each["is_current"] for each in left] == [True, False]
    assert (await first.call("GET", SESSIONS)).status == 401


async def test_one_session_is_ended_from_another(stack: GatewayStack) -> None:
    await invited(stack)
    lost, here = await signed_in(stack), await signed_in(stack)
    items = (await lost.call("GET", SESSIONS)).json()["items"]
    (lost_id,) = (each["id"] for each in items if each["is_current"])
    ended = await here.call("DELETE", f"{SESSIONS}/{lost_id}")
    again = await here.call("DELETE", f"{SESSIONS}/{lost_id}")
    statuses = [(await each.call("GET", "/api/v1/me")).status for each in (lost, here)]

    assert ended.status == 204
    assert (again.status, again.json()["code"]) == (404, "SESSION_NOT_FOUND")
    assert statuses == [401, 200]


async def test_nobody_sees_or_ends_sessions_of_others(stack: GatewayStack) -> None:
    await invited(stack)
    await invited(stack, "eve")
    ada = await signed_in(stack)
    eve = Browser(stack)
    await eve.call("POST", SIGN_IN, {"login": "eve", "password": PASSWORD})
    (ada_id, *_) = [each["id"] for each in (await ada.call("GET", SESSIONS)).json()["items"]]
    ended = await eve.call("DELETE", f"{SESSIONS}/{ada_id}")
    seen = [each["id"] for each in (await eve.call("GET", SESSIONS)).json()["items"]]

    assert (ended.status, ada_id in seen) == (404, False)
    assert (await ada.call("GET", "/api/v1/me")).status == 200


async def test_signing_out_ends_this_session_and_everywhere_all(stack: GatewayStack) -> None:
    await invited(stack)
    browsers = [await signed_in(stack) for _ in range(3)]
    here = await browsers[0].call("POST", "/api/v1/sign-out")
    after_one = [(await each.call("GET", "/api/v1/me")).status for each in browsers]
    everywhere = await browsers[1].call("POST", "/api/v1/sign-out", {"everywhere": True})
    after_all = [(await each.call("GET", "/api/v1/me")).status for each in browsers]

    assert (here.status, here.json()) == (200, {"ended_count": 1})
    assert browsers[0].cookie("parley_session") == ""
    assert after_one == [401, 200, 200]
    # The session of the invitation ended too.
    assert everywhere.json() == {"ended_count": 3}
    assert after_all == [401, 401, 401]


async def test_signing_in_replaces_the_session_of_the_browser(stack: GatewayStack) -> None:
    browser = await invited(stack)
    before = dict(browser.cookies)
    await browser.call("POST", SIGN_IN, ADA)
    old = Browser(stack)
    old.cookies = before

    assert browser.cookie("parley_session") != before["parley_session"]
    assert (await old.call("GET", "/api/v1/me")).status == 401
    assert len((await browser.call("GET", SESSIONS)).json()["items"]) == 1


async def test_a_chosen_session_token_is_never_taken_over(stack: GatewayStack) -> None:
    await invited(stack)
    browser = Browser(stack)
    browser.cookies["parley_session"] = "chosen-by-an-attacker"
    await browser.call("POST", SIGN_IN, ADA)

    assert browser.cookie("parley_session") not in ("", "chosen-by-an-attacker")


async def test_a_change_of_role_ends_sessions(stack: GatewayStack) -> None:
    browser = await invited(stack)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    renamed = await stack.owner.request(
        "PATCH", f"/api/v1/users/{user_id}", {"display_name": "Ada"}
    )
    after_name = await browser.call("GET", "/api/v1/me")
    promoted = await stack.owner.request("PATCH", f"/api/v1/users/{user_id}", {"role": "admin"})
    after_role = await browser.call("GET", "/api/v1/me")

    assert (renamed.status, promoted.status) == (200, 200)
    assert (after_name.status, after_role.status) == (200, 401)


async def test_deleting_a_user_leaves_nothing_to_sign_in_with(stack: GatewayStack) -> None:
    browser = await invited(stack)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    await stack.owner.request("POST", f"/api/v1/users/{user_id}/deactivate")
    deleted = await stack.owner.request("DELETE", f"/api/v1/users/{user_id}")
    reply = await stack.anonymous.request("POST", SIGN_IN, ADA)
    links = await stack.owner.request("GET", f"/api/v1/users/{user_id}/sign-in-links")

    assert (deleted.status, reply.status, links.status) == (204, 401, 404)
