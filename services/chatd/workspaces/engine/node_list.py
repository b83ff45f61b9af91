"""The nodes as this process knows them: registered ones, else those of its settings."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from chatd.workspaces.domain.errors import NodeNotFound
from chatd.workspaces.domain.nodes import Need, Node, NodeState, choose
from chatd.workspaces.domain.spec import Kind
from chatd.workspaces.domain.workspace import NodeId
from chatd.workspaces.store.nodes import static_node_id


class StoredNodes(Protocol):
    """Where registered nodes are."""

    async def list(self) -> Sequence[Node]:
        """Return those that are not gone for good."""
        ...

    async def get(self, node_id: str) -> Node:
        """Return one.

        Raises:
            NodeNotFound: there is none.
        """
        ...


def static_node(address: str) -> Node:
    """Return a node that only the settings know; its id follows from its address."""
    return Node(static_node_id(address), address, name=address, is_static=True)


class NodeList:
    """Knows registered nodes, and those of the settings while no registered one is there.

    Args:
        stored: Where registered nodes are.
        addresses: The toolrunners that the settings name.
    """

    def __init__(self, stored: StoredNodes, addresses: Iterable[str]) -> None:
        self._stored = stored
        self._static = {node.id: node for node in map(static_node, addresses)}
        self._known: tuple[Node, ...] = tuple(self._static.values())

    async def list(self) -> Sequence[Node]:
        """Return the nodes that workspaces may go to, and others that are registered."""
        registered = await self._stored.list()
        is_served = any(node.state is NodeState.ACTIVE for node in registered)
        self._known = tuple(registered) if is_served else (*registered, *self._static.values())
        return self._known

    async def find(self, node_id: NodeId) -> Node | None:
        """Return a node, wherever it is in its life."""
        if node_id in self._static:
            return self._static[node_id]
        try:
            return await self._stored.get(node_id)
        except NodeNotFound:
            return None

    async def refresh(self) -> None:
        """Read the list again, for choosing by what is remembered."""
        await self.list()

    def at(self, address: str) -> Node | None:
        """Return the node at an address if workspaces may go there, by what is remembered."""
        for node in self._known:
            if node.address == address and node.state is NodeState.ACTIVE:
                return node
        return None

    def likely(self) -> Node:
        """Return where a scratch workspace would go, by what is remembered, asking nobody.

        Raises:
            NoNode: nowhere.
        """
        # On a full one room is made when it is needed.
        return choose(self._known, Need(Kind.SCRATCH, is_patient=True))
