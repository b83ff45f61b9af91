"""HTTP routes of settings: the installation's and the caller's own."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.models import (
    installation_patch_to_proto,
    installation_to_json,
    user_settings_patch_to_proto,
    user_settings_to_json,
)
from gateway.api.inputs.models import InstallationPatch, UserSettingsPatch
from gateway.http.authentication import Principal
from gateway.http.preconditions import refuse_condition
from gateway.http.request_body import idempotency_key, read_patch, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import settings_service_pb2 as api


class SettingsRoutes:
    """The routes /settings and /me/settings."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read the installation's settings."""
        read_query(request)
        asked = api.GetInstallationSettingsRequest()
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.settings.GetInstallationSettings(asked)
        )
        return json_response(installation_to_json(answer.settings))

    async def update(self, request: Request, principal: Principal) -> Response:
        """Change the installation's settings."""
        read_query(request)
        refuse_condition(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_patch(request, InstallationPatch)
        asked = installation_patch_to_proto(body, request_id=key)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.settings.UpdateInstallationSettings(asked)
        )
        return json_response(installation_to_json(answer.settings))

    async def read_own(self, request: Request, principal: Principal) -> Response:
        """Read the caller's settings."""
        read_query(request)
        asked = api.GetUserSettingsRequest()
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.settings.GetUserSettings(asked)
        )
        return json_response(user_settings_to_json(answer.settings))

    async def update_own(self, request: Request, principal: Principal) -> Response:
        """Change the caller's settings."""
        read_query(request)
        refuse_condition(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_patch(request, UserSettingsPatch)
        asked = user_settings_patch_to_proto(body, request_id=key)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.settings.UpdateUserSettings(asked)
        )
        return json_response(user_settings_to_json(answer.settings))
