"""HTTP to authorization servers: guarded, small, short, without redirects and cookies."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from mcpgateway.oauth.errors import IssuerFailed
from parley.egress import GuardedSender, Policy, SendFailed

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

    def __init__(self, sender: GuardedSender) -> None:
        self._sender = sender

    @classmethod
    @asynccontextmanager
    async def open(
        cls, policy: Policy, request_s_max: float = REQUEST_S_MAX
    ) -> "AsyncIterator[IssuerHttp]":
        """Yield it; its connections are closed at the end."""
        async with GuardedSender.open(
            policy, answer_bytes_max=ANSWER_BYTES_MAX, request_s_max=request_s_max
        ) as sender:
            yield cls(sender)

    def check(self, url: str) -> None:
        """Refuse a URL that must not be used, such as one over plain HTTP.

        Raises:
            IssuerFailed: It is no URL, or the policy forbids it.
        """
        try:
            self._sender.check(url)
        except SendFailed as error:
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
        try:
            answer = await self._sender.send(method, url, headers, body, reads_body=reads_body)
        except SendFailed as error:
            raise IssuerFailed("", str(error)) from error
        challenge = ", ".join(answer.headers.get_list("www-authenticate"))
        return Answer(answer.status, _document(answer.content), challenge[:8192])


def _document(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
