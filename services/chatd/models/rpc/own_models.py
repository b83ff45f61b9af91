"""Methods for users' own models."""

from collections.abc import Awaitable, Callable

import grpc

from chatd.models.domain.catalogue import Catalogue, Model
from chatd.models.domain.errors import ModelNotFound
from chatd.models.domain.own_model import OwnMode, OwnModel, OwnPurpose
from chatd.models.domain.preferences import UserSettings
from chatd.models.domain.profile import ReasoningEffort
from chatd.models.domain.resolution import ORDER
from chatd.models.rpc.convert import EFFORT, EFFORT_OF
from chatd.models.store.preferences import Preferences
from chatd.primitives.domain.errors import InvalidRequest, NotPermitted
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import settings_pb2
from parley.api.chat.v1 import settings_service_pb2 as api
from parley.api.chat.v1.settings_service_pb2_grpc import SettingsServiceServicer

Context = grpc.aio.ServicerContext

PURPOSE = {
    purpose: settings_pb2.OwnModelPurpose.Value(f"OWN_MODEL_PURPOSE_{purpose.name}")
    for purpose in OwnPurpose
}
PURPOSE_OF = {value: purpose for purpose, value in PURPOSE.items()}
MODE = {mode: settings_pb2.OwnModelMode.Value(f"OWN_MODEL_MODE_{mode.name}") for mode in OwnMode}
MODE_OF = {value: mode for mode, value in MODE.items()}


class OwnModelMethods(SettingsServiceServicer):
    """Lists and sets the own models of the caller."""

    def __init__(
        self, preferences: Preferences, catalogue: Callable[[], Awaitable[Catalogue]]
    ) -> None:
        self._preferences = preferences
        self._catalogue = catalogue

    async def ListOwnModelOverrides(
        self, request: api.ListOwnModelOverridesRequest, context: Context
    ) -> api.ListOwnModelOverridesResponse:
        """Return the own models of the caller, one entry for each purpose."""
        settings = await self._preferences.user(caller_as_owner().id)
        catalogue = await self._catalogue()
        return api.ListOwnModelOverridesResponse(
            allowed=catalogue.settings.own_model_overrides_allowed,
            overrides=[_to_proto(purpose, settings.own_model(purpose)) for purpose in OwnPurpose],
        )

    async def SetOwnModelOverride(
        self, request: api.SetOwnModelOverrideRequest, context: Context
    ) -> api.SetOwnModelOverrideResponse:
        """Set the own model of the caller for one purpose, or take it away."""
        given, catalogue = request.override, await self._catalogue()
        purpose = PURPOSE_OF.get(given.purpose)
        if purpose is None:
            raise InvalidRequest("override.purpose", "is not known")
        if given.mode and not catalogue.settings.own_model_overrides_allowed:
            raise NotPermitted("allow own models, which are switched off here")
        own = _checked(given, purpose, catalogue)
        await self._preferences.set_own_model(caller_as_owner().id, purpose, own)
        return api.SetOwnModelOverrideResponse(override=_to_proto(purpose, own))


def _checked(
    given: settings_pb2.OwnModelOverride, purpose: OwnPurpose, catalogue: Catalogue
) -> OwnModel:
    """Return an own model as it is stored; without a mode, the default.

    Raises:
        InvalidRequest: The fields contradict each other, or the effort is too high.
        ModelNotFound: There is no such model.
    """
    reference, effort = given.model_id.strip(), EFFORT_OF[given.reasoning_effort]
    mode = MODE_OF.get(given.mode)
    if mode is not OwnMode.MODEL and (reference or effort):
        field = "model_id" if reference else "reasoning_effort"
        raise InvalidRequest(f"override.{field}", "needs the mode model")
    if mode is None:
        return UserSettings().own_model(purpose)
    if mode is OwnMode.INSTALLATION_DEFAULT and purpose is OwnPurpose.ROOT:
        raise InvalidRequest("override.mode", "is for agents; use chat_default for chats")
    if mode is not OwnMode.MODEL:
        return OwnModel(mode)
    if not reference:
        raise InvalidRequest("override.model_id", "is needed with the mode model")
    model = catalogue.find(reference)
    if model is None:
        raise ModelNotFound(reference)
    _check_effort(effort, model)
    return OwnModel(mode, model.id, effort)


def _check_effort(effort: ReasoningEffort, model: Model) -> None:
    highest = model.max_effort
    if effort and highest and ORDER.index(effort) > ORDER.index(highest):
        raise InvalidRequest(
            "override.reasoning_effort", f"is more than the highest of the model, {highest}"
        )


def _to_proto(purpose: OwnPurpose, own: OwnModel) -> settings_pb2.OwnModelOverride:
    return settings_pb2.OwnModelOverride(
        purpose=PURPOSE[purpose],
        mode=MODE[own.mode],
        model_id=own.model_id,
        reasoning_effort=EFFORT[own.reasoning_effort],
    )
