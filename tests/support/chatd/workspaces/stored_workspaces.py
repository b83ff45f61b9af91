"""Workspaces for the tables that keep them."""

import itertools
import uuid
from dataclasses import replace
from typing import Any

from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.workspace import (
    Workspace,
    WorkspaceId,
)
from support.chatd.workspaces.workspace_values import workspace

LIMITS = QuotaLimits(live_workspaces=2, workspaces=3)
HASH = b"one"
IDS = (str(uuid.UUID(int=0x4000 << 64 | number)) for number in itertools.count(1))
DRIVER, OTHER = WorkerId(next(IDS)), WorkerId(next(IDS))


def fresh(name: str = "one", **values: Any) -> Workspace:
    """Return a workspace that is nowhere yet."""
    fields: dict[str, Any] = {"id": WorkspaceId(next(IDS)), "name": name, **values}
    return replace(workspace(), **fields)
