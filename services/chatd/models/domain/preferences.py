"""Settings that users change at run time: the installation's and each user's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chatd.models.domain.own_model import (
    CHAT_DEFAULT,
    INSTALLATION_DEFAULT,
    OwnModel,
    OwnPurpose,
)
from chatd.models.domain.profile import THRESHOLD_PERCENT

ADVISOR_USES_PER_TURN = 3
ADVISOR_OUTPUT_TOKENS = 16_384
#: The fallback model of a chat that has none, whatever the installation has.
NO_FALLBACK = "none"


@dataclass(frozen=True, slots=True)
class AdvisorSettings:
    """The settings of the advisor, beside the model that is configured for it.

    Attributes:
        is_enabled: Whether root chats may ask it.
        uses_per_turn_max: How often it may be asked in a turn; 0 for the default.
        output_tokens_max: Size limit of its answer; 0 for the default.
    """

    is_enabled: bool = False
    uses_per_turn_max: int = 0
    output_tokens_max: int = 0

    @property
    def uses_max(self) -> int:
        """How often it may be asked in a turn."""
        return self.uses_per_turn_max or ADVISOR_USES_PER_TURN

    @property
    def tokens_max(self) -> int:
        """The size limit of its answer."""
        return self.output_tokens_max or ADVISOR_OUTPUT_TOKENS


@dataclass(frozen=True, slots=True)
class InstallationSettings:
    """The settings of the installation.

    Attributes:
        system_prompt: Instructions that every new chat begins with.
        include_default_system_prompt: Whether Parley's own instructions come before them; if not
            set, they do if there are no others.
        plan_mode_instructions: More instructions for plan mode.
        compact_on_final_step: Whether a last answer that crosses the threshold is summarised and
            continued from.
        workspace_ttl_ms: Lifetime of a workspace that a chat makes; 0 for its template's.
        auto_archive_days: After how many days an unused chat is archived; 0 never.
        retention_days: After how many days an archived chat is deleted; 0 never.
        running_chats_per_user_max: Chats of one user that run at once; 0 for the limit that the
            processes were started with.
        untrusted_repositories: Whether files of cloned repositories are content from outside, after
            which calls that could carry data out need an approval.
        advisor: The settings of the advisor.
        fallback_model_id: The model that continues a turn when the provider of its own is down or
            over quota; empty for none.
        retention_notice_days: How many days before its end the owner of a chat is told.
        own_model_overrides_allowed: Whether users' own models for chats and agents have an effect.
    """

    system_prompt: str = ""
    include_default_system_prompt: bool | None = None
    plan_mode_instructions: str = ""
    compact_on_final_step: bool = True
    workspace_ttl_ms: int = 0
    auto_archive_days: int = 0
    retention_days: int = 0
    running_chats_per_user_max: int = 0
    untrusted_repositories: bool = False
    advisor: AdvisorSettings = AdvisorSettings()
    retention_notice_days: int = 7
    fallback_model_id: str = ""
    own_model_overrides_allowed: bool = True

    @property
    def has_default_prompt(self) -> bool:
        """Return whether Parley's own instructions are used."""
        if self.include_default_system_prompt is None:
            return not self.system_prompt.strip()
        return self.include_default_system_prompt


@dataclass(frozen=True, slots=True)
class UserSettings:
    """The settings of one user.

    Attributes:
        custom_prompt: The user's own instructions.
        compaction_threshold_percents: How full the context of a model may be, by its id.
        favourite_model_ids: The models that come first in the user's lists.
        hidden_model_ids: The models that the user's pickers leave out.
        root_model: The model of chats for which none was chosen.
        general_model: The model of agents that these chats start.
        explore_model: The model of agents that only read and search.
    """

    custom_prompt: str = ""
    compaction_threshold_percents: Mapping[str, int] = field(default_factory=dict)
    favourite_model_ids: tuple[str, ...] = ()
    hidden_model_ids: tuple[str, ...] = ()
    root_model: OwnModel = CHAT_DEFAULT
    general_model: OwnModel = INSTALLATION_DEFAULT
    explore_model: OwnModel = INSTALLATION_DEFAULT

    def threshold_percent(self, model_id: str, configured_percent: int) -> int:
        """Return the threshold of a model: the user's, else the configured, else the default."""
        wanted = self.compaction_threshold_percents.get(model_id, configured_percent)
        return wanted if 0 <= wanted <= 100 else THRESHOLD_PERCENT

    def own_model(self, purpose: OwnPurpose) -> OwnModel:
        """Return the own model of a purpose."""
        match purpose:
            case OwnPurpose.ROOT:
                return self.root_model
            case OwnPurpose.GENERAL:
                return self.general_model
            case OwnPurpose.EXPLORE:
                return self.explore_model
