"""Quotas of workspaces per user."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chatd.workspaces.domain.workspace import State, Workspace

GIB: Final = 1024**3


class Dimension(StrEnum):
    """A resource that is limited per user."""

    LIVE_WORKSPACES = "live_workspaces"
    WORKSPACES = "workspaces"
    CPU_MILLICORES = "cpu_millicores"
    MEMORY_BYTES = "memory_bytes"
    PIDS = "pids"
    DISK_BYTES = "disk_bytes"
    EGRESS_BYTES = "egress_bytes"


HOW_TO_FREE: Final = {
    Dimension.LIVE_WORKSPACES: "stop one that is not needed now; its files are kept",
    Dimension.WORKSPACES: "delete one that is not needed any more",
    Dimension.CPU_MILLICORES: "stop a workspace, or end what runs in one",
    Dimension.MEMORY_BYTES: "stop a workspace, or end what runs in one",
    Dimension.PIDS: "stop a workspace, or end processes in one",
    Dimension.DISK_BYTES: "delete files in a workspace, or delete a workspace",
    Dimension.EGRESS_BYTES: "wait until tomorrow (UTC)",
}


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The quota limits of one user; 0 for no limit.

    All but the last one limit what there is at a time, that one how many workspaces are created,
    and how many started again, within a minute.
    """

    live_workspaces: int = 5
    workspaces: int = 20
    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 10 * GIB
    egress_bytes: int = 0
    created_per_minute: int = 20

    def of(self, dimension: Dimension) -> int:
        """Return the limit of a dimension."""
        limit: int = getattr(self, dimension.value)
        return limit


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """The usage and the limit of one dimension."""

    dimension: Dimension
    used: int
    limit: int

    @property
    def how_to_free(self) -> str:
        """Return how to reduce the usage."""
        return HOW_TO_FREE[self.dimension]

    def is_exhausted_by(self, more: int) -> bool:
        """Return whether `more` would exceed the limit."""
        return self.limit > 0 and self.used + more > self.limit


def uses(workspaces: Iterable[Workspace], limits: QuotaLimits) -> tuple[QuotaUse, ...]:
    """Return the usage of a user for each dimension.

    Scratch workspaces that chats get automatically count by their resources, not by number: a user
    may have any number of chats.
    """
    had = [each for each in workspaces if each.state is not State.DELETED]
    asked_for = [each for each in had if not each.is_scratch_of_chat]
    measured = [each.usage for each in had if each.usage is not None]
    used = {
        Dimension.LIVE_WORKSPACES: sum(each.is_live for each in asked_for),
        Dimension.WORKSPACES: len(asked_for),
        Dimension.CPU_MILLICORES: sum(usage.cpu_millicores for usage in measured),
        Dimension.MEMORY_BYTES: sum(usage.memory_bytes for usage in measured),
        Dimension.PIDS: sum(usage.pids for usage in measured),
        Dimension.DISK_BYTES: sum(usage.disk_bytes for usage in measured),
        Dimension.EGRESS_BYTES: sum(usage.egress_bytes for usage in measured),
    }
    return tuple(
        QuotaUse(dimension, used[dimension], limits.of(dimension)) for dimension in Dimension
    )


def exhausted(
    workspaces: Iterable[Workspace], limits: QuotaLimits, *, is_new: bool
) -> QuotaUse | None:
    """Return the first limit that one more live workspace would exceed, None if there is none."""
    for use in uses(workspaces, limits):
        match use.dimension:
            case Dimension.LIVE_WORKSPACES:
                more = 1
            case Dimension.WORKSPACES:
                more = 1 if is_new else 0
            case Dimension.DISK_BYTES if not is_new:
                # Its files exist already, and files can be deleted only in a running workspace.
                continue
            case _:
                # Its future usage is unknown; it is refused if the limit is already reached.
                more = 1
        if use.is_exhausted_by(more):
            return use
    return None
