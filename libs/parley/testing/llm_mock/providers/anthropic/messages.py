"""Anthropic Messages, directly and through Bedrock."""

import re
from collections.abc import Mapping
from urllib.parse import unquote

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.dialect import Event, server_sent
from parley.testing.llm_mock.exchange.parsing import ParseError
from parley.testing.llm_mock.exchange.placeholders import IDENTITY
from parley.testing.llm_mock.exchange.request import HttpRequest, ParsedRequest, Reply
from parley.testing.llm_mock.providers.anthropic import encoding as anthropic_answer
from parley.testing.llm_mock.providers.anthropic.aws import (
    STREAM_TYPE,
    authorise,
    event_message,
    exception_message,
)
from parley.testing.llm_mock.providers.anthropic.request import (
    VERSION_PATTERN,
    messages_of,
    parsed_request_of,
    read_bedrock_body,
    read_body,
    refusal_of,
)
from parley.testing.llm_mock.providers.anthropic.validation import check

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}
NO_CREDIT = (
    "Your credit balance is too low to access the Anthropic API. "
    "Please go to Plans & Billing to upgrade or purchase credits."
)
AWS_ERRORS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


class AnthropicMessages:
    """The protocol of api.anthropic.com."""

    def question(self, request: HttpRequest) -> ParsedRequest:
        """Parse the request."""
        if not _has_key(request.headers):
            raise Refused(401, "x-api-key header is required")
        version = request.headers.get("anthropic-version")
        if version is None:
            raise Refused(400, "anthropic-version: header is required")
        if not re.fullmatch(VERSION_PATTERN, version):
            raise Refused(400, f'anthropic-version: "{version}" is not a valid version')
        try:
            body = read_body(request.body)
            said = messages_of(body)
        except ParseError as error:
            raise refusal_of(error) from error
        check(body, said)
        return parsed_request_of(body, said, body.model, is_streamed=body.stream)

    def events(self, reply: Reply) -> list[Event]:
        """Return the whole stream."""
        return list(anthropic_answer.events(reply))

    def whole(self, reply: Reply) -> bytes:
        """Return the answer as one body."""
        return anthropic_answer.whole(reply)

    def framed(self, event: Event) -> bytes:
        """Return a server-sent event."""
        return server_sent(event)

    def refusal(self, refused: Refused) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a refusal."""
        kind = refused.type or ERROR_TYPES.get(refused.status, "api_error")
        error = {"type": kind, "message": refused.message}
        body = {"type": "error", "error": error, "request_id": f"req_{IDENTITY}"}
        return {}, msgspec.json.encode(body)

    def overflow(self, tokens: int, tokens_max: int) -> Refused:
        """Return the refusal of a prompt that is too long."""
        return Refused(400, f"prompt is too long: {tokens} tokens > {tokens_max} maximum")

    def quota(self) -> Refused:
        """Return the refusal for an exhausted quota."""
        return Refused(400, NO_CREDIT)

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        return Event("error", msgspec.json.encode({"type": "error", "error": OVERLOADED}))

    @property
    def heartbeat(self) -> bytes:
        """Return a ping."""
        return server_sent(Event("ping", b'{"type":"ping"}'))

    @property
    def stream_type(self) -> str:
        """Return the content type of a stream."""
        return "text/event-stream; charset=utf-8"


class BedrockMessages(AnthropicMessages):
    """The same protocol with Bedrock's signature and framing."""

    def question(self, request: HttpRequest) -> ParsedRequest:
        """Parse the request for the model in its path."""
        authorise(request)
        # An ARN contains slashes, which are part of a name only while they are encoded.
        _, _, model, operation = map(unquote, request.target.partition("?")[0].split("/", 3))
        try:
            body = read_bedrock_body(request.body)
            said = messages_of(body)
        except ParseError as error:
            raise refusal_of(error) from error
        check(body, said)
        is_streamed = operation == "invoke-with-response-stream"
        return parsed_request_of(body, said, model, is_streamed=is_streamed)

    def framed(self, event: Event) -> bytes:
        """Return a message of the AWS event stream."""
        if event.name == "error":
            return exception_message("throttlingException", "Too many requests, please wait.")
        return event_message(event.data)

    def refusal(self, refused: Refused) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a refusal."""
        name = AWS_ERRORS.get(refused.status, "InternalServerException")
        return {"x-amzn-errortype": name}, msgspec.json.encode({"message": refused.message})

    @property
    def heartbeat(self) -> bytes:
        """Return a ping."""
        return event_message(b'{"type":"ping"}')

    @property
    def stream_type(self) -> str:
        """Return the content type of a stream."""
        return STREAM_TYPE


def _has_key(headers: Mapping[str, str]) -> bool:
    bearer = headers.get("authorization", "").removeprefix("Bearer").strip()
    return bool(headers.get("x-api-key") or bearer)
