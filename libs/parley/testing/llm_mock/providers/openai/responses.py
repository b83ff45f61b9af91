"""OpenAI Responses, at OpenAI and at Azure."""

from collections.abc import Mapping

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.dialect import Event, server_sent
from parley.testing.llm_mock.exchange.parsing import ParseError, read
from parley.testing.llm_mock.exchange.request import HttpRequest, ParsedRequest, Reply
from parley.testing.llm_mock.providers.openai import errors as openai_errors
from parley.testing.llm_mock.providers.openai import responses_encoding as responses_answer
from parley.testing.llm_mock.providers.openai.responses_request import (
    Body,
    check,
    items_of,
    parsed_request_of,
)
from parley.testing.llm_mock.providers.openai.responses_validation import check_items

TOO_LONG = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)
ERROR = {
    "type": "error",
    "sequence_number": 0,
    "code": "server_error",
    "message": "An error occurred while processing your request.",
    "param": None,
}


class OpenAIResponses:
    """The protocol of OpenAI's newer models."""

    def question(self, request: HttpRequest) -> ParsedRequest:
        """Parse the request."""
        openai_errors.authorise(request)
        try:
            body = read(request.body, Body)
            items = items_of(body)
        except ParseError as error:
            raise openai_errors.refusal_of(error) from error
        check(body, items)
        question = parsed_request_of(body, items)
        check_items(items)
        return question

    def events(self, reply: Reply) -> list[Event]:
        """Return the whole stream."""
        return list(responses_answer.events(reply))

    def whole(self, reply: Reply) -> bytes:
        """Return the answer as one body."""
        return responses_answer.whole(reply)

    def framed(self, event: Event) -> bytes:
        """Return a server-sent event."""
        return server_sent(event)

    def refusal(self, refused: Refused) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a refusal."""
        return {}, openai_errors.refusal_body(refused)

    def overflow(self, tokens: int, tokens_max: int) -> Refused:
        """Return the refusal of a prompt that is too long."""
        return Refused(400, TOO_LONG, param="input", code="context_length_exceeded")

    def quota(self) -> Refused:
        """Return the refusal for an exhausted quota."""
        return openai_errors.no_quota()

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        return Event("error", msgspec.json.encode(ERROR))

    @property
    def heartbeat(self) -> bytes:
        """Return an event without content."""
        return server_sent(Event("keepalive", b'{"type":"keepalive","sequence_number":0}'))

    @property
    def stream_type(self) -> str:
        """Return the content type of a stream."""
        return "text/event-stream; charset=utf-8"
