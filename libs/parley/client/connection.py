"""Opening a client: addresses, a token and, off one machine, certificates."""

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
    """A token from `parley token issue`: the same for every call, as far as it is good."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text.strip()

    def call_token(self, audience: ServiceName, user: User | None = None, offset_s: int = 0) -> str:
        """Return the token; it names its user, its audiences and its end itself."""
        return self._text

    def offset_to(self, time_s: int) -> int:
        """Return nothing to correct: the token was signed by a clock elsewhere."""
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
    """Give a client of the chatd processes at `addresses`; connections open at the first call.

    Args:
        addresses: Every chatd process, such as "unix:/path.sock" or "tls:host:port".
        token: A service token, as `parley token issue` prints it.
        tls: The certificate files that a tls: address needs, as `parley certs` writes them.
        user_id: The user the token acts for; known, a new chat begins at its own replica.
        patience: Deadlines and repetitions.
        telemetry: Whose trace context travels with the calls; none does by default.
        clock: Waits between attempts.
        rng: Spreads the attempts of many callers.
        new_id: Makes request ids, unique among all that the user ever sends.

    Raises:
        AddressInvalid: One of the addresses is malformed.
        AddressUnusable: One is a tls: address and there are no files.
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
    # Opening is only a promise, and it tells now which address needs files that are not there.
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
