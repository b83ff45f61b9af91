"""Cross-origin requests of pages that are listed by their exact origin."""

from collections.abc import Iterable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.addresses import PublicUrl

METHODS: Final = "DELETE, GET, HEAD, PATCH, POST, PUT"
REQUEST_HEADERS: Final = (
    "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, "
    "Range, X-CSRF-Token, X-Request-Id, traceparent"
)
RESPONSE_HEADERS: Final = (
    "Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Location, RateLimit, "
    "RateLimit-Policy, Retry-After, X-Request-Id"
)
#: Browsers ask again after this time at the latest.
PREFLIGHT_S: Final = 600


class Cors:
    """Answers browsers that ask whether a page of another origin may use the API.

    Args:
        origins: The origins of these pages; there are no patterns.
    """

    def __init__(self, origins: Iterable[PublicUrl] = ()) -> None:
        self._origins = frozenset(map(str, origins))

    def allows(self, origin: str) -> bool:
        """Return whether pages of this origin may use the API."""
        return origin in self._origins

    def preflight(self, request: Request) -> Response | None:
        """Return the answer to a preflight request of a listed origin; None for other requests."""
        headers = request.headers
        if (
            request.method != "OPTIONS"
            or "access-control-request-method" not in headers
            or not self.allows(headers.get("origin", ""))
        ):
            return None
        return Response(
            status_code=204,
            headers={
                "access-control-allow-methods": METHODS,
                "access-control-allow-headers": REQUEST_HEADERS,
                "access-control-max-age": str(PREFLIGHT_S),
            },
        )

    def headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers that let a listed page read the answer."""
        if not self._origins:
            return {}
        origin = request.headers.get("origin", "")
        if not self.allows(origin):
            return {"vary": "Origin"}
        return {
            "vary": "Origin",
            "access-control-allow-origin": origin,
            "access-control-allow-credentials": "true",
            "access-control-expose-headers": RESPONSE_HEADERS,
        }
