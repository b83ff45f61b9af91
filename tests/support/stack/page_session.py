"""People at the web page of a stack."""

import json
import urllib.request
from functools import lru_cache
from typing import Any

from support.net.browser import Browser, Page
from support.stack.local_stack import LocalStack

#: Of the owner, who has none at first.
PASSWORD = "a calm sentence about nine green pens"
#: Finds a field by the begin of its label, and in it an option by the begin of its words.
OPTION = """
    (label, words) => {
        const named = [...document.querySelectorAll('.field')].find(
            (each) => each.querySelector('label')?.innerText.startsWith(label));
        const field = named?.querySelector('select');
        return field && [...field.options].find((each) => each.label.startsWith(words));
    }
"""


def call(
    stack: LocalStack,
    method: str,
    path: str,
    body: object = None,
    *,
    login: str = "",
    key: str = "",
) -> Any:
    """Make a request as the owner, a user who signs in, or that of a key; return its document."""
    headers = {"Content-Type": "application/json"}
    if login:
        headers |= _session(stack.http, login)
    else:
        key = key or stack.home.api_key_file.read_text().strip()
        headers["Authorization"] = f"Bearer {key}"
    return _document(stack.http, method, path, body, headers)


@lru_cache
def _session(http: str, login: str) -> dict[str, str]:
    """Return the headers of a new session; signing in takes a while, so each is kept."""
    request = _request(http, "POST", "/api/v1/sign-in", {"login": login, "password": PASSWORD}, {})
    with urllib.request.urlopen(request) as answer:
        cookies = [each.partition(";")[0] for each in answer.headers.get_all("Set-Cookie")]
        token = json.load(answer)["csrf_token"]
    return {
        "Cookie": "; ".join(cookies),
        "X-CSRF-Token": token,
        "Sec-Fetch-Site": "same-origin",
    }


def _request(
    http: str, method: str, path: str, body: object, headers: dict[str, str]
) -> urllib.request.Request:
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    return urllib.request.Request(f"http://{http}{path}", method=method, data=data, headers=sent)


def _document(http: str, method: str, path: str, body: object, headers: dict[str, str]) -> Any:
    with urllib.request.urlopen(_request(http, method, path, body, headers)) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def new_user(stack: LocalStack, login: str, role: str = "member") -> str:
    """Create a user with the password, and return their id."""
    user_id: str = call(stack, "POST", "/api/v1/users", {"login": login, "role": role})["id"]
    link = call(stack, "POST", f"/api/v1/users/{user_id}/sign-in-links", {})
    token = link["url"].partition("token=")[2]
    body = {"token": token, "password": PASSWORD}
    call(stack, "POST", "/api/v1/sign-in/link/password", body)
    return user_id


async def sign_in(page: Page, stack: LocalStack, login: str = "paula") -> None:
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


async def written(page: Page, text: str) -> None:
    """Write a message and send it."""
    await page.click(".composer textarea")
    await page.type(text)
    await page.press("Enter")


async def choose(page: Page, label: str, words: str) -> None:
    """Choose an option of a field, each by the begin of its words, once it is offered."""
    option = f"({OPTION})({json.dumps(label)}, {json.dumps(words)})"
    await page.until(option)
    await page.run(f"""
        ((option) => {{
            const field = option.closest('select');
            field.value = option.value;
            field.dispatchEvent(new Event('change', {{bubbles: true}}));
        }})({option})
    """)


async def idle(page: Page) -> None:
    """Wait until no chat of the list works any more."""
    await page.until("!document.querySelector('.status-dot.is-running, .working')")


async def begun(chromium: Browser, stack: LocalStack, login: str, text: str) -> Page:
    """Sign in in a new tab, begin a chat with a message, and wait until it was answered."""
    page = await chromium.page()
    await page.resize(1280, 900)
    await sign_in(page, stack, login)
    await write_first(page, text)
    return page


async def write_first(page: Page, text: str) -> None:
    """Begin a chat with a message, and wait until it was answered."""
    await written(page, text)
    await page.until("location.pathname.startsWith('/chats/')")
    await idle(page)


async def open_panel(page: Page, tab: str = "") -> None:
    """Open the panel beside the chat, and a tab of it."""
    await page.click(".bar button", "Workspace of the chat")
    await page.find(".panel")
    if tab:
        await page.click("[role=tab]", tab)
