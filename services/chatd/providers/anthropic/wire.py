"""The wire format of Anthropic Messages."""

from collections.abc import Mapping

from chatd.models.domain.catalogue import ANTHROPIC_BASE_URL
from chatd.models.domain.language_model import ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.anthropic.decoder import AnthropicDecoder
from chatd.providers.anthropic.options import Options, options_of
from chatd.providers.anthropic.request import body_of, encoded
from chatd.providers.wire import Decoder, HttpRequest

VERSION = "2023-06-01"


class AnthropicWire:
    """The wire format of Anthropic and compatible endpoints."""

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        """Return the HTTP request.

        Raises:
            ModelError: The provider would reject it.
        """
        options = options_of(target)
        body = {"model": target.model_name, "stream": True}
        body |= body_of(request, target, options)
        body |= options.extra_body
        headers = {
            "content-type": "application/json",
            "anthropic-version": VERSION,
            "x-api-key": target.api_key.reveal(),
        }
        if options.all_betas:
            headers["anthropic-beta"] = ",".join(options.all_betas)
        return HttpRequest(
            url=_url(target.base_url or ANTHROPIC_BASE_URL),
            headers={**headers, **caller_headers(request), **extra_headers(options)},
            body=encoded(body),
        )

    def decoder(self) -> Decoder:
        """Return a decoder for one answer."""
        return AnthropicDecoder()


def caller_headers(request: ModelRequest) -> Mapping[str, str]:
    """Return headers that identify owner and chat of a call to an API gateway."""
    headers = {"x-parley-owner-id": request.owner_id, "x-parley-chat-id": request.chat_id}
    return {name: value for name, value in headers.items() if value}


def extra_headers(options: Options) -> Mapping[str, str]:
    """Return the headers that an administrator set."""
    return {name.lower(): value for name, value in options.extra_headers.items()}


def _url(base_url: str) -> str:
    return f"{base_url.removesuffix('/v1')}/v1/messages"
