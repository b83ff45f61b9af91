"""Opens a client: addresses, a token and, between machines, certificates."""

import random  # noqa: TID251 (this is a composition root)
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from opentelemetry.metrics import NoOpMeter
from opentelemetry.trace import NoOpTracer
from prometheus_client import CollectorRegistry

from parley import rpc
from parley.client.client import Parley
from parley.client.replicas import Replicas
from parley.client.retries import Patience
from parley.clock import Clock, SystemClock
from parley.identity import ServiceName, User
from parley.ids import TimeOrderedIds
from parley.rpc import Address, Channels, NoAddress, TlsFiles
from parley.telemetry import Redactor, Telemetry


class ServiceToken:
    """A token from `parley token issue`: the same for every call, as long as it is valid."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text.strip()

    def call_token(self, audience: ServiceName, user: User | None = None, offset_s: int = 0) -> str:
        """Return the token; it contains its user, its audiences and its expiry."""
        return self._text

    def offset_to(self, time_s: int) -> int:
        """Return 0: the token was signed elsewhere and cannot be signed again."""
        return 0

    def __repr__(self) -> str:
        return "ServiceToken(...)"


@asynccontextmanager
async def connect(
    *addresses: Address | str,
    token: str,
    tls: TlsFiles | None = None,
    user_id: str | None = None,
    patience: Patience | None = None,
    telemetry: Telemetry | None = None,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    new_id: Callable[[], str] | None = None,
) -> AsyncIterator[Parley]:
    """Yield a client of the chatd processes at `addresses`; it connects at the first call.

    Args:
        addresses: Every chatd process, such as "unix:/path.sock" or "tls:host:port".
        token: A service token, as `parley token issue` prints it.
        tls: The certificate files that a tls: address needs, as `parley certs` writes them.
        user_id: The user the token acts for; if given, a new chat begins at its preferred replica.
        patience: Deadlines and retries.
        telemetry: The source of the trace context sent with the calls; none is sent by default.
        clock: Times the delays between attempts.
        rng: The jitter of the attempts.
        new_id: Makes request ids, unique among all that the user ever sends.

    Raises:
        AddressInvalid: One of the addresses is malformed.
        AddressUnusable: One is a tls: address and no files are given.
        NoAddress: There is none.
    """
    if not addresses:
        raise NoAddress
    clock = clock or SystemClock()
    rng = rng or random.Random()
    telemetry = telemetry or _silent_telemetry()
    telemetry.redact(token)
    signer = ServiceToken(token)
    channels = Channels(
        [Address.parse(each) if isinstance(each, str) else each for each in addresses],
        lambda address: rpc.connect(
            address, audience=ServiceName.CHATD, signer=signer, telemetry=telemetry, tls=tls
        ),
    )
    # Channels connect later; opening them now raises for an address that lacks its files.
    channels.all()
    try:
        yield Parley(
            Replicas(channels),
            user_id=user_id,
            patience=patience or Patience(),
            clock=clock,
            rng=rng,
            new_id=new_id or TimeOrderedIds(clock, rng),
        )
    finally:
        await channels.close()


def _silent_telemetry() -> Telemetry:
    return Telemetry(
        service="client",
        instance="client",
        tracer=NoOpTracer(),
        meter=NoOpMeter("parley"),
        redactor=Redactor(),
        registry=CollectorRegistry(),
    )
