"""SettingsService: settings of the installation and of users."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import grpc

from chatd.models.domain.catalogue import Catalogue, ModelOverride, Purpose
from chatd.models.domain.errors import ModelNotFound
from chatd.models.domain.preferences import AdvisorSettings, InstallationSettings, UserSettings
from chatd.models.domain.profile import ReasoningEffort
from chatd.models.rpc.convert import EFFORT, EFFORT_OF
from chatd.models.rpc.fields import masked
from chatd.models.rpc.own_models import OwnModelMethods
from chatd.models.store.preferences import Preferences
from chatd.primitives.domain.errors import InvalidRequest, UnknownIds
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import settings_pb2
from parley.api.chat.v1 import settings_service_pb2 as api

Context = grpc.aio.ServicerContext

TTL_MS_MIN = 60_000
TTL_MS_MAX = 30 * 24 * 3600 * 1000
CUSTOM_PROMPT = "custom_prompt"
FALLBACK = "fallback_model_id"
THRESHOLDS = "compaction_threshold_percents"
MODEL_LISTS = ("favourite_model_ids", "hidden_model_ids")

#: The advisor has methods of its own, which set its model as well.
INSTALLATION_FIELDS = tuple(
    name for name in InstallationSettings.__dataclass_fields__ if name != "advisor"
)
#: Own models have methods of their own.
USER_FIELDS = (CUSTOM_PROMPT, THRESHOLDS, *MODEL_LISTS)


class SettingsServicer(OwnModelMethods):
    """Serves settings; errors are mapped to statuses by the server's table.

    Args:
        preferences: The store of settings.
        catalogue: Returns the catalogue of models.
    """

    def __init__(
        self, preferences: Preferences, catalogue: Callable[[], Awaitable[Catalogue]]
    ) -> None:
        super().__init__(preferences, catalogue)

    async def GetInstallationSettings(
        self, request: api.GetInstallationSettingsRequest, context: Context
    ) -> api.GetInstallationSettingsResponse:
        """Return the settings of the installation."""
        settings = await self._preferences.installation()
        return api.GetInstallationSettingsResponse(settings=_installation(settings))

    async def UpdateInstallationSettings(
        self, request: api.UpdateInstallationSettingsRequest, context: Context
    ) -> api.UpdateInstallationSettingsResponse:
        """Update the settings of the installation."""
        changed = masked(tuple(request.update_mask.paths), INSTALLATION_FIELDS)
        checked = _checked_installation(request.settings)
        values = {name: checked[name] for name in sorted(changed)}
        if values.get(FALLBACK):
            values[FALLBACK] = await self._known_model_id(str(values[FALLBACK]))
        settings = await self._preferences.change_installation(values)
        return api.UpdateInstallationSettingsResponse(settings=_installation(settings))

    async def GetAdvisorSettings(
        self, request: api.GetAdvisorSettingsRequest, context: Context
    ) -> api.GetAdvisorSettingsResponse:
        """Return the settings of the advisor, with its model."""
        catalogue = await self._catalogue()
        settings = _advisor(catalogue.settings.advisor, catalogue.overrides.get(Purpose.ADVISOR))
        return api.GetAdvisorSettingsResponse(settings=settings)

    async def SetAdvisorSettings(
        self, request: api.SetAdvisorSettingsRequest, context: Context
    ) -> api.SetAdvisorSettingsResponse:
        """Replace the settings of the advisor, with its model."""
        given = request.settings
        model_id, effort = given.model_id.strip(), EFFORT_OF[given.reasoning_effort]
        if effort and not model_id:
            raise InvalidRequest("settings.reasoning_effort", "needs a model_id")
        if model_id:
            model_id = await self._known_model_id(model_id)
        settings = AdvisorSettings(given.enabled, given.uses_per_turn_max, given.output_tokens_max)
        override = ModelOverride(Purpose.ADVISOR, model_id, effort)
        await self._preferences.set_advisor(settings, override)
        return api.SetAdvisorSettingsResponse(
            settings=_advisor(settings, override if model_id else None)
        )

    async def _known_model_id(self, reference: str) -> str:
        model = (await self._catalogue()).find(reference)
        if model is None:
            raise ModelNotFound(reference)
        return model.id

    async def GetUserSettings(
        self, request: api.GetUserSettingsRequest, context: Context
    ) -> api.GetUserSettingsResponse:
        """Return the settings of the caller."""
        settings = await self._preferences.user(caller_as_owner().id)
        return api.GetUserSettingsResponse(settings=_user(settings))

    async def UpdateUserSettings(
        self, request: api.UpdateUserSettingsRequest, context: Context
    ) -> api.UpdateUserSettingsResponse:
        """Update the settings of the caller."""
        changed = masked(tuple(request.update_mask.paths), USER_FIELDS)
        values: dict[str, object] = {}
        if CUSTOM_PROMPT in changed:
            values[CUSTOM_PROMPT] = request.settings.custom_prompt
        if THRESHOLDS in changed:
            values[THRESHOLDS] = await self._of_known_models(
                request.settings.compaction_threshold_percents
            )
        for name in sorted(changed.intersection(MODEL_LISTS)):
            values[name] = await self._known_models(name, getattr(request.settings, name))
        settings = await self._preferences.change_user(caller_as_owner().id, values)
        return api.UpdateUserSettingsResponse(settings=_user(settings))

    async def _of_known_models(self, percents: Mapping[str, int]) -> Mapping[str, int]:
        """Return thresholds by the ids of their models; stored unknown ids are kept.

        Raises:
            UnknownIds: A model is not known.
        """
        stored = await self._preferences.user(caller_as_owner().id)
        catalogue = await self._catalogue()
        found: dict[str, int] = {}
        unknown: dict[str, str] = {}
        for reference, percent in percents.items():
            model = catalogue.models.get(reference) or catalogue.find(reference)
            if model is not None and not model.is_deleted:
                found[model.id] = percent
            elif reference in stored.compaction_threshold_percents:
                found[reference] = percent
            else:
                unknown[f"settings.{THRESHOLDS}.{reference[:64]}"] = "names no model"
        if unknown:
            raise UnknownIds("model", unknown)
        return found

    async def _known_models(self, name: str, references: Sequence[str]) -> Sequence[str]:
        """Return the ids of models, each once; stored ids of models that are gone are kept.

        Raises:
            UnknownIds: A model is not known.
        """
        stored = getattr(await self._preferences.user(caller_as_owner().id), name)
        catalogue = await self._catalogue()
        found: dict[str, None] = {}
        unknown: dict[str, str] = {}
        for index, reference in enumerate(references):
            model = catalogue.models.get(reference) or catalogue.find(reference)
            if model is not None and not model.is_deleted:
                found[model.id] = None
            elif reference in stored:
                found[reference] = None
            else:
                unknown[f"settings.{name}[{index}]"] = "names no model"
        if unknown:
            raise UnknownIds("model", unknown)
        return list(found)


def _checked_installation(given: settings_pb2.InstallationSettings) -> Mapping[str, object]:
    ttl_ms = given.workspace_ttl_ms
    if ttl_ms and not TTL_MS_MIN <= ttl_ms <= TTL_MS_MAX:
        raise InvalidRequest(
            "settings.workspace_ttl_ms", "is neither 0 nor between a minute and 30 days"
        )
    return {
        "system_prompt": given.system_prompt,
        "include_default_system_prompt": given.include_default_system_prompt,
        "plan_mode_instructions": given.plan_mode_instructions,
        "compact_on_final_step": given.compact_on_final_step,
        "workspace_ttl_ms": ttl_ms,
        "auto_archive_days": given.auto_archive_days,
        "retention_days": given.retention_days,
        "running_chats_per_user_max": given.running_chats_per_user_max,
        "untrusted_repositories": given.untrusted_repositories,
        "retention_notice_days": given.retention_notice_days,
        FALLBACK: given.fallback_model_id.strip(),
        "own_model_overrides_allowed": given.own_model_overrides_allowed,
    }


def _installation(settings: InstallationSettings) -> settings_pb2.InstallationSettings:
    return settings_pb2.InstallationSettings(
        system_prompt=settings.system_prompt,
        include_default_system_prompt=settings.has_default_prompt,
        plan_mode_instructions=settings.plan_mode_instructions,
        compact_on_final_step=settings.compact_on_final_step,
        workspace_ttl_ms=settings.workspace_ttl_ms,
        auto_archive_days=settings.auto_archive_days,
        retention_days=settings.retention_days,
        running_chats_per_user_max=settings.running_chats_per_user_max,
        untrusted_repositories=settings.untrusted_repositories,
        retention_notice_days=settings.retention_notice_days,
        fallback_model_id=settings.fallback_model_id,
        own_model_overrides_allowed=settings.own_model_overrides_allowed,
    )


def _advisor(
    settings: AdvisorSettings, override: ModelOverride | None
) -> settings_pb2.AdvisorSettings:
    effort = ReasoningEffort.DEFAULT if override is None else override.reasoning_effort
    return settings_pb2.AdvisorSettings(
        enabled=settings.is_enabled,
        uses_per_turn_max=settings.uses_max,
        output_tokens_max=settings.tokens_max,
        model_id="" if override is None else override.model_id,
        reasoning_effort=EFFORT[effort],
    )


def _user(settings: UserSettings) -> settings_pb2.UserSettings:
    return settings_pb2.UserSettings(
        custom_prompt=settings.custom_prompt,
        compaction_threshold_percents=dict(settings.compaction_threshold_percents),
        favourite_model_ids=settings.favourite_model_ids,
        hidden_model_ids=settings.hidden_model_ids,
    )
