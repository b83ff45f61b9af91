"""The older transport of MCP: requests are posted, and one event stream has all answers.

The SDK's own one ends a session at an event of 1 MiB, and does not let the calls know why.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import httpx2
from mcp.client._transport import TransportStreams
from mcp.shared._context_streams import (
    ContextReceiveStream,
    ContextSendStream,
    create_context_streams,
)
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from parley.egress.transport import EXCHANGE, Exchange, ResponseTooLarge

Answers = ContextSendStream[SessionMessage | Exception]


@asynccontextmanager
async def sse_transport(
    url: str, http: httpx2.AsyncClient, event_bytes_max: int
) -> AsyncIterator[TransportStreams]:
    """Connect, and yield the streams of a client; at the end `http` is closed.

    Args:
        url: Where the event stream is.
        http: Sends requests with the identity of their context.
        event_bytes_max: How large an event may be.

    Raises:
        httpx2.HTTPError: The stream cannot be opened.
    """
    async with http, sse_within_origin(http, url, max_event_size=event_bytes_max) as source:
        source.response.raise_for_status()
        # The type of `__aiter__` hides that it is a generator, which has to be closed.
        generator: Any = aiter(source)
        async with aclosing(generator) as events:
            endpoint = await _endpoint(events, url)
            answers, answered = create_context_streams[SessionMessage | Exception](0)
            requests, requested = create_context_streams[SessionMessage](0)
            exchanges: dict[RequestId, Exchange] = {}
            poster = _Poster(http, endpoint, answers, exchanges)
            async with answers, answered, requests, requested, asyncio.TaskGroup() as tasks:
                working = (
                    tasks.create_task(_receive(events, answers, exchanges)),
                    tasks.create_task(_send(poster, requested)),
                )
                yield answered, requests
                for task in working:
                    task.cancel()


async def _endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: str) -> str:
    """Return where requests are posted to; another origin is refused when that is done."""
    async for event in events:
        if event.event == "endpoint":
            return urljoin(url, event.data)
    raise httpx2.RemoteProtocolError("the event stream names no endpoint")


async def _receive(
    events: AsyncIterator[httpx2.ServerSentEvent],
    answers: Answers,
    exchanges: dict[RequestId, Exchange],
) -> None:
    """Pass answers on until the stream ends; then no more can come, and open calls fail at once."""
    try:
        async for event in events:
            if event.event != "message" or not event.data:
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(event.data, by_name=False)
            except ValidationError as error:
                await answers.send(error)
                continue
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                exchanges.pop(message.id, None)
            await answers.send(SessionMessage(message))
    except ResponseTooLarge as error:
        # The event does not say in time which request it answers.
        for exchange in exchanges.values():
            exchange.fail(error)
    except httpx2.TransportError as error:
        await answers.send(error)
    finally:
        await answers.aclose()


class _Poster:
    """Posts requests, and answers those that the server refuses at once.

    Args:
        http: Sends requests with the identity of their context.
        endpoint: Where they are posted to.
        answers: Where answers go.
        exchanges: The exchanges of the requests that are not answered yet.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        endpoint: str,
        answers: Answers,
        exchanges: dict[RequestId, Exchange],
    ) -> None:
        self._http = http
        self._endpoint = endpoint
        self._answers = answers
        self._exchanges = exchanges

    async def post(self, sent: SessionMessage) -> None:
        """Post a message, in the context of the call that it is of."""
        message, exchange = sent.message, EXCHANGE.get()
        if isinstance(message, JSONRPCRequest) and exchange is not None:
            self._exchanges[message.id] = exchange
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._exchanges.pop((message.params or {}).get("requestId", ""), None)
        body = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await request_within_origin(self._http, "POST", self._endpoint, json=body)
        except httpx2.TransportError as error:
            await self._refuse(message, ErrorData(code=CONNECTION_CLOSED, message=str(error)))
            return
        if not response.is_success:
            text = f"the server refuses the request (HTTP {response.status_code})"
            await self._refuse(message, ErrorData(code=INTERNAL_ERROR, message=text))

    async def _refuse(self, message: object, error: ErrorData) -> None:
        if isinstance(message, JSONRPCRequest):
            self._exchanges.pop(message.id, None)
            refusal = JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
            await self._answers.send(SessionMessage(refusal))


async def _send(poster: _Poster, requested: ContextReceiveStream[SessionMessage]) -> None:
    async for sent in requested:
        async with asyncio.TaskGroup() as tasks:
            # One after the other, each with the identity of its caller.
            tasks.create_task(poster.post(sent), context=requested.last_context)
