"""The HTTP route that exports a whole chat, streamed from chatd."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.api.export_formats import ExportFormat, ExportWriter, writer_for
from gateway.api.parameters import path_id
from gateway.api.user_names import NameOf, name_fields
from gateway.http.authentication import Principal
from gateway.http.request_body import invalid_parameter, read_query
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import chat_service_pb2 as api

EXPORT_S_MAX = 3600.0


class ExportCutOff(Exception):
    """chatd's stream ended early; the connection is closed, since the response has started."""


class ExportRoutes:
    """The route /chats/{chat_id}/export."""

    def __init__(self, chatd: ChatdClient, name_of: NameOf) -> None:
        self._chatd = chatd
        self._name_of = name_of

    async def export(self, request: Request, principal: Principal) -> Response:
        """Export a whole chat."""
        chat_id = path_id(request, "chat_id")
        wanted = _format(read_query(request, "format").get("format", ExportFormat.JSON))
        asked = api.ExportChatRequest(chat_id=chat_id)
        # The first message is read here, so that an error is still returned as a problem document.
        (call, first), _ = await self._chatd.ask(
            principal.user,
            chat_id,
            lambda stubs: _begun(stubs.chats.ExportChat(asked, timeout=EXPORT_S_MAX)),
        )
        writer = writer_for(wanted)
        name = f"chat-{chat_id}.{wanted}"
        return StreamingResponse(
            _written(call, first, writer, self._name_of),
            media_type=writer.media_type,
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


async def _begun(call: Any) -> tuple[Any, api.ExportChatResponse]:
    first = await call.read()
    if first is grpc.aio.EOF:
        raise ExportCutOff
    return call, first


async def _written(
    call: Any, first: api.ExportChatResponse, writer: ExportWriter, name_of: NameOf
) -> AsyncIterator[bytes]:
    try:
        name_fields(first.chat.DESCRIPTOR).fill(first.chat, name_of)
        yield writer.head(first.chat)
        async for piece in _rest(call):
            match piece.WhichOneof("piece"):
                case "message":
                    name_fields(piece.message.DESCRIPTOR).fill(piece.message, name_of)
                    yield writer.message(piece.message)
                case "complete":
                    yield writer.end(piece.complete.message_count)
                    return
        raise ExportCutOff
    finally:
        call.cancel()


async def _rest(call: Any) -> AsyncIterator[api.ExportChatResponse]:
    try:
        while (piece := await call.read()) is not grpc.aio.EOF:
            yield piece
    except grpc.aio.AioRpcError as error:
        raise ExportCutOff from error


def _format(text: str) -> ExportFormat:
    try:
        return ExportFormat(text)
    except ValueError:
        raise invalid_parameter("format", f"Give one of {', '.join(ExportFormat)}.") from None
