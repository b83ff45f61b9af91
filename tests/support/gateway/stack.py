"""A whole gateway for tests: real PostgreSQL, real sockets, a fake chatd, a fake clock."""

import asyncio
import random  # noqa: TID251 (a composition root of tests)
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.app import Gateway, gateway
from gateway.http.addresses import HttpAddress, PublicUrl
from gateway.identity.store.schema import MIGRATIONS, SCHEMA
from gateway.settings import GatewaySettings
from gateway.streams.event_stream import StreamLimits
from parley.bus import InMemoryBus
from parley.clock import FakeClock
from parley.identity import ApiKey, ServiceName, Signer, SigningKey, TrustFile
from parley.postgres import migrate
from parley.process import Environment, OpenFiles, Process, TimeOrderedIds
from parley.rpc import Address
from parley.secrets import Keyring
from parley.settings import Secret
from parley.telemetry import InMemoryTelemetry
from support.gateway.fake_chatd import FakeChatd
from support.gateway.fake_chatd_server import serving
from support.net.http_client import HttpClient

LOGIN_TOKEN = "one-time-login-token"


@dataclass(frozen=True, slots=True)
class GatewayStack:
    """A running gateway and everything around it."""

    gateway: Gateway
    settings: GatewaySettings
    chatd: FakeChatd
    clock: FakeClock
    bus: InMemoryBus
    telemetry: InMemoryTelemetry
    owner_key: ApiKey
    chatd_signer: Signer

    @property
    def gateway_signer(self) -> Signer:
        """Signs as the gateway itself does for its users."""
        key = SigningKey.load(self.settings.signing_key_file)
        return Signer(ServiceName.GATEWAY, key, self.clock)

    @property
    def anonymous(self) -> HttpClient:
        """A client without credentials."""
        return HttpClient(self.gateway.http.port)

    @property
    def owner(self) -> HttpClient:
        """A client with the owner's API key."""
        key = self.owner_key.reveal()
        return HttpClient(self.gateway.http.port, {"Authorization": f"Bearer {key}"})


async def migrate_identity(url: str) -> None:
    """Bring an empty database to the gateway's schema."""
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)


def make_settings(directory: Path, database_url: str, key: ApiKey) -> GatewaySettings:
    """Return settings whose keys and trust lie in `directory`."""
    signing_key = SigningKey.generate()
    signing_key.save(directory / "gateway.pem")
    TrustFile(directory / "trust.json").add_key(ServiceName.GATEWAY, signing_key)
    Keyring.generate().save(directory / "master.keyring")
    return GatewaySettings(
        listen=Address.parse(f"unix:{directory}/gateway.sock"),
        trust_file=directory / "trust.json",
        signing_key_file=directory / "gateway.pem",
        environment=Environment.DEVELOPMENT,
        http_listen=HttpAddress("127.0.0.1", 0),
        public_url=PublicUrl.parse("http://parley.test:8080"),
        allowed_hosts=("also.test",),
        database_url=Secret(database_url),
        database_connections_max=4,
        chatd=(Address.parse(f"unix:{directory}/chatd.sock"),),
        owner_api_key=Secret(key.reveal()),
        login_token=Secret(LOGIN_TOKEN),
        master_key_file=directory / "master.keyring",
    )


@asynccontextmanager
async def gateway_stack(
    directory: Path,
    database_url: str,
    *,
    limits: StreamLimits | None = None,
    public_url: str = "http://parley.test:8080",
    has_chatd: bool = True,
    clock: FakeClock | None = None,
    **changed: Any,
) -> AsyncIterator[GatewayStack]:
    """Run a gateway with a fake chatd; `changed` are settings."""
    clock, telemetry, bus, chatd = (
        clock or FakeClock(),
        InMemoryTelemetry("gateway"),
        InMemoryBus(),
        FakeChatd(),
    )
    key = ApiKey.generate()
    settings = replace(
        make_settings(directory, database_url, key),
        public_url=PublicUrl.parse(public_url),
        **changed,
    )
    chatd_key = SigningKey.generate()
    TrustFile(settings.trust_file).add_key(ServiceName.CHATD, chatd_key)
    process = make_process(clock, telemetry)
    async with AsyncExitStack() as around:
        if has_chatd:
            await around.enter_async_context(
                serving(
                    chatd,
                    directory / "chatd.sock",
                    trust_file=settings.trust_file,
                    clock=clock,
                    telemetry=telemetry.telemetry,
                )
            )
        running = await around.enter_async_context(gateway(settings, process, bus, limits))
        yield GatewayStack(
            gateway=running,
            settings=settings,
            chatd=chatd,
            clock=clock,
            bus=bus,
            telemetry=telemetry,
            owner_key=key,
            chatd_signer=Signer(ServiceName.CHATD, chatd_key, clock),
        )


def make_process(clock: FakeClock, telemetry: InMemoryTelemetry) -> Process:
    """Return a process whose time stands still and whose chance is known."""
    chance = random.Random(1)
    return Process(
        service="gateway",
        instance="gateway-1",
        stopping=asyncio.Event(),
        clock=clock,
        telemetry=telemetry.telemetry,
        random=chance,
        new_id=TimeOrderedIds(clock, chance),
        open_files=OpenFiles(limit=4096, limit_at_start=1024),
    )
