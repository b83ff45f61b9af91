"""Where the request of a sign-in comes from."""

from starlette.requests import Request

from gateway.http.application import ADDRESS
from gateway.http.session_cookies import SessionCookies
from gateway.identity.engine.sign_in import Origin


def origin_of(request: Request, cookies: SessionCookies) -> Origin:
    """Return the origin of a sign-in, as its connection, headers and cookies tell."""
    return Origin(
        address=request.scope[ADDRESS],
        user_agent=request.headers.get("user-agent", ""),
        device_token=cookies.device_token(request),
        session_token=cookies.session_token(request),
    )
