"""HTTP to authorization servers: guarded, small, short, without redirects and cookies."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import httpx2

from mcpgateway.client.egress import IDENTITY, Identity, guarded_client
from mcpgateway.client.egress_policy import Policy
from mcpgateway.oauth.errors import IssuerFailed

ANSWER_BYTES_MAX: Final = 256 * 1024
REQUEST_S_MAX: Final = 10.0
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        status: The HTTP status.
        document: The JSON document; None if the body is none.
        challenge: The header WWW-Authenticate.
    """

    status: int
    document: Any = None
    challenge: str = ""


class IssuerHttp:
    """Sends requests to authorization servers, and to resources without credentials."""

    def __init__(self, policy: Policy, client: httpx2.AsyncClient, request_s_max: float) -> None:
        self._policy = policy
        self._client = client
        self._request_s_max = request_s_max

    @classmethod
    @asynccontextmanager
    async def open(
        cls, policy: Policy, request_s_max: float = REQUEST_S_MAX
    ) -> "AsyncIterator[IssuerHttp]":
        """Yield it; its connections are closed at the end."""
        timeout = httpx2.Timeout(request_s_max)
        client = guarded_client(policy, response_bytes_max=ANSWER_BYTES_MAX, timeout=timeout)
        async with client:
            yield cls(policy, client, request_s_max)

    def check(self, url: str) -> None:
        """Refuse a URL that must not be used, such as one over plain HTTP.

        Raises:
            IssuerFailed: It is no URL, or the policy forbids it.
        """
        try:
            parsed = httpx2.URL(url)
            if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
                raise IssuerFailed("", "one of its addresses is not an http or https URL")
            self._policy.check_request(parsed.scheme, parsed.host, parsed.port)
        except (httpx2.InvalidURL, httpx2.TransportError) as error:
            raise IssuerFailed("", str(error)) from error

    async def get(self, url: str) -> Answer:
        """Read a JSON document.

        Raises:
            IssuerFailed: There is no answer, or it is too large.
        """
        return await self._answer("GET", url, {"Accept": "application/json"}, None)

    async def post_form(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        """Send a form.

        Raises:
            IssuerFailed: There is no answer, or it is too large.
        """
        body = urlencode(form).encode()
        sent = {"Accept": "application/json", "Content-Type": FORM, **headers}
        return await self._answer("POST", url, sent, body)

    async def post_json(
        self, url: str, document: object, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a JSON document.

        Raises:
            IssuerFailed: There is no answer, or it is too large.
        """
        sent = {"Accept": "application/json", "Content-Type": "application/json"}
        return await self._answer(
            "POST", url, sent | dict(headers or {}), json.dumps(document).encode()
        )

    async def challenge(self, url: str, *, is_stream: bool) -> Answer:
        """Ask a resource without credentials how it is to be used; its body is not read."""
        document = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"Accept": "application/json, text/event-stream"}
        if is_stream:
            return await self._answer("GET", url, headers, None, reads_body=False)
        headers["Content-Type"] = "application/json"
        body = json.dumps(document).encode()
        return await self._answer("POST", url, headers, body, reads_body=False)

    async def _answer(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        reads_body: bool = True,
    ) -> Answer:
        self.check(url)
        # Compressed answers could become any size.
        sent = {**headers, "Accept-Encoding": "identity"}
        token = IDENTITY.set(Identity.at(url, {}))
        try:
            async with (
                asyncio.timeout(self._request_s_max),
                self._client.stream(
                    method, url, headers=sent, content=body, follow_redirects=False
                ) as response,
            ):
                content = await _read(response) if reads_body else b""
                challenge = ", ".join(response.headers.get_list("www-authenticate"))
                return Answer(response.status_code, _document(content), challenge[:8192])
        except TimeoutError as error:
            raise IssuerFailed("", f"it did not answer within {self._request_s_max:g} s") from error
        except httpx2.TransportError as error:
            raise IssuerFailed("", str(error) or type(error).__name__) from error
        finally:
            IDENTITY.reset(token)


async def _read(response: httpx2.Response) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        return b""
    pieces, count = [], 0
    async for piece in response.aiter_raw():
        pieces.append(piece)
        count += len(piece)
        if count > ANSWER_BYTES_MAX:
            raise IssuerFailed("", f"its answer exceeds {ANSWER_BYTES_MAX} bytes")
    return b"".join(pieces)


def _document(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
