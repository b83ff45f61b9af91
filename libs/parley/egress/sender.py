"""One request and its small answer: guarded, short, without redirects, cookies and compression."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import httpx2

from parley.egress.policy import Policy
from parley.egress.transport import (
    EXCHANGE,
    IDENTITY,
    Exchange,
    Identity,
    Resolve,
    ResponseEncoded,
    guarded_client,
    resolved,
)


class SendFailed(Exception):
    """A request has no answer, or none that can be used.

    Attributes:
        may_have_arrived: Whether the server may have received the request.
    """

    def __init__(self, problem: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(problem)
        self.may_have_arrived = may_have_arrived


@dataclass(frozen=True, slots=True)
class GuardedAnswer:
    """What a server answered.

    Attributes:
        status: The HTTP status; a redirect is an answer like any other.
        content: The body; empty if it is compressed although that was not requested.
        headers: The headers, with names of any case.
    """

    status: int
    content: bytes = b""
    headers: httpx2.Headers = field(default_factory=httpx2.Headers)


class GuardedSender:
    """Sends single requests to servers that are not trusted.

    Args:
        policy: Where requests may go.
        client: A guarded client.
        answer_bytes_max: The largest body that is read.
        request_s_max: How long a request may take with its answer.
    """

    def __init__(
        self,
        policy: Policy,
        client: httpx2.AsyncClient,
        answer_bytes_max: int,
        request_s_max: float,
    ) -> None:
        self._policy = policy
        self._client = client
        self._answer_bytes_max = answer_bytes_max
        self._request_s_max = request_s_max

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        policy: Policy,
        *,
        answer_bytes_max: int,
        request_s_max: float,
        resolve: Resolve = resolved,
    ) -> AsyncIterator[Self]:
        """Yield it; its connections are closed at the end."""
        timeout = httpx2.Timeout(request_s_max)
        client = guarded_client(
            policy, response_bytes_max=answer_bytes_max, timeout=timeout, resolve=resolve
        )
        async with client:
            yield cls(policy, client, answer_bytes_max, request_s_max)

    def check(self, url: str) -> None:
        """Refuse a URL that must not be used, such as one over plain HTTP.

        Raises:
            SendFailed: It is no URL, or the policy forbids it.
        """
        try:
            parsed = httpx2.URL(url)
            if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
                raise SendFailed("one of its addresses is not an http or https URL")
            self._policy.check_request(parsed.scheme, parsed.host, parsed.port)
        except (httpx2.InvalidURL, httpx2.TransportError) as error:
            raise SendFailed(str(error)) from error

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        reads_body: bool = True,
    ) -> GuardedAnswer:
        """Send a request, and return its answer.

        Raises:
            SendFailed: There is no answer in time, or it is too large.
        """
        self.check(url)
        exchange = Exchange()
        of_identity = IDENTITY.set(Identity.at(url, {}))
        of_exchange = EXCHANGE.set(exchange)
        try:
            async with (
                asyncio.timeout(self._request_s_max),
                self._client.stream(
                    method, url, headers=dict(headers), content=content, follow_redirects=False
                ) as response,
            ):
                body = await self._read(response) if reads_body else b""
                return GuardedAnswer(response.status_code, body, response.headers)
        except TimeoutError as error:
            raise SendFailed(
                f"it did not answer within {self._request_s_max:g} s",
                may_have_arrived=exchange.is_sent,
            ) from error
        except ResponseEncoded as refused:
            return GuardedAnswer(refused.status, headers=refused.headers)
        except httpx2.TransportError as error:
            problem = str(error) or type(error).__name__
            raise SendFailed(problem, may_have_arrived=exchange.is_sent) from error
        finally:
            EXCHANGE.reset(of_exchange)
            IDENTITY.reset(of_identity)

    async def _read(self, response: httpx2.Response) -> bytes:
        pieces, count = [], 0
        async for piece in response.aiter_raw():
            pieces.append(piece)
            count += len(piece)
            # An event stream has no limit of its own.
            if count > self._answer_bytes_max:
                problem = f"its answer exceeds {self._answer_bytes_max} bytes"
                raise SendFailed(problem, may_have_arrived=True)
        return b"".join(pieces)
