"""A passkey in a real browser: made in the settings, and used to sign in at the page."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.net.browser import new_browser
from support.stack.local_stack import LocalStack
from support.stack.page_session import sign_in

pytestmark = pytest.mark.slow

#: A device that has passkeys and knows its person.
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def at_localhost(tmp_path: Path) -> Iterator[LocalStack]:
    """Give a stack at a name: browsers have no passkeys for addresses of numbers."""
    stack = LocalStack.at(tmp_path / "home")
    port = stack.http.rpartition(":")[2]
    started = stack.up("--public-url", f"http://localhost:{port}")
    assert started.returncode == 0, started.stdout + started.stderr
    yield replace(stack, http=f"localhost:{port}")
    assert stack.parley("down").returncode == 0


async def test_a_passkey_is_made_in_the_settings_and_signs_in(
    at_localhost: LocalStack, tmp_path: Path
) -> None:
    stack = at_localhost
    async with new_browser(tmp_path / "browser") as chromium:
        page = await chromium.page()
        await page.resize(1280, 900)
        await page.ask("WebAuthn.enable")
        await page.ask("WebAuthn.addVirtualAuthenticator", options=DEVICE)
        await sign_in(page, stack, "paula")
        await page.visit(f"http://{stack.http}/settings/security")
        await page.click("label", "Name of the new passkey")
        await page.type("laptop")
        await page.click("button", "Add a passkey")
        await page.find("table", "laptop")
        await page.ask("Network.clearBrowserCookies")
        await page.visit(f"http://{stack.http}/settings/display")
        await page.until("location.pathname === '/sign-in'")
        await page.click("button", "Use a passkey")
        await page.find(".choices")
        arrived = await page.run("location.pathname")
        login = await page.run("fetch('/api/v1/me').then((a) => a.json()).then((me) => me.login)")

    assert (arrived, login) == ("/settings/display", "paula")
    assert page.said == []
