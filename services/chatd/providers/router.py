"""One `LanguageModel` for all providers: each call is routed according to the catalogue."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import Model, Provider, ProviderType
from chatd.models.domain.language_model import (
    Heartbeat,
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    OnEvent,
    RequestSent,
)
from chatd.models.domain.resolution import TOOLS, unknown_model, usable_provider
from chatd.models.engine.target import Target
from chatd.models.store.catalogue import Snapshot, UserConfig
from chatd.primitives.domain.ids import OwnerId
from chatd.providers.credentials import KEY_ERROR_KINDS, Credential, CredentialCooldowns
from chatd.providers.switching import PromptTarget, for_target
from chatd.providers.wire import Wire
from chatd.providers.wire_choice import WireName, wire_name
from parley.clock import Clock
from parley.secrets import SecretsError

# Anthropic signs a thinking block for the model that made it.
# Options that are about a model here, and are not sent to its provider.
OWN_OPTIONS = frozenset({"wire", TOOLS})
BOUND = frozenset({ProviderType.ANTHROPIC, ProviderType.BEDROCK})

logger = logging.getLogger(__name__)


class Configuration(Protocol):
    """The current configuration; cached while nothing changed."""

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        ...

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a target with one credential, before it is made."""

    wire: Wire
    target: Target
    credential_id: str


# Makes a call; the last event is `Finished`, or it raises `ModelError`.
MakeCall = Callable[[Call, ModelRequest, OnEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Route:
    model: Model
    provider: Provider
    snapshot: Snapshot
    user: UserConfig


class RoutedModel:
    """A `LanguageModel` for all models of the catalogue.

    Args:
        configuration: The catalogue and the users' settings.
        make: Makes one call.
        wires: The wire formats.
        demo: Answers for the demo.
        clock: Time, for cooldowns of keys.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        make: MakeCall,
        wires: Mapping[WireName, Wire],
        demo: LanguageModel,
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        self._make = make
        self._wires = wires
        self._demo = demo
        self._set_aside = CredentialCooldowns(clock)

    async def answer(self, request: ModelRequest, on_event: OnEvent) -> None:
        """Call the model that the request names, with the first key that works.

        Raises:
            ModelError: It cannot be called, or the call failed before or during the answer.
        """
        route = await self._route(request)
        if route.provider.type is ProviderType.SCRIPTED:
            await self._demo.answer(request, on_event)
            return
        reader = PromptTarget(
            route.model.id, route.provider.id, has_bound_reasoning=route.provider.type in BOUND
        )
        messages = for_target(request.messages, reader, route.snapshot.catalogue.provider_of)
        sent = replace(request, messages=messages)
        is_answered = False

        def took(event: ModelEvent) -> None:
            nonlocal is_answered
            is_answered = is_answered or not isinstance(event, Heartbeat | RequestSent)
            on_event(event)

        credentials = self._credentials(route)
        for place, credential in enumerate(credentials):
            is_last = place == len(credentials) - 1
            try:
                await self._make(self._call(route, credential), sent, took)
            except ModelError as error:
                if error.kind in KEY_ERROR_KINDS and not is_answered:
                    self._rest(route, credential, error)
                    if not is_last:
                        continue
                raise
            self._set_aside.clear(credential.id)
            return

    async def _route(self, request: ModelRequest) -> _Route:
        snapshot = await self._configuration.current()
        model = snapshot.catalogue.models.get(request.model)
        if model is None:
            raise unknown_model(request.model)
        user = UserConfig()
        if request.owner_id:
            user = await self._configuration.user(OwnerId(request.owner_id))
        own = {key.provider_id for key in user.keys}
        provider = usable_provider(snapshot.catalogue, model, own)
        return _Route(model, provider, snapshot, user)

    def _credentials(self, route: _Route) -> list[Credential]:
        """Return the keys that can be decrypted, the user's own first; raise if none can."""
        provider = route.provider
        keys = [(key, route.snapshot.values) for key in provider.keys]
        if provider.user_keys_allowed:
            own = [key for key in route.user.keys if key.provider_id == provider.id]
            keys = [*((key, route.user.values) for key in own), *keys]
        opened: list[Credential] = []
        for key, values in keys:
            try:
                opened.append(Credential(key.id, values.open(key)))
            except SecretsError as damaged:
                logger.error(
                    "a stored key cannot be opened: %s",
                    damaged,
                    extra={"provider": provider.name, "key_id": key.id},
                )
        if opened:
            return self._set_aside.ordered(opened)
        if keys or provider.needs_key:
            raise ModelError(
                ErrorKind.CONFIG,
                f"The stored keys of {provider.display_name} cannot be opened; ask an "
                "administrator to enter them again.",
                is_retryable=False,
                provider=provider.display_name,
            )
        return [Credential()]

    def _call(self, route: _Route, credential: Credential) -> Call:
        provider, model = route.provider, route.model
        options = {**provider.options, **model.options}
        target = Target(
            provider_id=provider.id,
            provider_type=provider.type,
            provider_name=provider.display_name,
            model_name=model.name,
            base_url=provider.base_url,
            api_key=credential.value,
            options={name: value for name, value in options.items() if name not in OWN_OPTIONS},
        )
        wire = self._wires[wire_name(provider.type, model.name, options, provider.display_name)]
        return Call(wire, target, credential.id)

    def _rest(self, route: _Route, credential: Credential, error: ModelError) -> None:
        rest_s = self._set_aside.put(credential.id, error)
        logger.warning(
            "a key was refused and rests",
            extra={
                "provider": route.provider.name,
                "key_id": credential.id,
                "kind": error.kind.value,
                "status_code": error.status_code,
                "rest_s": rest_s,
            },
        )
