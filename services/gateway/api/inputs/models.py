"""The bodies of requests about models, providers, settings and limits.

In a patch an absent field is not changed, and null removes its value.
"""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from gateway.api.inputs.chats import Count, Effort, Id, JsonObject, Name

PROMPT_CHARACTERS_MAX = 128 * 1024
DAYS_MAX = 3650
#: In US dollars per million tokens.
PRICE_MAX = 999_999_999

Price = Annotated[float, msgspec.Meta(ge=0, le=PRICE_MAX)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Days = Annotated[int, msgspec.Meta(ge=0, le=DAYS_MAX)]
Address = Annotated[str, msgspec.Meta(max_length=2048)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]
Prompt = Annotated[str, msgspec.Meta(max_length=PROMPT_CHARACTERS_MAX)]
ShortName = Annotated[
    str,
    msgspec.Meta(
        pattern="^[a-z0-9]+(-[a-z0-9]+)*$",
        max_length=64,
        description="words of a-z and 0-9 with '-' between them",
    ),
]
ModelName = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Thresholds = Annotated[dict[Id, Percent], msgspec.Meta(max_length=1000)]


class ProviderType(StrEnum):
    """A family of wire protocols."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OPENAI_COMPATIBLE = "openai_compatible"
    AZURE = "azure"
    BEDROCK = "bedrock"


class LimitPeriod(StrEnum):
    """A span over which spending is limited."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class PricesInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices in US dollars per million tokens; null is unknown, and 0 is free."""

    input: Price | None = None
    output: Price | None = None
    cache_read: Price | None = None
    cache_write: Price | None = None


class NewModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /models; 0 takes what is known of the model, or the default."""

    provider_id: Id
    name: ModelName
    display_name: Name = ""
    enabled: bool = True
    is_default: bool = False
    context_limit_tokens: Count = 0
    output_limit_tokens: Count = 0
    compaction_threshold_percent: Percent = 0
    default_effort: Effort | None = None
    max_effort: Effort | None = None
    prices: PricesInput | None = None
    options: JsonObject | None = None


class ModelPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /models/{model_id}; prices and options are replaced as a whole."""

    name: ModelName | UnsetType = UNSET
    display_name: Name | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    is_default: bool | UnsetType = UNSET
    context_limit_tokens: Count | UnsetType | None = UNSET
    output_limit_tokens: Count | UnsetType | None = UNSET
    compaction_threshold_percent: Percent | UnsetType | None = UNSET
    default_effort: Effort | UnsetType | None = UNSET
    max_effort: Effort | UnsetType | None = UNSET
    prices: PricesInput | UnsetType | None = UNSET
    options: JsonObject | UnsetType | None = UNSET


class NewOverride(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PUT /model-overrides/{purpose}."""

    model_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    reasoning_effort: Effort | None = None


class NewProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /providers."""

    name: ShortName
    type: ProviderType
    display_name: Name = ""
    base_url: Address = ""
    enabled: bool = True
    user_keys_allowed: bool = False
    options: JsonObject | None = None


class ProviderPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /providers/{provider_id}; options are replaced as a whole.

    A key replaces the stored keys of the installation, null removes them. One of the two is needed
    when a change would send stored keys to another scheme, host or port; users' own keys of the
    provider are removed then.
    """

    name: ShortName | UnsetType = UNSET
    type: ProviderType | UnsetType = UNSET
    display_name: Name | UnsetType | None = UNSET
    base_url: Address | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    user_keys_allowed: bool | UnsetType = UNSET
    options: JsonObject | UnsetType | None = UNSET
    key: Key | UnsetType | None = UNSET


class NewProviderKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /provider-keys and /me/provider-keys; the key is never told again."""

    provider_id: Id
    key: Key


class InstallationPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /settings."""

    system_prompt: Prompt | UnsetType | None = UNSET
    include_default_system_prompt: bool | UnsetType = UNSET
    plan_mode_instructions: Prompt | UnsetType | None = UNSET
    compact_on_final_step: bool | UnsetType = UNSET
    workspace_ttl_ms: Count | UnsetType | None = UNSET
    auto_archive_days: Days | UnsetType | None = UNSET
    retention_days: Days | UnsetType | None = UNSET
    running_chats_per_user_max: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | UnsetType | None = (
        UNSET
    )


class UserSettingsPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /me/settings; thresholds are replaced as a whole."""

    custom_prompt: Prompt | UnsetType | None = UNSET
    compaction_threshold_percents: Thresholds | UnsetType | None = UNSET


class NewSpendLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PUT /spend-limits/...; DELETE takes a limit away."""

    limit_micros: Annotated[int, msgspec.Meta(ge=1, le=10**13)]
    period: LimitPeriod = LimitPeriod.MONTH
