"""Preparation of a workspace: source, then setup script, each step on disk before the next."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from parley.clock import Clock
from toolrunner.directories.workspaces import WorkspaceOptions, Workspaces
from toolrunner.filesystem.beneath import Root
from toolrunner.primitives.domain import Quota
from toolrunner.primitives.errors import SandboxTooWeak, SpawnerGone
from toolrunner.sandbox import Network
from toolrunner.spawner.client.fault_points import Points
from toolrunner.workspaces.domain.placement import (
    Failure,
    FailureKind,
    HostState,
    Outcome,
    Placement,
    Prepared,
)
from toolrunner.workspaces.domain.spec import Limits, NetworkAccess
from toolrunner.workspaces.preparation_log import PreparationLog
from toolrunner.workspaces.setup_script import PROFILES, NodeStops, SetupFailed, SetupScript
from toolrunner.workspaces.sources.builder import SourceBuilder, SourceFailed
from toolrunner.workspaces.sources.clone import head_of
from toolrunner.workspaces.store import Placements, Request

logger = logging.getLogger(__name__)

SETUP: Final = "setup"
NETWORKS: Final = {
    NetworkAccess.NONE: Network.NONE,
    NetworkAccess.PROXY: Network.PROXY,
    NetworkAccess.OPEN: Network.OPEN,
}
MESSAGE_MAX: Final = 2000


@dataclass
class Preparation:
    """One running preparation.

    Attributes:
        placement: The workspace as it is on disk.
        log: Its output.
        requests: The requests that are answered with its outcome.
        ended: Set at its end.
        outcome: Its outcome; None if it was cancelled.
        task: The task it runs in.
    """

    placement: Placement
    log: PreparationLog
    requests: dict[str, Request] = field(default_factory=dict)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Outcome | None = None
    task: "asyncio.Task[None] | None" = None


@dataclass(frozen=True, slots=True)
class PreparationSteps:
    """Prepares workspaces."""

    placements: Placements
    workspaces: Workspaces
    source_builder: SourceBuilder
    setup: SetupScript
    points: Points
    clock: Clock

    async def run(self, preparation: Preparation) -> Placement:
        """Prepare a workspace, or continue; return it as ready or as failed.

        Raises:
            NodeStops: The node stops; the next run of the service continues.
        """
        started_s = self.clock.monotonic()
        try:
            placement = await self._prepared(preparation)
        except SourceFailed as error:
            kind = FailureKind.NO_SPACE if error.is_full else FailureKind.SOURCE
            return self._failed(preparation, kind, error, error.is_recreatable)
        except SetupFailed as error:
            return self._failed(preparation, FailureKind.SETUP, error, error.is_recreatable)
        except SandboxTooWeak as error:
            return self._failed(preparation, FailureKind.SANDBOX, error, True)
        except (NodeStops, SpawnerGone) as error:
            raise NodeStops from error
        except Exception as error:
            logger.exception("a workspace could not be prepared")
            return self._failed(preparation, FailureKind.INTERNAL, error, True)
        duration_ms = round((self.clock.monotonic() - started_s) * 1000)
        branch, commit = await asyncio.to_thread(self._head, placement)
        before = placement.prepared or Prepared()
        return msgspec.structs.replace(
            placement,
            state=HostState.READY,
            changed_at=self.clock.now(),
            failure=None,
            prepared=Prepared(branch, commit, before.fork_mode, duration_ms),
        )

    async def _prepared(self, preparation: Preparation) -> Placement:
        placement = preparation.placement
        workspace_id = placement.workspace_id

        def say(stage: str, text: str) -> None:
            preparation.log.say(stage, text, self.clock.now())

        await self.points.reached("prepare.placed", workspace_id)
        workspace = self.workspaces.at(workspace_id)
        if not placement.is_sourced:
            if placement.must_exist and not workspace.root.is_dir():
                raise SourceFailed("its files are gone; create it anew")
            placement = await self._sourced(preparation, say)
            await self.points.reached("prepare.sourced", workspace_id)
        self.source_builder.show_again(workspace_id, placement.spec.source)
        if not self.workspaces.at(workspace_id).root.is_dir():
            raise SourceFailed("its files are gone; create it anew")
        self.workspaces.prepared(workspace_id)
        if placement.spec.setup_script and not placement.is_set_up:
            logged = preparation.log.count(SETUP, placement.log_start)
            await self.setup.run(placement, logged, lambda line: say(SETUP, line))
            await self.points.reached("prepare.set_up", workspace_id)
        placement = msgspec.structs.replace(placement, is_set_up=True)
        await self._keep(preparation, placement)
        return placement

    async def _sourced(
        self, preparation: Preparation, say: Callable[[str, str], None]
    ) -> Placement:
        placement = preparation.placement
        workspace_id = placement.workspace_id
        # If the files exist they are complete, because they are renamed only then.
        if not self.workspaces.at(workspace_id).root.is_dir():
            # The quota is set before any file is made.
            self.workspaces.options[workspace_id] = options_of(placement)
            await self.source_builder.make(
                workspace_id, placement.spec.source, say, user_id=placement.owner_id
            )
            await self.points.reached("prepare.made", workspace_id)
        made = self.source_builder.described(placement.spec.source)
        placement = msgspec.structs.replace(
            placement,
            is_sourced=True,
            root=made.root,
            readable=made.readable,
            prepared=Prepared(fork_mode=made.fork_mode),
        )
        await self._keep(preparation, placement)
        return placement

    async def _keep(self, preparation: Preparation, placement: Placement) -> None:
        preparation.placement = up_to_date(placement, self.placements.all[placement.workspace_id])
        options = options_of(preparation.placement)
        self.workspaces.options[placement.workspace_id] = options
        await self.placements.commit(preparation.placement)

    def _failed(
        self,
        preparation: Preparation,
        kind: FailureKind,
        error: Exception,
        is_recreatable: bool,
    ) -> Placement:
        message = str(error)[:MESSAGE_MAX] or type(error).__name__
        if kind is FailureKind.INTERNAL:
            message = f"the node has a defect ({type(error).__name__}); try again"
        return msgspec.structs.replace(
            preparation.placement,
            state=HostState.FAILED,
            changed_at=self.clock.now(),
            failure=Failure(kind, message, is_recreatable),
        )

    def _head(self, placement: Placement) -> tuple[str, str]:
        root = Root.open_directory(str(self.workspaces.at(placement.workspace_id).root))
        try:
            return head_of(root)
        finally:
            root.close()


def up_to_date(placement: Placement, known: Placement) -> Placement:
    """Return a placement with the current epoch and policy, which may have changed meanwhile."""
    spec = msgspec.structs.replace(placement.spec, policy=known.spec.policy)
    return msgspec.structs.replace(placement, epoch=known.epoch, spec=spec)


def options_of(placement: Placement) -> WorkspaceOptions:
    """Return the settings of a workspace."""
    return WorkspaceOptions(
        Path(placement.root) if placement.root else None,
        placement.readable,
        placement.spec.environment,
        PROFILES.get(placement.spec.profile),
        NETWORKS.get(placement.spec.policy.network.access),
        _quota(placement.spec.policy.limits),
        placement.owner_id,
    )


def _quota(limits: Limits) -> Quota:
    return Quota(
        memory_bytes=limits.memory_bytes,
        disk_bytes=limits.disk_bytes,
        inodes=limits.inodes,
        pids=limits.pids,
        cpu_millicores=limits.cpu_millicores,
        output_bytes=limits.output_bytes,
    )
