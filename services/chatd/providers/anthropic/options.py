"""What an administrator can set for models of Anthropic, read and checked."""

from collections.abc import Mapping

import msgspec

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError
from chatd.models.engine.target import HOST_HEADER, Target, is_host_header


class Options(msgspec.Struct, frozen=True):
    """The options of a target that this wire format knows.

    Attributes:
        thinking: Sent as it is in place of what the reasoning effort would give.
        web_search: Whether the provider may search the web, or how.
        server_tools: More tools that the provider executes, as it wants them defined.
        context_1m: Whether to ask for the window of a million tokens, where that is a beta.
        betas: Names for the `anthropic-beta` header.
        prompt_caching: Whether to mark what the provider should cache.
        extra_headers: Headers that win over our own.
        extra_body: Fields of the body that win over our own.
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
        """Return the betas to ask for, each once."""
        wanted = ("context-1m-2025-08-07",) if self.context_1m else ()
        return tuple(dict.fromkeys((*wanted, *self.betas)))


def options_of(target: Target) -> Options:
    """Return the options of a target.

    Raises:
        ModelError: one of them is not what it must be.
    """
    try:
        options = msgspec.convert(target.options, Options)
    except msgspec.ValidationError as error:
        raise config_error(target, f"has an option that cannot be used: {error}.") from None
    if any(is_host_header(name) for name in options.extra_headers):
        raise config_error(target, HOST_HEADER)
    return options


def config_error(target: Target, what: str) -> ModelError:
    """Return the error that a call cannot be made as things are set up."""
    return ModelError(
        ErrorKind.CONFIG,
        f"{target.provider_name} {what}",
        is_retryable=False,
        provider=target.provider_name,
    )
