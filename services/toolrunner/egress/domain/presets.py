"""Named lists of hosts, so that a policy can say `github` for all hosts that git needs there.

The built-in presets are repository hosts. Package indexes and mirrors differ between organisations,
so the operator of each node names them in its settings.
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
    """A named list of hosts that the operator of a node defined."""

    name: str
    hosts: tuple[HostPattern, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `name=host host:port *.host`.

        Raises:
            ValueError: It is not valid.
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
    """Return the hosts of a preset; the operator's own override the built-in ones.

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
