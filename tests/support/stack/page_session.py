"""People at the web page of a stack."""

import json
import urllib.request
from typing import Any

from support.net.browser import Page
from support.stack.local_stack import LocalStack

#: Of the owner, who has none at first.
PASSWORD = "a calm sentence about nine green pens"


def call(stack: LocalStack, method: str, path: str, body: object = None) -> Any:
    """Make a request with the owner's API key, and return its document."""
    request = urllib.request.Request(
        f"http://{stack.http}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {stack.home.api_key_file.read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def new_user(stack: LocalStack, login: str) -> str:
    """Create a member with the password, and return their id."""
    user_id: str = call(stack, "POST", "/api/v1/users", {"login": login, "role": "member"})["id"]
    link = call(stack, "POST", f"/api/v1/users/{user_id}/sign-in-links", {})
    token = link["url"].partition("token=")[2]
    body = {"token": token, "password": PASSWORD}
    call(stack, "POST", "/api/v1/sign-in/link/password", body)
    return user_id


async def sign_in(page: Page, stack: LocalStack, login: str = "ada") -> None:
    """Sign in at the page as a member, who is created when needed."""
    users = call(stack, "GET", "/api/v1/users")["items"]
    if login not in [each["login"] for each in users]:
        new_user(stack, login)
    await page.visit(f"http://{stack.http}/sign-in")
    await page.find("input[name=login]")
    await page.click("input[name=login]")
    await page.type(login)
    await page.click("input[name=password]")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.find("nav[aria-label=Chats]")
