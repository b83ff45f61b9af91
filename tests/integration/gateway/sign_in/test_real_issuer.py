"""People sign in with a certified identity provider, which the test starts."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest

from parley.clock import FakeClock
from support.gateway.browser import Browser
from support.gateway.stack import gateway_stack

ROOT = Path(__file__).resolve().parents[4]
PROVIDER = ROOT / "tests" / "clients" / "identity_provider"
ORIGIN = "http://parley.test:8080"
CALLBACK = f"{ORIGIN}/login/oidc/corp/callback"
START_S_MAX = 60
FORM = re.compile(r'<form[^>]*action="([^"]+)"')
ELSEWHERE = re.compile(r'href="(http://127[^"]+)"')


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    """Run the provider and give its issuer."""
    subprocess.run(  # noqa: ASYNC221 (nothing else runs yet)
        [ROOT / "scripts" / "node_packages", PROVIDER.relative_to(ROOT)], check=True, timeout=300
    )
    process = await asyncio.create_subprocess_exec(
        ROOT / ".venv" / "bin" / "node",
        PROVIDER / "provider.mjs",
        *("parley", "secret of the client", CALLBACK, f"{ORIGIN}/login"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # The program starts another one, which has to end with it.
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_S_MAX):
            yield (await process.stdout.readline()).decode().strip()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def agree(person: aiohttp.ClientSession, location: str, login: str) -> str:
    """Sign in at the provider and agree, as a person does; return where it sends the browser."""
    form: dict[str, str] | None = None
    for _ in range(12):
        request = (
            person.get(location, allow_redirects=False)
            if form is None
            else person.post(location, data=form, allow_redirects=False)
        )
        async with request as reply:
            text = await reply.text()
            if reply.status in (302, 303):
                location, form = urljoin(location, reply.headers["Location"]), None
                if location.startswith(CALLBACK):
                    return location
                continue
            assert reply.status == 200, text
        action = FORM.search(text)
        prompt = re.search(r'name="prompt" value="(\w+)"', text)
        assert action is not None
        assert prompt is not None
        location = urljoin(location, action[1])
        form = {"prompt": prompt[1], "login": login, "password": "any"}
    raise AssertionError("the provider never came back")


async def sign_out(person: aiohttp.ClientSession, location: str) -> str:
    """Sign out at the provider, and return where it sends the browser."""
    async with person.get(location) as asked:
        text = await asked.text()
        assert asked.status == 200, text
    action, token = FORM.search(text), re.search(r'name="xsrf" value="([^"]+)"', text)
    assert action is not None
    assert token is not None
    form = {"xsrf": token[1], "logout": "yes"}
    async with person.post(action[1], data=form, allow_redirects=False) as done:
        assert done.status in (302, 303), await done.text()
        return done.headers["Location"]


@pytest.mark.slow
async def test_a_certified_provider_signs_a_person_in(
    tmp_path: Path, identity_database: str
) -> None:
    async with provider() as issuer:
        configured = {
            "name": "corp",
            "display_name": "Corp",
            "issuer": issuer,
            "client_id": "parley",
            "client_secret": "secret of the client",
            "scopes": ["openid", "profile", "email", "groups"],
            "creates_users": True,
            "role": "auditor",
            "groups_claim": "groups",
            "groups": {"eng": "Engineers"},
        }
        file = tmp_path / "issuers.json"
        file.write_text(json.dumps([configured]))
        # The provider's tokens are of the real time.
        clock = FakeClock(datetime.now(UTC))  # noqa: TID251
        async with (
            gateway_stack(
                tmp_path, identity_database, clock=clock, oidc_issuers_file=file
            ) as stack,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person,
        ):
            group = await stack.owner.request("POST", "/api/v1/groups", {"name": "Engineers"})
            browser = Browser(stack)
            left = await browser.open("/login/oidc/corp")
            back = await agree(person, left.headers["location"], "grace")
            cookies = dict(browser.cookies)
            entered = await browser.open(back)
            me = (await browser.call("GET", "/api/v1/me")).json()
            members = await stack.owner.request(
                "GET", f"/api/v1/groups/{group.json()['id']}/members"
            )
            page = await browser.submit(await browser.open("/account"), "/logout")
            (elsewhere,) = ELSEWHERE.findall(page.body.decode())
            led_to = await sign_out(person, unescape(elsewhere))
            after = await browser.call("GET", "/api/v1/me")
            browser.cookies = cookies
            replayed = await browser.open(back)

    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert (me["login"], me["display_name"], me["email"], me["role"]) == (
        "grace",
        "Grace Hopper",
        "grace@corp.example",
        "auditor",
    )
    assert [each["login"] for each in members.json()["items"]] == ["grace"]
    assert (led_to, after.status) == (f"{ORIGIN}/login", 401)
    assert replayed.status == 403
