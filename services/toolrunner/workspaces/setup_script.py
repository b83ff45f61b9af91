"""Execution of the setup script of a workspace, confined like all its processes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolrunner.journal.records import Effect, ProcessRecord, ProcessState
from toolrunner.primitives.domain import NO_CHAT, NODE_EPOCH, Scope
from toolrunner.processes.domain import ProcessSpec
from toolrunner.processes.output.stream import Chunk, Closed, StreamEnded
from toolrunner.processes.service import Processes
from toolrunner.sandbox import Network, Profile
from toolrunner.workspaces.domain import spec as specs
from toolrunner.workspaces.domain.placement import Placement

LOG_BYTES_MAX: Final = 16 * 1024 * 1024
METHOD: Final = "setup"

PROFILES: Final = {
    specs.Profile.READ_ONLY: Profile.READ_ONLY,
    specs.Profile.WORKSPACE_WRITE: Profile.WORKSPACE_WRITE,
    specs.Profile.FULL: Profile.FULL,
}


def network_of(network: specs.Network) -> Network | None:
    """Return the network of a workspace; None for the most restrictive that can be enforced."""
    match network.access:
        case specs.NetworkAccess.OPEN:
            return Network.OPEN
        case specs.NetworkAccess.PROXY:
            return Network.PROXY
        case _:
            return None


class SetupFailed(Exception):
    """The setup script failed.

    Attributes:
        is_recreatable: Whether a retry may help.
    """

    def __init__(self, message: str, *, is_recreatable: bool) -> None:
        super().__init__(message)
        self.is_recreatable = is_recreatable


class NodeStops(Exception):
    """The node stops while the script runs; the next run of the service continues."""


@dataclass(frozen=True, slots=True)
class SetupScript:
    """Runs setup scripts; one that an earlier run of the service started is continued."""

    processes: Processes
    encode_started: Callable[[ProcessRecord], bytes]

    async def run(self, placement: Placement, logged: int, on_line: Callable[[str], None]) -> None:
        """Run the script of a workspace once for each attempt.

        Args:
            placement: The workspace.
            logged: Lines of this attempt that were logged before.
            on_line: Called with the lines that were not.

        Raises:
            SetupFailed: It failed, took too long, or its outcome is unknown.
            NodeStops: The node stops before it has ended.
        """
        spec = placement.spec
        scope = Scope(placement.workspace_id, NO_CHAT, NODE_EPOCH)
        process_spec = ProcessSpec(
            argv=("sh", "-c", spec.setup_script),
            command="setup script",
            workdir="",
            environment=spec.environment,
            is_background=True,
            timeout_s=spec.setup_timeout_s,
            log_bytes_max=LOG_BYTES_MAX,
            profile=PROFILES.get(spec.profile, Profile.WORKSPACE_WRITE),
            network=network_of(spec.policy.network),
        )
        body_hash = hashlib.sha256(spec.setup_script.encode()).digest()
        request_id = f"setup:{placement.workspace_id}:{placement.attempt}"
        effect = Effect(
            request_id, None, METHOD, body_hash, self.encode_started, placement.workspace_id
        )
        started = await self.processes.start(effect, scope, process_spec)
        record = await self._followed(scope, started.record, _Lines(logged, on_line))
        _judge(record, spec.setup_timeout_s)

    async def _followed(
        self, scope: Scope, record: ProcessRecord, lines: "_Lines"
    ) -> ProcessRecord:
        """Pass its output on until it ends."""
        if record.state is ProcessState.START_FAILED:
            return record
        stream = await self.processes.stream(scope, record.process_id, 0)
        async for event in stream.events(follows=True):
            match event:
                case Chunk(data):
                    lines.take(data)
                case StreamEnded(ended):
                    lines.end()
                    return ended
                case Closed():
                    raise NodeStops
                case _:
                    continue
        raise AssertionError("every stream has an end")


class _Lines:
    """Splits output into lines, and skips those that were logged before."""

    def __init__(self, logged: int, on_line: Callable[[str], None]) -> None:
        self._logged = logged
        self._on_line = on_line
        self._pending = b""

    def take(self, data: bytes) -> None:
        *whole, self._pending = (self._pending + data).split(b"\n")
        for line in whole:
            self._tell(line)

    def end(self) -> None:
        if self._pending:
            self._tell(self._pending)

    def _tell(self, line: bytes) -> None:
        if self._logged:
            self._logged -= 1
        else:
            self._on_line(line.rstrip(b"\r").decode(errors="replace"))


def _judge(record: ProcessRecord, timeout_s: float) -> None:
    match record.state:
        case ProcessState.EXITED if record.exit is not None:
            if record.exit.is_timed_out:
                text = f"the setup script took over {timeout_s:g} s; shorten it or give it more"
                raise SetupFailed(text, is_recreatable=False)
            if record.exit.exit_code is None:
                text = f"the setup script was ended by signal {record.exit.signal_number}"
                raise SetupFailed(text, is_recreatable=True)
            if record.exit.exit_code:
                text = (
                    f"the setup script failed with exit code {record.exit.exit_code}; "
                    "read its log and correct the template"
                )
                raise SetupFailed(text, is_recreatable=False)
        case ProcessState.START_FAILED:
            raise SetupFailed(record.start_error, is_recreatable=True)
        case _:
            text = "how far the setup script came is unknown, because the machine was restarted"
            raise SetupFailed(text, is_recreatable=True)
