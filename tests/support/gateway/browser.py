"""A browser without scripts in front of a test's gateway: it keeps cookies and sends forms."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any
from urllib.parse import urlencode, urlsplit

from support.gateway.stack import GatewayStack
from support.net.http_client import HttpClient, Reply

INPUT = re.compile(r"<input ([^>]*)>")
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


class Browser:
    """Makes requests with the cookies that it was given, as a page of the gateway's own would."""

    def __init__(
        self,
        stack: GatewayStack,
        headers: Mapping[str, str] | None = None,
        site: str = "same-origin",
    ) -> None:
        self._client = HttpClient(
            stack.gateway.http.port, {"Accept": "text/html", **(headers or {})}
        )
        self._site = site
        self.cookies: dict[str, str] = {}

    def cookie(self, name: str) -> str:
        """Return the value of a cookie, whatever its prefix; empty without one."""
        return next((value for key, value in self.cookies.items() if key.endswith(name)), "")

    async def open(self, address: str) -> Reply:
        """Open a page by its address or path."""
        parts = urlsplit(address)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return await self._request("GET", path, None, {"Sec-Fetch-Site": "none"})

    async def submit(self, page: Reply, action: str, **filled: str) -> Reply:
        """Send the form of a page with this action, with its hidden fields."""
        text = page.body.decode()
        form = next(each for each in text.split("<form ") if f'action="{action}"' in each)
        fields = [dict(ATTRIBUTE.findall(each)) for each in INPUT.findall(form.split("</form>")[0])]
        hidden = {
            each["name"]: unescape(each["value"]) for each in fields if each.get("type") == "hidden"
        }
        body = urlencode({**hidden, **filled}).encode()
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": self._site,
        }
        return await self._request("POST", action, body, headers)

    async def call(self, method: str, path: str, body: Any = None) -> Reply:
        """Call the API as a script of the page does."""
        headers = {
            "Sec-Fetch-Site": self._site,
            "X-CSRF-Token": self.cookie("parley_csrf"),
            "Accept": "application/json",
        }
        return await self._request(method, path, body, headers)

    async def _request(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> Reply:
        sent = dict(headers)
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = await self._client.request(method, path, body, sent)
        for cookie in reply.set_cookies:
            pair, _, attributes = cookie.partition("; ")
            name, _, value = pair.partition("=")
            self.cookies[name] = value
            if "Max-Age=0" in attributes:
                del self.cookies[name]
        return reply


async def new_user(stack: GatewayStack, login: str = "ada", **fields: str) -> str:
    """Create a user and return their id."""
    body = {"login": login, "role": "member", **fields}
    reply = await stack.owner.request("POST", "/api/v1/users", body)
    assert reply.status == 201, reply.body
    user_id: str = reply.json()["id"]
    return user_id


async def link_for(stack: GatewayStack, user_id: str) -> str:
    """Make a one-time link for a user and return its address."""
    reply = await stack.owner.request("POST", f"/api/v1/users/{user_id}/sign-in-links", {})
    assert reply.status == 201, reply.body
    url: str = reply.json()["url"]
    return url


PASSWORD = "seven quiet engines wait"


async def invited(stack: GatewayStack, login: str = "ada", **fields: str) -> Browser:
    """Return the browser of a new user, who set `PASSWORD` by an invitation."""
    user_id = await new_user(stack, login, **fields)
    browser = Browser(stack)
    page = await browser.open(await link_for(stack, user_id))
    reply = await browser.submit(page, "/link", password=PASSWORD, repeated=PASSWORD)
    assert reply.status == 303, reply.body
    return browser
