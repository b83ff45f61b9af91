"""Signs in to a server with a password or a one-time link, for an API key of the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from parley.cli.api.client import Api
from parley.cli.api.server import Server
from parley.cli.home.stored_login import StoredLogin

SIGN_IN = "/api/v1/sign-in"
KEYS = "/api/v1/me/api-keys"


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """The server and the token of a one-time link."""

    url: str
    token: str


def one_time_link(address: str) -> OneTimeLink | None:
    """Return the parts of a one-time link; None if the address is none."""
    parts = urlsplit(address)
    tokens = parse_qs(parts.query).get("token", [])
    if not parts.path.endswith("/link") or len(tokens) != 1:
        return None
    return OneTimeLink(f"{parts.scheme}://{parts.netloc}", tokens[0])


class SignIn:
    """A sign-in that lasts until an API key is made.

    Args:
        url: The server.
        ask_code: Asks for the code of the second factor.
    """

    def __init__(self, url: str, ask_code: Callable[[], str]) -> None:
        self._url = url
        self._ask_code = ask_code
        self._api = Api(Server(url, ""))

    def login_of_link(self, token: str) -> str:
        """Return the login of the user of a one-time link."""
        offered = self._api.call("POST", f"{SIGN_IN}/link", {"token": token}, needs="login")
        return str(offered["login"])

    def by_link(
        self, login: str, token: str, password: str, *, name: str, days: int
    ) -> StoredLogin:
        """Set a password by a one-time link, and return a new key."""
        body = {"token": token, "password": password}
        return self._key(login, *self._signed_in(f"{SIGN_IN}/link/password", body), name, days)

    def by_password(self, login: str, password: str, *, name: str, days: int) -> StoredLogin:
        """Sign in with a password, and return a new key."""
        body = {"login": login, "password": password}
        return self._key(login, *self._signed_in(SIGN_IN, body), name, days)

    def _signed_in(self, path: str, body: dict[str, str]) -> tuple[Any, Message]:
        made, headers = self._api.exchange("POST", path, body, needs="csrf_token")
        if not made.get("continuation"):
            return made, headers
        code = {"continuation": made["continuation"], "code": self._ask_code()}
        return self._api.exchange("POST", f"{SIGN_IN}/second-factor", code, needs="csrf_token")

    def _key(self, login: str, made: Any, headers: Message, name: str, days: int) -> StoredLogin:
        cookies: SimpleCookie = SimpleCookie()
        for cookie in headers.get_all("Set-Cookie", []):
            cookies.load(cookie)
        session = "; ".join(f"{key}={each.value}" for key, each in cookies.items())
        parts = urlsplit(self._url)
        sent = {
            "Cookie": session,
            "Origin": f"{parts.scheme}://{parts.netloc}",
            "X-CSRF-Token": made["csrf_token"],
        }
        body = {"name": name, "lifetime_s": days * 24 * 3600}
        key = self._api.call("POST", KEYS, body, sent, needs="key")
        # The command line goes on with the key alone.
        self._api.call("POST", "/api/v1/sign-out", None, sent)
        return StoredLogin(self._url, login.strip().lower(), key["id"], key["key"])
