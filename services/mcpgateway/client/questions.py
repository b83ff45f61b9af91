"""What a running call asks a person, and its answer; all words of servers are untrusted.

A server of the current protocol ends its response with what it asks, and gets the same request
again with the answers. One of an older protocol sends a request of its own while the call runs; it
comes with the context of that call in the call's own response, and without any in the stream that a
session has beside its calls.
"""

import contextvars
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

import msgspec
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputResponses,
)

from mcpgateway.client.received import CALL_EXCHANGE
from mcpgateway.client.tool_names import canonical_json
from mcpgateway.client.translation import visible_schema, visible_text
from parley.egress.transport import EXCHANGE, Exchange

MESSAGE_CHARACTERS_MAX: Final = 4096
URL_CHARACTERS_MAX: Final = 2048
SCHEMA_BYTES_MAX: Final = 65536
FIELDS_MAX: Final = 50
FIELD_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array"})


class QuestionKind(StrEnum):
    """What kind of answer is needed; the names are those of the proto."""

    LOGIN = "login"
    ELICITATION = "elicitation"


class AnswerAction(StrEnum):
    """What a person decided; the names are those of the proto and of MCP."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class Question(msgspec.Struct, frozen=True):
    """What a call asks.

    Attributes:
        kind: What kind of answer is needed.
        message: What the person reads.
        schema_json: The schema of the answer's content; empty if none is needed.
        url: The address to open; empty for none.
        id: Unique within the call; empty until it is asked.
    """

    kind: QuestionKind
    message: str
    schema_json: bytes = b""
    url: str = ""
    id: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What was answered, with the content of an accepted form."""

    action: AnswerAction
    content_json: bytes = b""


Ask = Callable[[Question], Awaitable[Answer]]
_ASK: contextvars.ContextVar[Ask | None] = contextvars.ContextVar("ask", default=None)


class InvalidQuestion(Exception):
    """What a server asks cannot be shown to a person."""


class Elicitations:
    """Answers what the servers of older protocols ask on one connection."""

    def __init__(self) -> None:
        self._calls: list[tuple[Ask, Exchange | None]] = []

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """Ask the person of the call that the request belongs to."""
        ask = _ASK.get()
        if ask is None and len(self._calls) == 1:
            # It came without the context of a call, and this is the only one.
            ask, exchange = self._calls[0]
            CALL_EXCHANGE.set(exchange)
        if ask is None:
            text = "no call is known that this belongs to"
            return ErrorData(code=INVALID_REQUEST, message=text)
        return await answer_elicitation(params, ask)

    @contextmanager
    def calling(self, ask: Ask) -> Iterator[None]:
        """Ask by `ask` what is asked while the context lasts."""
        token = _ASK.set(ask)
        call = (ask, EXCHANGE.get())
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            _ASK.reset(token)


def elicitations_of(client: Client) -> Elicitations:
    """Return what answers the requests that come to a client."""
    callback = client.elicitation_callback
    assert isinstance(callback, Elicitations)
    return callback


async def answer_elicitation(params: ElicitRequestParams, ask: Ask) -> ElicitResult | ErrorData:
    """Ask a person what a server wants to know."""
    try:
        question = read_question(params)
    except InvalidQuestion as problem:
        return ErrorData(code=INVALID_PARAMS, message=str(problem))
    answer = await ask(question)
    has_content = answer.action is AnswerAction.ACCEPT and bool(question.schema_json)
    content = msgspec.json.decode(answer.content_json or b"{}") if has_content else None
    return ElicitResult(action=answer.action.value, content=content)


async def answer_all(requests: dict[str, InputRequest], ask: Ask) -> InputResponses | ErrorData:
    """Ask one after another what a server wants to know; an error if anything else is wanted."""
    responses: InputResponses = {}
    for key, request in requests.items():
        if not isinstance(request, ElicitRequest):
            text = f"{request.method} is not supported"
            return ErrorData(code=INVALID_REQUEST, message=text)
        answered = await answer_elicitation(request.params, ask)
        if isinstance(answered, ErrorData):
            return answered
        responses[key] = answered
    return responses


def read_question(params: ElicitRequestParams) -> Question:
    """Return what a server asks, as a person can be shown it.

    Raises:
        InvalidQuestion: It is no form of plain fields and no https address, or too long.
    """
    message = visible_text(params.message).strip()
    if not 1 <= len(message) <= MESSAGE_CHARACTERS_MAX:
        raise InvalidQuestion(f"the message must have 1 to {MESSAGE_CHARACTERS_MAX} characters")
    match params:
        case ElicitRequestURLParams(url=url):
            if not url.startswith("https://") or len(url) > URL_CHARACTERS_MAX:
                raise InvalidQuestion("the address must be https")
            return Question(QuestionKind.ELICITATION, message, url=visible_text(url))
        case ElicitRequestFormParams(requested_schema=schema):
            return Question(QuestionKind.ELICITATION, message, _form(schema))


def _form(schema: dict[str, Any]) -> bytes:
    try:
        visible = visible_schema(schema)
    except RecursionError:
        raise InvalidQuestion("the schema is too deep") from None
    fields = visible.get("properties")
    if visible.get("type") != "object" or not isinstance(fields, dict):
        raise InvalidQuestion("the schema must be of an object with properties")
    if len(fields) > FIELDS_MAX:
        raise InvalidQuestion(f"the schema has more than {FIELDS_MAX} properties")
    for name, field in fields.items():
        if not isinstance(field, dict) or field.get("type") not in FIELD_TYPES:
            raise InvalidQuestion(f"the property {name[:100]!r} is of no plain type")
    required = visible.get("required", [])
    if not isinstance(required, list) or not set(map(str, required)) <= set(fields):
        raise InvalidQuestion("the schema requires properties that it does not have")
    encoded = canonical_json(visible)
    if len(encoded) > SCHEMA_BYTES_MAX:
        raise InvalidQuestion(f"the schema exceeds {SCHEMA_BYTES_MAX} bytes")
    return encoded
