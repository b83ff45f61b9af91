"""Slows down attempts to sign in, and never stops a real person for good.

Each attempt is counted before it is checked, and one that succeeds is not counted after all. A
browser that signed in before is counted by itself, so attempts of others do not slow its user down.
Another browser is counted with its address, with its login, and with both together: a person who
mistypes waits half a minute at most.

A few addresses that go on guessing one login use up what the login accepts. So the first attempts
of each network are accepted beside that, and a person who comes from elsewhere gets in meanwhile.
They too are bounded by login, and together make one attempt in a second. So n networks that go on
guessing keep new browsers out for about (3n - 30) / (1 - n / 1200) seconds: 100 for 5 minutes,
1,000 for 5 hours, 1,200 or more for as long as they do, and again after a pause of an hour.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_network
from typing import Final

from gateway.identity.errors import TooManyAttempts
from gateway.identity.store.attempts import AttemptStore, Charge
from parley.clock import Clock


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many attempts are accepted at once, and how fast they are accepted again."""

    name: str
    attempts: int
    refill_s: float

    def charge(self, *subject: str) -> Charge:
        """Return one attempt of a subject; its parts cannot be read from the digest's input."""
        parts = "\0".join((self.name, *subject))
        refill = timedelta(seconds=self.refill_s)
        return Charge(hashlib.sha256(parts.encode()).digest(), refill, self.attempts * refill)


DEVICE: Final = Bucket("device", 10, 20.0)
LOGIN_AND_ADDRESS: Final = Bucket("login and address", 5, 30.0)
ADDRESS: Final = Bucket("address", 30, 4.0)
LOGIN: Final = Bucket("login", 20, 20.0)
FIRST_OF_NETWORK: Final = Bucket("login and network", 3, 1200.0)
FIRST_OF_NETWORKS: Final = Bucket("login, first attempts of networks", 30, 1.0)
SECOND_FACTOR: Final = Bucket("second factor", 5, 120.0)
PASSWORD_CHANGE: Final = Bucket("password change", 5, 30.0)
#: What is usually assigned together; who has more has many networks: an IPv6 /36 is 4,096 of them.
IPV4_NETWORK_PREFIX: Final = 24
IPV6_NETWORK_PREFIX: Final = 48


class Attempts:
    """Counts attempts in the database, for all gateways together."""

    def __init__(self, store: AttemptStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def count(self, *choices: Sequence[Charge]) -> Sequence[Charge]:
        """Count one attempt for the first choice of subjects that accepts it, and return that.

        Raises:
            TooManyAttempts: It has to wait; then it is not counted.
        """
        waits = list[timedelta]()
        for charges in choices:
            wait = await self._store.charge(charges, self._clock.now())
            if wait is None:
                return charges
            waits.append(wait)
        raise TooManyAttempts(min(waits).total_seconds())

    async def forgive(self, charges: Sequence[Charge]) -> None:
        """Take back an attempt that succeeded."""
        await self._store.refund(charges)


def sign_in_charges(
    login: str, address: str, known_device: str | None
) -> tuple[tuple[Charge, ...], ...]:
    """Return the choices of what an attempt with a password is counted for."""
    if known_device is not None:
        return ((DEVICE.charge(login, known_device),),)
    of_address = (LOGIN_AND_ADDRESS.charge(login, address), ADDRESS.charge(address))
    first = (FIRST_OF_NETWORK.charge(login, network_of(address)), FIRST_OF_NETWORKS.charge(login))
    return ((*of_address, LOGIN.charge(login)), (*of_address, *first))


def network_of(address: str) -> str:
    """Return the network of the key of an address; what is no address is its own."""
    try:
        network = ip_network(address)
    except ValueError:
        return address
    prefix = IPV4_NETWORK_PREFIX if network.version == 4 else IPV6_NETWORK_PREFIX
    return str(network.supernet(new_prefix=prefix))
