"""The hosts that processes of a workspace reached, and from when on they matter to whom.

Theory: what a process gets from another host may be in any later output and file of its workspace.
So it matters to every chat that uses the workspace by then, whichever process it was, and not to
one that comes later: for that one the files are as they were before it. The chats of a tree count
as one, by the id of the first of them. Trees are numbered in the order in which they come, and a
host remembers the number of the tree that came last before it was reached, or while a connection
to it was open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

HOSTS_MAX: Final = 64
TREES_MAX: Final = 1000
#: Among the trees of a copy: from its number on, hosts were reached by the copy itself.
COPY: Final = "copy"
OTHER_HOSTS: Final = "other hosts"
#: Programs that fetch repositories, by the names they give themselves.
_GIT_AGENTS: Final = ("git/", "git-lfs/")


@dataclass(frozen=True, slots=True, order=True)
class ReachedHost:
    """A host that was reached.

    Attributes:
        host: Its name or address.
        is_git: Whether it was git that reached it.
    """

    host: str
    is_git: bool = False


@dataclass(frozen=True, slots=True)
class ReachedRecord:
    """What is known of a workspace.

    Attributes:
        trees: The trees of chats that use it, with their numbers from 1 on, the oldest first.
        hosts: The hosts, with the number of trees that had come when they were last reached or
            connected.
        count: How many trees have come.
    """

    trees: Mapping[str, int] = field(default_factory=dict)
    hosts: Mapping[ReachedHost, int] = field(default_factory=dict)
    count: int = 0

    def joined(self, tree_id: str, open_hosts: Iterable[ReachedHost] = ()) -> "ReachedRecord":
        """Return the record after a tree came; the same one if it is known.

        Args:
            tree_id: The tree.
            open_hosts: Hosts of open connections, which may bring more to the tree, too.
        """
        if tree_id in self.trees:
            return self
        count = self.count + 1
        kept = list(self.trees.items())[-(TREES_MAX - 1) :]
        record = replace(self, trees=dict(kept) | {tree_id: count}, count=count)
        for reached in open_hosts:
            record = record.with_host(reached)
        return record

    def copied(self) -> "ReachedRecord":
        """Return the record of a copy of the workspace, which knows what it reaches itself."""
        others = {tree_id: number for tree_id, number in self.trees.items() if tree_id != COPY}
        return replace(self, trees=others).joined(COPY)

    def with_host(self, reached: ReachedHost) -> "ReachedRecord":
        """Return the record after a host was reached; the same one if that tells nothing new."""
        if reached not in self.hosts and len(self.hosts) >= HOSTS_MAX:
            reached = ReachedHost(OTHER_HOSTS, reached.is_git)
        if self.hosts.get(reached) == self.count:
            return self
        return replace(self, hosts={**self.hosts, reached: self.count})

    def since(self, tree_id: str) -> tuple[ReachedHost, ...]:
        """Return the hosts that were reached since a tree came; all if it is not known."""
        number = self.trees.get(tree_id, 0)
        return tuple(sorted(each for each, last in self.hosts.items() if last >= number))


#: Of a workspace whose file is damaged or cannot be read: anything may have been reached.
UNKNOWN_RECORD: Final = ReachedRecord(hosts={ReachedHost(OTHER_HOSTS): 2**53})


def is_git_agent(user_agent: str | None) -> bool:
    """Return whether a program calls itself git, or its extension for large files."""
    return user_agent is not None and user_agent.startswith(_GIT_AGENTS)
