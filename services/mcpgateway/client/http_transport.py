"""The streamable HTTP transport of the SDK, with requests that fail alone.

In the SDK's own one an error of one request, for example a response that is cut off, ends the tasks
of all requests of the session. Here the request is answered with an error, and the exchange of its
caller says which. The SDK's errors for requests that get no answer are recorded there too, because
servers use the same codes. A notification that a server does not accept holds up nothing. Answers
are taken only from the response to their own request.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import httpx2
from anyio.abc import TaskGroup
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import RequestContext, StreamableHTTPTransport, StreamWriter
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from mcpgateway.client.error_answers import CANNOT_BE_READ, NoAnswer
from mcpgateway.client.received import (
    CALL_EXCHANGE,
    Answer,
    Unreadable,
    begin_exchange,
    fail_call,
    is_answer_to,
    is_awaited,
    read_message,
    usable_message,
)
from parley.egress.transport import EXCHANGE, ResponseTooLarge

#: How long a server may take to accept what it need not answer.
ACCEPT_S_MAX: Final = 10.0
#: How long it may take to delete a session; it forgets the session some time anyway.
DELETE_S_MAX: Final = 3.0
#: The client is closing, and reads no more answers.
CLOSED: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)

logger = logging.getLogger(__name__)


@asynccontextmanager
async def http_transport(
    url: str, http: httpx2.AsyncClient, event_bytes_max: int
) -> AsyncIterator[TransportStreams]:
    """Yield the streams of a client; at the end its session is deleted at the server.

    Args:
        url: The endpoint of the server.
        http: Sends requests with the identity of their context; it is not closed.
        event_bytes_max: How large an event may be.
    """
    answers, answered = create_context_streams[SessionMessage | Exception](0)
    requests, requested = create_context_streams[SessionMessage](0)
    async with answers, answered, requests, requested, anyio.create_task_group() as tasks:
        transport = _LoneRequests(url, event_bytes_max, tasks)

        def listen() -> None:
            tasks.start_soon(transport.listen, http, answers)

        tasks.start_soon(transport.post_writer, http, requested, answers, requests, listen, tasks)
        try:
            yield answered, requests
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(DELETE_S_MAX):
                    await transport.terminate_session(http)
            tasks.cancel_scope.cancel()


class _LoneRequests(StreamableHTTPTransport):
    """Answers a request that fails with an error, instead of failing as a whole."""

    def __init__(self, url: str, event_bytes_max: int, tasks: TaskGroup) -> None:
        super().__init__(url, max_sse_event_size=event_bytes_max)
        self._tasks = tasks

    async def listen(self, http: httpx2.AsyncClient, answers: StreamWriter) -> None:
        """Read the stream beside the requests; without it the session goes on."""
        try:
            await self.handle_get_stream(http, answers)
        except Exception:  # For example a time to wait that is too large for a float.
            logger.debug("the stream beside the requests ended", exc_info=True)

    async def _handle_post_request(self, ctx: RequestContext) -> None:
        message = ctx.session_message.message
        if isinstance(message, JSONRPCRequest):
            await self._request(ctx, message.id)
        elif self._is_initialized_notification(message):
            # Servers refuse requests that come before it.
            async with asyncio.timeout(ACCEPT_S_MAX):
                await super()._handle_post_request(ctx)
        else:
            self._tasks.start_soon(self._notify, ctx)

    async def _request(self, ctx: RequestContext, request_id: RequestId) -> None:
        CALL_EXCHANGE.set(EXCHANGE.get())
        try:
            await super()._handle_post_request(ctx)
        except CLOSED:
            logger.debug("an answer came while the client closed")
        except Exception as error:  # Whatever fails here is of this request only.
            fail_call(error)
            await super()._resolve_abandoned_request(ctx.read_stream_writer, request_id, str(error))

    async def _handle_json_response(
        self, response: httpx2.Response, read_stream_writer: StreamWriter, *, request_id: RequestId
    ) -> None:
        try:
            message = read_message(await response.aread())
        except Unreadable:
            await self._refuse_unreadable(read_stream_writer, request_id)
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            await self._answer(read_stream_writer, message, request_id)
        else:
            # The body is complete, and no answer can follow.
            await self._resolve_abandoned_request(
                read_stream_writer, request_id, "its response has no answer", code=INVALID_REQUEST
            )

    async def _handle_sse_event(
        self,
        sse: httpx2.ServerSentEvent,
        read_stream_writer: StreamWriter,
        original_request_id: RequestId | None = None,
        resumption_callback: object = None,
    ) -> bool:
        """Pass an event on; return whether the request of its stream is answered with it.

        Args:
            sse: The event.
            read_stream_writer: Where messages go.
            original_request_id: The request of the stream; None for the one beside the requests.
            resumption_callback: No request here has one.
        """
        if sse.event != "message" or not sse.data:
            return False
        try:
            message = read_message(sse.data)
        except Unreadable:
            if original_request_id is None:
                return False
            await self._refuse_unreadable(read_stream_writer, original_request_id)
            return True
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            await self._pass_on(read_stream_writer, message)
            return False
        if original_request_id is None:
            logger.debug("an answer came in the stream beside the requests and is dropped")
            return False
        await self._answer(read_stream_writer, message, original_request_id)
        return True

    async def _pass_on(self, answers: StreamWriter, message: JSONRPCMessage) -> None:
        usable = usable_message(message)
        if usable is not None:
            await answers.send(SessionMessage(usable))

    async def _answer(self, answers: StreamWriter, answer: Answer, request_id: RequestId) -> None:
        """Answer a request with the answer in its response; one of another request fails it."""
        if is_answer_to(answer, request_id):
            answer.id = request_id
            await answers.send(SessionMessage(answer))
            return
        await self._resolve_abandoned_request(
            answers, request_id, "its answer has the id of another request", code=INVALID_REQUEST
        )

    async def _refuse_unreadable(self, answers: StreamWriter, request_id: RequestId) -> None:
        problem = ErrorData(code=PARSE_ERROR, message=CANNOT_BE_READ)
        await answers.send(
            SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=problem))
        )

    async def _handle_reconnection(
        self,
        ctx: RequestContext,
        last_event_id: str,
        retry_interval_ms: int | None = None,
        attempt: int = 0,
    ) -> None:
        if EXCHANGE.get() is CALL_EXCHANGE.get():
            begin_exchange()
        await super()._handle_reconnection(ctx, last_event_id, retry_interval_ms, attempt)

    async def _notify(self, ctx: RequestContext) -> None:
        exchange = begin_exchange()
        try:
            async with asyncio.timeout(ACCEPT_S_MAX):
                await super()._handle_post_request(ctx)
            if exchange.status is not None and exchange.status < 300:
                return
            problem = f"HTTP {exchange.status}"
        except Exception as error:  # Likewise.
            problem = type(error).__name__
        logger.info("a message to an MCP server was not accepted: %s", problem)
        if is_awaited(ctx.session_message.message):
            # The server goes on waiting for it, and the call would wait for the server.
            fail_call(NoAnswer(f"it did not accept the answer to what it asked: {problem}"))

    async def _resolve_abandoned_request(
        self,
        read_stream_writer: StreamWriter,
        request_id: RequestId,
        message: str,
        *,
        code: int = CONNECTION_CLOSED,
    ) -> None:
        exchange = EXCHANGE.get()
        if exchange is not None and isinstance(exchange.error, ResponseTooLarge):
            fail_call(exchange.error)
        elif code == CONNECTION_CLOSED:
            fail_call(httpx2.RemoteProtocolError(message))
        else:
            fail_call(NoAnswer(message))
        await super()._resolve_abandoned_request(read_stream_writer, request_id, message, code=code)
