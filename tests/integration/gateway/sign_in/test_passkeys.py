"""People sign in with passkeys, here with an authenticator in software."""

from collections.abc import Callable
from typing import Any

import pytest

from support.gateway.authenticator import USER_PRESENT, Authenticator
from support.gateway.browser import Browser, invited
from support.gateway.stack import GatewayStack
from support.net.http_client import Reply

ORIGIN, HOST = "http://parley.test:8080", "parley.test"
PASSKEYS = "/api/v1/me/passkeys"
SIGN_IN = "/api/v1/sign-in/passkey"


async def add(browser: Browser, authenticator: Authenticator, name: str = "phone") -> Reply:
    begun = (await browser.call("POST", f"{PASSKEYS}/options")).json()
    return await browser.call(
        "POST",
        PASSKEYS,
        {
            "continuation": begun["continuation"],
            "name": name,
            "credential": authenticator.create(begun["options"]),
        },
    )


async def sign_in(browser: Browser, authenticator: Authenticator) -> Reply:
    begun = (await browser.call("POST", f"{SIGN_IN}/options")).json()
    body = {
        "continuation": begun["continuation"],
        "credential": authenticator.get(begun["options"]),
    }
    return await browser.call("POST", SIGN_IN, body)


async def test_a_passkey_is_added_used_and_removed(stack: GatewayStack) -> None:
    browser, key = await invited(stack), Authenticator(ORIGIN, HOST)
    added = await add(browser, key)
    elsewhere = Browser(stack)
    entered = await sign_in(elsewhere, key)
    me = await elsewhere.call("GET", "/api/v1/me")
    (listed,) = (await browser.call("GET", "/api/v1/me/second-factors")).json()["passkeys"]
    removed = await browser.call("DELETE", f"{PASSKEYS}/{listed['id']}")
    again = await browser.call("DELETE", f"{PASSKEYS}/{listed['id']}")
    after = await sign_in(Browser(stack), key)

    assert (added.status, added.json()["name"], added.json()["last_used_at"]) == (
        201,
        "phone",
        None,
    )
    assert (entered.status, entered.json()["session"]["method"]) == (200, "passkey")
    assert me.json()["login"] == "ada"
    assert listed["last_used_at"] is not None
    assert (removed.status, again.status, after.status) == (204, 404, 401)
    assert after.json()["code"] == "PASSKEY_REFUSED"


def changed(**attributes: Any) -> Callable[[Authenticator], None]:
    def change(authenticator: Authenticator) -> None:
        for name, value in attributes.items():
            setattr(authenticator, name, value)

    return change


LIES = {
    "another origin": changed(origin="https://evil.test"),
    "another host": changed(host="evil.test"),
    "nobody verified": changed(flags=USER_PRESENT),
    "nobody present": changed(flags=0),
    "another key": changed(key=Authenticator(ORIGIN, HOST).key),
    "a counter that goes back": changed(sign_count=-1),
    "an unknown passkey": changed(credential_id=b"unknown"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_authenticator_that_lies_signs_nobody_in(stack: GatewayStack, lie: str) -> None:
    browser, key = await invited(stack), Authenticator(ORIGIN, HOST)
    key.sign_count = 5
    assert (await add(browser, key)).status == 201
    LIES[lie](key)
    reply = await sign_in(Browser(stack), key)

    assert (reply.status, reply.json()["code"]) == (401, "PASSKEY_REFUSED")


@pytest.mark.parametrize("lie", ["another origin", "another host", "nobody verified"])
async def test_an_authenticator_that_lies_is_not_added(stack: GatewayStack, lie: str) -> None:
    browser, key = await invited(stack), Authenticator(ORIGIN, HOST)
    LIES[lie](key)
    reply = await add(browser, key)

    assert (reply.status, reply.json()["code"]) == (401, "PASSKEY_REFUSED")


async def test_an_answer_is_used_once_for_its_own_beginning_and_in_time(
    stack: GatewayStack,
) -> None:
    browser, key = await invited(stack), Authenticator(ORIGIN, HOST)
    await add(browser, key)
    begun = [(await browser.call("POST", f"{SIGN_IN}/options")).json() for _ in range(3)]
    body = {
        "continuation": begun[0]["continuation"],
        "credential": key.get(begun[0]["options"]),
    }
    replies = [
        await browser.call("POST", SIGN_IN, body | {"continuation": begun[1]["continuation"]}),
        await browser.call("POST", SIGN_IN, body),
        await browser.call("POST", SIGN_IN, body),
    ]
    stack.clock.advance(300)
    late = {"continuation": begun[2]["continuation"], "credential": key.get(begun[2]["options"])}
    replies.append(await browser.call("POST", SIGN_IN, late))

    assert [reply.status for reply in replies] == [401, 200, 403, 403]


async def test_a_passkey_is_added_once_and_by_whoever_began(stack: GatewayStack) -> None:
    ada, eve = await invited(stack), await invited(stack, "eve")
    key = Authenticator(ORIGIN, HOST)
    begun = (await ada.call("POST", f"{PASSKEYS}/options")).json()
    stolen = {
        "continuation": begun["continuation"],
        "name": "x",
        "credential": key.create(begun["options"]),
    }
    of_another = await eve.call("POST", PASSKEYS, stolen)
    first, again = await add(ada, key), await add(ada, key)
    options = (await ada.call("POST", f"{PASSKEYS}/options")).json()["options"]

    assert (of_another.status, of_another.json()["code"]) == (403, "SIGN_IN_NOT_BEGUN")
    assert (first.status, again.status, again.json()["code"]) == (201, 409, "PASSKEY_NOT_ADDED")
    assert len(options["excludeCredentials"]) == 1
    assert options["authenticatorSelection"]["userVerification"] == "required"


@pytest.mark.parametrize("credential", [{}, {"id": "x"}, {"rawId": 1, "response": []}])
async def test_an_answer_that_is_none_is_refused(stack: GatewayStack, credential: Any) -> None:
    browser = Browser(stack)
    begun = (await browser.call("POST", f"{SIGN_IN}/options")).json()
    body = {"continuation": begun["continuation"], "credential": credential}
    reply = await browser.call("POST", SIGN_IN, body)

    assert (reply.status, reply.json()["code"]) == (401, "PASSKEY_REFUSED")


async def test_a_deactivated_user_is_not_signed_in(stack: GatewayStack) -> None:
    browser, key = await invited(stack), Authenticator(ORIGIN, HOST)
    await add(browser, key)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    await stack.owner.request("POST", f"/api/v1/users/{user_id}/deactivate")

    assert (await sign_in(Browser(stack), key)).status == 401
