"""What a workspace may reach: the decision, without any input or output.

Two questions are asked of each request. May this place be asked for by name, in this way? And when
its name was resolved: are all the addresses ones that a workspace may reach? The connection then
goes to one of the addresses that were judged, so a name that resolves differently a moment later
changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, Self, assert_never

from toolrunner.egress.domain.addresses import is_public
from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.hosts import HostPattern, Place
from toolrunner.egress.domain.presets import Preset, hosts_of


class Access(StrEnum):
    """How much may be reached at all."""

    NONE = "none"
    PROXY = "proxy"
    OPEN = "open"


class Way(Enum):
    """How a place is spoken to."""

    TLS = "TLS"
    HTTP = "plain HTTP"
    RAW = "anything but TLS and HTTP"


USUAL_PORTS: Final = {Way.TLS: 443, Way.HTTP: 80}


@dataclass(frozen=True, slots=True)
class Policy:
    """What one workspace may reach.

    Attributes:
        access: How much at all.
        allowed: With a list: what is on it.
        denied: What is refused in any case.
        private: Places of the node's own network that its operator opened.
    """

    access: Access = Access.NONE
    allowed: tuple[HostPattern, ...] = ()
    denied: tuple[HostPattern, ...] = ()
    private: frozenset[Place] = frozenset()

    @classmethod
    def read(
        cls,
        access: Access,
        *,
        presets: Iterable[str] = (),
        own_presets: Iterable[Preset] = (),
        allowed_hosts: Iterable[str] = (),
        denied_hosts: Iterable[str] = (),
        private: Iterable[Place] = (),
    ) -> Self:
        """Return the policy that these texts describe.

        Raises:
            PolicyInvalid: One of them cannot be read.
        """
        own = tuple(own_presets)
        of_presets = [pattern for preset in presets for pattern in hosts_of(preset, own)]
        return cls(
            access,
            (*of_presets, *map(HostPattern.parse, allowed_hosts)),
            tuple(map(HostPattern.parse, denied_hosts)),
            frozenset(private),
        )

    def allows(self, place: Place, way: Way) -> bool:
        """Tell whether the place may be asked for by name in this way."""
        if any(_is_denied(pattern, place) for pattern in self.denied):
            return False
        match self.access:
            case Access.NONE:
                return False
            case Access.PROXY:
                return any(_is_allowed(pattern, place, way) for pattern in self.allowed)
            case Access.OPEN:
                return True
            case _:
                assert_never(self.access)

    def check_place(self, place: Place, way: Way) -> None:
        """Refuse a place that may not be asked for by name.

        Raises:
            Refused: It may not.
        """
        if self.allows(place, way):
            return
        if self.access is Access.NONE:
            raise Refused(Reason.NO_NETWORK, f"{place} cannot be reached from this workspace.")
        if any(_is_denied(pattern, place) for pattern in self.denied):
            raise Refused(Reason.DENIED, f"{place} is denied to this workspace.")
        raise Refused(
            Reason.NOT_ALLOWED, f"{place} is not allowed to this workspace by {way.value}."
        )

    def check_addresses(self, place: Place, addresses: Iterable[str]) -> None:
        """Refuse a place if any of its addresses is not public.

        Raises:
            Refused: One is not, and the operator did not open this place.
        """
        if place in self.private:
            return
        if not all(map(is_public, addresses)):
            raise Refused(
                Reason.PRIVATE_ADDRESS, f"{place} leads to an address that is not public."
            )


def _is_denied(pattern: HostPattern, place: Place) -> bool:
    return pattern.meets(place.host) and pattern.port in (None, place.port)


def _is_allowed(pattern: HostPattern, place: Place, way: Way) -> bool:
    if not pattern.meets(place.host) or (way is Way.RAW) != pattern.is_raw:
        return False
    return place.port == (pattern.port or USUAL_PORTS.get(way))
