"""The exchange of the call that further messages to its server belong to.

A message that is sent for a call beside its request, to resume its response, to cancel it or to
answer what its server asks, has an exchange of its own: the call was delivered before, whatever
becomes of the message. Only an answer for which the server waits ends the call if it is refused.
"""

from contextvars import ContextVar

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

from parley.egress.transport import EXCHANGE, Exchange

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
