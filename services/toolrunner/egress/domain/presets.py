"""Lists of hosts under a name, so that a policy can say `github` and mean all that git needs there.

What is here are the places where repositories are kept. Where packages come from differs from one
house to the next, so each node is told: its operator names indexes and mirrors in its settings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from toolrunner.egress.domain.errors import PolicyInvalid
from toolrunner.egress.domain.hosts import HostPattern

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "bitbucket": ("bitbucket.org:443", "api.bitbucket.org:443"),
    "github": (
        *("github.com:443", "api.github.com:443", "codeload.github.com:443"),
        *("uploads.github.com:443", "*.githubusercontent.com:443"),
    ),
    "gitlab": ("gitlab.com:443",),
}


@dataclass(frozen=True, slots=True)
class Preset:
    """Hosts that the operator of a node put under a name."""

    name: str
    hosts: tuple[HostPattern, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `name=host host:port *.host`.

        Raises:
            ValueError: It is none.
        """
        name, _, hosts = text.partition("=")
        if not name.isidentifier() or not hosts.split():
            raise ValueError(f"is {text!r}, give a name, =, and hosts with a space between them")
        try:
            return cls(name, tuple(map(HostPattern.parse, hosts.split())), text)
        except PolicyInvalid as error:
            raise ValueError(f"is {text!r}: {error}") from None

    def __str__(self) -> str:
        return self.text


def hosts_of(name: str, own: Iterable[Preset] = ()) -> tuple[HostPattern, ...]:
    """Return the hosts under a name; the operator's own stand before those that are known anyway.

    Raises:
        PolicyInvalid: There is no such preset.
    """
    known = {preset.name: preset.hosts for preset in own}
    if name in known:
        return known[name]
    if name not in PRESETS:
        there = ", ".join(sorted({*known, *PRESETS}))
        raise PolicyInvalid(
            name, f"is no preset; there are {there}, and TOOLRUNNER_EGRESS_PRESETS adds more"
        )
    return tuple(map(HostPattern.parse, PRESETS[name]))
