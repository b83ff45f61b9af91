"""Messages of servers, read and checked before the SDK sees them.

The SDK gives an answer to any request of its session that has the same id, and its errors about
messages contain texts of its parser. A progress notification with a number that is too large for a
float ends its session, with all calls.
"""

import logging
import math
from contextvars import ContextVar
from typing import Any

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from parley.egress.transport import EXCHANGE, Exchange

Answer = JSONRPCResponse | JSONRPCError

logger = logging.getLogger(__name__)


class Unreadable(Exception):
    """What was received is no JSON-RPC message."""


def read_message(data: bytes | str) -> JSONRPCMessage:
    """Return the message that a body or an event is.

    Raises:
        Unreadable: It is none.
    """
    try:
        return jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError as error:
        logger.debug("a message of an MCP server cannot be read: %s", error)
        raise Unreadable from None


def is_answer_to(message: Answer, request_id: RequestId) -> bool:
    """Return whether an answer in the response to a request is that of the request.

    An error without an id is one: its server could not read the request, or did not look at it.
    """
    return message.id is None or coerce_request_id(message.id) == coerce_request_id(request_id)


def usable_message(message: JSONRPCMessage) -> JSONRPCMessage | None:
    """Return a message with which the SDK can work; None if it is of no use.

    Of progress, the part is needed that is done; a total that is no number is left out.
    """
    if not isinstance(message, JSONRPCNotification) or message.method != "notifications/progress":
        return message
    params = message.params or {}
    if not _is_number(params.get("progress")):
        logger.debug("progress of an MCP server is no number and is dropped")
        return None
    if params.get("total") is None or _is_number(params["total"]):
        return message
    kept = {name: value for name, value in params.items() if name != "total"}
    return message.model_copy(update={"params": kept})


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a float can have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


#: The exchange of the call to which messages that are sent in this context belong.
CALL_EXCHANGE: ContextVar[Exchange | None] = ContextVar("call_exchange", default=None)


def begin_exchange() -> Exchange:
    """Give the requests that follow in the current context an exchange of their own."""
    before = EXCHANGE.get()
    exchange = Exchange(depth_max=None if before is None else before.depth_max)
    EXCHANGE.set(exchange)
    return exchange


def is_awaited(message: JSONRPCMessage) -> bool:
    """Return whether a message answers a request of the server; a ping has an empty answer."""
    if isinstance(message, JSONRPCResponse):
        return bool(message.result)
    return isinstance(message, JSONRPCError)


def fail_call(error: Exception) -> None:
    """Record why the call that the current context belongs to has no answer."""
    exchange = CALL_EXCHANGE.get()
    if exchange is not None and exchange.error is None:
        exchange.fail(error)
