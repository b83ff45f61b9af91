"""Wiring of the slice `models`: the configuration, and one model that routes to all providers."""

import logging
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.bus_handlers import CONFIG_TOPIC
from chatd.model_limits import silent_s
from chatd.models.domain.language_model import ModelRequest, OnEvent
from chatd.models.domain.price_book import PriceBook, shipped_book
from chatd.models.engine.configuration import CHAT_PREFIX, ConfigurationCache
from chatd.models.rpc.ports import ModelPorts
from chatd.models.store.catalogue import StoredCatalogue
from chatd.models.store.config_version import Changed, ConfigChanges
from chatd.models.store.models import Models
from chatd.models.store.providers import Providers
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.bedrock import BedrockWire
from chatd.providers.breaker import Breakers
from chatd.providers.checking import check
from chatd.providers.completions import CompletionsWire
from chatd.providers.discovery import Discovery
from chatd.providers.environment import environment_catalogue
from chatd.providers.guarded import GuardedModels
from chatd.providers.responses import ResponsesWire
from chatd.providers.router import Call, RoutedModel
from chatd.providers.scripted import ScriptedModel, demo_with
from chatd.providers.traced import TracedCalls
from chatd.providers.transport import HttpModels
from chatd.providers.wire_choice import WireName
from chatd.resources import STORED_KEYS, Resources
from chatd.streams.engine.flush_timer import FlushTimer
from parley.bus import Notice
from parley.process import KeyRotation, Process
from parley.secrets import SecretBox

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelComponents:
    """The configuration of models, and the routed model.

    Attributes:
        configuration: The configuration cache.
        changes: Changes the configuration.
        changed: Notifies every process, including this one, of a change.
        model: Routes calls to all models.
        book: The shipped prices.
        discovery: Queries endpoints of the environment for their models.
        ports: Dependencies of ModelService.
        box: Seals and opens secrets.
        key_rotation: Follows the master keys.
    """

    configuration: ConfigurationCache
    changes: ConfigChanges
    changed: Changed
    model: RoutedModel
    book: PriceBook
    discovery: Discovery
    ports: ModelPorts
    box: SecretBox
    key_rotation: KeyRotation

    def chat_changed(self, chat_id: str) -> None:
        """Notify every process, including this one, that the settings of a chat changed."""
        self.changed(f"{CHAT_PREFIX}{chat_id}", 0)


async def open_models(
    resources: Resources, flush_timer: FlushTimer, stack: AsyncExitStack
) -> ModelComponents:
    """Return the components; `stack` closes their connections."""
    process, box = resources.process, SecretBox(resources.keyring)
    given, book = environment_catalogue(resources.settings.environment_keys), shipped_book()
    configuration = ConfigurationCache(
        StoredCatalogue(resources.pool, box), given.catalogue, given.values, process.clock
    )

    def changed(what: str, version: int) -> None:
        configuration.on_notice(what, version)
        resources.bus.publish(Notice(CONFIG_TOPIC, what, version))

    changes = ConfigChanges(resources.pool, changed)
    discovery = Discovery(given, configuration.add_discovered, process.clock)
    await discovery.ask()
    await configuration.current()
    logger.info("providers of the environment", extra={"providers": given.provider_names})
    calls = TracedCalls(process.telemetry, process.clock)
    http = await stack.enter_async_context(
        HttpModels(process.clock, calls=calls, flush_timer=flush_timer)
    )
    return ModelComponents(
        configuration=configuration,
        changes=changes,
        changed=changed,
        model=_routed(configuration, http, process, silent_s(resources.settings)),
        book=book,
        discovery=discovery,
        ports=ModelPorts(Providers(changes, box), Models(changes), configuration, book, check),
        box=box,
        key_rotation=KeyRotation(
            STORED_KEYS,
            resources.pool,
            resources.keyring,
            process.clock,
            settled=configuration.on_resync,
        ),
    )


def _routed(
    configuration: ConfigurationCache, http: HttpModels, process: Process, silent_max_s: float
) -> RoutedModel:
    """Return the routed model, with traced calls and one breaker per credential."""
    guarded = GuardedModels(
        http,
        breakers=Breakers(),
        clock=process.clock,
        jitter=process.random.random,
        silent_s=silent_max_s,
    )

    def make(call: Call, request: ModelRequest, on_event: OnEvent) -> Awaitable[None]:
        return guarded.of(call.wire, call.target, call.credential_id).answer(request, on_event)

    return RoutedModel(
        configuration,
        make=make,
        wires={
            WireName.ANTHROPIC: AnthropicWire(),
            WireName.BEDROCK: BedrockWire(process.clock),
            WireName.RESPONSES: ResponsesWire(),
            WireName.COMPLETIONS: CompletionsWire(),
        },
        demo=ScriptedModel(demo_with(process.clock)),
        clock=process.clock,
    )
