"""People sign in with an identity provider, and one that lies signs nobody in."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.identity.engine.oidc_issuers import is_endpoint_of, read_issuers
from parley.clock import FakeClock
from support.gateway.browser import Browser, new_user
from support.gateway.issuer import CLIENT_ID, CLIENT_SECRET, FakeIssuer, fake_issuer
from support.gateway.stack import GatewayStack, gateway_stack
from support.net.http_client import Reply

START = "/login/oidc/corp"


class LateClock:
    """The clock of the gateway, which does not exist before it."""

    stack: GatewayStack | None = None

    def now(self) -> Any:
        """Return the time of the gateway."""
        return FakeClock().now() if self.stack is None else self.stack.clock.now()


@dataclass(frozen=True, slots=True)
class Corp:
    """A gateway and its identity provider."""

    stack: GatewayStack
    issuer: FakeIssuer

    async def sign_in(self, browser: Browser) -> Reply:
        """Go to the issuer and come back."""
        left = await browser.open(START)
        assert left.status == 303, left.body
        return await browser.open(self.issuer.authorize(left.headers["location"]))


def settings_of(issuer: FakeIssuer, **changed: Any) -> dict[str, Any]:
    return {
        "name": "corp",
        "display_name": "Corp & Sons",
        "issuer": issuer.url,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "creates_users": True,
        "groups_claim": "groups",
        "groups": {"eng": "Engineers", "sales": "Sales", "none": "No such group"},
        **changed,
    }


@pytest.fixture
async def corp(tmp_path: Path, identity_database: str) -> AsyncIterator[Corp]:
    clock: Any = LateClock()
    async with AsyncExitStack() as around:
        issuer = await around.enter_async_context(fake_issuer(clock))
        closed = settings_of(issuer, name="closed", creates_users=False)
        file = tmp_path / "issuers.json"
        file.write_text(json.dumps([settings_of(issuer), closed]))
        stack = await around.enter_async_context(
            gateway_stack(tmp_path, identity_database, oidc_issuers_file=file)
        )
        clock.stack = stack
        yield Corp(stack, issuer)


async def test_a_new_person_is_signed_in_and_known_the_next_time(corp: Corp) -> None:
    browser, again = Browser(corp.stack), Browser(corp.stack)
    page = await browser.open("/login")
    entered = await corp.sign_in(browser)
    me = (await browser.call("GET", "/api/v1/me")).json()
    sessions = (await browser.call("GET", "/api/v1/me/sessions")).json()["items"]
    await corp.sign_in(again)
    same = (await again.call("GET", "/api/v1/me")).json()

    assert b'href="/login/oidc/corp">Sign in with Corp &amp; Sons</a>' in page.body
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert (me["login"], me["display_name"], me["email"], me["role"]) == (
        "grace",
        "Grace Hopper",
        "grace@corp.example",
        "member",
    )
    assert [each["method"] for each in sessions] == ["oidc"]
    assert same["id"] == me["id"]


async def test_the_request_has_pkce_a_nonce_and_a_state(corp: Corp) -> None:
    browser = Browser(corp.stack)
    left = await browser.open(START)
    query = parse_qs(urlsplit(left.headers["location"]).query)
    await browser.open(corp.issuer.authorize(left.headers["location"]))

    assert sorted(query) == [
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "nonce",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
    ]
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == ["http://parley.test:8080/login/oidc/corp/callback"]
    assert len(corp.issuer.asked[0]["code_verifier"]) == 43


async def test_a_login_that_is_taken_is_never_taken_for_the_same_person(corp: Corp) -> None:
    await new_user(corp.stack, "grace", email="grace@corp.example")
    browser = Browser(corp.stack)
    await corp.sign_in(browser)

    assert (await browser.call("GET", "/api/v1/me")).json()["login"] == "grace-2"


async def test_groups_follow_the_claim_and_others_stay(corp: Corp) -> None:
    groups = {
        name: (await corp.stack.owner.request("POST", "/api/v1/groups", {"name": name})).json()[
            "id"
        ]
        for name in ("Engineers", "Sales", "Choir")
    }
    browser = Browser(corp.stack)
    corp.issuer.claims["groups"] = ["eng", "none", "unknown", 7]
    await corp.sign_in(browser)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    await corp.stack.owner.request("PUT", f"/api/v1/groups/{groups['Choir']}/members/{user_id}")

    async def members(name: str) -> bool:
        path = f"/api/v1/groups/{groups[name]}/members"
        listed = (await corp.stack.owner.request("GET", path)).json()["items"]
        return user_id in [each["id"] for each in listed]

    first = [await members(name) for name in groups]
    corp.issuer.claims["groups"] = ["sales"]
    await corp.sign_in(browser)
    second = [await members(name) for name in groups]
    corp.issuer.claims["groups"] = "eng"
    await corp.sign_in(browser)
    third = [await members(name) for name in groups]

    assert (first, second, third) == (
        [True, False, True],
        [False, True, True],
        [False, False, True],
    )


async def test_nobody_is_created_where_the_issuer_may_not(corp: Corp) -> None:
    browser = Browser(corp.stack)
    left = await browser.open("/login/oidc/closed")
    reply = await browser.open(corp.issuer.authorize(left.headers["location"]))

    assert (reply.status, b"nobody here does" in reply.body) == (403, True)


async def test_a_deactivated_user_is_not_signed_in(corp: Corp) -> None:
    browser = Browser(corp.stack)
    await corp.sign_in(browser)
    user_id = (await browser.call("GET", "/api/v1/me")).json()["id"]
    await corp.stack.owner.request("POST", f"/api/v1/users/{user_id}/deactivate")
    reply = await corp.sign_in(Browser(corp.stack))

    assert (reply.status, reply.set_cookies) == (401, ())


LIES: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.test"},
    "another audience": {"aud": "another-client"},
    "several audiences without a party": {"aud": [CLIENT_ID, "another"]},
    "another party": {"azp": "another"},
    "another nonce": {"nonce": "replayed"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "expired": {"exp": 1},
    "issued long ago": {"iat": 1},
    "issued in the future": {"iat": 4_000_000_000, "exp": 4_000_000_600},
    "no expiry": {"exp": None},
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_id_token_that_lies_signs_nobody_in(corp: Corp, lie: str) -> None:
    corp.issuer.claims |= LIES[lie]
    browser = Browser(corp.stack)
    reply = await corp.sign_in(browser)

    assert (reply.status, browser.cookie("parley_session")) == (403, "")


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
async def test_only_signatures_of_the_issuers_keys_count(corp: Corp, algorithm: str) -> None:
    corp.issuer.algorithm = algorithm

    assert (await corp.sign_in(Browser(corp.stack))).status == 403


async def test_a_key_that_the_issuer_does_not_publish_signs_nothing(corp: Corp) -> None:
    corp.issuer.kid = "key-2"

    assert (await corp.sign_in(Browser(corp.stack))).status == 403


@pytest.mark.parametrize("skew_s", [-50, 50])
async def test_a_clock_may_be_a_minute_off(corp: Corp, skew_s: int) -> None:
    now = int(corp.stack.clock.now().timestamp())
    corp.issuer.claims |= {"iat": now + skew_s, "exp": now + max(skew_s, -30)}

    assert (await corp.sign_in(Browser(corp.stack))).status == 303


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.test"},
        {"token_endpoint": "http://evil.test/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"code_challenge_methods_supported": ["plain"]},
        {"jwks_uri": 7},
        {"end_session_endpoint": "javascript:alert(1)"},
        {"end_session_endpoint": "http://evil.test/logout"},
    ],
)
async def test_metadata_that_lie_are_refused(corp: Corp, metadata: dict[str, Any]) -> None:
    corp.issuer.metadata = metadata

    assert (await Browser(corp.stack).open(START)).status == 403


@pytest.mark.parametrize(
    ("issuer", "endpoint", "is_allowed"),
    [
        ("https://corp.example", "https://login.corp.example/token", True),
        ("https://corp.example", "http://127.0.0.1:5432/token", False),
        ("https://corp.example", "http://localhost/token", False),
        ("https://corp.example", "javascript:alert(1)", False),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/token", True),
        ("http://127.0.0.1:8000", "http://corp.example/token", False),
    ],
)
def test_an_issuer_elsewhere_has_no_endpoint_on_this_machine(
    issuer: str, endpoint: str, is_allowed: bool
) -> None:
    assert is_endpoint_of(issuer, endpoint) is is_allowed


async def test_an_answer_counts_once_in_its_own_browser_and_in_time(corp: Corp) -> None:
    browser = Browser(corp.stack)
    left = await browser.open(START)
    back = corp.issuer.authorize(left.headers["location"])
    elsewhere = await Browser(corp.stack).open(back)
    cookies = dict(browser.cookies)
    first = await browser.open(back)
    browser.cookies = cookies
    again = await browser.open(back)
    late_browser = Browser(corp.stack)
    left = await late_browser.open(START)
    corp.stack.clock.advance(300)
    late = await late_browser.open(corp.issuer.authorize(left.headers["location"]))
    mixed_browser = Browser(corp.stack)
    left = await mixed_browser.open(START)
    location = left.headers["location"]
    mixed = await mixed_browser.open(
        corp.issuer.authorize(location).replace("/oidc/corp/", "/oidc/closed/")
    )

    assert [reply.status for reply in (elsewhere, first, again, late, mixed)] == [
        403,
        303,
        403,
        403,
        403,
    ]


async def test_a_refusal_and_another_issuer_in_the_answer_are_told(corp: Corp) -> None:
    replies = []
    for old, new in (
        ("code=", "error=access_denied&no="),
        ("iss=http", "iss=https"),
        ("code=code-", "code=forged-"),
    ):
        browser = Browser(corp.stack)
        left = await browser.open(START)
        back = corp.issuer.authorize(left.headers["location"])
        replies.append(await browser.open(back.replace(old, new)))

    assert [reply.status for reply in replies] == [403, 403, 403]


async def test_an_issuer_that_is_down_is_told_to_browsers_and_programs(corp: Corp) -> None:
    browser = Browser(corp.stack)
    corp.issuer.token_status = 503
    page = await corp.sign_in(browser)
    unknown = await corp.stack.anonymous.request("GET", "/login/oidc/nobody")

    assert (page.status, page.headers["retry-after"]) == (503, "2")
    assert b"The identity provider does not answer." in page.body
    assert (unknown.status, unknown.json()["code"]) == (404, "ISSUER_NOT_FOUND")


async def test_signing_out_offers_to_sign_out_of_the_issuer_too(corp: Corp) -> None:
    browser = Browser(corp.stack)
    await corp.sign_in(browser)
    left = await browser.submit(await browser.open("/account"), "/logout")
    after = await browser.call("GET", "/api/v1/me")

    assert (left.status, after.status) == (200, 401)
    assert f"{corp.issuer.url}/logout?client_id=parley&amp;post_logout" in left.body.decode()
    assert b"Sign out of Corp &amp; Sons too" in left.body


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://corp.example"},
        {"name": "Corp!"},
        {"role": "admin"},
        {"scopes": ["profile"]},
        {"colour": "red"},
    ],
)
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    right = {
        "name": "corp",
        "display_name": "Corp",
        "issuer": "https://corp.example",
        "client_id": "parley",
    }
    file = tmp_path / "issuers.json"
    file.write_text(json.dumps([right]))
    assert [each.name for each in read_issuers(file)] == ["corp"]
    file.write_text(json.dumps([right | wrong]))

    with pytest.raises(ValueError, match=r"issuer|corp|Expected|Invalid|unknown field"):
        read_issuers(file)


async def test_the_ways_to_sign_in_are_told_without_a_sign_in(corp: Corp) -> None:
    reply = await Browser(corp.stack).open("/api/v1/configuration")
    assert reply.status == 200
    assert reply.json() == {
        "name": "parley.test",
        "methods": ["password", "passkey", "link"],
        "issuers": [
            {"name": name, "display_name": "Corp & Sons", "path": f"/login/oidc/{name}"}
            for name in ("corp", "closed")
        ],
    }
