"""The doors to workspaces: who is let in, whoever says where workspaces are."""

from dataclasses import dataclass

from chatd.assembly.ground import Ground
from chatd.clients.nodes import Nodes
from chatd.domain.groups import Groups
from chatd.engine.barring import Barring
from chatd.rpc.attach_tickets import AttachTickets
from chatd.rpc.workspace_door import Door, Sites
from chatd.store.ownership import Ownership
from chatd.store.reading import Reading


@dataclass(frozen=True, slots=True)
class Doors:
    """Who may look into workspaces, and the nodes that these are on."""

    ground: Ground
    reading: Reading
    owners: Ownership
    groups: Groups
    barring: Barring
    nodes: Nodes

    def to(self, sites: Sites) -> Door:
        """Return the door to workspaces that are at `sites`."""
        return Door(
            self.reading,
            self.groups,
            self.barring.check,
            sites=sites,
            placed=self.nodes.placed,
        )

    def tickets(self, sites: Sites) -> AttachTickets:
        """Return what issues tickets for terminals behind that door."""
        return AttachTickets(self.to(sites), self.nodes, self.ground.neighbours.ticket_office)
