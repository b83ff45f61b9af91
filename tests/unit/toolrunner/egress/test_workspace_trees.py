"""From when on what a hosted workspace reaches counts for the chats that use it."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parley.clock import SystemClock
from support.host.supervised import supervision
from support.toolrunner.egress_fakes import FakeNetwork, FakeSecrets, InMemoryAccessLog
from toolrunner.egress import Dialer, Proxy, ProxyListeners
from toolrunner.egress.domain.reached import ReachedHost
from toolrunner.egress.reached_hosts import ReachedHosts
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.domain.placement import HostState, Placement
from toolrunner.workspaces.domain.spec import (
    Network,
    NetworkAccess,
    Policy,
    Scratch,
    WorkspaceSpec,
)
from toolrunner.workspaces.egress import WorkspaceEgress

WORKSPACE = WorkspaceId("11111111-1111-4111-8111-111111111111")
SITE, INDEX = ReachedHost("example.org"), ReachedHost("index.example.org")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def placed(access: NetworkAccess) -> dict[WorkspaceId, Placement]:
    spec = WorkspaceSpec(Scratch(), policy=Policy(Network(access)))
    return {WORKSPACE: Placement(WORKSPACE, 1, "owner", HostState.READY, spec, NOON)}


@pytest.mark.parametrize("access", NetworkAccess)
async def test_a_chat_counts_from_its_first_call_on_whatever_network_there_is(
    tmp_path: Path, access: NetworkAccess
) -> None:
    dialer = Dialer(FakeNetwork({}), ssl.create_default_context())
    proxy = Proxy(dialer, FakeSecrets({}), InMemoryAccessLog(), SystemClock())
    listeners = ProxyListeners(proxy, lambda: "token", supervision())
    async with ReachedHosts(lambda _: tmp_path) as reached:
        egress = WorkspaceEgress(
            listeners, listeners, placements=placed(NetworkAccess.PROXY), reached=reached
        )
        await reached.note(WORKSPACE, SITE)
        # What the workspace was filled with is of the workspace itself.
        egress.placements = placed(access)
        await egress.join(WORKSPACE, "first")
        before = await egress.reached_since(WORKSPACE, "first")
        # The owner opens the network, and a process fetches before the next call of the chat.
        egress.placements = placed(NetworkAccess.PROXY)
        await reached.note(WORKSPACE, INDEX)
        assert (before, await egress.reached_since(WORKSPACE, "first")) == ((), (INDEX,))
