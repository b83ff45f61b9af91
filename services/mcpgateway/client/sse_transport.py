"""The older transport of MCP: requests are posted, and one event stream has all answers.

The SDK's own one ends a session at an event of 1 MiB, does not let the calls know why, and posts
one message after the other: a post that the server leaves open would hold up all calls of the user.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

import httpx2
import msgspec
from anyio import BrokenResourceError, ClosedResourceError
from mcp.client._transport import TransportStreams
from mcp.shared._context_streams import (
    ContextReceiveStream,
    ContextSendStream,
    create_context_streams,
)
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from mcpgateway.client.error_answers import CANNOT_BE_READ, NoAnswer
from mcpgateway.client.lenient_listing import LENIENT_VERSION, with_usable_tools
from mcpgateway.client.received import (
    Unreadable,
    begin_exchange,
    fail_call,
    is_awaited,
    read_message,
    usable_message,
)
from parley.egress.transport import EXCHANGE, Exchange, ResponseTooLarge
from parley.foreign_json import ShallowJson

#: Deeper values become null in messages that cannot be read otherwise.
MESSAGE_DEPTH_MAX: Final = 128
#: How long requests wait for the notification that has to come before them.
INITIALIZED_S_MAX: Final = 2.0
#: How long a post stays open of what the server need not answer.
ACCEPT_S_MAX: Final = 10.0
#: How long a post stays open whose request is answered.
ANSWERED_S_MAX: Final = 5.0
#: The client is closing, and reads no more answers.
CLOSED: Final = (BrokenResourceError, ClosedResourceError)

Answers = ContextSendStream[SessionMessage | Exception]

logger = logging.getLogger(__name__)


@asynccontextmanager
async def sse_transport(
    url: str,
    http: httpx2.AsyncClient,
    event_bytes_max: int,
    accept_s_max: float = ACCEPT_S_MAX,
) -> AsyncIterator[TransportStreams]:
    """Connect, and yield the streams of a client; at the end `http` is closed.

    Args:
        url: Where the event stream is.
        http: Sends requests with the identity of their context.
        event_bytes_max: How large an event may be.
        accept_s_max: How long a post stays open of what the server need not answer.

    Raises:
        httpx2.HTTPError: The stream cannot be opened.
        httpx2.InvalidURL: It names a place for requests that is none.
    """
    async with http, sse_within_origin(http, url, max_event_size=event_bytes_max) as source:
        source.response.raise_for_status()
        # The type of `__aiter__` hides that it is a generator, which has to be closed.
        generator: Any = aiter(source)
        async with aclosing(generator) as events:
            endpoint = await _endpoint(events, url)
            answers, answered = create_context_streams[SessionMessage | Exception](0)
            requests, requested = create_context_streams[SessionMessage](0)
            open_requests = _OpenRequests()
            poster = _Poster(http, endpoint, answers, open_requests, accept_s_max)
            async with answers, answered, requests, requested, asyncio.TaskGroup() as tasks:
                working = (
                    tasks.create_task(_receive(events, answers, open_requests)),
                    tasks.create_task(_send(poster, requested)),
                )
                yield answered, requests
                for task in working:
                    task.cancel()


async def _endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: str) -> str:
    """Return where requests are posted to; another origin is refused when that is done."""
    async for event in events:
        if event.event == "endpoint":
            return str(httpx2.URL(urljoin(url, event.data)))
    raise httpx2.RemoteProtocolError("the event stream names no endpoint")


@dataclass(slots=True)
class _OpenRequest:
    """A request that is not answered yet: of which exchange, read how, and posted by which task."""

    exchange: Exchange | None
    lenient_version: str | None
    post: asyncio.Task[None] | None


class _OpenRequests:
    """The requests that are not answered yet, by their ids."""

    def __init__(self) -> None:
        self._requests: dict[RequestId, _OpenRequest] = {}

    def add(self, request_id: RequestId) -> None:
        """Add the request that the current task posts."""
        opened = _OpenRequest(EXCHANGE.get(), LENIENT_VERSION.get(), asyncio.current_task())
        self._requests[coerce_request_id(request_id)] = opened

    def has(self, request_id: RequestId) -> bool:
        """Return whether a request waits for its answer."""
        return coerce_request_id(request_id) in self._requests

    def pop(self, request_id: RequestId) -> _OpenRequest | None:
        """Remove a request that is answered or given up."""
        return self._requests.pop(coerce_request_id(request_id), None)

    def answered(self, request_id: RequestId) -> str | None:
        """Remove a request, and return how its answer is read.

        Its post may stay open for a while, and then takes no connection.
        """
        opened = self.pop(request_id)
        if opened is None:
            return None
        if opened.post is not None and not opened.post.done():
            asyncio.get_running_loop().call_later(ANSWERED_S_MAX, opened.post.cancel)
        return opened.lenient_version

    def fail_too_large(self, error: ResponseTooLarge) -> None:
        """Fail all of them: the event does not say in time which of them it answers."""
        is_known = len(self._requests) == 1
        failure = error if is_known else httpx2.RemoteProtocolError(str(error))
        for opened in self._requests.values():
            if opened.exchange is not None:
                opened.exchange.fail(failure)


async def _receive(
    events: AsyncIterator[httpx2.ServerSentEvent], answers: Answers, requests: _OpenRequests
) -> None:
    """Pass answers on until the stream ends; then no more can come, and open calls fail at once."""
    try:
        async for event in events:
            if event.event == "message" and event.data:
                received = _received(event.data, requests)
                if received is not None:
                    await answers.send(received)
    except ResponseTooLarge as error:
        requests.fail_too_large(error)
    except httpx2.TransportError as error:
        with suppress(*CLOSED):
            await answers.send(error)
    except CLOSED:
        logger.debug("an event came while the client closed")
    finally:
        await answers.aclose()


def _received(data: str, requests: _OpenRequests) -> SessionMessage | None:
    """Return the message of an event, if it is of use.

    The answer that cannot be read fails its own request.
    """
    try:
        message = usable_message(_message(data))
    except Unreadable:
        request_id = _answered_id(data)
        if request_id is None or not requests.has(request_id):
            return None
        problem = ErrorData(code=PARSE_ERROR, message=CANNOT_BE_READ)
        message = JSONRPCError(jsonrpc="2.0", id=request_id, error=problem)
    if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
        message = with_usable_tools(message, requests.answered(message.id))
    return None if message is None else SessionMessage(message)


def _message(data: str) -> JSONRPCMessage:
    try:
        return read_message(data)
    except Unreadable:
        # One part that is too deep for its reader makes all of it unreadable.
        return read_message(ShallowJson(MESSAGE_DEPTH_MAX).add(data.encode()))


class _Answer(msgspec.Struct):
    """As much as has to be known of an answer that is not as it should be."""

    id: int | str
    method: str = ""


def _answered_id(data: str) -> RequestId | None:
    """Return the request that an unusable answer is of; None if it is no answer."""
    try:
        answer = msgspec.json.decode(data, type=_Answer)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return None if answer.method else answer.id


class _Poster:
    """Posts messages, and answers requests that the server refuses at once.

    Args:
        http: Sends requests with the identity of their context.
        endpoint: Where they are posted to.
        answers: Where answers go.
        requests: The requests that are not answered yet.
        accept_s_max: How long a post stays open of what the server need not answer.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        endpoint: str,
        answers: Answers,
        requests: _OpenRequests,
        accept_s_max: float,
    ) -> None:
        self._http = http
        self._endpoint = endpoint
        self._answers = answers
        self._requests = requests
        self._accept_s_max = accept_s_max

    async def post(self, message: JSONRPCMessage) -> None:
        """Post a message, in the context of the call that it is of."""
        if isinstance(message, JSONRPCRequest):
            await self._request(message)
        else:
            await self._notify(message)

    async def _request(self, message: JSONRPCRequest) -> None:
        """Post a request, for as long as its caller waits: a server may answer the post later.

        The post decides about the call only while the request is open. After its answer came the
        call may go on with further requests, whatever becomes of this post.
        """
        call = EXCHANGE.get()
        self._requests.add(message.id)
        own = begin_exchange()
        if call is not None:
            # Assumed until the opposite is proven.
            call.is_sent, call.status = True, None
        problem = await self._problem(message)
        if not self._requests.has(message.id):
            return
        if call is not None:
            call.adopt(own)
        if problem is not None:
            await self._refuse(message.id, problem)

    async def _notify(self, message: JSONRPCMessage) -> None:
        """Post what the server need not answer; an answer that it refuses ends the call.

        A post that it leaves open is no refusal: it has the message, and may work on.
        """
        own = begin_exchange()
        cancelled = _cancelled_id(message)
        given_up = None if cancelled is None else self._requests.pop(cancelled)
        try:
            async with asyncio.timeout(self._accept_s_max):
                problem = await self._problem(message)
        except TimeoutError:
            logger.info("an MCP server left the post of a message open")
            problem = _refusal(own.status) if own.status is not None else None
        if problem is not None:
            logger.info("a message to an MCP server was not accepted: %s", problem.message)
            if is_awaited(message):
                # The server goes on waiting for it, and the call would wait for the server.
                refused = f"it did not accept the answer to what it asked: {problem.message}"
                fail_call(NoAnswer(refused))
        if given_up is not None and given_up.post is not None:
            # After the notification: a server that reads both ends its work.
            given_up.post.cancel()

    async def _problem(self, message: JSONRPCMessage) -> ErrorData | None:
        """Post a message, and return why the server did not accept it."""
        body = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await request_within_origin(self._http, "POST", self._endpoint, json=body)
        except (httpx2.RequestError, httpx2.StreamError) as error:
            exchange = EXCHANGE.get()
            if exchange is not None and exchange.error is None:
                # Its code is one that servers answer with too.
                exchange.fail(error)
            return ErrorData(code=CONNECTION_CLOSED, message=str(error))
        return _refusal(response.status_code)

    async def _refuse(self, request_id: RequestId, problem: ErrorData) -> None:
        if self._requests.pop(request_id) is None:
            return
        refusal = JSONRPCError(jsonrpc="2.0", id=request_id, error=problem)
        with suppress(*CLOSED):
            await self._answers.send(SessionMessage(refusal))


def _refusal(status: int) -> ErrorData | None:
    """Return why a server did not accept a message; None if the HTTP status says that it did."""
    if httpx2.codes.is_success(status):
        return None
    text = f"the server refuses the request (HTTP {status})"
    return ErrorData(code=INTERNAL_ERROR, message=text)


def _cancelled_id(message: JSONRPCMessage) -> RequestId | None:
    """Return the request that a message says is given up."""
    if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
        return cancelled_request_id_from_params(message.params)
    return None


async def _send(poster: _Poster, requested: ContextReceiveStream[SessionMessage]) -> None:
    """Post messages beside each other, each with the identity of its caller."""
    async with asyncio.TaskGroup() as posts:
        async for sent in requested:
            post = posts.create_task(poster.post(sent.message), context=requested.last_context)
            if _is_initialized(sent.message):
                # Servers refuse requests that come before it.
                await asyncio.wait({post}, timeout=INITIALIZED_S_MAX)


def _is_initialized(message: JSONRPCMessage) -> bool:
    return (
        isinstance(message, JSONRPCNotification) and message.method == "notifications/initialized"
    )
