"""The nodes as cached in this process: registered ones, otherwise those of its settings."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from chatd.workspaces.domain.errors import NodeNotFound
from chatd.workspaces.domain.nodes import Need, Node, NodeState, choose
from chatd.workspaces.domain.spec import Kind
from chatd.workspaces.domain.workspace import NodeId
from chatd.workspaces.store.nodes import static_node_id


class StoredNodes(Protocol):
    """The store of registered nodes."""

    async def list(self) -> Sequence[Node]:
        """Return the nodes that have not left permanently."""
        ...

    async def get(self, node_id: str) -> Node:
        """Return a node.

        Raises:
            NodeNotFound: there is none.
        """
        ...


def static_node(address: str) -> Node:
    """Return a node that is only in the settings; its id is derived from its address."""
    return Node(static_node_id(address), address, name=address, is_static=True)


class NodeList:
    """Caches registered nodes, and uses those of the settings while no registered one is active.

    Args:
        stored: The store of registered nodes.
        addresses: The toolrunners that the settings name.
    """

    def __init__(self, stored: StoredNodes, addresses: Iterable[str]) -> None:
        self._stored = stored
        self._static = {node.id: node for node in map(static_node, addresses)}
        self._known: tuple[Node, ...] = tuple(self._static.values())

    async def list(self) -> Sequence[Node]:
        """Return the nodes for placement, and other registered nodes."""
        registered = await self._stored.list()
        is_served = any(node.state is NodeState.ACTIVE for node in registered)
        self._known = tuple(registered) if is_served else (*registered, *self._static.values())
        return self._known

    async def find(self, node_id: NodeId) -> Node | None:
        """Return a node in any state."""
        if node_id in self._static:
            return self._static[node_id]
        try:
            return await self._stored.get(node_id)
        except NodeNotFound:
            return None

    async def refresh(self) -> None:
        """Read the list again into the cache."""
        await self.list()

    def at(self, address: str) -> Node | None:
        """Return the active node at an address, from the cache."""
        for node in self._known:
            if node.address == address and node.state is NodeState.ACTIVE:
                return node
        return None

    def likely(self) -> Node:
        """Return the node that a scratch workspace would get, from the cache only.

        Raises:
            NoNode: there is none.
        """
        # On a full node capacity is freed when it is needed.
        return choose(self._known, Need(Kind.SCRATCH, is_patient=True))
