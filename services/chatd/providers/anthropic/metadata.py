"""What Anthropic wants back with a part, as it is stored: marked as its own, and nobody else's."""

import msgspec


class SearchHit(msgspec.Struct, frozen=True, tag="web_search_result", tag_field="type"):
    """A page that a web search found; its content is readable for Anthropic only."""

    url: str
    title: str
    encrypted_content: str
    page_age: str | msgspec.UnsetType | None = msgspec.UNSET


class SearchError(
    msgspec.Struct, frozen=True, tag="web_search_tool_result_error", tag_field="type"
):
    """Why a web search failed."""

    error_code: str


class SearchCitation(
    msgspec.Struct, frozen=True, tag="web_search_result_location", tag_field="type"
):
    """A passage of a page that was found and that the text beside this rests on."""

    cited_text: str
    encrypted_index: str
    url: str
    title: str | None = None


class AnthropicMetadata(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """All that can be kept with a part.

    Attributes:
        signature: Proves that a thought is Anthropic's own.
        redacted_data: A thought that only Anthropic can read.
        citations: What a text rests on.
        search: What a web search found; a result without it cannot be sent back.
        caller: Who made a provider-executed call, when it was not the model itself.
    """

    signature: str = ""
    redacted_data: str = ""
    citations: tuple[SearchCitation, ...] = ()
    search: tuple[SearchHit, ...] | SearchError | None = None
    caller: str = ""


class _Stored(msgspec.Struct, frozen=True):
    anthropic: AnthropicMetadata


_STORED = msgspec.json.Decoder(_Stored)
_ENCODER = msgspec.json.Encoder()
_NOTHING = AnthropicMetadata()


def written(own: AnthropicMetadata) -> str:
    """Return what is stored in `provider_metadata`; nothing is an empty text."""
    return "" if own == _NOTHING else _ENCODER.encode(_Stored(own)).decode()


def anthropic_metadata_of(provider_metadata: str) -> AnthropicMetadata:
    """Return what is Anthropic's own in a part; of another provider's there is nothing."""
    if not provider_metadata:
        return _NOTHING
    try:
        return _STORED.decode(provider_metadata).anthropic
    except (ValueError, RecursionError):
        return _NOTHING


def is_signed(own: AnthropicMetadata) -> bool:
    """Return whether a thought can be sent back."""
    return bool(own.signature or own.redacted_data)
