"""Whether a chat's workspace reaches other hosts, and whether its files are from outside."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.approvals.domain.taint import Workspace as Known
from chatd.models.domain.catalogue import Catalogue
from chatd.models.domain.preferences import InstallationSettings
from chatd.models.store.catalogue import KeyValues, Snapshot
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.workspaces.domain.errors import NodeNotFound
from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.ports import ChatWorkspace
from chatd.workspaces.domain.spec import Kind, Network, NetworkPolicy, WorkspaceSpec
from chatd.workspaces.domain.workspace import Lifetime, Workspace, WorkspaceId
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.reach import WorkspaceReach

CHAT = ChatId("00000000-0000-0000-0000-0000000000a1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN, NONE, PROXY = Network.OPEN, Network.NONE, Network.PROXY


def workspace(kind: Kind, network: Network, level: str) -> Workspace:
    return Workspace(
        id=WorkspaceId(CHAT),
        name="w",
        owner_id=OwnerId("ann"),
        kind=kind,
        spec=WorkspaceSpec(kind, network=NetworkPolicy(network)),
        lifetime=Lifetime(),
        created_at=NOW,
        last_used_at=NOW,
        sandbox_level=level,
    )


class Store:
    """One workspace, or none."""

    def __init__(self, found: Workspace | None) -> None:
        self._found = found

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        return ChatWorkspace(
            self._found, WorkspaceId(CHAT), OwnerId("ann"), False, False, "", False, NOW
        )


class NoNodes:
    """No registered nodes."""

    async def list(self) -> Sequence[Node]:
        return ()

    async def get(self, node_id: str) -> Node:
        raise NodeNotFound(node_id)


class Settings:
    """Settings of the installation."""

    def __init__(self, *, untrusted: bool) -> None:
        settings = replace(InstallationSettings(), untrusted_repositories=untrusted)
        self._snapshot = Snapshot(Catalogue(settings=settings), KeyValues())

    async def current(self) -> Snapshot:
        return self._snapshot


async def reach(found: Workspace | None, *, untrusted: bool = False, nodes: int = 1) -> Known:
    known = NodeList(NoNodes(), ["unix:/node"][:nodes])
    return await WorkspaceReach(Store(found), known, Settings(untrusted=untrusted)).of_chat(CHAT)


@pytest.mark.parametrize(
    ("network", "level", "has_egress"),
    [
        (NONE, "ns", False),
        (NONE, "landlock", False),
        (NONE, "uid", True),
        (NONE, "none", True),
        (PROXY, "ns", True),
        (OPEN, "ns", True),
    ],
)
async def test_the_network_policy_and_the_level_of_the_node_decide(
    network: Network, level: str, has_egress: bool
) -> None:
    found = workspace(Kind.SCRATCH, network, level)
    assert await reach(found) == Known(has_egress=has_egress, is_proxied=network is PROXY)


@pytest.mark.parametrize(
    ("kind", "untrusted", "is_outside"),
    [
        (Kind.GIT, True, True),
        (Kind.FORK, True, True),
        (Kind.GIT, False, False),
        (Kind.SCRATCH, True, False),
        (Kind.LOCAL, True, False),
    ],
)
async def test_files_of_cloned_repositories_are_from_outside_if_the_installation_says_so(
    kind: Kind, untrusted: bool, is_outside: bool
) -> None:
    found = workspace(kind, NONE, "ns")
    assert await reach(found, untrusted=untrusted) == Known(
        has_outside_files=is_outside, are_clones_outside=untrusted
    )


@pytest.mark.parametrize("nodes", [0, 1])
async def test_a_chat_without_a_workspace_is_confined_as_its_scratch_one_will_be(
    nodes: int,
) -> None:
    assert await reach(None, nodes=nodes) == Known()
    assert await reach(None, nodes=nodes, untrusted=True) == Known(are_clones_outside=True)
