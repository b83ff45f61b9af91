"""Messages of the Model Context Protocol over standard input and output: one JSON object a line.

Everything that is decoded here was written by a program that is not trusted, so a message that is
not understood is None and never an error.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

PROTOCOL_VERSION: Final = "2025-11-25"
#: A longer line ends the session: it would have to be kept in memory.
LINE_BYTES_MAX: Final = 8 * 1024 * 1024
#: The same for answers that are no results of calls, which need far less.
LISTING_LINE_BYTES_MAX: Final = 1024 * 1024
#: Begins the line that says that the server ended, before its exit code.
EXITED: Final = "parley-server-exit:"
METHOD_NOT_FOUND: Final = -32601
MESSAGE_CHARACTERS_MAX: Final = 1000
#: Values inside values that a decoder follows however it is called.
DEPTH_ALWAYS_READ: Final = 256
REQUEST_ID_CHARACTERS_MAX: Final = 128

INITIALIZE: Final = "initialize"
INITIALIZED: Final = "notifications/initialized"
LIST_TOOLS: Final = "tools/list"
CALL_TOOL: Final = "tools/call"
LIST_RESOURCES: Final = "resources/list"
READ_RESOURCE: Final = "resources/read"
LIST_PROMPTS: Final = "prompts/list"
GET_PROMPT: Final = "prompts/get"
#: Requests whose answers may be large, and which report progress.
CALLS: Final = frozenset({CALL_TOOL, READ_RESOURCE, GET_PROMPT})
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
PING: Final = "ping"

OPENING: Final = {
    "protocolVersion": PROTOCOL_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "parley", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: a result, or why there is none."""

    request_id: int
    result: dict[str, Any]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the server, which gets an answer."""

    request_id: str | int
    method: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call."""

    request_id: int
    progress: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The tools of the server changed."""


Received = Answer | Request | Progress | ToolsChanged


def request_line(request_id: int, method: str, params: dict[str, Any]) -> bytes:
    """Encode a request."""
    return _line({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_line(method: str, params: dict[str, Any] | None = None) -> bytes:
    """Encode a notification, which gets no answer."""
    document = {"jsonrpc": "2.0", "method": method}
    return _line(document if params is None else {**document, "params": params})


def reply_line(request: Request) -> bytes:
    """Encode the answer to a request of the server; nothing is offered to servers but a ping."""
    document: dict[str, Any] = {"jsonrpc": "2.0", "id": request.request_id}
    if request.method == PING:
        return _line({**document, "result": {}})
    message = "this client does not offer that"
    return _line({**document, "error": {"code": METHOD_NOT_FOUND, "message": message}})


def received(line: bytes) -> Received | None:
    """Decode a line; None for one that is not understood."""
    try:
        document = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    method, request_id = document.get("method"), document.get("id")
    if isinstance(method, str):
        if isinstance(request_id, str | int):
            if not _is_answerable(request_id):
                return None
            return Request(request_id, method[:MESSAGE_CHARACTERS_MAX])
        return _notification(method, document.get("params"))
    return _answer(request_id, document)


def is_too_deep(line: bytes) -> bool:
    """Return whether a line cannot be decoded because of values inside values."""
    if line.count(b"[") + line.count(b"{") < DEPTH_ALWAYS_READ:
        return False
    try:
        msgspec.json.decode(line)
    except RecursionError:
        return True
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return False


def _is_answerable(request_id: str | int) -> bool:
    """Return whether an id is short enough to be sent back in an answer."""
    if isinstance(request_id, str):
        return len(request_id) <= REQUEST_ID_CHARACTERS_MAX
    return request_id.bit_length() < 64


def _notification(method: str, params: Any) -> Received | None:
    if method == TOOLS_CHANGED:
        return ToolsChanged()
    if method != PROGRESS or not isinstance(params, dict):
        return None
    token, progress, total = (params.get(key) for key in ("progressToken", "progress", "total"))
    if not isinstance(token, int) or not isinstance(progress, int | float):
        return None
    message = params.get("message")
    try:
        done, whole = float(progress), float(total) if isinstance(total, int | float) else None
    except OverflowError:
        return None
    return Progress(
        token,
        done,
        whole,
        message[:MESSAGE_CHARACTERS_MAX] if isinstance(message, str) else "",
    )


def _answer(request_id: Any, document: dict[str, Any]) -> Answer | None:
    if not isinstance(request_id, int):
        return None
    result, error = document.get("result"), document.get("error")
    if isinstance(result, dict):
        return Answer(request_id, result)
    message = error.get("message") if isinstance(error, dict) else None
    text = message if isinstance(message, str) and message else "it refused without a reason"
    return Answer(request_id, {}, text[:MESSAGE_CHARACTERS_MAX])


def _line(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document) + b"\n"
