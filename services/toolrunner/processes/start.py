"""Start of a process, at most once.

Theory: a process is added to the registry before it is journaled and journaled before it runs, so
that limits apply and a repeated request finds it. Refusals of a new process (limits, a missing
directory) are determined before and raised after the journal write, because a request that was
begun earlier attaches in any case.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, assert_never

from msgspec import structs

from parley.clock import Clock
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.workspaces import Workspace, Workspaces
from toolrunner.egress.domain.errors import SecretUnavailable
from toolrunner.egress.listeners import EgressRoute, EgressRoutes
from toolrunner.journal.journal import Begun, Known, NotBegun
from toolrunner.journal.records import (
    Effect,
    Execution,
    ExecutionState,
    LostReason,
    ProcessRecord,
    ProcessState,
    StdinMode,
)
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import Limits, ProcessId, Scope, WorkspaceId
from toolrunner.primitives.errors import OutcomeUnknown, ProcessNotFound, ToolrunnerError
from toolrunner.processes.domain import SHELL, ProcessSpec
from toolrunner.processes.live_process import LiveProcess, is_persons
from toolrunner.processes.monitor import ProcessMonitor
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import OutputLog
from toolrunner.processes.registry import Registry
from toolrunner.processes.scratch import is_reader, make_scratch
from toolrunner.processes.writers import ChatWriters
from toolrunner.sandbox import Confinement, Egress, Layer, Level, Network, Profile
from toolrunner.spawner.client.environment import environment_of
from toolrunner.spawner.client.spawner import Launch, LaunchFailed, Spawner

#: The file size limit where no file may grow; 0 would be no limit.
FILE_BYTES_LEAST: Final = 1


@dataclass(frozen=True, slots=True)
class StartResult:
    """A process, and whether an earlier request had started it."""

    record: ProcessRecord
    is_attached: bool


@dataclass(frozen=True, slots=True)
class ProcessStarter:
    """Starts processes, which the process monitor then monitors."""

    journal: JournalThread
    spawner: Spawner
    registry: Registry
    workspaces: Workspaces
    sandbox: Sandbox
    monitor: ProcessMonitor
    writers: ChatWriters
    clock: Clock
    new_id: Callable[[], str]
    limits: Limits  # Of every process; a caller may ask for lower ones.
    egress: EgressRoutes
    checkpoints: Checkpoints | None = None  # None if nothing is kept of changed files.

    async def start(self, effect: Effect, scope: Scope, spec: ProcessSpec) -> StartResult:
        """Start a process once; a repeated request attaches to it.

        Raises:
            ToolrunnerError: It is refused, and nothing was started.
        """
        if spec.profile is Profile.READ_ONLY:
            await self.writers.pass_through(scope)
        workspace = self.workspaces.at(scope.workspace_id)
        egress_route = await self.egress.egress_route(scope.workspace_id)
        workdir, confinement, refusal = self._judged(workspace, scope, spec, egress_route)
        live = self._entered(effect, scope, spec, workspace.root / workdir, workspace)
        if confinement is not None:
            live.record = structs.replace(live.record, sandbox=confinement.used)
        record = live.record
        if refusal is None:
            self.registry.enter(live)
            if record.chat_id and not is_reader(record):
                self.writers.enter(scope)
        try:
            beginning = await self.journal.run(
                lambda journal: journal.begin(effect, record, may_begin=refusal is None)
            )
        except BaseException:
            self._leave(live)
            raise
        match beginning:
            case Known(execution):
                self._leave(live)
                return StartResult(await self._attached(execution), is_attached=True)
            case NotBegun():
                assert refusal is not None
                raise refusal
            case Begun():
                assert confinement is not None
                try:
                    is_author = bool(scope.turn_id) or is_persons(live.record)
                    if self.checkpoints is not None and is_author and _may_write(confinement):
                        await self.checkpoints.before_process(scope)
                    await self._launch(live, workspace, workdir, spec, confinement, egress_route)
                except BaseException:
                    self._leave(live)
                    raise
                started = self.registry.present(live)
                # Not awaited: a repeated request attaches to the process, and after a kill the next
                # service adopts it from the spawner.
                self.monitor.keep_start(effect, live, started)
                return StartResult(started, is_attached=False)
            case _:
                assert_never(beginning)

    def _leave(self, live: LiveProcess) -> None:
        """Remove a process that is not started."""
        self.registry.leave(live.record.process_id)
        live.settled.set()

    def _fail(self, live: LiveProcess, start_error: str) -> None:
        """Record that a process was not executed."""
        self.monitor.scratch.throw(live.record)
        live.fail(start_error, now=self.clock.now())
        live.close()

    def _judged(
        self,
        workspace: Workspace,
        scope: Scope,
        spec: ProcessSpec,
        egress_route: EgressRoute | None,
    ) -> tuple[str, Confinement | None, ToolrunnerError | None]:
        """Return the working directory and the confinement, or the refusal."""
        try:
            self.workspaces.check(scope)
            self.workspaces.prepared(scope.workspace_id)
            self.registry.check_room(scope)
            limits = self._limits(scope.workspace_id, spec)
            profile, network = self._allowed(workspace, spec)
            confinement = self.sandbox.confined(
                workspace,
                profile=profile,
                network=network,
                readable=workspace.options.readable,
                processes=limits.pids,
                egress=None if egress_route is None else Egress(egress_route.endpoint.port),
            )
            return workspace.relative(spec.workdir), confinement, None
        except ToolrunnerError as refusal:
            return "", None, refusal

    def _limits(self, workspace_id: WorkspaceId, spec: ProcessSpec) -> Limits:
        """Return the limits of a process: never more than its workspace's."""
        quota = self.workspaces.quota_of(workspace_id)
        limits = self.limits.narrowed(spec.limits).narrowed(quota.limits)
        if workspace_id in self.workspaces.overruns:
            # Commands that remove files may run; no file may grow.
            limits = replace(limits, file_bytes=FILE_BYTES_LEAST)
        return limits

    def _allowed(
        self, workspace: Workspace, spec: ProcessSpec
    ) -> tuple[Profile | None, Network | None]:
        """Return the profile and network of a process: never more than its workspace's."""
        widest = workspace.options
        if self.sandbox.report.applied is Level.NONE:
            # Nothing can be enforced at this level, which the operator has accepted.
            return spec.profile, spec.network
        profile, network = spec.profile, spec.network
        if profile is not None and widest.profile is not None:
            profile = min(profile, widest.profile)
        if network is not None and widest.network is not None:
            network = min(network, widest.network)
        elif widest.network in (Network.OPEN, Network.PROXY):
            network = widest.network
        return profile, network

    def _entered(
        self,
        effect: Effect,
        scope: Scope,
        spec: ProcessSpec,
        directory: os.PathLike[str],
        workspace: Workspace,
    ) -> LiveProcess:
        record = ProcessRecord(
            process_id=ProcessId(self.new_id()),
            workspace_id=scope.workspace_id,
            chat_id=scope.chat_id,
            request_id=effect.request_id,
            command=spec.command,
            workdir=os.fspath(directory),
            is_background=spec.is_background,
            state=ProcessState.STARTING,
            started_at=self.clock.now(),
            stdin_mode=spec.stdin_mode,
            timeout_s=spec.timeout_s,
            log_bytes_max=self._log_bytes(scope.workspace_id, spec),
            needs_owner=spec.needs_owner,
        )
        log = OutputLog(workspace.logs, record.process_id, record.log_bytes_max)
        return LiveProcess(record, KeptOutput(log), self.clock.monotonic(), self.registry.pipes)

    def _log_bytes(self, workspace_id: WorkspaceId, spec: ProcessSpec) -> int:
        bound = self.workspaces.quota_of(workspace_id).output_bytes
        return min(spec.log_bytes_max, bound) if bound else spec.log_bytes_max

    async def _attached(self, execution: Execution) -> ProcessRecord:
        process_id = execution.process_id
        if process_id is None:
            # Its entry was acknowledged and deleted, or cancelled and acknowledged.
            raise OutcomeUnknown(execution.request_id)
        live = self.registry.live(process_id)
        if live is not None:
            await live.settled.wait()
        record = await self.registry.find(process_id)
        if record is None:
            if execution.state is ExecutionState.ACKNOWLEDGED:
                raise OutcomeUnknown(execution.request_id)
            # Removed: too many newer ones exist.
            raise ProcessNotFound(process_id)
        if record.state is ProcessState.STARTING:
            # The spawner exited between journal and exec, and this service is about to.
            lost = LostReason.START_UNCERTAIN
            return structs.replace(record, state=ProcessState.LOST, lost_reason=lost)
        return record

    async def _launch(
        self,
        live: LiveProcess,
        workspace: Workspace,
        workdir: str,
        spec: ProcessSpec,
        confinement: Confinement,
        egress_route: EgressRoute | None,
    ) -> None:
        record = live.record
        is_apart = confinement.has(Layer.NETWORK_NAMESPACE)
        has_proxy = egress_route is not None and confinement.network is Network.PROXY
        led = (
            {}
            if egress_route is None
            else egress_route.variables(is_apart=is_apart, has_proxy=has_proxy)
        )
        try:
            secret = await self.egress.secret_variables(record.workspace_id, record.process_id)
            confinement = with_scratch(confinement, workspace, record.process_id)
        except SecretUnavailable as error:
            self._fail(live, f"The program was not run: {error}.")
            return
        except LaunchFailed as error:
            self._fail(live, start_error_of(error, spec.argv[0], spec.workdir))
            return
        live.hide(secret.values())
        environment = environment_of(
            process_id=record.process_id,
            chat_id=record.chat_id,
            home=workspace.home,
            temporary=Path(confinement.temporary),
            declared={**secret, **led, **workspace.options.environment, **spec.environment},
            has_terminal=spec.stdin_mode is StdinMode.TERMINAL,
        )
        launch = Launch(
            process_id=record.process_id,
            workspace_id=record.workspace_id,
            argv=spec.argv,
            root=workspace.root,
            workdir=workdir,
            environment=environment,
            has_input=spec.stdin_mode is StdinMode.PIPE or bool(spec.stdin),
            terminal=(
                (spec.terminal.rows, spec.terminal.columns)
                if spec.stdin_mode is StdinMode.TERMINAL
                else None
            ),
            confinement=confinement,
            limits=self._limits(record.workspace_id, spec),
            required=spec.limits.given,
            quota=self.workspaces.quota_of(record.workspace_id),
            # Of a writer that of its chat, so that a later call that may only read can end it.
            mark=record.process_id if is_reader(record) else record.chat_id,
            owner_id=workspace.options.owner_id,
        )
        try:
            launched = await self.spawner.start(launch, self.monitor.exited)
        except LaunchFailed as error:
            self._fail(live, start_error_of(error, spec.argv[0], spec.workdir))
            await self.spawner.forget(record.process_id)
            return
        live.run(launched)
        if live.input is not None:
            live.input.write(spec.stdin)
            if spec.stdin_mode is StdinMode.CLOSED:
                self.monitor.end_input(live)
        self.monitor.limit_time(live, spec.timeout_s)


def _may_write(confinement: Confinement) -> bool:
    """Return whether a process may change files; without a sandbox nothing prevents it."""
    return confinement.level is Level.NONE or confinement.profile is not Profile.READ_ONLY


def with_scratch(
    confinement: Confinement, workspace: Workspace, process_id: ProcessId
) -> Confinement:
    """Return the confinement with a directory for temporary files, where none is mounted.

    Raises:
        LaunchFailed: It cannot be made.
    """
    if confinement.profile is not Profile.READ_ONLY or confinement.has_scratch:
        return confinement
    try:
        scratch = make_scratch(workspace, process_id)
    except OSError as error:
        raise LaunchFailed("scratch", error.errno or 0) from error
    return replace(confinement, temporary=str(scratch))


def start_error_of(error: LaunchFailed, program: str, workdir: str) -> str:
    """Return why a program was not executed, and what to do."""
    cause = os.strerror(error.errno) if error.errno else "a defect of Parley"
    match error.stage:
        case "exec" if program == SHELL and error.errno == errno.ENOENT:
            return (
                "There is no sh here, so no command line can be run. Start a program that is there "
                "by its words (argv), work with the files alone, or have sh put into what the "
                "workspace is made of."
            )
        case "exec":
            return f"{program} cannot be run: {cause}. Check its name and whether it is there."
        case "workdir":
            return f"The directory {workdir!r} cannot be entered: {cause}. Name another one."
        case "limits" if error.errno == errno.EOPNOTSUPP:
            return (
                "This node cannot keep a limit on processes or on the share of the processor, "
                "because it may not make control groups for that. Leave these limits out."
            )
        case "start":
            return (
                "The program was not run: it was stopped before it could begin. Something that "
                "runs in the workspace may stop whatever starts there; end that and try again."
            )
        case stage if stage.startswith(("confinement", "namespaces", "scratch")):
            return f"The program cannot be confined, so it was not run ({stage}: {cause})."
        case _:
            return f"The node cannot start processes now ({error.stage}: {cause}). Try again later."
