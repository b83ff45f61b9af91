"""Trust in memory, behind the port of the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chatd.primitives.domain.ids import OwnerId


@dataclass(slots=True)
class InMemoryTrustedServers:
    """Trusts what it is asked to, and counts how often it was read."""

    digests: dict[tuple[str, str], str] = field(default_factory=dict)
    reads: int = 0

    async def trusted(self, workspace_id: str) -> Mapping[str, str]:
        """Return the digests of the trusted servers of a workspace, by name."""
        self.reads += 1
        return {
            name: digest for (place, name), digest in self.digests.items() if place == workspace_id
        }

    async def trust(self, workspace_id: str, name: str, digest: str, owner_id: OwnerId) -> None:
        """Trust a definition, in place of an earlier one of the same name."""
        self.digests[workspace_id, name] = digest

    async def untrust(self, workspace_id: str, name: str, owner_id: OwnerId) -> None:
        """Trust a server no longer."""
        self.digests.pop((workspace_id, name), None)
