"""The cookies of browsers: their session, its CSRF token, and that the browser is known.

Over HTTPS their names have the prefix `__Host-`: browsers accept such a cookie only with Secure,
from this very host, and for all of its paths.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.addresses import PublicUrl
from gateway.identity.engine.sign_in import SESSION_LIFETIME
from gateway.identity.secret_tokens import csrf_token_of
from gateway.identity.store.sessions import DEVICE_LIFETIME

SESSION: Final = "parley_session"
CSRF: Final = "parley_csrf"
DEVICE: Final = "parley_device"
FORM: Final = "parley_form"
STATE: Final = "parley_oidc"
ISSUER: Final = "parley_issuer"
MCP_LOGIN: Final = "parley_mcp_login"
STATE_LIFETIME: Final = timedelta(minutes=5)
MCP_LOGIN_LIFETIME: Final = timedelta(minutes=10)
FORM_LIFETIME: Final = timedelta(hours=12)
TOKEN_CHARACTERS_MAX: Final = 128
MCP_LOGIN_CHARACTERS_MIN: Final = 32


class SessionCookies:
    """Reads and writes the cookies."""

    def __init__(self, public_url: PublicUrl) -> None:
        self._prefix = "__Host-" if public_url.is_https else ""
        self._secure = "; Secure" if public_url.is_https else ""

    def session_token(self, request: Request) -> str:
        """Return the token of the session; empty without one."""
        return self._read(request, SESSION)

    def device_token(self, request: Request) -> str:
        """Return the token by which the browser is known; empty without one."""
        return self._read(request, DEVICE)

    def form_token(self, request: Request) -> str:
        """Return the token that forms without a session repeat; empty without one."""
        return self._read(request, FORM)

    def state_token(self, request: Request) -> str:
        """Return the token that binds the answer of an identity provider; empty without one."""
        return self._read(request, STATE)

    def write_state(self, response: Response, state: str) -> None:
        """Set the cookie of a sign-in with an identity provider."""
        response.headers.append("set-cookie", self._cookie(STATE, state, STATE_LIFETIME))

    def finish_state(self, response: Response, issuer: str) -> None:
        """Remove the cookie of a sign-in with an identity provider, and remember the provider."""
        self.remove_state(response)
        response.headers.append("set-cookie", self._cookie(ISSUER, issuer, SESSION_LIFETIME))

    def remove_state(self, response: Response) -> None:
        """Remove the cookie of a sign-in with an identity provider."""
        response.headers.append("set-cookie", self._cookie(STATE, "", timedelta()))

    def mcp_login_token(self, request: Request) -> str:
        """Return the token that binds logins at MCP servers to the browser; empty without one."""
        value = self._read(request, MCP_LOGIN)
        return value if len(value) >= MCP_LOGIN_CHARACTERS_MIN else ""

    def write_mcp_login(self, response: Response, token: str) -> None:
        """Set the cookie of logins at MCP servers."""
        response.headers.append("set-cookie", self._cookie(MCP_LOGIN, token, MCP_LOGIN_LIFETIME))

    def issuer(self, request: Request) -> str:
        """Return the identity provider that the user signed in with; empty for none."""
        return self._read(request, ISSUER)

    def write_session(self, response: Response, session_token: str, device_token: str) -> None:
        """Set the cookies of a new session."""
        for cookie in self._session_cookies(session_token, device_token):
            response.headers.append("set-cookie", cookie)

    def write_form(self, response: Response, form_token: str) -> None:
        """Set the cookie of a form."""
        response.headers.append("set-cookie", self._cookie(FORM, form_token, FORM_LIFETIME))

    def remove_session(self, response: Response) -> None:
        """Remove the cookies of a session; the browser stays known."""
        for name in (SESSION, CSRF, ISSUER):
            response.headers.append("set-cookie", self._cookie(name, "", timedelta()))

    def _session_cookies(self, session_token: str, device_token: str) -> Iterator[str]:
        csrf_token = csrf_token_of(session_token)
        # Pages read this one, and repeat it in a header.
        yield self._cookie(CSRF, csrf_token, SESSION_LIFETIME, is_readable=True)
        yield self._cookie(DEVICE, device_token, DEVICE_LIFETIME)
        yield self._cookie(SESSION, session_token, SESSION_LIFETIME)

    def _cookie(
        self, name: str, value: str, lifetime: timedelta, *, is_readable: bool = False
    ) -> str:
        http_only = "" if is_readable else "HttpOnly; "
        attributes = f"Path=/; {http_only}SameSite=Lax; Max-Age={int(lifetime.total_seconds())}"
        return f"{self._prefix}{name}={value}; {attributes}{self._secure}"

    def _read(self, request: Request, name: str) -> str:
        value = request.cookies.get(f"{self._prefix}{name}", "")
        return value if len(value) <= TOKEN_CHARACTERS_MAX else ""
