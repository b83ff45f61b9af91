"""An authenticator app as second factor, with recovery codes."""

import base64
from typing import Any

import asyncpg
import pytest

from gateway.identity.engine.attempts import SECOND_FACTOR
from gateway.identity.engine.totp import STEP_S, code_at, recovery_digest, step_at
from support.gateway.browser import PASSWORD, Browser, invited, link_for
from support.gateway.stack import GatewayStack, gateway_stack

TOTP = "/api/v1/me/totp"
ADA = {"login": "ada", "password": PASSWORD}


class App:
    """An authenticator app."""

    def __init__(self, stack: GatewayStack, secret: str) -> None:
        self._clock = stack.clock
        self._secret = base64.b32decode(secret + "=" * (-len(secret) % 8))

    def code(self, steps: int = 0) -> str:
        """Return the code of now, or of so many steps later."""
        return code_at(self._secret, step_at(self._clock.now().timestamp()) + steps)


async def with_app(stack: GatewayStack) -> tuple[Browser, App, list[str]]:
    browser = await invited(stack)
    started = await browser.call("POST", TOTP)
    app = App(stack, started.json()["secret"])
    confirmed = await browser.call("POST", f"{TOTP}/confirm", {"code": app.code()})
    assert confirmed.status == 200, confirmed.body
    stack.clock.advance(2 * STEP_S)
    return browser, app, confirmed.json()["recovery_codes"]


async def give(stack: GatewayStack, code: str, continuation: str | None = None) -> Any:
    if continuation is None:
        begun = await stack.anonymous.request("POST", "/api/v1/sign-in", ADA)
        continuation = begun.json()["continuation"]
    return await stack.anonymous.request(
        "POST", "/api/v1/sign-in/second-factor", {"continuation": continuation, "code": code}
    )


def test_codes_are_those_of_the_rfc() -> None:
    secret = b"12345678901234567890"

    assert [code_at(secret, step_at(time)) for time in (59, 1111111109, 20000000000)] == [
        "287082",
        "081804",
        "353130",
    ]


async def test_an_app_is_added_with_a_code_of_it_and_then_asked_for(stack: GatewayStack) -> None:
    browser = await invited(stack)
    started = await browser.call("POST", TOTP)
    app = App(stack, started.json()["secret"])
    wrong = await browser.call("POST", f"{TOTP}/confirm", {"code": "000000"})
    not_yet = await stack.anonymous.request("POST", "/api/v1/sign-in", ADA)
    confirmed = await browser.call("POST", f"{TOTP}/confirm", {"code": app.code()})
    again = await browser.call("POST", TOTP)
    stack.clock.advance(STEP_S)
    password = await stack.anonymous.request("POST", "/api/v1/sign-in", ADA)
    signed_in = await give(stack, app.code(), password.json()["continuation"])
    state = (await browser.call("GET", "/api/v1/me/second-factors")).json()

    assert started.json()["uri"].startswith("otpauth://totp/Parley%3Aada%40parley.test?secret=")
    assert (wrong.status, wrong.json()["code"]) == (401, "SECOND_FACTOR_REFUSED")
    assert (not_yet.status, not_yet.json()["continuation"]) == (200, None)
    assert (again.status, again.json()["code"]) == (409, "TOTP_ENABLED")
    assert (password.status, password.json()["session"], password.set_cookies) == (200, None, ())
    assert (signed_in.status, signed_in.json()["session"]["method"]) == (200, "password")
    assert len(signed_in.set_cookies) == 3
    assert len(confirmed.json()["recovery_codes"]) == 10
    assert (state["recovery_codes_left"], state["passkeys"]) == (10, [])
    assert state["totp_confirmed_at"] is not None


async def test_a_code_works_once_and_near_its_time(stack: GatewayStack) -> None:
    _, app, _ = await with_app(stack)
    code = app.code()
    statuses = {
        "now": (await give(stack, code)).status,
        "again": (await give(stack, code)).status,
        "earlier": (await give(stack, app.code(-1))).status,
        "next": (await give(stack, app.code(1))).status,
    }
    stack.clock.advance(SECOND_FACTOR.refill_s * SECOND_FACTOR.attempts)
    old = await give(stack, app.code(-2))

    assert statuses == {"now": 200, "again": 401, "earlier": 401, "next": 200}
    assert old.status == 401


async def test_codes_are_not_guessed(stack: GatewayStack) -> None:
    _, app, _ = await with_app(stack)
    guesses = [(await give(stack, "000000")).status for _ in range(SECOND_FACTOR.attempts + 1)]
    right_too_early = await give(stack, app.code())
    stack.clock.advance(SECOND_FACTOR.refill_s)
    right = await give(stack, app.code())

    assert guesses == [401] * SECOND_FACTOR.attempts + [429]
    assert (right_too_early.status, right.status) == (429, 200)


async def test_a_known_browser_and_a_session_are_not_slowed_down_by_codes_that_others_guess(
    stack: GatewayStack,
) -> None:
    browser, app, _ = await with_app(stack)
    guesses = [(await give(stack, "000000")).status for _ in range(SECOND_FACTOR.attempts + 1)]
    begun = (await browser.call("POST", "/api/v1/sign-in", ADA)).json()
    answer = {"continuation": begun["continuation"], "code": app.code()}
    known_browser = await browser.call("POST", "/api/v1/sign-in/second-factor", answer)
    stack.clock.advance(STEP_S)
    session = await browser.call("POST", "/api/v1/me/recovery-codes", {"code": app.code()})
    own = [
        (await browser.call("POST", "/api/v1/me/recovery-codes", {"code": "000000"})).status
        for _ in range(SECOND_FACTOR.attempts + 1)
    ]

    assert guesses == [401] * SECOND_FACTOR.attempts + [429]
    assert (known_browser.status, session.status) == (200, 200)
    assert own == [401] * SECOND_FACTOR.attempts + [429]


async def test_a_recovery_code_works_once_and_however_it_is_typed(stack: GatewayStack) -> None:
    browser, app, codes = await with_app(stack)
    first = await give(stack, codes[0].replace("-", " ").upper())
    again = await give(stack, codes[0])
    left = (await browser.call("GET", "/api/v1/me/second-factors")).json()["recovery_codes_left"]
    new = await browser.call("POST", "/api/v1/me/recovery-codes", {"code": app.code()})
    old = await give(stack, codes[1])
    replaced = await give(stack, new.json()["recovery_codes"][0])

    assert (first.status, again.status, left, old.status, replaced.status) == (
        200,
        401,
        9,
        401,
        200,
    )


async def test_a_continuation_ends_after_five_minutes_and_with_its_use(
    stack: GatewayStack,
) -> None:
    _, app, _ = await with_app(stack)
    begun = [
        (await stack.anonymous.request("POST", "/api/v1/sign-in", ADA)).json()["continuation"]
        for _ in range(2)
    ]
    used = await give(stack, app.code(), begun[0])
    again = await give(stack, app.code(1), begun[0])
    foreign = await give(stack, app.code(1), "foreign")
    stack.clock.advance(300)
    late = await give(stack, app.code(), begun[1])

    assert used.status == 200
    assert [(reply.status, reply.json()["code"]) for reply in (again, foreign, late)] == [
        (403, "SIGN_IN_NOT_BEGUN")
    ] * 3


async def test_the_page_asks_for_the_code(stack: GatewayStack) -> None:
    _, app, codes = await with_app(stack)
    browser = Browser(stack)
    page = await browser.open("/login")
    asked = await browser.submit(page, "/login", **ADA)
    wrong = await browser.submit(asked, "/login/code", code="000000")
    entered = await browser.submit(wrong, "/login/code", code=app.code())

    assert codes
    assert (asked.status, b"authenticator app" in asked.body) == (200, True)
    assert (wrong.status, b"The code is wrong" in wrong.body) == (401, True)
    assert (entered.status, entered.headers["location"]) == (303, "/")


async def test_a_reset_of_the_password_does_not_pass_the_second_factor(
    stack: GatewayStack,
) -> None:
    browser, app, _ = await with_app(stack)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    other = Browser(stack)
    page = await other.open(await link_for(stack, user_id))
    new = "eleven loud turtles sing"
    asked = await other.submit(page, "/link", password=new, repeated=new)
    before = await other.call("GET", "/api/v1/me")
    entered = await other.submit(asked, "/login/code", code=app.code())

    assert (asked.status, before.status, entered.status) == (200, 401, 303)
    assert (await browser.call("GET", "/api/v1/me")).status == 401


async def test_an_app_is_removed_with_a_code_and_by_administrators(stack: GatewayStack) -> None:
    browser, app, codes = await with_app(stack)
    wrong = await browser.call("POST", f"{TOTP}/remove", {"code": "000000"})
    removed = await browser.call("POST", f"{TOTP}/remove", {"code": codes[0]})
    without = await stack.anonymous.request("POST", "/api/v1/sign-in", ADA)
    started = await browser.call("POST", TOTP)
    app = App(stack, started.json()["secret"])
    await browser.call("POST", f"{TOTP}/confirm", {"code": app.code()})
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    own = await browser.call("POST", f"/api/v1/users/{user_id}/second-factors/reset")
    reset = await stack.owner.request("POST", f"/api/v1/users/{user_id}/second-factors/reset")
    session = await browser.call("GET", "/api/v1/me")
    after = await stack.anonymous.request("POST", "/api/v1/sign-in", ADA)

    assert (wrong.status, removed.status, without.json()["continuation"]) == (401, 204, None)
    assert (own.status, reset.status, session.status) == (403, 204, 401)
    assert after.json()["continuation"] is None


async def test_secrets_of_apps_are_sealed(stack: GatewayStack, identity_database: str) -> None:
    browser = await invited(stack)
    secret = (await browser.call("POST", TOTP)).json()["secret"]
    codes = (
        await browser.call("POST", f"{TOTP}/confirm", {"code": App(stack, secret).code()})
    ).json()["recovery_codes"]
    connection = await asyncpg.connect(identity_database)
    stored = await connection.fetchval("SELECT secret FROM identity.totp_secrets")
    digests = await connection.fetch("SELECT digest FROM identity.recovery_codes")
    await connection.close()

    assert base64.b32decode(secret) not in stored
    assert {row["digest"] for row in digests} == {recovery_digest(code) for code in codes}


async def test_without_a_master_key_no_app_can_be_added(
    tmp_path: Any, identity_database: str
) -> None:
    async with gateway_stack(tmp_path, identity_database, master_key_file=None) as stack:
        reply = await stack.owner.request("POST", TOTP)

    assert (reply.status, reply.json()["code"]) == (409, "TOTP_UNAVAILABLE")


@pytest.mark.parametrize("code", ["", "x" * 33, None, 123456])
async def test_a_code_that_cannot_be_is_refused(stack: GatewayStack, code: Any) -> None:
    reply = await stack.owner.request("POST", f"{TOTP}/confirm", {"code": code})

    assert (reply.status, reply.json()["errors"][0]["pointer"]) == (422, "/code")
