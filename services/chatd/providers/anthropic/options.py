"""Administrator options for models of Anthropic, parsed and validated."""

from collections.abc import Mapping

import msgspec

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError
from chatd.models.engine.target import HOST_HEADER, Target, is_host_header


class Options(msgspec.Struct, frozen=True):
    """The options of a target in this wire format.

    Attributes:
        thinking: Sent unchanged in place of the fields derived from the reasoning effort.
        web_search: Whether the provider may search the web, or the tool's settings.
        server_tools: More tools that the provider executes, as Anthropic defines them.
        context_1m: Whether to request the context window of a million tokens, where that is a beta.
        betas: Names for the `anthropic-beta` header.
        prompt_caching: Whether to set cache breakpoints.
        extra_headers: Headers that override our own.
        extra_body: Fields of the body that override our own.
        region: Region of AWS; Bedrock only.
    """

    thinking: dict[str, object] | None = None
    web_search: bool | dict[str, object] = False
    server_tools: tuple[dict[str, object], ...] = ()
    context_1m: bool = False
    betas: tuple[str, ...] = ()
    prompt_caching: bool = True
    extra_headers: Mapping[str, str] = {}
    extra_body: Mapping[str, object] = {}
    region: str = ""

    @property
    def all_betas(self) -> tuple[str, ...]:
        """Return the betas to request, each once."""
        wanted = ("context-1m-2025-08-07",) if self.context_1m else ()
        return tuple(dict.fromkeys((*wanted, *self.betas)))


def options_of(target: Target) -> Options:
    """Return the options of a target.

    Raises:
        ModelError: One of them is invalid.
    """
    try:
        options = msgspec.convert(target.options, Options)
    except msgspec.ValidationError as error:
        raise config_error(target, f"has an option that cannot be used: {error}.") from None
    if any(is_host_header(name) for name in options.extra_headers):
        raise config_error(target, HOST_HEADER)
    return options


def config_error(target: Target, what: str) -> ModelError:
    """Return the error of a call that the configuration makes impossible."""
    return ModelError(
        ErrorKind.CONFIG,
        f"{target.provider_name} {what}",
        is_retryable=False,
        provider=target.provider_name,
    )
