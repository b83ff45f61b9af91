"""The running preparations: start, follow and cancel, each with its log."""

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from parley.clock import Clock
from parley.tasks import Starter
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.service import FileService
from toolrunner.filesystem.trash import Trash
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import SpawnerGone
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.processes.service import Processes
from toolrunner.sandbox import Level
from toolrunner.spawner.client.fault_points import Points
from toolrunner.workspaces.domain.placement import (
    Failure,
    FailureKind,
    HostState,
    LogLine,
    Outcome,
    Placement,
    Prepared,
)
from toolrunner.workspaces.domain.spec import SandboxLevel, WorkspaceSpec
from toolrunner.workspaces.egress import WorkspaceEgress
from toolrunner.workspaces.preparation import Preparation, PreparationSteps, up_to_date
from toolrunner.workspaces.preparation_log import PreparationLog
from toolrunner.workspaces.setup_script import NodeStops
from toolrunner.workspaces.sources.builder import SourceBuilder
from toolrunner.workspaces.store import Placements

logger = logging.getLogger(__name__)


class EndReason(StrEnum):
    """Why a stream ended without an outcome; names are those of the proto."""

    GOING_AWAY = "going_away"
    WORKSPACE_STOPPED = "workspace_stopped"


PreparationEvent = LogLine | Prepared | Failure | EndReason


@dataclass(frozen=True, slots=True)
class HostResources:
    """The dependencies of the host service."""

    placements: Placements
    workspaces: Workspaces
    processes: Processes
    files: FileService
    source_builder: SourceBuilder
    steps: PreparationSteps
    trash: Trash
    points: Points
    sandbox: Sandbox
    egress: WorkspaceEgress
    clock: Clock


class PreparationRuns:
    """Preparations, in the tasks of their owner.

    Attributes:
        running: The preparation of each workspace that has one.
        changed: Set when a workspace changed.
        stopping: Set when this node stops.
    """

    def __init__(self, resources: HostResources, tasks: Starter, log_directory: Path) -> None:
        self.running: dict[WorkspaceId, Preparation] = {}
        self.changed = asyncio.Event()
        self.stopping = asyncio.Event()
        self._resources = resources
        self._tasks = tasks
        self._log_directory = log_directory
        self._logs: dict[WorkspaceId, PreparationLog] = {}

    def stop(self) -> None:
        """Cancel all preparations; the next run of the service continues them."""
        self.stopping.set()
        for preparation in self.running.values():
            preparation.log.grew.changed()
            if preparation.task is not None:
                preparation.task.cancel()

    def start(self, placement: Placement) -> Preparation:
        """Start a preparation, or return the running one."""
        running = self.running.get(placement.workspace_id)
        if running is not None and not running.ended.is_set():
            running.placement = msgspec.structs.replace(running.placement, epoch=placement.epoch)
            return running
        preparation = Preparation(placement, self.log(placement.workspace_id))
        self.running[placement.workspace_id] = preparation
        preparation.task = self._tasks.create_task(self._run(preparation))
        return preparation

    async def _run(self, preparation: Preparation) -> None:
        workspace_id = preparation.placement.workspace_id
        resources = self._resources
        try:
            failure = self._sandbox_failure(preparation.placement.spec)
            if failure is not None:
                now = resources.clock.now()
                placement = msgspec.structs.replace(
                    preparation.placement, state=HostState.FAILED, failure=failure, changed_at=now
                )
            else:
                placement = await resources.steps.run(preparation)
            await resources.points.reached("prepare.done", workspace_id)
            placement = up_to_date(placement, resources.placements.all[workspace_id])
            outcome = placement.failure or placement.prepared
            response = msgspec.json.encode(outcome)
            answers = [(request, response) for request in preparation.requests.values()]
            await resources.placements.commit(placement, *answers)
            preparation.outcome = outcome
        except (NodeStops, SpawnerGone):
            logger.info("a preparation is left to the next run of the service")
        finally:
            # A completed one is read from disk by later requests.
            if self.running.get(workspace_id) is preparation:
                del self.running[workspace_id]
                self._logs.pop(workspace_id, None)
            preparation.ended.set()
            preparation.log.grew.changed()
            self.changed.set()

    def _sandbox_failure(self, spec: WorkspaceSpec) -> Failure | None:
        """Return why a workspace cannot be confined at the required level, if so."""
        level, required = self._resources.sandbox.report.level, spec.sandbox_minimum
        if required is SandboxLevel.UNSPECIFIED or Level[required.name] <= level:
            return None
        text = (
            f"this node confines at level {level.word}, and the template demands {required}; "
            "choose a node with a stronger sandbox or another template"
        )
        return Failure(FailureKind.SANDBOX, text, is_recreatable=True)

    def is_over(self, preparation: Preparation) -> bool:
        """Return whether a preparation has ended for this run of the service."""
        return preparation.ended.is_set() or self.stopping.is_set()

    def outcome(self, preparation: Preparation) -> PreparationEvent:
        """Return the outcome of a preparation that ended, or why it has none."""
        if preparation.outcome is not None:
            return preparation.outcome
        return EndReason.GOING_AWAY if self.stopping.is_set() else EndReason.WORKSPACE_STOPPED

    async def give_up(self, workspace_id: WorkspaceId) -> None:
        """Cancel a running preparation; a repeated request gets a failure as its outcome."""
        preparation = self.running.pop(workspace_id, None)
        if preparation is None or preparation.task is None or preparation.ended.is_set():
            return
        preparation.task.cancel()
        await preparation.ended.wait()
        await self._resources.placements.settled()
        if preparation.outcome is None:
            failure = Failure(FailureKind.SOURCE, "it was stopped before it was ready", True)
            response = msgspec.json.encode(failure)
            answers = [(request, response) for request in preparation.requests.values()]
            await self._resources.placements.commit(None, *answers)

    def forget(self, workspace_id: WorkspaceId) -> None:
        """Drop the log and the preparation of a removed workspace."""
        self.log(workspace_id).remove()
        self._logs.pop(workspace_id, None)
        self.running.pop(workspace_id, None)

    def log(self, workspace_id: WorkspaceId) -> PreparationLog:
        """Return the log of a workspace's preparations."""
        log = self._logs.get(workspace_id)
        if log is None:
            log = self._logs[workspace_id] = PreparationLog(
                self._log_directory / f"{workspace_id}.jsonl"
            )
        return log


def decode_outcome(response: bytes) -> Outcome:
    """Decode the outcome of a preparation."""
    return msgspec.json.decode(response, type=Prepared | Failure)
