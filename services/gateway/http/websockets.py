"""WebSockets as requests: handshakes are processed like all requests, and may then be accepted.

A handshake is routed, checked and refused like a GET, so an error is a problem document here too. A
handler that accepts the connection returns an ASGI application for it.
"""

from typing import Final

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from gateway.http.problems.errors import HttpProblem

_SOCKET: Final = "parley.websocket"


def is_websocket(scope: Scope) -> bool:
    """Return whether a request is a WebSocket handshake."""
    return bool(scope.get(_SOCKET))


def require_websocket(request: Request) -> None:
    """Reject a request that is not a handshake.

    Raises:
        HttpProblem: It is a plain request (426).
    """
    if not is_websocket(request.scope):
        raise HttpProblem.of(
            "UPGRADE_REQUIRED",
            "This path is a WebSocket: connect with a client for those, version 13.",
            headers={"upgrade": "websocket", "connection": "upgrade"},
        )


def as_request(scope: Scope) -> Scope:
    """Return the handshake as the GET request that it is."""
    return {**scope, "type": "http", "method": "GET", _SOCKET: True}


def refusing(send: Send) -> Send:
    """Return a `send` that sends a response instead of accepting the connection."""

    async def sending(message: Message) -> None:
        if message["type"].startswith("http.response."):
            message = {**message, "type": f"websocket.{message['type']}"}
        await send(message)

    return sending


async def closed(receive: Receive, send: Send, code: int, reason: str = "") -> None:
    """Close the connection, and discard input until the client has closed it."""
    await send({"type": "websocket.close", "code": code, "reason": reason})
    while (await receive())["type"] != "websocket.disconnect":
        pass
