"""People link identities of identity providers, which administrators configure."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway.identity.store.oidc_issuers import STORED_KEYS
from parley.clock import FakeClock
from parley.postgres import Database
from parley.secrets import Keyring
from support.gateway.browser import Browser, invited, new_user
from support.gateway.issuer import CLIENT_ID, CLIENT_SECRET, FakeIssuer, fake_issuer
from support.gateway.shell import Shell
from support.gateway.stack import GatewayStack, gateway_stack
from support.net.http_client import Reply

ISSUERS = "/api/v1/oidc-issuers"
LINKS = "/api/v1/me/linked-identities"


class LateClock:
    """The clock of the gateway, which does not exist before it."""

    stack: GatewayStack | None = None

    def now(self) -> Any:
        """Return the time of the gateway."""
        return FakeClock().now() if self.stack is None else self.stack.clock.now()


class Corp:
    """A gateway and an identity provider that an administrator configured."""

    def __init__(self, stack: GatewayStack, issuer: FakeIssuer) -> None:
        self.stack = stack
        self.issuer = issuer

    async def put(self, **changed: Any) -> Reply:
        """Configure the issuer."""
        body = {
            "display_name": "Corp",
            "issuer": self.issuer.url,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            **changed,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return await self.stack.owner.request("PUT", f"{ISSUERS}/corp", given)

    async def follow(self, browser: Browser, path: str) -> Reply:
        """Go to the issuer and come back."""
        left = await browser.open(path)
        assert left.status == 303, left.body
        return await browser.open(self.issuer.authorize(left.headers["location"]))

    async def sign_in(self, browser: Browser) -> Reply:
        """Sign in with the issuer."""
        return await self.follow(browser, "/login/oidc/corp")

    async def link(self, browser: Browser) -> Reply:
        """Link the identity to the user of a browser."""
        begun = await browser.call("POST", LINKS, {"issuer": "corp"})
        assert begun.status == 200, begun.body
        return await self.follow(browser, begun.json()["path"])


@pytest.fixture
async def corp(tmp_path: Path, identity_database: str) -> AsyncIterator[Corp]:
    clock: Any = LateClock()
    async with AsyncExitStack() as around:
        issuer = await around.enter_async_context(fake_issuer(clock))
        stack = await around.enter_async_context(gateway_stack(tmp_path, identity_database))
        clock.stack = stack
        made = Corp(stack, issuer)
        assert (await made.put()).status == 200
        yield made


async def login_of(browser: Browser) -> str:
    me = await browser.call("GET", "/api/v1/me")
    return str(me.json().get("login", me.status))


async def test_a_person_links_an_identity_signs_in_with_it_and_unlinks_it(corp: Corp) -> None:
    browser, other, after = await invited(corp.stack), Browser(corp.stack), Browser(corp.stack)
    linked = await corp.link(browser)
    await corp.sign_in(other)
    listed = (await browser.call("GET", LINKS)).json()["items"]
    unlinked = await browser.call("DELETE", f"{LINKS}/{listed[0]['id']}")
    again = await browser.call("DELETE", f"{LINKS}/{listed[0]['id']}")
    refused = await corp.sign_in(after)

    assert (linked.status, linked.headers["location"]) == (303, "/settings/account")
    assert [await login_of(each) for each in (browser, other)] == ["ada", "ada"]
    assert [(each["issuer"], each["subject"]) for each in listed] == [
        (corp.issuer.url, "subject-1"),
    ]
    assert (unlinked.status, again.status, again.json()["code"]) == (
        204,
        404,
        "LINKED_IDENTITY_NOT_FOUND",
    )
    assert refused.status == 403


async def test_a_link_counts_once_and_in_the_session_that_asked_for_it(corp: Corp) -> None:
    ada, bob = await invited(corp.stack), await invited(corp.stack, "bob")
    asked = [(await ada.call("POST", LINKS, {"issuer": "corp"})).json()["path"] for _ in "123"]
    by_another = await bob.open(asked[0])
    by_nobody = await Browser(corp.stack).open(asked[1])
    left = await ada.open(asked[2])
    twice = await ada.open(asked[2])
    # Another person signs in with the browser before the issuer answers.
    ada.cookies |= {name: each for name, each in bob.cookies.items() if "session" in name}
    swapped = await ada.open(corp.issuer.authorize(left.headers["location"]))

    assert [each.status for each in (by_another, by_nobody, twice, swapped)] == [403] * 4
    assert (await bob.call("GET", LINKS)).json()["items"] == []


async def test_an_identity_belongs_to_one_user(corp: Corp) -> None:
    ada, bob = await invited(corp.stack), await invited(corp.stack, "bob")
    await corp.link(ada)
    again, taken = await corp.link(ada), await corp.link(bob)

    assert (again.status, taken.status) == (303, 409)
    assert [len((await each.call("GET", LINKS)).json()["items"]) for each in (ada, bob)] == [1, 0]


async def test_the_only_way_to_sign_in_is_not_unlinked(corp: Corp) -> None:
    await corp.put(creates_users=True)
    browser = Browser(corp.stack)
    await corp.sign_in(browser)
    linked = (await browser.call("GET", LINKS)).json()["items"][0]
    refused = await browser.call("DELETE", f"{LINKS}/{linked['id']}")

    assert (refused.status, refused.json()["code"]) == (409, "LAST_WAY_TO_SIGN_IN")
    assert (await browser.call("GET", LINKS)).json()["items"] == [linked]


@pytest.mark.parametrize(
    ("trusted", "verified", "role", "has_password", "entered"),
    [
        (True, True, "member", False, "grace"),
        (False, True, "member", False, "403"),
        (True, False, "member", False, "403"),
        (True, "true", "member", False, "403"),
        (True, True, "admin", False, "403"),
        (True, True, "member", True, "403"),
    ],
)
async def test_an_email_address_links_only_who_cannot_sign_in_yet_and_if_the_issuer_is_trusted(
    corp: Corp, trusted: bool, verified: object, role: str, has_password: bool, entered: str
) -> None:
    await corp.put(links_by_email=trusted)
    make = invited if has_password else new_user
    await make(corp.stack, "grace", email="Grace@corp.example", role=role)
    corp.issuer.claims["email_verified"] = verified
    browser = Browser(corp.stack)
    answer = await corp.sign_in(browser)

    assert (await login_of(browser) if answer.status == 303 else str(answer.status)) == entered


async def test_two_users_with_one_email_address_are_not_linked_by_it(corp: Corp) -> None:
    await corp.put(links_by_email=True)
    for login in ("grace", "hopper"):
        await new_user(corp.stack, login, email="grace@corp.example")
    corp.issuer.claims["email_verified"] = True

    assert (await corp.sign_in(Browser(corp.stack))).status == 403


async def test_issuers_are_configured_without_telling_their_secrets(corp: Corp) -> None:
    kept = await corp.put(client_secret=None, display_name="Corp again")
    stale = await corp.stack.owner.request(
        "PUT",
        f"{ISSUERS}/corp",
        {"display_name": "x", "issuer": corp.issuer.url, "client_id": "x"},
        {"If-Match": '"1"'},
    )
    moved = await corp.put(client_secret=None, issuer="https://other.example")
    unsafe = await corp.put(issuer="http://other.example")
    high = await corp.put(role="owner")
    listed = (await corp.stack.owner.request("GET", ISSUERS)).json()
    entered = await corp.sign_in(Browser(corp.stack))
    deleted = await corp.stack.owner.request("DELETE", f"{ISSUERS}/corp")
    again = await corp.stack.owner.request("DELETE", f"{ISSUERS}/corp")
    configuration = await corp.stack.owner.request("GET", "/api/v1/configuration")

    assert listed["items"] == [
        {
            "name": "corp",
            "display_name": "Corp again",
            "issuer": corp.issuer.url,
            "client_id": CLIENT_ID,
            "has_client_secret": True,
            "scopes": ["openid", "profile", "email"],
            "creates_users": False,
            "links_by_email": False,
            "role": "member",
            "groups_claim": "",
            "groups": {},
            "is_read_only": False,
            "version": 2,
            "redirect_uri": "http://parley.test:8080/login/oidc/corp/callback",
        }
    ]
    assert kept.json() == listed["items"][0]
    assert (stale.status, stale.json()["code"]) == (412, "VERSION_CONFLICT")
    assert [each.status for each in (moved, unsafe, high)] == [422] * 3
    assert moved.json()["errors"][0]["pointer"] == "/client_secret"
    # The stored secret was right: the issuer only does not know anybody here.
    assert (entered.status, len(corp.issuer.asked)) == (403, 1)
    assert (deleted.status, again.status) == (204, 404)
    assert configuration.json()["issuers"] == []


async def test_secrets_of_issuers_are_sealed_and_rotated(
    corp: Corp, tmp_path: Path, identity_database: str
) -> None:
    connection = await asyncpg.connect(identity_database)
    try:
        before = await connection.fetchrow("SELECT * FROM identity.oidc_issuers")
    finally:
        await connection.close()
    path = tmp_path / "master.keyring"
    rotated = Keyring((Keyring.generate().writing_key, *Keyring.load(path).keys))
    rotated.save(path)
    async with Database.open(
        identity_database, application_name="test", connections_max=2
    ) as database:
        adopted = await STORED_KEYS.adopt(database.pool, rotated)
        counts = await STORED_KEYS.count(database.pool)
    between = await corp.sign_in(Browser(corp.stack))
    Keyring(rotated.keys[:1]).save(path)
    entered = await corp.sign_in(Browser(corp.stack))

    assert before is not None
    assert CLIENT_SECRET not in str(dict(before))
    assert CLIENT_SECRET.encode() not in before["client_secret"]
    assert (adopted.changed, adopted.damaged) == (1, ())
    assert counts == {rotated.writing_key.id: 1}
    # The issuer accepted the secret both times, and nobody here is its user.
    assert (between.status, entered.status, len(corp.issuer.asked)) == (403, 403, 2)


async def test_the_command_adds_lists_and_removes_issuers(
    corp: Corp,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = Shell(corp.stack, tmp_path / "home", capsys, monkeypatch)
    put = await shell.as_owner(
        corp.stack, "issuers", "put", "acme", "--issuer", "https://acme.example",
        "--client-id", "parley", "--creates-users", "--secret-stdin",
    )  # fmt: skip
    listed = await shell.as_owner(corp.stack, "issuers", "ls")
    gone = await shell.as_owner(corp.stack, "issuers", "rm", "acme")
    again = await shell.as_owner(corp.stack, "issuers", "rm", "acme")

    redirect = "http://parley.test:8080/login/oidc/acme/callback"
    assert put == (0, f"Register this redirect URI there: {redirect}\n")
    assert [line.split()[:5] for line in listed[1].splitlines()[1:]] == [
        ["acme", "https://acme.example", "parley", "yes", "no"],
        ["corp", corp.issuer.url, "parley", "no", "no"],
    ]
    assert (gone, again[0] != 0) == ((0, ""), True)


async def test_issuers_of_the_file_are_listed_and_cannot_be_changed(
    tmp_path: Path, identity_database: str
) -> None:
    file = tmp_path / "issuers.json"
    file.write_text(
        '[{"name": "corp", "display_name": "Corp", "issuer": "https://corp.example", '
        '"client_id": "parley"}]'
    )
    async with gateway_stack(tmp_path, identity_database, oidc_issuers_file=file) as stack:
        body = {"display_name": "x", "issuer": "https://evil.example", "client_id": "x"}
        put = await stack.owner.request("PUT", f"{ISSUERS}/corp", body)
        gone = await stack.owner.request("DELETE", f"{ISSUERS}/corp")
        listed = (await stack.owner.request("GET", ISSUERS)).json()["items"]

    assert [(each.status, each.json()["code"]) for each in (put, gone)] == [
        (409, "ISSUER_READ_ONLY")
    ] * 2
    assert [(each["name"], each["issuer"], each["is_read_only"]) for each in listed] == [
        ("corp", "https://corp.example", True)
    ]
