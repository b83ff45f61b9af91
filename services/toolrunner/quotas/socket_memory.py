"""The memory in the socket buffers of workspaces, which counts toward their memory quota.

Theory: data that was sent and not yet received is in kernel memory, of no process. The kernel
reports the sockets of a network namespace through a netlink socket that was created there: the
spawner has one for workspaces with their own network namespace, this process for those that share
its network. Both take some microseconds for each socket, so they are only read where there are many
sockets, and not again before some time that depends on how long it took.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from parley.clock import Clock
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.threads import OwnThreads
from toolrunner.processes.scan import Member, Members
from toolrunner.sandbox import SocketUse, open_diag, socket_use

#: So few cannot use much.
FEW: Final = 32
#: Processes of a workspace whose network namespace is read.
ASKED_MAX: Final = 64
#: Reading takes at most 1/SHARE of the time.
SHARE: Final = 10
OWN_NETWORK: Final = "/proc/self/ns/net"


class SocketMeter(Protocol):
    """Reads the socket memory of a workspace with its own network namespace."""

    async def socket_use(self, workspace_id: WorkspaceId) -> SocketUse:
        """Return the use; empty if the workspace has no network namespace of its own."""
        ...


@dataclass
class SocketMemory:
    """Measures the sockets of all workspaces."""

    meter: SocketMeter
    clock: Clock
    thread: OwnThreads = field(default_factory=partial(OwnThreads, "sockets"))
    _uses: dict[WorkspaceId, SocketUse] = field(default_factory=dict)
    _due_s: dict[WorkspaceId, float] = field(default_factory=dict)
    _shared: dict[int, int] = field(default_factory=dict)
    _shared_due_s: float = 0.0

    async def take(self, members: Members) -> dict[WorkspaceId, SocketUse]:
        """Return the socket memory of the workspaces for which it may be large."""
        networks = await self.thread.run(_networks, members)
        own = os.readlink(OWN_NETWORK)
        found: dict[WorkspaceId, SocketUse] = {}
        if any(own in each for each in networks.values()):
            shared = await self._shared_use()
            found = {key: SocketUse(0, shared) for key, each in networks.items() if own in each}
        for workspace_id, pids in networks.items():
            count = sum(_socket_count(pid) for link, pid in pids.items() if link != own)
            if count > FEW:
                use = await self._asked(workspace_id)
                before = found.get(workspace_id, SocketUse())
                found[workspace_id] = SocketUse(
                    use.total_bytes, {**before.by_inode, **use.by_inode}
                )
        for workspace_id in {*self._uses} - {*members}:
            del self._uses[workspace_id], self._due_s[workspace_id]
        return found

    async def _shared_use(self) -> dict[int, int]:
        """Return the use of this network's sockets by inode; includes other programs' sockets."""
        began_s = self.clock.monotonic()
        if self._shared_due_s <= began_s:
            self._shared = await self.thread.run(_own_use)
            ended_s = self.clock.monotonic()
            self._shared_due_s = ended_s + SHARE * (ended_s - began_s)
        return self._shared

    async def _asked(self, workspace_id: WorkspaceId) -> SocketUse:
        began_s = self.clock.monotonic()
        if workspace_id not in self._uses or self._due_s[workspace_id] <= began_s:
            self._uses[workspace_id] = await self.meter.socket_use(workspace_id)
            ended_s = self.clock.monotonic()
            self._due_s[workspace_id] = ended_s + SHARE * (ended_s - began_s)
        return self._uses[workspace_id]


def _networks(members: Members) -> dict[WorkspaceId, dict[str, int]]:
    """Return the network namespaces of workspaces, each with a process in it."""
    return {workspace_id: _networks_of(own) for workspace_id, own in members.items()}


def _networks_of(members: Iterable[Member]) -> dict[str, int]:
    found: dict[str, int] = {}
    for member in [*members][:ASKED_MAX]:
        with suppress(OSError):
            found.setdefault(os.readlink(f"/proc/{member.seen.pid}/ns/net"), member.seen.pid)
    return found


def _socket_count(pid: int) -> int:
    """Return the number of sockets in the network namespace of a process."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/net/sockstat") as file:
        return int(file.readline().split()[2])
    return 0


def _own_use() -> dict[int, int]:
    with suppress(OSError), open_diag() as diag:
        return socket_use(diag).by_inode
    return {}
