"""Anthropic's metadata of a part, as it is stored: under its own key, ignored by other formats."""

import msgspec


class SearchHit(msgspec.Struct, frozen=True, tag="web_search_result", tag_field="type"):
    """A page that a web search found; only Anthropic can read its content."""

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
    """A passage of a found page that is cited by the text of this part."""

    cited_text: str
    encrypted_index: str
    url: str
    title: str | None = None


class AnthropicMetadata(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The metadata that can be stored with a part.

    Attributes:
        signature: Proves that a thinking block was made by Anthropic.
        redacted_data: A thinking block that only Anthropic can read.
        citations: The citations of a text.
        search: The results of a web search; a result without it cannot be sent back.
        caller: What made a provider-executed call, when it was not the model itself.
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
    """Return the value of `provider_metadata`; empty if there is no metadata."""
    return "" if own == _NOTHING else _ENCODER.encode(_Stored(own)).decode()


def anthropic_metadata_of(provider_metadata: str) -> AnthropicMetadata:
    """Return Anthropic's metadata of a part; that of another provider is ignored."""
    if not provider_metadata:
        return _NOTHING
    try:
        return _STORED.decode(provider_metadata).anthropic
    except (ValueError, RecursionError):
        return _NOTHING


def is_signed(own: AnthropicMetadata) -> bool:
    """Return whether a thinking block can be sent back."""
    return bool(own.signature or own.redacted_data)
