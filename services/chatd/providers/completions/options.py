"""Administrator options for endpoints of this format, and their defaults."""

from collections.abc import Set
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from chatd.models.domain.catalogue import ProviderType
from chatd.models.engine.target import Target
from chatd.providers.attachments import Accepted
from chatd.providers.openai_addresses import config_error
from chatd.providers.openai_tools import thinks

_ROUTER_HOSTS = ("openrouter.ai", "ai-gateway.vercel.sh")
_ROUTER_FILES = frozenset({Accepted.IMAGE, Accepted.AUDIO, Accepted.PDF})
_FILES = _ROUTER_FILES | {Accepted.TEXT}
# Fields that we set ourselves, or without which the answer could not be decoded.
_RESERVED = frozenset({"messages", "stream", "tools"})


class ReasoningReplay(StrEnum):
    """How an endpoint wants reasoning sent back; most reject or ignore it."""

    NONE = "none"
    REASONING_CONTENT = "reasoning_content"
    REASONING = "reasoning"
    REASONING_DETAILS = "reasoning_details"


class Options(msgspec.Struct, frozen=True):
    """The options of this format; None means the default of the endpoint's kind.

    Attributes:
        stream_usage: Request the usage; off for endpoints that reject `stream_options`.
        max_tokens_field: The name of the field with the output limit.
        system_role: The role of system messages.
        reasoning_replay: How reasoning is sent back.
        store: Whether the endpoint stores the answer.
        parallel_tool_calls: Whether several tools may be called at once.
        cache_control: Set cache breakpoints for Anthropic, behind OpenRouter or Vercel.
        accepted_files: Kinds of files that the model accepts; images of tools depend on it too.
        image_detail: The detail level of images.
        extra_body: Fields to add to every request.
    """

    stream_usage: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    system_role: Literal["system", "developer", "user"] = "system"
    reasoning_replay: ReasoningReplay | None = None
    store: bool | None = None
    parallel_tool_calls: bool | None = None
    cache_control: bool = False
    accepted_files: frozenset[Accepted] | None = None
    image_detail: Literal["auto", "low", "high"] | None = None
    extra_body: dict[str, object] = {}


def options_of(target: Target) -> Options:
    """Return the options of a target, with the defaults of its kind filled in.

    Raises:
        ModelError: One of them is invalid.
    """
    try:
        configured = msgspec.convert(dict(target.options), Options)
    except msgspec.ValidationError as error:
        raise config_error(target, f"has an option that is not usable: {error}.") from None
    if reserved := sorted(_RESERVED & configured.extra_body.keys()):
        raise config_error(
            target, f"has an option extra_body with {', '.join(reserved)}; remove it there."
        )
    return msgspec.structs.replace(
        configured,
        max_tokens_field=configured.max_tokens_field or _max_tokens_field(target),
        reasoning_replay=configured.reasoning_replay or _reasoning_replay(target),
        store=_store(target) if configured.store is None else configured.store,
        accepted_files=_files(target)
        if configured.accepted_files is None
        else configured.accepted_files,
    )


def _is_router(target: Target) -> bool:
    host = urlsplit(target.base_url).hostname or ""
    return any(host == each or host.endswith(f".{each}") for each in _ROUTER_HOSTS)


def _max_tokens_field(target: Target) -> Literal["max_tokens", "max_completion_tokens"]:
    match target.provider_type:
        case ProviderType.AZURE:
            return "max_completion_tokens"
        case ProviderType.OPENAI:
            return "max_completion_tokens" if thinks(target) else "max_tokens"
        case _:
            return "max_tokens"


def _reasoning_replay(target: Target) -> ReasoningReplay:
    return ReasoningReplay.REASONING_DETAILS if _is_router(target) else ReasoningReplay.NONE


def _store(target: Target) -> bool | None:
    return True if target.provider_type is ProviderType.OPENAI else None


def _files(target: Target) -> Set[Accepted]:
    return _ROUTER_FILES if _is_router(target) else _FILES
