"""Listings in which some tools are not described as the protocol says: the others are kept.

The SDK refuses a listing as a whole. It is then asked for again, and read with what is wrong in it
replaced before the SDK sees it.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any, Final, Self

from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCResponse, Tool
from mcp_types.methods import validate_server_result

#: Of one page; more are no part of any catalogue.
ENTRIES_MAX: Final = 2001
#: Is dropped because of its name, and counted.
UNUSABLE: Final = {"name": "", "inputSchema": {"type": "object"}}
_PAGE: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

#: The protocol version of a listing that is read leniently; None of other requests.
LENIENT_VERSION: ContextVar[str | None] = ContextVar("mcp_lenient_version", default=None)


def with_usable_tools(message: JSONRPCMessage, version: str | None) -> JSONRPCMessage:
    """Return an answer whose tools the SDK accepts, if it is one of a lenient listing."""
    if version is None or not isinstance(message, JSONRPCResponse):
        return message
    tools = message.result.get("tools")
    if not isinstance(tools, list):
        return message
    kept = [_usable(tool, version) for tool in tools[:ENTRIES_MAX]]
    return message.model_copy(update={"result": {**message.result, "tools": kept}})


def _usable(tool: Any, version: str) -> Any:
    if not isinstance(tool, dict):
        return UNUSABLE
    if isinstance(schema := tool.get("inputSchema"), dict):
        tool = {**tool, "inputSchema": {"type": "object", **schema}}
    try:
        validate_server_result("tools/list", version, {**_PAGE, "tools": [tool]})
        Tool.model_validate(tool, by_name=False)
    except ValueError:
        return UNUSABLE
    return tool


@asynccontextmanager
async def lenient(
    transport: AbstractAsyncContextManager[TransportStreams],
) -> AsyncIterator[TransportStreams]:
    """Yield the streams of a transport that answers each request in the context of its caller."""
    async with transport as (answers, requests):
        yield _LenientAnswers(answers), requests


class _LenientAnswers:
    """The answers of a server, of which those of lenient listings are replaced."""

    def __init__(self, answers: ReadStream[SessionMessage | Exception]) -> None:
        self._answers = answers

    @property
    def last_context(self) -> Context | None:
        """The context of the last answer, which the SDK looks for."""
        context: Context | None = getattr(self._answers, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next answer."""
        return self._replaced(await self._answers.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._answers.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._replaced(await anext(self._answers))

    async def __aenter__(self) -> Self:
        await self._answers.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._answers.__aexit__(exc_type, exc_val, exc_tb)

    def _replaced(self, answer: SessionMessage | Exception) -> SessionMessage | Exception:
        context = self.last_context
        if isinstance(answer, Exception) or context is None:
            return answer
        message = with_usable_tools(answer.message, context.get(LENIENT_VERSION))
        return SessionMessage(message, answer.metadata)
