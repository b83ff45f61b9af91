"""ModelService and SettingsService over a real socket and a real database."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from chatd.errors import DOMAIN, ERRORS
from chatd.models.domain.catalogue import Catalogue, Provider
from chatd.models.domain.price_book import shipped_book
from chatd.models.domain.provider_keys import ProviderChecked
from chatd.models.engine.configuration import ConfigurationCache
from chatd.models.rpc.ports import ModelPorts
from chatd.models.rpc.servicer import ModelServicer
from chatd.models.rpc.settings_servicer import SettingsServicer
from chatd.models.store.catalogue import KeyValues, StoredCatalogue
from chatd.models.store.config_version import ConfigChanges
from chatd.models.store.models import Models
from chatd.models.store.preferences import Preferences
from chatd.models.store.providers import Providers
from chatd.providers.checking import Refused, check
from chatd.providers.credentials import Credential
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api
from parley.api.chat.v1.model_service_pb2_grpc import ModelServiceStub
from parley.api.chat.v1.settings_service_pb2_grpc import SettingsServiceStub
from parley.clock import FakeClock
from parley.identity import Role, ServiceName, User, UserId
from parley.postgres import Pool
from parley.rpc import Address, Problem, Registration, acting_for, connect, problem_of, serve
from parley.secrets import Keyring, SecretBox
from parley.telemetry import InMemoryTelemetry
from support.rpc.echo_service import make_identities

ADA_ID = "00000000-0000-0000-0000-0000000000ad"
ANN_ID = "00000000-0000-0000-0000-00000000000a"
BOB_ID = "00000000-0000-0000-0000-00000000000b"


@dataclass(slots=True)
class Somebody:
    """A user with a role who calls through the gateway."""

    id: str
    role: Role
    models: Any
    settings: Any
    numbers: list[int] = field(default_factory=lambda: [0])

    async def ask(self, request: Any) -> Any:
        """Call the method whose request this is."""
        method = request.DESCRIPTOR.name.removesuffix("Request")
        stub = self.settings if hasattr(self.settings, method) else self.models
        if "request_id" in request.DESCRIPTOR.fields_by_name and not request.request_id:
            self.numbers[0] += 1
            request.request_id = f"request-{self.numbers[0]}"
        with acting_for(User(UserId(self.id), self.role)):
            return await getattr(stub, method)(request)

    async def refusal(self, request: Any) -> Problem:
        """Call a method that must refuse, and return why it did."""
        try:
            answer = await self.ask(request)
        except grpc.aio.AioRpcError as error:
            return problem_of(error)
        raise AssertionError(f"was not refused but answered {answer}")

    async def provider(self, name: str = "ours", **more: Any) -> model_pb2.Provider:
        """Make a provider known."""
        kind = model_pb2.PROVIDER_TYPE_ANTHROPIC
        given: dict[str, Any] = {"name": name, "type": kind, "enabled": True, **more}
        request = api.CreateProviderRequest(provider=model_pb2.Provider(**given))
        made: model_pb2.Provider = (await self.ask(request)).provider
        return made

    async def model(self, provider_id: str, name: str = "m", **more: Any) -> model_pb2.Model:
        """Make a model known."""
        given: dict[str, Any] = {"provider_id": provider_id, "name": name, "enabled": True, **more}
        request = api.CreateModelRequest(model=model_pb2.Model(**given))
        made: model_pb2.Model = (await self.ask(request)).model
        return made

    async def listed(self) -> list[model_pb2.Model]:
        """Return the models that they see."""
        return list((await self.ask(api.ListModelsRequest())).models)

    async def providers(self) -> list[model_pb2.Provider]:
        """Return the providers that they see."""
        return list((await self.ask(api.ListProvidersRequest())).providers)


@dataclass(frozen=True, slots=True)
class ServedModels:
    """A running ModelService with its store and its cache."""

    pool: Pool
    box: SecretBox
    configuration: ConfigurationCache
    ada: Somebody
    ann: Somebody
    bob: Somebody
    told: list[tuple[str, int]]


@asynccontextmanager
async def served_models(
    pool: Pool,
    directory: Path,
    *,
    given: Catalogue | None = None,
) -> AsyncIterator[ServedModels]:
    """Serve models out of a migrated database until the block ends."""
    identities = make_identities(directory)
    telemetry = InMemoryTelemetry("chatd").telemetry
    box = SecretBox(Keyring.generate())
    configuration = ConfigurationCache(
        StoredCatalogue(pool, box), given or Catalogue(), KeyValues(), FakeClock()
    )
    told: list[tuple[str, int]] = []

    def changed(what: str, version: int) -> None:
        told.append((what, version))
        configuration.on_notice(what, version)

    async def echo(provider: Provider, credential: Credential) -> tuple[str, ...]:
        # An endpoint that tells what it was asked with, so that tests see which keys open.
        raise Refused(credential.value.reveal())

    async def check_by_echo(provider: Provider, values: KeyValues) -> ProviderChecked:
        return await check(provider, values, echo)

    changes = ConfigChanges(pool, changed)
    ports = ModelPorts(
        Providers(changes, box), Models(changes), configuration, shipped_book(), check_by_echo
    )
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            serve(
                Address.parse(f"unix:{directory}/chatd.sock"),
                [
                    Registration.of(ModelServicer(ports)),
                    Registration.of(SettingsServicer(Preferences(changes), ports.catalogue)),
                ],
                guard=identities.guard,
                errors=ERRORS,
                domain=DOMAIN,
                telemetry=telemetry,
            )
        )
        channel = connect(
            server.address,
            audience=ServiceName.CHATD,
            signer=identities.signer,
            telemetry=telemetry,
        )
        stack.push_async_callback(channel.close)
        stubs = ModelServiceStub(channel), SettingsServiceStub(channel)
        ada = Somebody(ADA_ID, Role.ADMIN, *stubs)
        ann, bob = (Somebody(each, Role.MEMBER, *stubs) for each in (ANN_ID, BOB_ID))
        yield ServedModels(pool, box, configuration, ada, ann, bob, told)
